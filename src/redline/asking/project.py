"""`redline.yaml` as a suite, in which each value has its place in the file. Pure.

Several servers are compared as `redline ab` compares two; a single server is loaded on every start once it is steady.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from pathlib import PurePath

from redline.asking.written import Sourced, of_file, plain
from redline.defaults import AB_BUDGET, AB_MOST, AB_USERS, RUN_LENGTH
from redline.errors import UsageError
from redline.model.load import Replay
from redline.quantities import parse_duration
from redline.schema.document import Document, Path
from redline.schema.objectives import Selectable, parse_objectives
from redline.schema.project import CHECK, JOURNEY, MIX
from redline.suite.budget import MOST_COMPARED
from redline.suite.project import IN_SUITES, Project
from redline.suite.validate.experiment import unfit
from redline.wording import advising, part


def run_document(
    project: Project, globs: Sequence[str] = (), scenarios: Sequence[str] = (), loads: Sequence[str] = ()
) -> dict[str, object]:
    """Return the suite that `redline run` measures if none is named, with the servers that a glob selects.

    Without globs, all servers. The first selected server is the baseline.
    `scenarios` and `loads` are the globs that will select from the suite: a smaller selection takes less time.
    """
    named, chosen = [server.name for server in project.written.servers or ()], chosen_of(project, globs)
    servers = servers_of(project, folder_of(project))
    servers = [servers[index] for index in chosen] or servers
    document: dict[str, object] = {"servers": servers, **routes_of(project), "scenarios": scenarios_of(project)}
    written = [load.load(name, Replay((0,))) for name, load in (project.written.loads or {}).items()]
    variants = variants_of(project, chosen)
    if variants > 1:
        if project.written.budget is not None or not any(map(unfit, written)):
            # Without a baseline, it is the first route to the first server.
            baseline = {} if variants > len(servers) else {"baseline": named[min(chosen, default=0)]}
            parts = parts_of(document["scenarios"], scenarios) * parts_of(loads_of(project), loads)
            budget = budget_of(project, variants, parts)
            return document | baseline | {"loads": loads_of(project), "budget": budget}
        document["baseline"] = named[min(chosen, default=0)]
    elif project.written.objective:
        document["objective"] = of_file(project.document, ("objective",))
    if not any(load.changes for load in written):
        document["warmup"] = {"detect": {}}
    return document | {"loads": loads_of(project, lasting=RUN_LENGTH)}


def chosen_of(project: Project, globs: Sequence[str]) -> list[int]:
    """Return the indices of the servers that a glob selects."""
    servers = project.written.servers or ()
    return [index for index, server in enumerate(servers) if any(fnmatchcase(server.name, glob) for glob in globs)]


def variants_of(project: Project, chosen: Sequence[int] = ()) -> int:
    """Count the variants to measure: every server, or those with these indices, once for each of its routes."""
    servers = project.written.servers or ()
    return sum(len(server.route) for at, server in enumerate(servers) if not chosen or at in chosen) or 1


def routes_of(project: Project) -> dict[str, object]:
    """The routes that the file names, if any."""
    return {} if project.written.routes is None else {"routes": of_file(project.document, ("routes",))}


def folder_of(project: Project) -> str:
    """The folder of the file, in which its commands run."""
    return str(PurePath(project.document.file).parent)


def first_of(project: Project) -> str:
    """The name of the first of several servers: the baseline."""
    servers = project.written.servers
    assert servers, "a server without a name has no other beside it"
    return servers[0].name


def servers_of(project: Project, folder: str) -> list[dict[str, object]]:
    """The servers of the file, with a folder for their commands."""
    document, paths = project.document, list[Path]([()])
    if project.written.servers is not None:
        paths = [("servers", index) for index in range(len(project.written.servers))]
    return [_server(document, path, folder) for path in paths]


def _server(document: Document, path: Path, folder: str) -> dict[str, object]:
    written = _mapping(document, path)
    server = {IN_SUITES[key]: value for key, value in written.items() if key in IN_SUITES}
    if "compose" in written:
        file = str(PurePath(folder, str(document.at((*path, "compose")))))
        server["compose"] = Sourced(str(document.place((*path, "compose"))), file)
    return server if "url" in written else server | {"folder": folder}


def scenarios_of(project: Project, globs: Sequence[str] = ("*",)) -> list[object]:
    """A scenario for each of `requests` that a glob selects, and a mix of several; or that of `journey` or `check`."""
    if (requests := project.written.requests) is not None:
        chosen = [index for index, request in enumerate(requests) if any(fnmatchcase(request.name, g) for g in globs)]
        return scenarios_at(project.document, [("requests", index) for index in chosen])
    if project.written.journey is not None:
        return [journey_at(project.document)]
    return [{"name": CHECK, **(_mapping(project.document, (CHECK,)) or {"get": "/"})}]


def journey_at(document: Document) -> dict[str, object]:
    """The scenario of the journey that a file has."""
    return {"name": JOURNEY, JOURNEY: of_file(document, (JOURNEY,))}


def scenarios_at(document: Document, paths: Sequence[Path]) -> list[object]:
    """A scenario for the request at each of these paths, and a mix of several by weight."""
    alone: list[object] = [_request(document, path, "weight") for path in paths]
    if len(alone) < 2:
        return alone
    return [*alone, {"name": MIX, "requests": [_request(document, path) for path in paths]}]


def _request(document: Document, path: Path, without: str = "") -> Sourced:
    values = {key: value for key, value in _mapping(document, path).items() if key != without}
    return Sourced(str(document.place(path)), values)


def loads_of(project: Project, *, lasting: str | None = None) -> dict[str, object]:
    """The loads of the file, else many users. With `lasting`, all have this length."""
    named = {name: _mapping(project.document, ("loads", name)) for name in project.written.loads or ()}
    length = {} if lasting is None else {"for": lasting}
    return {name: {**length, **load} for name, load in (named or {"load": {"closed": {"users": AB_USERS}}}).items()}


def budget_of(project: Project, servers: int, parts: int) -> object:
    """The time that a comparison of `servers` takes: the file's, or `default_budget`."""
    if project.written.budget is not None:
        return of_file(project.document, ("budget",))
    return default_budget(servers, parts)


