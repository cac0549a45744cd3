"""Trials on several hosts: an agent on every host, and the launcher, driver and monitors that talk to it."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.extras.hosts.launcher import RemoteLauncher
    from redline.extras.hosts.ray_cluster import connected
    from redline.extras.hosts.remote import Pair
else:
    __getattr__ = offered(__name__)
