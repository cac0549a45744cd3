"""Adapters: implementations of the ports."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.plugins.revisions import Repository
else:
    __getattr__ = offered(__name__)
