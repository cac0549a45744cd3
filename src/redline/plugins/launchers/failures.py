"""Messages for servers that do not start, do not become ready, or end: one paragraph and a hint each."""

import errno
import os
import re
import signal
from pathlib import Path

from redline.errors import LaunchError
from redline.model import Failure, Ready
from redline.plugins.decisive import decisive, lines_of
from redline.plugins.launchers.guard import Exited, LaunchOrder, NotStarted

_TAKEN = re.compile(r"address (?:is )?(?:already )?in use|EADDRINUSE|port \d+ is (?:already )?in use", re.IGNORECASE)
_TAIL_BYTES = 16 << 10
_MOST_LINES = 60
"""A stack of Node is below its error."""


def says_port_is_taken(output: str) -> bool:
    """Whether a server's output says that another process has its port."""
    return _TAKEN.search(output) is not None


def not_started(name: str, order: LaunchOrder, started: NotStarted) -> LaunchError:
    """The command could not be executed."""
    command = order.command[0]
    if started.errno == errno.EINVAL and order.cpus:
        return LaunchError(
            f"{name} could not be pinned to cores {', '.join(map(str, order.cpus))}: {started.what}",
            hint="see which cores this process may use with `taskset -p $$`",
        )
    if started.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC):
        return LaunchError(
            f"{name} could not be started: the command {command} cannot be executed ({started.what})",
            hint="build it again, or fix `start.command` in its server.yaml; the command must exist and be executable",
        )
    return LaunchError(
        f"{name} could not be started: {started.what}",
        hint=f"see {order.log} for more, and try the command by hand: {' '.join(order.command)}",
        log_tail=tail(order.log),
    )


def exited_early(name: str, exited: Exited, after_ns: int, log: Path) -> LaunchError:
    """It ended before it was ready."""
    return LaunchError(
        f"{name} {exited} {_spoken(after_ns)} after its start, before it was ready{_last(log)}",
        hint=_hint_for(exited, log),
        log_tail=tail(log),
    )


def not_ready(name: str, ready: Ready, port: int, saw: int | str, log: Path) -> LaunchError:
    """It ran, but its readiness request was not answered as it should be."""
    within = _spoken(ready.within_ns)
    request = f"GET {ready.path} on port {port}"
    if isinstance(saw, int):
        message = f"{name} answers {request} with status {saw} instead of {ready.status}, for {within} since its start"
        hint = (
            f"fix the server, or `ready` in its server.yaml: it names the path and the status; its output is in {log}"
        )
    else:
        message = f"{name} was not ready within {within}: the last {request} got: {saw}"
        hint = f"see {log}; if it only needs longer, raise `ready.within` in its server.yaml"
    return LaunchError(f"{message}{_last(log)}", hint=hint, kind="not_ready", log_tail=tail(log))


def port_taken(name: str, port: int, tries: int, log: Path) -> LaunchError:
    """Each port that it was given turned out to be another's."""
    return LaunchError(
        f"{name} found its port in use, on {tries} ports one after the other, {port} the last{_last(log)}",
        hint="does its start command listen on {port} and nothing else? `ss -ltnp` shows who holds a port",
        log_tail=tail(log),
    )


def died_under_load(name: str, exited: Exited, log: Path) -> Failure:
    """It ended while it should have served."""
    return Failure(
        stage="load",
        kind="died",
        message=f"{name} {exited} while it was under test{_last(log)}",
        hint=_hint_for(exited, log),
        log_tail=tail(log),
    )


def _hint_for(exited: Exited, log: Path) -> str:
    if exited.signal == signal.SIGKILL and exited.because:
        return f"the kernel sends SIGKILL to what needs more memory than that: raise `memory`; see {log}"
    if exited.signal == signal.SIGKILL:
        return f"nothing but the kernel or a user sends SIGKILL: out of memory? see `dmesg | tail` and {log}"
    return f"its whole output is in {log}"


def _last(log: Path) -> str:
    words = decisive(tail(log, _MOST_LINES))
    return f"; its last words: {words}" if words else "; it wrote nothing"


def _spoken(duration_ns: int) -> str:
    return f"{duration_ns / 1e9:.3g} s" if duration_ns >= 1_000_000_000 else f"{duration_ns / 1e6:.3g} ms"


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, without colours and control characters; empty when there are none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(lines_of(text)[-lines:])
