"""Whose CPU time is read for the servers of a duet: what is not proved to be a server's is left out of its traffic."""

from collections.abc import Callable, Sequence

from redline.model import DuetBlock, DuetTraffic
from redline.model.duet import CpuOwner
from redline.ports import Endpoint, RunningServer, ServerWatch


class Watches:
    """The watch over each server; two of one address share one."""

    def __init__(self, servers: Sequence[RunningServer], watch: Callable[[RunningServer], ServerWatch]) -> None:
        found: dict[Endpoint, ServerWatch] = {}
        for server in servers:
            if server.endpoint not in found:
                found[server.endpoint] = watch(server)
        self._by_endpoint = found
        self._of_each = [server.endpoint for server in servers]

    @property
    def pids(self) -> tuple[tuple[int, ...], ...]:
        """The processes of each server."""
        return tuple(self._by_endpoint[each].pids for each in self._of_each)

    def looking(self, on_block: Callable[[DuetBlock], None]) -> Callable[[DuetBlock], None]:
        """What sees a block, with a look at the servers."""

        def seen(block: DuetBlock) -> None:
            for watch in self._by_endpoint.values():
                watch.look()
            on_block(block)

        return seen

    def finish(self, traffic: DuetTraffic | None) -> tuple[DuetTraffic | None, tuple[CpuOwner, ...]]:
        """The traffic without CPU time that is not known to be a server's, and whose was read; none where all is."""
        by_endpoint = {endpoint: watch.finish() for endpoint, watch in self._by_endpoint.items()}
        owners = tuple(by_endpoint[each] for each in self._of_each)
        unknown = frozenset(target for target, owner in enumerate(owners) if owner.unknown)
        known = traffic.without_cpu(unknown) if traffic and unknown else traffic
        return known, owners if any(owner != CpuOwner() for owner in owners) else ()
