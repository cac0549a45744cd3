"""Drivers: Scenario + Load -> Traffic."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.plugins.drivers.of_packages import own_driver
else:
    __getattr__ = offered(__name__)
