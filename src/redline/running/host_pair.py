"""A pair of other hosts, as sessions and searches see it; what connects it is no core."""

from collections.abc import Sequence
from typing import Protocol

from redline.model import UsedHost
from redline.running.record import Tools


class HostPair(Protocol):
    """Hosts of which one has the servers and others the load."""

    @property
    def tools(self) -> Tools:
        """Tools for trials."""

    @property
    def used(self) -> Sequence[UsedHost]:
        """The hosts."""

    @property
    def is_lost(self) -> bool:
        """Whether a host no longer answers."""

    def interrupt(self) -> None:
        """End the loads of these hosts early."""
