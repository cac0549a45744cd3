"""The earlier name of `redline.selftest.rig`, until the command line imports that."""

from redline.selftest.rig import Rig as Bench

__all__ = ["Bench"]
