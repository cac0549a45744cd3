"""`redline init`: write a redline.yaml for a server, after asking it once."""

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path, PurePath

from redline.asking import places
from redline.asking.asks import RequestAsk
from redline.asking.imported import read_file, summary
from redline.asking.naming import naming
from redline.asking.origins import FromRepository
from redline.asking.project import run_document
from redline.asking.requests import reached, scenarios
from redline.asking.ways import OF_TLS
from redline.asking.written import Sourced, named_by_sources, plain, read_written
from redline.cli.asks import request_ask
from redline.cli.build_view import BuildView
from redline.cli.command_line import InitFlags, LoadFlags
from redline.cli.project_builds import run_builds
from redline.cli.project_text import name_of, project_text
from redline.cli.show import Terminal
from redline.driving.checks import Checked, checking
from redline.driving.engine_process import find_engine
from redline.driving.protocol import check
from redline.driving.verifying import SHOWN_BYTES, shown
from redline.entry_points import extra
from redline.errors import DriveError, LaunchError, StoreError, UsageError
from redline.files import mend, write_atomically
from redline.launching.variables import variables_of_compose
from redline.model import Cell, Suite
from redline.model.catalogue import passed_names
from redline.ports import Launch
from redline.running.assembly import Workplace
from redline.schema.document import Document
from redline.schema.project import CHECK
from redline.schema.request import METHODS
from redline.schema.shell import read_command
from redline.suite import make_plan, read_text, referenced_files
from redline.suite.compose_services import is_compose_file, read_compose
from redline.suite.imported import FEW_REQUESTS
from redline.suite.pasted import begins_curl, is_curl, split_curl
from redline.suite.procfile import is_procfile, read_procfile
from redline.suite.project import JVM_READY_NS, PROJECT_FILE, read_project
from redline.suite.secret_names import is_secret_header, secret_in_body, without_secrets
from redline.suite.urls import (
    ALONE,
    base_of,
    check_has_a_host,
    check_is_reachable,
    is_like_a_url,
    is_secure,
    is_url,
    is_websocket,
    read_url,
    with_scheme,
)
from redline.wording import advising

_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")
"""Words that need no quotes; they may contain `{port}`."""
_DOCUMENTS = {".har", ".json", ".yaml", ".yml"}
_STARTS = {
    "package.json": "'env PORT={port} npm start'",
    "pyproject.toml": "'python3 -m uvicorn app:app --port {port}'",
    "Cargo.toml": "--build 'cargo build --release' './target/release/server --port {port}'",
    "go.mod": "--build 'go build -o server .' './server --port {port}'",
    "pom.xml": "--build 'mvn -q package' 'java -jar target/server.jar --server.port={port}'",
}
"""Examples of commands that start servers, by the files of their build tools, which seldom name these commands."""
_IMAGE_FILES = {"Containerfile", "Dockerfile"}
_THIS_MACHINE = {"127.0.0.1", "localhost", "::1"}
_MOST_LINES = 5
_ADVICE = {
    "longer": "start it yourself, and give its URL",
    "request": "give another request with --path",
    "mend": "build it with --build COMMANDS, or fix",
}
"""The flags of `init` that replace keys of redline.yaml, or flags of other commands, in hints."""
_NEXT = """\
wrote {file}; next:
  redline run                                 loads it, on fresh starts, and writes a report
  redline limit --objective 'p99 < 200ms'     finds the highest rate that it sustains
{revisions}Add a second server to {file}, and `redline run` compares the two.
"""
_REVISIONS = "  redline ab main..HEAD                       compares two revisions, such as these\n"


@dataclass(frozen=True)
class _Described:
    """The server and its requests, as redline.yaml has them; `of_file` is the file that these come from, if any."""

    server: dict[str, object]
    requests: list[dict[str, object]]
    of_file: Path | None = None

    def asked(self) -> dict[str, object]:
        """The key of the requests: the only request without its name, or all requests of a file."""
        if self.of_file is not None:
            return {"requests": self.requests}
        (request,) = self.requests
        return {CHECK: {key: value for key, value in request.items() if key != "name"}}


