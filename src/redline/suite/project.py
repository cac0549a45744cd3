"""`redline.yaml` -> Project. Pure."""

from pathlib import PurePath

from redline.model import Frozen, Ready, Request, Scenario, ServerEntry, Start, Stop
from redline.model.template import first_of
from redline.suite.schema.document import parse_document
from redline.suite.schema.project import ProjectSchema, read_command
from redline.suite.validate.checking import Sheet
from redline.suite.validate.referenced_files import Files, no_files, picks_of

PROJECT_FILE = "redline.yaml"
JVM_READY_NS = 60_000_000_000
_REFERENCE = "docs/guide/ab.md"


class Project(Frozen):
    """The server of a repository, and what it is asked; `build` is for a shell."""

    build: str | None
    entry: ServerEntry
    scenario: Scenario


def read_project(text: str, file: str, files: Files = no_files) -> Project:
    """The project of a `redline.yaml`. Raises UsageError with everything that is wrong with the file."""
    sheet = Sheet(parse_document(text, file), ProjectSchema, _REFERENCE)
    written = sheet.read(ProjectSchema)
    request = written.check.request() if written and written.check else Request()
    picks = picks_of(sheet, ("check",), [request], files)
    sheet.raise_problems()
    assert written is not None, "what is wrong was raised"
    scenario = Scenario(name="check", request=request, picks=picks or {})
    entry = command_entry("server", written.start, ready_of(scenario), runtime=written.runtime)
    given = {
        "ready": written.ready
        and Ready.model_validate(entry.ready.model_dump() | written.ready.model_dump(exclude_none=True)),
        "stop": written.stop and Stop.model_validate(written.stop.model_dump(exclude_none=True)),
    }
    changed = {name: value for name, value in given.items() if value is not None}
    return Project(build=written.build, entry=entry.model_copy(update=changed), scenario=scenario)


def ready_of(scenario: Scenario) -> Ready:
    """A server is ready when it answers the scenario's first request, as far as a GET with its headers can say."""
    request, picks = scenario.request, scenario.picks
    headers = {
        name: first_of(value, picks) if isinstance(value, str) else tuple(first_of(each, picks) for each in value)
        for name, value in request.headers.items()
    }
    if request.method == "GET":
        return Ready(path=first_of(request.path, picks), headers=headers, status=request.expect.status)
    # What describes a body says nothing without one.
    return Ready(headers={name: value for name, value in headers.items() if not name.lower().startswith("content-")})


def command_entry(
    name: str, command: str, ready: Ready, folder: str = ".", *, runtime: str | None = None
) -> ServerEntry:
    """A command as a server that needs no build; it runs in the folder. Raises WrongValueError.

    What it runs on is seen once it runs, if it is neither given nor plain from the command. A virtual machine gets more
    time to become ready.
    """
    parts = read_command(command)
    runtime = runtime or ("jvm" if PurePath(parts[0]).name == "java" else "")
    return ServerEntry(
        name=name,
        about=command,
        runtime=runtime,
        family_folder=folder,
        start=Start(command=parts),
        ready=ready.model_copy(update={"within_ns": JVM_READY_NS}) if runtime == "jvm" else ready,
    )
