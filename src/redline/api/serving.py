"""A server that runs while a block does: `with serve("./shop --port {port}") as server:`."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redline.api.suites import suite_of_data
from redline.asking import places
from redline.asking.asks import SuiteAsk
from redline.asking.written import Sourced
from redline.defaults import AB_USERS, LOAD_LENGTH
from redline.errors import LaunchError, UsageError
from redline.git import outside_the_callers_repository
from redline.launching.variables import check_variables
from redline.ports import Launch, Placement, RunningServer
from redline.running.assembly import Workplace
from redline.schema.document import plain_data
from redline.wording import Call, asked_by, part

_NO_LOAD = {"loads": {"load": {"closed": {"users": AB_USERS}, "for": LOAD_LENGTH}}}
"""It is never made: a suite has to have one."""


@dataclass(frozen=True)
class ServedCommand:
    """A command that serves. `url` is where, with the path that made it ready; `log` is the file of its output."""

    url: str
    log: Path
    _server: RunningServer

    def __str__(self) -> str:
        return self.url

    def check(self) -> None:
        """Raise LaunchError if it has ended, with the end of its output."""
        if (failure := self._server.death()) is not None:
            raise LaunchError(failure.message, hint=failure.hint, log_tail=failure.log_tail)


@contextmanager
def serve(command: str, *, path: str = "/", folder: str | Path = ".", **keys: object) -> Iterator[ServedCommand]:
    """Start a command, wait until it answers a GET of the path, and end it with the block, whatever happens.

    `{port}` in the command is the port that Redline chooses. `folder` is where it runs. `keys` are those that a server
    of a suite has, such as `env`, `ready` or `stop`. Raises UsageError, and LaunchError where it does not become ready.
    """
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redline-serve-")))
        here = Path(folder).resolve()
        if not isinstance(command, str) or not command.strip():
            raise UsageError(f"{command!r} is no command", hint="give one such as './shop --port {port}'")
        given = {"command": command, "folder": str(here), **keys}
        with asked_by(Call()), outside_the_callers_repository():
            server = {key: _named(key, plain_data(value, key)) for key, value in given.items()}
            ready = {"name": "ready", "get": _named("path", path)}
            document = {"servers": [server], "scenarios": [ready], **_NO_LOAD}
            suite, _ = suite_of_data(document, "serve", here, SuiteAsk())
            check_variables(suite.variants)
            tools = Workplace(None, stack, places.of_suite).tools(Path(), suite)
            launch = Launch(suite.variants[0], Placement(), logs / "server.log", log_is_kept=False)
            running = stack.enter_context(tools.launcher.running(launch))
        yield ServedCommand(f"http://{running.endpoint}{path}", launch.log, running)


def _named(name: str, value: object) -> object:
    """A value that messages call by its argument, such as `env.MODE`, without what it is: that may be secret."""
    if isinstance(value, dict):
        value = {key: _named(f"{name}.{key}", item) for key, item in value.items()}
    return Sourced(part(name), value)