def execute(flags: InitFlags) -> None:
    """Write a redline.yaml for a server that answers."""
    file = Path(PROJECT_FILE)
    if os.path.lexists(file):
        hint = "`redline run` measures what it says; change it, or remove it first"
        raise UsageError(f"{file} exists already", hint=hint)
    if not os.access(Path.cwd(), os.W_OK | os.X_OK):
        raise UsageError(f"{file} cannot be written to {Path.cwd()}", hint="change to a folder that you may write to")
    described = _described(flags)
    if flags.build is not None:
        described = _built(described, flags.build)
    described, said = _answered(described)
    try:
        text = project_text(described.server, described.asked(), _schema())
        write_atomically(file, text.encode())
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror or error}", hint=mend(error)) from error
    revisions = _REVISIONS if "start" in described.server and _is_in_repository(Path.cwd()) else ""
    if secrets := _secrets(described.requests):
        said.append(f"{file} holds a secret as it was given, which others may read there: {', '.join(secrets)}")
    if names := passed_names(str(described.server.get("proxy", ""))):
        said.append(f"{file} has the password of the proxy as a variable; set it before you go on: {names[-1]}")
    text = "\n".join([*said, _NEXT.format(file=file, revisions=revisions)])
    Terminal().print(text, end="", highlight=False, markup=False, soft_wrap=True)


def _schema() -> str:
    """The URL of the schema of redline.yaml, which is installed with the documentation; empty where it is not."""
    here = Path(__file__)  # of a wheel: PREFIX/lib/python3/site-packages/redline/cli/commands/init.py
    places_of_docs = (here.parents[4] / "docs", here.parents[6] / "share/doc/redline/docs")
    files = (folder / "reference/project.schema.json" for folder in places_of_docs)
    return next((file.as_uri() for file in files if file.is_file()), "")


