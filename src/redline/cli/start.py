"""Where an installed `redline` script of an earlier version begins."""

from redline.cli.main import main

__all__ = ["main"]
