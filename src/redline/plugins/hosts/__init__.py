"""Trials on several hosts: an agent on every host, and the launcher, driver and monitors that talk to it."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.plugins.hosts.launcher import RemoteLauncher
    from redline.plugins.hosts.ray_cluster import connected
    from redline.plugins.hosts.remote import Pair
else:
    __getattr__ = offered(__name__)
