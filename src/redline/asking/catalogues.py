"""The catalogues that a command reads: the user's, near a suite or the current folder, and the built-in catalogue."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from redline.asking import places
from redline.asking.written import NO_CATALOGUE, plain
from redline.errors import UsageError
from redline.lazily import dataclass
from redline.model import OptionValue, ServerEntry
from redline.model.catalogue import is_among, option_text
from redline.quantities import did_you_mean
from redline.suite import Catalogue, load_catalogue

_FULL_NAME = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*(@[A-Za-z0-9._-]+)?(\+[a-z][A-Za-z0-9_-]*=[^+\s]+)*")

Origin = Literal["redline.yaml", "catalogue", "built-in"]
"""The place where a server is defined: the user's file, the user's catalogue, or ours."""


@dataclass(frozen=True)
class Catalogues:
    """The user's catalogue, which may be empty, and the built-in catalogue. The user's has precedence by name."""

    own: Catalogue
    built_in: Catalogue

    @property
    def merged(self) -> Catalogue:
        """All servers and scenarios, the user's first."""
        return self.own.over(self.built_in)

    @property
    def nearest(self) -> Catalogue:
        """The user's catalogue, if there is one."""
        return self.own if self.own.servers else self.built_in

    def origin(self, entry: ServerEntry) -> Origin:
        """Return where a server of the merged catalogue is defined."""
        return "catalogue" if entry.name in self.own.servers else "built-in"


def read_catalogues(near: Path | None = None) -> Catalogues:
    """Read the catalogues near a suite, else near the current folder. Raises UsageError with all of their problems.

    A user's folder `catalogue/` without any `<family>/server.yaml` has another purpose, and is ignored.
    """
    own, built_in = NO_CATALOGUE, NO_CATALOGUE
    for folder in places.projects(near):
        if places.is_built_in(folder):
            built_in = load_catalogue(folder / "catalogue")
        elif any((folder / "catalogue").glob("*/server.yaml")):
            own = load_catalogue(folder / "catalogue")
    return Catalogues(own, built_in)


def named_in(targets: Iterable[str]) -> Catalogue:
    """The servers of the catalogues near the current folder by how they are named: `vertx.vanilla@5+interceptor=off`.

    With any, also the scenarios of the catalogues. Raises UsageError for a version or an option that such a server has
    not, and for a name that is like another of its family.
    """
    named = {target: target.partition("+")[0] for target in sorted(targets) if _FULL_NAME.fullmatch(target)}
    everything = read_catalogue(Path("suite.yaml")) if named else NO_CATALOGUE
    servers = everything.servers
    for target, name in named.items():
        server, at, version = name.partition("@")
        if at and server in servers and name not in servers:
            others = ", ".join(name for name in servers if name.startswith(f"{server}@"))
            hint = f"there is {others}" if others else "its server.yaml names no `versions`"
            raise UsageError(f"{server} has no version {version}", hint=hint)
        if name in servers:
            options_in(target, servers[name])
        _check_is_like_no_other(server, servers)
    known = {target: servers[name] for target, name in named.items() if name in servers}
    return Catalogue(servers=known, scenarios=everything.scenarios if known else {})


def _check_is_like_no_other(name: str, servers: Iterable[str]) -> None:
    """Raise UsageError for a name that is like one of its family: otherwise it is a host or a revision."""
    family, _, own = name.partition(".")
    known = tuple(other.partition(".")[2] for other in servers if other.startswith(f"{family}."))
    if own not in known and (near := did_you_mean(own, known)):
        hint = f"{near} Of a host, write the URL: http://{name}/"
        raise UsageError(f"the family {family} of the catalogue has no server {own}", hint=hint)


def options_in(target: str, entry: ServerEntry) -> dict[str, OptionValue]:
    """The options that a target gives a server of the catalogue, but its defaults. Raises UsageError for others."""
    options = dict[str, OptionValue]()
    for written in target.split("+")[1:]:
        name, _, text = written.partition("=")
        if name not in entry.options:
            hint = f"it has {', '.join(sorted(entry.options))}" if entry.options else "it has none"
            raise UsageError(f"{entry.name} has no option `{name}`", hint=hint)
        option = entry.options[name]
        value = next((value for value in option.values if option_text(value) == text), text)
        if not entry.takes(name, value):
            raise UsageError(entry.refusal(name, value), hint="choose one of these, or leave it out")
        if not is_among(value, (option.default,)):
            options[name] = value
    return options


def catalogue_of(document: Mapping[str, object], folder: Path) -> Catalogue:
    """Return what a document names of the catalogues of a folder: its servers, and the proxies, which routes may name.

    With any server come all scenarios. Other servers are left out, so that those of the document may have any name.
    Nothing is read if nothing is named.
    """
    servers = plain(document)["servers"]
    used = {server["use"] for server in servers if "use" in server}
    has_routes = "routes" in document or any("route" in server for server in servers)
    if not used and not has_routes:
        return NO_CATALOGUE
    known = read_catalogue(folder / "suite.yaml")
    named = {
        name: entry for name, entry in known.servers.items() if name in used or (has_routes and entry.kind == "proxy")
    }
    return Catalogue(servers=named, scenarios=known.scenarios if used else {})


def read_catalogue(near: Path) -> Catalogue:
    """Return the merged catalogue near a suite; an empty catalogue if there is none."""
    try:
        places.projects(near)
    except UsageError:
        return NO_CATALOGUE
    return read_catalogues(near).merged
