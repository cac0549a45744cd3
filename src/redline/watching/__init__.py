"""Monitors, which watch a trial, and the facts of the machine."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.watching.gc_traces import Traced
    from redline.watching.jvm import Jvm, compilers_of
else:
    __getattr__ = offered(__name__)
