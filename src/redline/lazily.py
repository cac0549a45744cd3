"""Packages that offer names of their modules and import each module when a name of it is first used.

A command thus imports what it uses, also where it takes names from packages. Such a package imports its names under
`if TYPE_CHECKING:`, where readers and type checkers see them, and says `__getattr__ = offered(__name__)` below.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

_IMPORT = re.compile(r"^    from (redline\.[\w.]+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def offered(package: str) -> Callable[[str], object]:
    """Return the `__getattr__` of a package: it finds the names that the package imports under TYPE_CHECKING."""
    module = sys.modules[package]
    homes = homes_of(Path(str(module.__file__)).read_text(encoding="utf-8"))

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = homes[name]
        value = getattr(import_module(home), original)
        setattr(module, name, value)
        return value

    return find


def homes_of(source: str) -> dict[str, tuple[str, str]]:
    """Map the names that a source imports under a condition to their modules, and to their names there."""
    homes = {}
    for home, several, single in _IMPORT.findall(source):
        for item in filter(None, (part.strip() for part in (several or single).split(","))):
            original, _, alias = item.partition(" as ")
            homes[alias or original] = (home, original)
    return homes
