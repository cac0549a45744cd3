"""Monitors, which watch a trial."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.plugins.monitors.jvm import compilers_of
else:
    __getattr__ = offered(__name__)
