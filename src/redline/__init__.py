"""Redline: a performance lab for HTTP servers whose numbers nobody has to doubt."""

from importlib.metadata import version

__version__ = version("redline")
