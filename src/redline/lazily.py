"""Packages that offer names of their modules and import each module when a name of it is first used.

A command thus imports what it uses, also where it takes names from packages. Such a package imports its names under
`if TYPE_CHECKING:`, where readers and type checkers see them, and says `__getattr__ = offered(__name__)` below.

And `dataclass`: that of the standard library, which makes the methods of a frozen class when it is first used. Making
them takes as long as importing a small module, and a command uses a third of the classes that it imports.
"""

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: Any) -> Any:
        """Make a dataclass, as `dataclasses.dataclass` does; a frozen one without slots later."""
        if kind is None:
            return partial(dataclass, **options)
        if not options.get("frozen") or options.get("slots"):
            return dataclasses.dataclass(kind, **options)
        return _Unfinished(kind, options).kind


_IMPORT = re.compile(r"^    from (redline\.[\w.]+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


class LateModule(ModuleType):
    """A module that is imported when a name of it is first used: `np = LateModule("numpy")`."""

    def __getattr__(self, name: str) -> object:
        """What the module has by the name. Raises AttributeError and ImportError."""
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def late(package: str, *names: str) -> Iterator[LateModule]:
    """Yield modules of a package that are imported when they are first used."""
    return (LateModule(f"{package}.{name}") for name in names)


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


_MADE = (
    *("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__"),
)
"""What makes a frozen class a dataclass, unless it has some of that itself."""
_making = RLock()


class _Unfinished:
    """A class that is to be a frozen dataclass: whatever is used of `_MADE` finishes it first."""

    def __init__(self, kind: type, options: dict[str, Any]) -> None:
        self.kind, self._options = kind, options
        self._missing = [name for name in _MADE if name not in vars(kind)]
        for name in self._missing:
            setattr(kind, name, _Later(self, name))

    def finish(self) -> None:
        """Give the class what a twin of it gets as a dataclass, one after the other: other threads may use it."""
        with _making:
            if not self._missing:
                return
            kind, own = self.kind, dict(vars(self.kind))
            for name in (*self._missing, "__dict__", "__weakref__"):
                own.pop(name, None)
            own["__qualname__"] = kind.__qualname__
            twin: Any = dataclasses.dataclass(type(kind)(kind.__name__, kind.__bases__, own), **self._options)
            made = vars(twin)
            for name in made["__dataclass_fields__"]:  # defaults, some of which a dataclass takes from its class
                if name in own and name not in made:
                    delattr(kind, name)
                elif name in made and made[name] is not own[name]:
                    setattr(kind, name, made[name])
            for name in self._missing:
                if name in made:
                    setattr(kind, name, _of(kind, made[name]))
                else:
                    delattr(kind, name)
            kind.__doc__ = twin.__doc__
            self._missing = []


def _of(kind: type, made: Any) -> Any:
    """What was made for a twin of a class, for the class itself: two methods of a frozen class know theirs."""
    for name, cell in zip(made.__code__.co_freevars, made.__closure__ or (), strict=True) if callable(made) else ():
        if name == "cls":
            cell.cell_contents = kind
    return made


class _Later:
    """What a class will have by a name."""

    def __init__(self, unfinished: _Unfinished, name: str) -> None:
        self._unfinished, self._name = unfinished, name

    def __get__(self, instance: object, owner: type) -> Any:
        """Finish the class, and return what it has, bound to its instance."""
        self._unfinished.finish()
        found = getattr(self._unfinished.kind, self._name)
        return found.__get__(instance, owner) if instance is not None and callable(found) else found
