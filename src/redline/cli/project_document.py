"""`redline.yaml` as the document of a suite, in which each value has its place in the file. Pure.

Several servers are compared as `redline ab` compares two; of a server alone, each start is loaded once it is steady.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

from redline.cli.written import Given, of_file
from redline.defaults import AB_BUDGET, AB_USERS, RUN_LENGTH
from redline.quantities import parse_duration
from redline.suite.budget import MOST_COMPARED
from redline.suite.project import Project
from redline.suite.schema.document import Document, Path
from redline.suite.schema.project import CHECK, MIX
from redline.suite.schema.setup import SetupSchema
from redline.suite.validate.experiment import unfit

_KEYS = {
    "name": "name",
    "url": "url",
    "start": "command",
    **{key: key for key in SetupSchema.model_fields},
    "runtime": "runtime",
    "ready": "ready",
    "stop": "stop",
}
"""The keys of a server in redline.yaml that suites have too, with their names there. Builds are not the suite's."""


def run_document(project: Project, globs: Sequence[str] = ()) -> dict[str, object]:
    """The suite that `redline run` measures without any other, of the servers that a glob selects.

    All of them without globs; what a glob does not select is not compared, so the first that is left is the baseline.
    """
    named = [server.name for server in project.written.servers or ()]
    chosen = [index for index, name in enumerate(named) if any(fnmatchcase(name, glob) for glob in globs)]
    servers = servers_of(project, folder_of(project))
    servers = [servers[index] for index in chosen] or servers
    document: dict[str, object] = {"servers": servers, "scenarios": scenarios_of(project)}
    loads = [load.load(name, (0,)) for name, load in (project.written.loads or {}).items()]
    if len(servers) > 1:
        document["baseline"] = named[min(chosen, default=0)]
        if project.written.budget is not None or not any(map(unfit, loads)):
            return document | {"loads": loads_of(project), "budget": budget_of(project, len(servers))}
    elif project.written.objective:
        document["objective"] = of_file(project.document, ("objective",))
    if not any(load.changes for load in loads):
        document["warmup"] = {"detect": {}}
    return document | {"loads": loads_of(project, lasting=RUN_LENGTH)}


def folder_of(project: Project) -> str:
    """The folder of the file, in which its commands run."""
    return str(PurePath(project.document.file).parent)


def first_of(project: Project) -> str:
    """The name of the first of several servers, with which the others are compared."""
    servers = project.written.servers
    assert servers, "a server without a name has no other beside it"
    return servers[0].name


def servers_of(project: Project, folder: str) -> list[dict[str, object]]:
    """The servers that the file names, whose commands run in a folder."""
    document, paths = project.document, list[Path]([()])
    if project.written.servers is not None:
        paths = [("servers", index) for index in range(len(project.written.servers))]
    return [_server(document, path, folder) for path in paths]


def _server(document: Document, path: Path, folder: str) -> dict[str, object]:
    written = _mapping(document, path)
    server = {suite_key: written[key] for key, suite_key in _KEYS.items() if key in written}
    return server if "url" in written else server | {"folder": folder}


def scenarios_of(project: Project, globs: Sequence[str] = ("*",)) -> list[object]:
    """A scenario for each request of `requests` that a glob selects, and a mix of several; or that of `check`."""
    if (requests := project.written.requests) is not None:
        chosen = [index for index, request in enumerate(requests) if any(fnmatchcase(request.name, g) for g in globs)]
        return scenarios_at(project.document, [("requests", index) for index in chosen])
    return [{"name": CHECK, **(_mapping(project.document, (CHECK,)) or {"get": "/"})}]


def scenarios_at(document: Document, paths: Sequence[Path]) -> list[object]:
    """A scenario for the request at each of these places, and a mix of several by weight."""
    alone: list[object] = [_request(document, path, "weight") for path in paths]
    if len(alone) < 2:
        return alone
    return [*alone, {"name": MIX, "requests": [_request(document, path, "name") for path in paths]}]


def _request(document: Document, path: Path, without: str) -> Given:
    values = {key: value for key, value in _mapping(document, path).items() if key != without}
    return Given(str(document.place(path)), values)


def loads_of(project: Project, *, lasting: str | None = None) -> dict[str, object]:
    """The loads that the file names, else many users. With `lasting`, all say how long they are."""
    named = {name: _mapping(project.document, ("loads", name)) for name in project.written.loads or ()}
    length = {} if lasting is None else {"for": lasting}
    return {name: {**length, **load} for name, load in (named or {"load": {"closed": {"users": AB_USERS}}}).items()}


def budget_of(project: Project, servers: int) -> object:
    """How long so many servers are compared: as it says, or a minute for each request and load in each duet."""
    written = project.written
    if written.budget is not None:
        return of_file(project.document, ("budget",))
    duets = -(-(servers - 1) // MOST_COMPARED)
    minutes = duets * len(scenarios_of(project)) * len(written.loads or [0])
    return f"{minutes * parse_duration(AB_BUDGET) // 1_000_000_000}s"


def _mapping(document: Document, path: Path) -> Mapping[str, object]:
    """The keys of a mapping in the file with their values; none where there is no mapping."""
    written = document.at(path)
    return {key: of_file(document, (*path, key)) for key in written} if isinstance(written, dict) else {}