def _secrets(requests: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of headers, parameters and fields of bodies that hold secrets, such as Authorization."""
    return list(dict.fromkeys(name for request in requests for name in _secrets_of(plain(request))))


def _secrets_of(request: Mapping[str, object]) -> Iterator[str]:
    headers, parts = request.get("headers"), request.get("multipart")
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if is_secret_header(name, str(value)):
            yield name
    for key in (*METHODS, "path"):
        yield from without_secrets(str(request.get(key, "")))[1]
    named = {part.get("name"): part.get("text") for part in parts} if isinstance(parts, list) else None
    for body in (request.get("body"), request.get("json"), request.get("form"), named):
        secret = secret_in_body(body if isinstance(body, str) else json.dumps(body))
        if body is not None and secret is not None:
            yield secret


def _is_in_repository(folder: Path) -> bool:
    """Return whether git has the folder's files, or may have."""
    return any(os.path.lexists(here / ".git") for here in (folder, *folder.parents))


def _built(described: _Described, command: str) -> _Described:
    """Build the server, and return it with its build command. Raises UsageError and BuildError."""
    name, *rest = described.server.items()
    if "url" in described.server:
        raise UsageError(f"--build {command}: a server that is running is not built", hint="leave out --build")
    built = replace(described, server=dict([name, ("build", command), *rest]))
    _suite(built)
    run_builds({command: str(described.server["name"])}, "the command", Path(), Terminal(stderr=True))
    return built


def _answered(described: _Described) -> tuple[_Described, list[str]]:
    """Return the requests that are answered, with the status, and a line about each request. Raises RedlineError."""
    kept, said, left = list[dict[str, object]](), list[str](), list[str]()
    described, asked = _asked_patiently(described)
    nothing_answers = all(answer.status is None for _, answer in asked)
    for request, (cell, answer) in zip(described.requests, asked, strict=True):
        if described.of_file is None or nothing_answers:
            _check_answers(cell, answer)
        elif answer.status is None or answer.is_refusal:
            left.append(f"left out: {_line(cell)}: {f'status {answer.status}' if answer.status else answer.wrong}")
            continue
        if answer.status not in cell.scenario.request.expect.statuses:
            request["expect"] = {"status": answer.status}
        if len(kept) < FEW_REQUESTS:
            kept.append(request)
            said.append(_answer_text(cell, answer))
    if not kept:
        hint = f"see what `redline import {described.of_file}` makes of the file"
        raise UsageError(f"no request is answered; {'; '.join(left[:_MOST_LINES])}", hint=hint)
    answered = replace(described, requests=kept)
    if left and not any(map(_says_ready, kept)):
        _checked_cells(answered)  # whether it is ready was seen by a request that is left out
    more = len(described.requests) - len(kept) - len(left)
    return answered, [*said, *left, *([f"and {more} more that are answered too: redline.yaml has few"] if more else [])]


def _described(flags: InitFlags) -> _Described:
    """Return the server and its requests. Raises UsageError."""
    words = flags.words or [_typed()]
    if len(words) == 1 and (example := _STARTS.get(PurePath(words[0]).name)):
        message = f"{words[0]} does not say by which command the server starts"
        raise UsageError(message, hint=f"give the command, such as `redline init {example}`")
    if len(words) == 1 and is_procfile(words[0]):
        words = [_of_procfile(Path(words[0]))]
    is_document = PurePath(words[0]).suffix in _DOCUMENTS and not is_compose_file(words[0])
    if len(words) == 1 and is_document and flags.requests is None:
        return _of_document(Path(words[0]))
    if flags.requests is not None:
        if begins_curl(words[0]) or flags.path is not None:
            other = "curl" if flags.path is None else f"--path {flags.path}"
            hint = f"leave out {other}, or --requests"
            raise UsageError(f"{other}: --requests says what is requested", hint=hint)
        server, _ = _server_and_request(words, None)
        return _Described(server, _of_file(flags.requests, server)[0], flags.requests)
    server, request = _server_and_request(words, flags.path)
    return _Described(server, [{"name": CHECK, **request}])


def _of_procfile(file: Path) -> str:
    """Return the command of the server. Raises UsageError."""
    entry, others = read_procfile(read_text(file), str(file))
    left = f"; not started: {', '.join(others)}" if others else ""
    said = f"{entry.name} of {file}: {entry.command}{left}"
    Terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
    return entry.command


def _of_compose(file: str, named: str | None = None, *others: str) -> dict[str, object]:
    """Return a service. Raises UsageError."""
    wrong = named if named is not None and named.startswith("-") else next(iter(others), None)
    if wrong is not None:
        hint = f"flags stand before it, and after it at most a service: redline init --path / {file} web"
        raise UsageError(f"{wrong} stands after the compose file", hint=hint)
    server = read_compose(read_text(Path(file)), file, named, variables_of_compose(Path(file)))
    said = f"the service {server.service} of {file}, which listens on port {server.port} in its container"
    Terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
    return {"name": name_of([server.service]), "compose": file, "service": server.service, "port": server.port}


def _of_document(file: Path) -> _Described:
    """Return the local server that a recording or an OpenAPI document names, and its requests. Raises UsageError."""
    requests, host = _of_file(file, {})
    if not host.startswith("http") or read_url(host)[0].host not in _THIS_MACHINE:
        named = f"{host}, which is not on this machine" if host else "no server"
        hint = f"name yours: redline init --requests {file} './server --port {{port}}'"
        raise UsageError(f"{file} names {named}", hint=hint)
    return _Described({"name": "server", "url": host}, requests, file)


def _of_file(file: Path, server: Mapping[str, object]) -> tuple[list[dict[str, object]], str]:
    """Return the requests of a file, those that show readiness first, and their host. Raises UsageError."""
    made = read_file(file)
    if isinstance(made, Document):
        hint = "copy it into redline.yaml, under `requests`: docs/guide/my-server.md"
        raise UsageError(f"{file} is a list of requests already", hint=hint)
    if made.body_files and file.resolve().parent != Path.cwd():
        hint = "copy the file and its bodies into the folder of redline.yaml"
        raise UsageError(f"{file} names {made.body_files[0]}, which is not in this folder", hint=hint)
    targets = [str(server["url"])] if "url" in server else [] if server else [made.host]
    Terminal(stderr=True).print(summary(made, file, targets), highlight=False, soft_wrap=True)
    requests = [dict[str, object](request) for request in made.requests]
    return sorted(requests, key=lambda request: not _says_ready(request)), made.host


def _says_ready(request: Mapping[str, object]) -> bool:
    """Whether its answer shows that a server is ready."""
    return "get" in request


def _server_and_request(words: list[str], path: str | None) -> tuple[dict[str, object], dict[str, object]]:
    """Read words as a command, a URL, a service of a compose file, or a command of curl. Raises UsageError."""
    if len(words) == 1 and begins_curl(words[0]):
        words = [*split_curl(words[0])]
    if is_compose_file(words[0]):
        return _of_compose(*words), _request(RequestAsk(), Sourced(f"--path {path}", path or "/"))
    if is_curl(words[0]):
        curl = extra("curl", "redline init curl")(words[1:], read=referenced_files(Path(PROJECT_FILE)).body)
        # curl ignores these options of TLS over http://.
        way = curl.way if is_secure(curl.url) else {key: text for key, text in curl.way.items() if key not in OF_TLS}
        given = LoadFlags(url=curl.url, method=curl.method, headers=curl.headers, body=curl.body, **way)
        url, asked = curl.url, request_ask(given)
    elif is_url(words[0]) or is_like_a_url(words[0]):
        if len(words) > 1:
            raise UsageError(f"{words[1]} stands after the URL", hint=ALONE)
        if is_websocket(words[0]):
            hint = f"`redline load {words[0]}` loads it, and `websocket` of a scenario in a suite"
            raise UsageError(f"{words[0]} is a WebSocket, and redline.yaml has requests alone", hint=hint)
        url, asked = with_scheme(words[0]), RequestAsk()
    else:
        check_is_reachable(words[0])
        if len(words) == 1:
            check_has_a_host(words[0])
        return _started(words), _request(RequestAsk(), Sourced(f"--path {path}", path or "/"))
    if path is not None:
        raise UsageError(f"--path {path}: the URL names its path", hint="leave out --path")
    return {"name": "server", "url": base_of(url), **plain(reached(url, asked, str))}, _request(
        asked, Sourced(url, read_url(url)[1])
    )


def _typed() -> str:
    """Ask the user for a server if none is given. Raises UsageError without a terminal."""
    if sys.stdin.isatty():
        sys.stderr.write("The command that starts your server, with {port} for its port, or its URL: ")
        if typed := sys.stdin.readline().strip():
            return typed
    hint = "`redline init './server --port {port}'`, the URL of a server that is running, or a command of curl"
    raise UsageError("no server is named", hint=hint)


def _started(words: list[str]) -> dict[str, object]:
    """Return the server that a command starts. Raises UsageError."""
    text = " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    command = words[0] if len(words) == 1 else text
    if PurePath(words[0]).name in _IMAGE_FILES:
        hint = "build an image, and name it in redline.yaml: docs/guide/my-server.md"
        raise UsageError(f"{words[0]} says how an image is built, and not how the server starts", hint=hint)
    with naming("the command"):
        parts = read_command(command)
    return {"name": name_of(parts), "start": command}


def _request(ask: RequestAsk, path: Sourced) -> dict[str, object]:
    """Return the request, with the flag of every value. Raises UsageError."""
    (asked,) = scenarios(ask, path, str)
    assert isinstance(asked, dict), "flags describe it, and no file of requests"
    return {key: value for key, value in asked.items() if key != "name"}


def _suite(described: _Described) -> Suite:
    """Return what `redline run` would measure. Raises UsageError that names flags, since no file exists yet."""
    files = referenced_files(Path(PROJECT_FILE))
    try:
        project = read_project(project_text(described.server, described.asked()), PROJECT_FILE, files)
    except UsageError as error:
        raise named_by_sources(error, described.asked()) from None
    scenarios = [{key: value for key, value in request.items() if key != "weight"} for request in described.requests]
    document = plain(run_document(project)) | {"scenarios": scenarios}
    suite, _ = read_written(document, PROJECT_FILE, files, FromRepository(Path.cwd()).origins())
    return suite


def _asked_patiently(described: _Described) -> tuple[_Described, list[tuple[Cell, Checked]]]:
    """Return the server and its answers. A command that listens nowhere in time is started again, with more time.

    A JVM had that time at once. Raises BuildError, LaunchError, DriveError and UsageError.
    """
    try:
        return described, _checked_cells(described)
    except LaunchError as error:
        if (
            error.kind != "not_ready"
            or "start" not in described.server
            or not error.may_be_slow
            or _suite(described).variants[0].catalogued.ready.within_ns >= JVM_READY_NS
        ):
            raise
    within = f"{JVM_READY_NS // 1_000_000_000}s"
    said = f"not ready in time: starting it again, with up to {within}"
    Terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
    slow = replace(described, server={**described.server, "ready": {"within": within}})
    return slow, _checked_cells(slow)


def _checked_cells(described: _Described) -> list[tuple[Cell, Checked]]:
    """Send every request once. Raises BuildError, LaunchError, DriveError and UsageError."""
    suite = _suite(described)
    cells = list(make_plan(suite).cells.values())
    try:
        with advising(_ADVICE):
            return list(zip(cells, _answers(suite, cells), strict=True))
    except LaunchError as error:
        if error.answered is None or error.answered < HTTPStatus.BAD_REQUEST:
            raise
        message = f"{_line(cells[0])} is answered with status {error.answered}"
        raise UsageError(message, hint=_other_request(cells[0])) from error


def _answers(suite: Suite, cells: Sequence[Cell]) -> list[Checked]:
    """Start the server, unless it runs already, and ask it once for each cell.

    Raises BuildError, LaunchError and DriveError.
    """
    # A request other than GET shows no readiness; then `/` has to be answered, as with `redline run`.
    any_status = cells[0].scenario.request.method == "GET"
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "server.log"
        tools = Workplace(None, stack, places.of_suite).tools(Path(), suite)
        if cells[0].variant.is_in_container:
            with BuildView(Terminal(stderr=True)) as view:
                built = tools.launcher.build([cells[0].variant], view)
            for error in built.failures.values():
                raise error
        launch = Launch(cells[0].variant, tools.placement, log, any_status=any_status, log_is_kept=False)
        server = stack.enter_context(tools.launcher.running(launch))
        checks = stack.enter_context(checking(find_engine()))
        return [
            checks.ask(
                check(
                    cell.variant,
                    server.endpoint,
                    cell.scenario.request,
                    cell.scenario.picks,
                    timeout_ns=cell.timeout_ns,
                    keep_bytes=SHOWN_BYTES + 1,
                )
            )
            for cell in cells
        ]


def _check_answers(cell: Cell, answer: Checked) -> None:
    """Raise RedlineError if an answer cannot be measured."""
    line = _line(cell)
    if answer.status is None:
        hint = "see whether the server runs there, and speaks HTTP"
        raise DriveError(f"{line} has no answer: {answer.wrong}", hint=hint)
    if answer.is_refusal:
        message = f"{line} is answered with status {answer.status}: {shown(answer.body)}"
        raise UsageError(message, hint=_other_request(cell))


def _other_request(cell: Cell) -> str:
    given = "http://127.0.0.1:8080/items"
    if not cell.variant.is_attached:
        service = cell.variant.catalogued.compose
        started = "'./server --port {port}'" if service is None else PurePath(service.file).name
        given = f"--path /items {started}"
    return f"give a request that it answers, such as `redline init {given}`"


def _line(cell: Cell) -> str:
    return f"{cell.scenario.request.method} {cell.scenario.request.path}"


def _answer_text(cell: Cell, answer: Checked) -> str:
    kind = answer.header("content-type").partition(";")[0]
    return f"{_line(cell)}: status {answer.status}, {answer.body_length or 0:,} bytes{kind and f' of {kind}'}"
