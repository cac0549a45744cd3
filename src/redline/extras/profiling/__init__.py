"""Profilers, which sample the stacks of a server or of the load engine."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.extras.profiling.machine import MachineProfilers
else:
    __getattr__ = offered(__name__)
