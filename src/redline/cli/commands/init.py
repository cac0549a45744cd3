"""`redline init`: a redline.yaml for a server, which is asked once."""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

from redline.cli import places
from redline.cli.command_line import InitFlags, LoadFlags
from redline.cli.curl import ALONE, is_curl, read_curl, split_curl, with_scheme
from redline.cli.flags import naming
from redline.cli.origins import FromRepository
from redline.cli.project_document import run_document
from redline.cli.project_text import name_of, project_text
from redline.cli.request_flags import scenarios
from redline.cli.show import Terminal
from redline.cli.written import Given, named_by_flags, plain, read_written
from redline.errors import DriveError, LaunchError, StoreError, UsageError
from redline.files import mend, write_atomically
from redline.model import Cell, Suite
from redline.plugins.checks import Checked, checking
from redline.plugins.drivers.protocol import check
from redline.plugins.drivers.verifying import SHOWN_BYTES, shown
from redline.plugins.engine_process import find_engine
from redline.plugins.launchers.failures import OF_COMMAND
from redline.ports import Launch
from redline.running.assembly import Workplace
from redline.suite import make_plan, referenced_files
from redline.suite.project import PROJECT_FILE, read_project
from redline.suite.schema.project import CHECK
from redline.suite.schema.shell import read_command
from redline.suite.urls import base_of, check_is_reachable, is_like_a_url, is_url, read_url

_PLAIN = re.compile(r"[\w@%+=:,./{}-]+")
"""Words that need no quotes, also with `{port}` in them."""
_OTHER_STATUS = re.compile(r"with status (\d+) in place of \d+")
_LONGER = "start it yourself, and give its URL"
_READY = "give another request with --path"
_NEXT = """\
wrote {file}; next:
  redline run                                 loads it, on fresh starts, and writes a report
  redline limit --objective 'p99 < 200ms'     finds the highest rate that it sustains
Add a second server to {file}, and `redline run` compares the two.
"""


def execute(flags: InitFlags) -> None:
    """Write a redline.yaml for a server that answers."""
    file = Path(PROJECT_FILE)
    if os.path.lexists(file):
        hint = "`redline run` measures what it says; change it, or remove it first"
        raise UsageError(f"{file} exists already", hint=hint)
    if not os.access(Path.cwd(), os.W_OK | os.X_OK):
        raise UsageError(f"{file} cannot be written to {Path.cwd()}", hint="change to a folder that you may write to")
    server, request = _described(flags)
    cell, answer = _asked(server, request)
    _check_answers(cell, answer)
    if answer.status != cell.scenario.request.expect.status:
        request["expect"] = {"status": answer.status}
    try:
        write_atomically(file, project_text(server, request).encode())
    except OSError as error:
        raise StoreError(f"{file}: {error.strerror or error}", hint=mend(error)) from error
    said = _said(cell, answer)
    Terminal().print(f"{said}\n{_NEXT.format(file=file)}", end="", highlight=False, markup=False, soft_wrap=True)


def _described(flags: InitFlags) -> tuple[dict[str, object], dict[str, object]]:
    """The server and its request, as redline.yaml has them. Raises UsageError."""
    words = flags.words or [_typed()]
    if len(words) == 1 and any(map(is_curl, words[0].removeprefix("$ ").split()[:1])):
        words = [*split_curl(words[0])]
    if is_curl(words[0]):
        asked = read_curl(words[1:])
    elif is_url(words[0]) or is_like_a_url(words[0]):
        if len(words) > 1:
            raise UsageError(f"{words[1]} stands after the URL", hint=ALONE)
        asked = LoadFlags(url=with_scheme(words[0]))
    else:
        check_is_reachable(words[0])
        return _started(words), _request(LoadFlags(), Given(f"--path {flags.path}", flags.path or "/"))
    url = str(asked.url)
    if flags.path is not None:
        raise UsageError(f"--path {flags.path}: the URL names its path", hint="leave out --path")
    return {"name": "server", "url": base_of(url)}, _request(asked, Given(url, read_url(url)[1]))


