"""What is loaded by name: entry points of other packages, and of what Redline keeps out of its core."""

from collections.abc import Iterable
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from redline.errors import UsageError
from redline.lazily import dataclass
from redline.quantities import clip, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

EXTRAS = "redline.extras"
"""The group of what is no core. Only these entry points name it: no module of the core imports it."""


@dataclass(frozen=True)
class Extension:
    """An entry point of another package. `what` names its kind in messages; `page` explains how to write it."""

    point: "EntryPoint"
    what: str
    page: str

    def __str__(self) -> str:
        """`the monitor queue of redline-queue`."""
        return f"the {self.what} {self.point.name} of {package_of(self.point)}"

    @property
    def hint(self) -> str:
        """The advice where it fails."""
        return f"tell the authors of {package_of(self.point)}, or correct it: {self.page}"

    @property
    def version(self) -> str:
        """The version of its package; empty if not known."""
        return self.point.dist.version if self.point.dist is not None else ""

    def load(self) -> Any:
        """Import it. Raises UsageError if that fails, or if it cannot be called."""
        try:
            loaded = self.point.load()
        except Exception as error:
            raise UsageError(f"{self} cannot be loaded: {self.reason(error)}", hint=self.hint) from error
        if not callable(loaded):
            message = f"{self} cannot be called: `{self.point.value}` is {type(loaded).__name__}"
            raise UsageError(message, hint=self.hint)
        return loaded

    def reason(self, error: BaseException) -> str:
        """An error of its code in one line, with the last place in the package, or else where it was raised."""
        frames = extract_tb(error.__traceback__)
        own = [frame for frame in frames if self.point.module.replace(".", "/") in frame.filename]
        where = (own or frames)[-1]
        said = clip(" ".join(str(error).split()), 200)
        return f"{type(error).__name__}: {said} ({Path(where.filename).name}:{where.lineno})"


def extension(group: str, name: str, what: str, page: str, known: Iterable[str] = ()) -> Extension:
    """Find the only entry point of this group and name.

    `known` are further names that a user may have meant. Raises UsageError if no package brings it, or several do.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - importing it takes long

    foreign = entry_points(group=group)
    points = {point.value: point for point in foreign if point.name == name}
    if not points:
        names = (*known, *sorted(foreign.names))
        listed = f"use one of {', '.join(names)}" if names else f"install the package that brings it: {page}"
        raise UsageError(f"there is no {what} {name}", hint=did_you_mean(name, names) or listed)
    point, *others = points.values()
    if others:
        packages = ", ".join(map(package_of, points.values()))
        raise UsageError(f"several packages bring a {what} {name}: {packages}", hint="uninstall all of them but one")
    return Extension(point, what, page)


def extra(name: str, asked: str) -> Any:
    """Load what is no core. `asked` is what needs it, as a person wrote it. Raises UsageError where it is absent.

    Also where it needs a package that is not installed: that of the optional dependencies with its name.
    """
    try:
        loaded = extra_if_installed(name)
    except ModuleNotFoundError as error:
        raise missing_package(asked, error.name or name, name) from None
    if loaded is None:
        raise UsageError(asked + f": this installation of Redline has no `{name}`", hint="install all of Redline again")
    return loaded


def extra_if_installed(name: str) -> Any:
    """Load what is no core; None where it is absent."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - importing it takes long

    for point in entry_points(group=EXTRAS, name=name):
        try:
            return point.load()
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(EXTRAS):
                raise
    return None


def missing_package(asked: str, module: str, dependencies: str) -> UsageError:
    """The refusal of what needs a module that only these optional dependencies of Redline bring."""
    message = asked + f" needs the package {module.partition('.')[0]}, which is not installed"
    hint = f"pip install 'redline[{dependencies}]'; in a checkout: uv sync --extra {dependencies}"
    return UsageError(message, hint=hint)


def package_of(point: "EntryPoint") -> str:
    """The name of the package that brings an entry point."""
    return point.dist.name if point.dist is not None else point.value
