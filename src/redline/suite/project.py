"""Read `redline.yaml` and files of requests, and make servers from commands. Pure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from posixpath import normpath

from redline.errors import UsageError, WrongValueError
from redline.lazily import dataclass
from redline.model import Frozen, Leg, Ready, Request, Scenario, ServedTls, ServerEntry, Start, Stop
from redline.model.catalogue import Checkout, ComposeService, Option, OptionValue, OwnImage, has_tls, http_of
from redline.model.template import first_of, rows_used, taken
from redline.quantities import clip
from redline.schema.bodies import BODIES
from redline.schema.document import Document, Path, parse_document
from redline.schema.objectives import Selectable, parse_objectives
from redline.schema.project import (
    CHECK,
    JOURNEY,
    MIX,
    NamedSchema,
    ProjectSchema,
    ProjectServerSchema,
    StartedSchema,
)
from redline.schema.scenario import ScenarioSchema
from redline.schema.server import ReadySchema, StopSchema
from redline.schema.setup import SetupSchema
from redline.schema.shell import read_command
from redline.schema.suite import ServerSchema
from redline.suite.validate.checking import Sheet
from redline.suite.validate.journeys import check_has_no_journey, read_scenario
from redline.suite.validate.referenced_files import NO_FILES, Files, picks_of, with_files

PROJECT_FILE = "redline.yaml"
JVM_READY_NS = 60_000_000_000
"""The time to become ready for JVMs, and for containers, whose runtime is not known beforehand."""
IN_SUITES = {key: {"start": "command"}.get(key, key) for key in ProjectServerSchema.model_fields if key != "build"}
"""The keys of a server in redline.yaml, with their names in suites. Suites have no builds."""
_REFERENCE = "docs/guide/my-server.md"


class Own(Frozen):
    """How a user's server is started, made ready and stopped, as far as it is written.

    It is a command, an image, a service of a compose file, or what the launcher of another package starts. The first
    value of its settings is the default.
    """

    command: str = ""
    image: OwnImage | None = None
    compose: ComposeService | None = None
    launcher: str | None = None
    settings: dict[str, list[OptionValue]] = {}
    folder: str = "."
    setup: SetupSchema = SetupSchema()
    runtime: str | None = None
    ready: ReadySchema | None = None
    stop: StopSchema | None = None

    def entry(
        self, name: str, asked: Sequence[Scenario], leg: Leg = "h1", checkout: Checkout | None = None
    ) -> ServerEntry:
        """The server; it is ready when it answers the first request of `asked`. Raises WrongValueError for its command.

        Its runtime is detected once it runs, unless it is given or clear from the command. A virtual machine gets
        more time to become ready, and so does a container.
        """
        parts = read_command(self.command) if self.command else ()
        runtime = self.runtime or ("jvm" if parts and PurePath(parts[0]).name == "java" else "")
        slow = runtime == "jvm" or self.image is not None or self.compose is not None
        ready = ready_of(asked).model_dump() | ({"within_ns": JVM_READY_NS} if slow else {})
        return ServerEntry(
            name=name,
            about=self._about,
            runtime=runtime,
            family_folder=self.folder,
            checkout=checkout,
            image=self.image,
            compose=self.compose,
            launcher=self.launcher,
            options={name: Option(values=tuple(known), default=known[0]) for name, known in self.settings.items()},
            start=self._start(parts),
            ready=Ready.model_validate(ready | _asked_for(self.ready)),
            stop=Stop.model_validate(self.stop.model_dump(exclude_none=True) if self.stop else {}),
            http=(http_of(leg),),
            tls=ServedTls() if has_tls(leg) else None,
        )

    @property
    def _about(self) -> str:
        if self.image is not None:
            return self.image.name
        if self.launcher is not None:
            return f"started by the launcher {self.launcher}"
        return self.command if self.compose is None else f"{self.compose.service} of {self.compose.file}"

    def _start(self, command: tuple[str, ...]) -> Start:
        setup = self.setup.model_dump(exclude_defaults=True)
        if self.setup.env_file is not None:
            setup["env_file"] = normpath(PurePath(self.folder) / self.setup.env_file)
        return Start(command=command, **setup)


@dataclass(frozen=True)
class Project:
    """A `redline.yaml`: `own` is the server of revisions, if there is any, and `scenarios` are for all servers.

    `own` is the only server, if it has a command, or `start` beside several servers. `written` is the content of the
    file, and `document` has its positions; `build` builds the server of revisions, in a shell.
    """

    build: str | None
    own: Own | None
    scenarios: tuple[Scenario, ...]
    written: ProjectSchema
    document: Document

    def server(self, name: str, leg: Leg = "h1", checkout: Checkout | None = None) -> ServerEntry:
        """The server of revisions under a name, built from a checkout, and serving a leg."""
        assert self.own is not None, "callers that name a revision have checked it"
        return self.own.entry(name, self.scenarios, leg, checkout)

    def servers(self, folder: str) -> dict[str, ServerSchema]:
        """The servers of the file, in the form of a suite; their commands run in `folder`."""
        return {server.name: _as_in_suites(server, folder) for server in self.written.servers or ()}


def _as_in_suites(server: ProjectServerSchema, folder: str) -> ServerSchema:
    """A server of `redline.yaml` in the form of a suite, with paths in `folder`."""
    given = server.model_fields_set & IN_SUITES.keys()
    written: dict[str, object] = {IN_SUITES[key]: getattr(server, key) for key in given}
    if server.url is None:
        written["folder"] = folder
    if server.compose is not None:
        written["compose"] = str(PurePath(folder) / server.compose)
    return ServerSchema.model_validate(written)


def no_checkout(_revision: str) -> Checkout:
    """Raise UsageError: there is no repository to look in."""
    raise UsageError("there is no git repository here", hint="name servers by commands, URLs, or from the catalogue")


def no_project() -> Project:
    """Raise UsageError: there is no repository to look in."""
    raise UsageError("there is no git repository here", hint="write `scenarios`")


@dataclass(frozen=True)
class Origins:
    """Things that a suite refers to: revisions and their project, and the servers of a `redline.yaml` by name.

    All three raise UsageError. `folder` is the suite's folder, in which its commands run.
    """

    checkout: Callable[[str], Checkout] = no_checkout
    project: Callable[[], Project] = no_project
    folder: str = "."
    servers: Callable[[], Mapping[str, ServerSchema]] = dict


def read_project(text: str, file: str, files: Files = NO_FILES) -> Project:
    """The project of a `redline.yaml`. Raises UsageError with everything that is wrong with the file."""
    document = _with_requests(parse_document(text, file), files)
    sheet = Sheet(document, ProjectSchema, _REFERENCE, {BODIES: files.body})
    written = sheet.read(ProjectSchema)
    if written and written.requests:
        scenarios = _scenarios(sheet, ("requests",), written.requests, files)
    elif written and written.journey:
        scenario = read_scenario(sheet, (), JOURNEY, ScenarioSchema(journey=written.journey), files)
        scenarios = () if scenario is None else (scenario,)
    else:
        request = written.check.request() if written and written.check else Request()
        picks = picks_of(sheet, ("check",), [request], files)
        check_has_no_journey(sheet, ("check",), [request])
        scenarios = () if picks is None else (Scenario(name=CHECK, request=request, picks=picks),)
    if written and written.objective:
        _check_objectives(sheet, written, scenarios)
    sheet.raise_problems()
    assert written is not None, "problems were raised"
    started = _of_revisions(written)
    own = None if started is None else _own(started, file)
    return Project(started.build if started else None, own, scenarios, written, sheet.document)


def _with_requests(document: Document, files: Files) -> Document:
    """The document with what it names by its file, `requests: {file: requests.yaml}`: a list, or a journey.

    Raises UsageError with the place in that file, or of its name.
    """
    where: Path = ("requests",)
    written = document.at(where)
    if not isinstance(written, dict):
        return document
    name = written.get("file")
    if len(written) != 1 or not isinstance(name, str):
        key = next((key for key in written if key != "file"), "file")
        message = "`requests` must be a list, or name a file that has one"
        hint = "write `requests: {file: requests.yaml}`, and nothing else beside `file`"
        raise UsageError(message, hint=hint, place=document.place((*where, key), key=True))
    try:
        text = files.text(name)
    except UsageError as error:
        raise UsageError(error.message, hint=error.hint, place=document.place((*where, "file"))) from error
    listed = parse_document(text, str(PurePath(document.file).parent / name))
    beside = PurePath(name).parent
    renamed = with_files(listed, lambda file: str(beside / file))
    if has_journey(listed):
        return document.with_part(where, renamed.part((JOURNEY,))).renamed(where, JOURNEY)
    if not isinstance(listed.value, list):
        hint = f"write a list; `redline import {name} -o requests.yaml` makes one of a log, HAR or OpenAPI document"
        raise UsageError("this is not a list of requests", hint=hint, place=listed.place(()))
    return document.with_part(where, renamed)


def has_journey(document: Document) -> bool:
    """Whether a file of requests is a mapping with a journey alone. Raises UsageError for further keys."""
    if not isinstance(document.value, dict) or JOURNEY not in document.value:
        return False
    if more := next((key for key in document.value if key != JOURNEY), None):
        hint = "move it to a suite: a file of requests has a list, or a `journey`"
        raise UsageError(
            f"`{clip(more)}` cannot stand beside `journey`", hint=hint, place=document.place((more,), key=True)
        )
    return True


def _of_revisions(written: ProjectSchema) -> StartedSchema | None:
    """The keys that say how revisions are started: `start` at the top, or the only server."""
    if written.start is not None:
        return written
    servers = written.servers or []
    return servers[0] if len(servers) == 1 and servers[0].start is not None else None


def _own(started: StartedSchema, file: str) -> Own:
    """The server that all revisions share."""
    assert started.start is not None, "revisions are started by a command"
    # git seldom has the file of variables, so the work tree's file is used
    setup, runtime = setup_of(started, PurePath(file).parent), started.runtime
    return Own(command=started.start, setup=setup, runtime=runtime, ready=started.ready, stop=started.stop)


def setup_of(written: SetupSchema, folder: PurePath = PurePath()) -> SetupSchema:  # noqa: B008 - immutable
    """The setup keys of a server, without its other keys; its file of variables is in the folder."""
    values = {key: getattr(written, key) for key in SetupSchema.model_fields}
    return SetupSchema(**values | {"env_file": written.env_file and str(folder / written.env_file)})


def _check_objectives(sheet: Sheet, written: ProjectSchema, scenarios: Sequence[Scenario]) -> None:
    """Note the problems of the objectives."""
    known = Selectable.of(written.loads or (), scenarios)
    for name, texts in (written.objective or {}).items():
        try:
            parse_objectives(", ".join(texts), known)
        except WrongValueError as error:
            sheet.wrong(("objective", name) if name else ("objective",), error.message, error.hint)


def _scenarios(sheet: Sheet, path: Path, written: Sequence[NamedSchema], files: Files) -> tuple[Scenario, ...]:
    """A scenario per request, and the mix of several requests by their weights."""
    scenarios = list[Scenario]()
    for index, entry in enumerate(written):
        picks = picks_of(sheet, (*path, index), [entry.request()], files)
        check_has_no_journey(sheet, (*path, index), [entry.request()])
        if picks is not None:
            scenarios.append(Scenario(name=entry.name, request=entry.request(), picks=picks))
    if len(scenarios) == len(written) > 1:
        first, *others = (entry.request(entry.weight, entry.name) for entry in written)
        picks = {name: entries for scenario in scenarios for name, entries in scenario.picks.items()}
        scenarios.append(Scenario(name=MIX, request=first, others=tuple(others), picks=picks))
    return tuple(scenarios)


def _asked_for(ready: ReadySchema | None) -> dict[str, object]:
    """What a file says of the request that a ready server answers; only that answer is then enough."""
    said = ready.model_dump(exclude_none=True) if ready is not None else {}
    return said if said.keys() <= {"within_ns"} else {**said, "any_status": False}


def ready_of(scenarios: Sequence[Scenario]) -> Ready:
    """A server is ready when it answers the first request of scenarios, as far as a GET with its headers can say.

    Of a journey it is the first GET of `once`, or its first step, that needs no row and no answer. Of several requests
    one server may lack the first, so that another status is enough.
    """
    scenario = scenarios[0]
    first = scenario.requests[: max(scenario.unmeasured, 1)]
    free = [request for request in first if not any(taken(text) or rows_used(text) for text in request.texts)]
    if not free:
        return Ready()
    request, picks = next((request for request in free if request.method == "GET"), free[0]), scenario.picks
    headers = {
        name: first_of(value, picks) if isinstance(value, str) else tuple(first_of(text, picks) for text in value)
        for name, value in request.headers.items()
    }
    if request.method == "GET":
        return Ready(
            path=first_of(request.path, picks),
            headers=headers,
            status=request.expect.statuses[0],
            any_status=len(scenarios) > 1 or bool(scenario.others),
        )
    # Headers that describe a body mean nothing without it.
    return Ready(headers={name: value for name, value in headers.items() if not name.lower().startswith("content-")})