def _typed() -> str:
    """What a user types who gave no server. Raises UsageError where nobody can."""
    if sys.stdin.isatty():
        sys.stderr.write("The command that starts your server, with {port} for its port, or its URL: ")
        if typed := sys.stdin.readline().strip():
            return typed
    hint = "`redline init './server --port {port}'`, the URL of a server that is running, or a command of curl"
    raise UsageError("no server is named", hint=hint)


def _started(words: list[str]) -> dict[str, object]:
    """The server that a command starts. Raises UsageError."""
    text = " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)
    command = words[0] if len(words) == 1 else text
    with naming("the command"):
        parts = read_command(command)
    return {"name": name_of(parts), "start": command}


def _request(flags: LoadFlags, path: Given) -> dict[str, object]:
    """The request, in which each value has its flag. Raises UsageError."""
    (asked,) = scenarios(flags, path, str)
    assert isinstance(asked, dict), "flags describe it, and no file of requests"
    return {key: value for key, value in asked.items() if key != "name"}


def _suite(server: Mapping[str, object], request: Mapping[str, object]) -> Suite:
    """What `redline run` would measure. Raises UsageError, with flags in place of a file that does not exist yet."""
    files = referenced_files(Path(PROJECT_FILE))
    try:
        project = read_project(project_text(server, request), PROJECT_FILE, files)
    except UsageError as error:
        raise named_by_flags(error, {CHECK: request}) from None
    document = plain(run_document(project)) | {"scenarios": [{"name": CHECK, **request}]}
    suite, _ = read_written(document, PROJECT_FILE, files, FromRepository(Path.cwd()).origins())
    return suite


def _asked(server: Mapping[str, object], request: dict[str, object]) -> tuple[Cell, Checked]:
    """Ask the server once. `request` then expects the status with which a server became ready, if it is not 200.

    Raises LaunchError, DriveError and UsageError.
    """
    suite = _suite(server, request)
    (cell,) = make_plan(suite).cells.values()
    try:
        return cell, _answer(suite, cell)
    except LaunchError as error:
        seen = _OTHER_STATUS.search(error.message)
        if error.kind != "not_ready" or seen is None or "expect" in request:
            hint = error.hint.replace(OF_COMMAND.longer, _LONGER).replace(OF_COMMAND.ready, _READY)
            raise LaunchError(error.message, hint=hint, kind=error.kind, log_tail=error.log_tail) from error
        status = int(seen[1])
        if status >= HTTPStatus.BAD_REQUEST:
            raise UsageError(f"{_line(cell)} is answered with status {status}", hint=_other_request(cell)) from error
    request["expect"] = {"status": status}
    return _asked(server, request)


def _answer(suite: Suite, cell: Cell) -> Checked:
    """Start the server, unless it runs already, and ask it once. Raises LaunchError and DriveError."""
    request = cell.scenario.request
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "server.log"
        tools = Workplace(None, stack, places.of_suite).bench(Path(), suite).tools
        server = stack.enter_context(tools.launcher.running(Launch(cell.variant, tools.placement, log)))
        checks = stack.enter_context(checking(find_engine()))
        picks, within_ns = cell.scenario.picks, cell.timeout_ns
        return checks.ask(
            check(cell.variant, server.endpoint, request, picks, timeout_ns=within_ns, keep_bytes=SHOWN_BYTES + 1)
        )


def _check_answers(cell: Cell, answer: Checked) -> None:
    """Raise RedlineError where there is nothing that could be measured."""
    line = _line(cell)
    if answer.status is None:
        hint = "see whether the server runs there, and speaks HTTP"
        raise DriveError(f"{line} has no answer: {answer.wrong}", hint=hint)
    if answer.is_refusal:
        message = f"{line} is answered with status {answer.status}: {shown(answer.body)}"
        raise UsageError(message, hint=_other_request(cell))


def _other_request(cell: Cell) -> str:
    given = "http://127.0.0.1:8080/items" if cell.variant.is_attached else "--path /items './server --port {port}'"
    return f"give a request that it answers, such as `redline init {given}`"


def _line(cell: Cell) -> str:
    return f"{cell.scenario.request.method} {cell.scenario.request.path}"


def _said(cell: Cell, answer: Checked) -> str:
    kind = answer.header("content-type").partition(";")[0]
    return f"{_line(cell)}: status {answer.status}, {answer.body_length or 0:,} bytes{kind and f' of {kind}'}"
