"""The process of the load engine: scenario and load become traffic, and single requests become answers."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.driving.of_packages import own_driver
else:
    __getattr__ = offered(__name__)