def default_budget(servers: int, parts: int) -> str:
    """A minute for each part of each duet, and 20 minutes at most. A part is a request under a load."""
    duets = -(-(servers - 1) // MOST_COMPARED)
    return f"{min(duets * parts * parse_duration(AB_BUDGET), parse_duration(AB_MOST)) // 1_000_000_000}s"


def parts_of(written: object, globs: Sequence[str]) -> int:
    """Count the scenarios or loads of a document that globs select; all without globs, and at least 1."""
    named = plain(written)
    items = named if isinstance(named, list) else []
    names = [*named] if not items else [str(item["name"] if isinstance(item, dict) else item) for item in items]
    chosen = [name for name in names if not globs or any(fnmatchcase(name, glob) for glob in globs)]
    return max(len(chosen), 1)


def searched_objectives(project: Project) -> object:
    """The objectives of a search, without conditions on loads of the file. Raises UsageError.

    `redline run` uses those: a search makes its own load.
    """
    written, path = project.written.objective or {}, ("objective",)
    names = Selectable.of(project.written.loads or (), project.scenarios)
    parsed = {name: parse_objectives(", ".join(texts), names) for name, texts in written.items()}
    if not any(c.load for conditions in parsed.values() for c in conditions):
        return of_file(project.document, path)
    left = {name: [c.text for c in conditions if c.load is None] for name, conditions in parsed.items()}
    left = {name: texts for name, texts in left.items() if texts}
    place = str(project.document.place(path))
    if not left:
        hint = f"add one without a load, such as `p99 < 200ms`, or give {part('objective')}"
        raise UsageError(
            f"{place}: each condition is for a load of `redline run`; a search has its own load", hint=hint
        )
    return Sourced(place, left.get("", left))


def in_its_words(project: Project | None) -> AbstractContextManager[None]:
    """Let advice name the keys of redline.yaml in place of those that only suites have, if `project` is given."""
    if project is None:
        return nullcontext()
    return advising(
        {
            "requests": "move it to `check`",
            "websocket": "write http:// or https://; `redline load` takes such a URL",
            "trials": "remove `budget`: it is then compared by trials",
            "warm-up": f"give a time, such as {part('warmup', '30s')}",
        }
    )


def _mapping(document: Document, path: Path) -> Mapping[str, object]:
    """Return the keys and values of a mapping in the file; empty if it is not a mapping."""
    written = document.at(path)
    return {key: of_file(document, (*path, key)) for key in written} if isinstance(written, dict) else {}
