"""Messages for servers that do not start, do not become ready, or end: a paragraph and a hint."""

import errno
import os
import re
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from redline.errors import LaunchError
from redline.launching import observed
from redline.launching.error_lines import error_line, lines_of, usage_from
from redline.launching.executable import REASONS, why_not_executed
from redline.launching.guard import Exited, LaunchOrder, NotStarted
from redline.launching.observed import Whereabouts
from redline.launching.temporary import elsewhere
from redline.linux.mounts import noexec_mount
from redline.model import Failure, Ready
from redline.wording import advice as advice_of
from redline.wording import part

_TAKEN = re.compile(r"address (?:is )?(?:already )?in use|EADDRINUSE|port \d+ is (?:already )?in use", re.IGNORECASE)
_TAIL_BYTES = 16 << 10
_DENIED = re.compile(r"permission denied|failed to map segment", re.IGNORECASE)
_PORT = re.compile(r"(?<!\d)(?<!\d\.)\d{2,5}(?!\d|\.\d)")
_ONE_PORT = "servers that are compared run at the same time: let each listen on {port} alone"
_HOLDER = "let it listen on {port} alone, or end what holds the other port, which `ss -ltnp` shows"
_MOST_NAMED = 4
_ANSWERED = ("malformed: ", "tls: ", "unexpected body: ")
"""Prefixes of outcomes of a server that runs, but that more time would not help."""
_MOST_LINES = 1000
"""The lines of output that are read: enough for Node, which prints its stack below the error."""


@dataclass(frozen=True)
class LaunchAdvice:
    """Where a user changes a server's start, readiness and address, and how to see its output.

    `is_asked`: whether whoever asks for the measurement may say what is requested.
    """

    start: str
    mend: str
    ready: str
    longer: str
    by_hand: str
    elsewhere: str = ""
    is_asked: bool = False

    @property
    def request(self) -> str:
        """Where the request that shows readiness is said, which may be asked for with the measurement."""
        asked = f"what is requested: {part('path')} and {part('status')}, or " if self.is_asked else ""
        return f"{asked}{self.ready}"


OF_CATALOGUE = LaunchAdvice(
    start="`start.command` in its server.yaml",
    mend="build it again, or fix",
    ready="`ready` in its server.yaml: it names the path and the status",
    longer="raise `ready.within` in its server.yaml",
    by_hand="",
)
OF_COMMAND = LaunchAdvice(
    start="the command",
    mend="build it first, or fix",
    ready="`check` and `ready` in redline.yaml",
    is_asked=True,
    longer="start it yourself and compare URLs, or raise `ready.within` in redline.yaml",
    by_hand="try the command by hand, with a port in place of {port}",
)
"""Advice on commands given to `redline ab` or in a redline.yaml: their logs are removed with the command."""
OF_REVISION = replace(OF_COMMAND, mend="say in `build` of redline.yaml what builds it, or fix")
"""Advice on commands in fresh checkouts, where nothing is built yet."""

OF_IMAGE = LaunchAdvice(
    start="the image",
    mend="fix",
    ready="`check` and `ready`",
    is_asked=True,
    longer="raise `ready: {within: 2m}`",
    by_hand="try the image by hand: podman or docker run --rm IMAGE",
    elsewhere="let `port` be that on which it listens in its container, at 0.0.0.0",
)
"""Advice on a user's images."""
OF_SERVICE = LaunchAdvice(
    start="the service",
    mend="fix",
    ready=OF_IMAGE.ready,
    is_asked=True,
    longer=OF_IMAGE.longer,
    by_hand="try the compose file by hand: docker or podman compose up",
    elsewhere=OF_IMAGE.elsewhere,
)
"""Advice on services of compose files."""


@dataclass(frozen=True)
class NotIts:
    """Another process had the port: the process that answered there, or that had it when the server started."""

    answered_by: str = ""
    held_by: str = ""


def says_port_is_taken(output: str) -> bool:
    """Whether a server's output says that its port is in use."""
    return _TAKEN.search(output) is not None


@dataclass(frozen=True)
class FailedStart:
    """A start of a server at a host and port, and the errors that tell why it failed.

    `log_is_kept`: whether the user can read its log afterwards.
    """

    name: str
    host: str
    port: int
    order: LaunchOrder
    advice: LaunchAdvice
    log_is_kept: bool = True

    def not_started(self, started: NotStarted) -> LaunchError:
        """Return the error for a command that could not be executed."""
        name, order, advice = self.name, self.order, self.advice
        if started.errno == errno.EINVAL and order.cpus:
            return LaunchError(
                f"{name} could not be pinned to cores {', '.join(map(str, order.cpus))}: {started.what}",
                hint="see which cores this process may use with `taskset -p $$`",
            )
        if started.errno in REASONS:
            refusal = why_not_executed(order.command[0], order.folder, order.env, started.errno)
            return LaunchError(
                f"{name} could not be started: {refusal.reason}",
                hint=refusal.advice or f"{advice_of('mend', advice.mend)} {advice.start}",
            )
        return LaunchError(
            f"{name} could not be started: {started.what}",
            hint=f"try the command by hand: {' '.join(order.command)}",
            log_tail=tail(order.log),
        )

    def exited_early(self, exited: Exited, after_ns: int, seen: Whereabouts) -> LaunchError:
        """Return the error for a server that ended before it was ready."""
        log, start = self.order.log, self.advice.start
        ended, said = f"{self.name} {exited} {_spoken(after_ns)} after its start", tail(log)
        if exited.code == 0 and seen.living:
            left = ", ".join(seen.living[:_MOST_NAMED])
            where = f"; {observed.said(seen.listening)}" if seen.listening else ""
            return LaunchError(
                f"{ended}, and left {left} running in the background{where}",
                hint=f"let {start} stay in the foreground: without an option such as --daemon, and without `&`",
                log_tail=said,
            )
        if exited.code == 0 and seen.holders:
            return LaunchError(
                f"{ended}, and {observed.said(seen.holders)}, which it did not start itself",
                hint=f"let {start} be the server: not a client that asks another process to start it",
                log_tail=said,
            )
        folders = (self.order.folder, Path(tempfile.gettempdir()))
        noexec = next(filter(None, map(noexec_mount, folders)), "") if _DENIED.search(said) else ""
        if noexec:
            noexec, hint = f", and {noexec}", f"{elsewhere()}; or put the server on another file system"
        else:
            hint = _hint_for(exited, self._by_hand)
        return LaunchError(f"{ended}, before it was ready{noexec}{_last(log)}", hint=hint, log_tail=said)

    def not_ready(self, ready: Ready, saw: int | str, where: str) -> LaunchError:
        """Return the error for a server that did not answer as its entry says. `where` it listens, if elsewhere."""
        name, advice, log = self.name, self.advice, self.order.log
        within, request = _spoken(ready.within_ns), f"GET {ready.path} on port {self.port}"
        longer, requested = advice_of("longer", advice.longer), advice_of("request", advice.request)
        is_other = isinstance(saw, int) and saw != ready.status
        if saw == ready.status:
            message = f"{name} was not ready within {within}: its answer to {request} was right, but later than that"
            hint = f"if it needs longer, {longer}"
        elif isinstance(saw, int):
            status = f"status {saw} in place of {ready.status}"
            message = f"{name} answers {request} with {status}, for {within} since its start"
            hint = f"fix the server, or {requested}"
        else:
            message = f"{name} was not ready within {within}: the last {request} got: {saw}{where and f'; {where}'}"
            hint = f"if it only needs longer, {longer}"
            if saw.startswith(_ANSWERED):
                hint = f"fix what answers so, or {requested}"
            if where:
                own = f"let {advice.start} listen on {{port}}, at {self.host} or at all addresses"
                hint = advice.elsewhere or own
        hint += "" if advice.by_hand else f"; {self._by_hand}"
        return LaunchError(
            f"{message}{_last(log)}",
            hint=hint,
            kind="not_ready",
            log_tail=tail(log),
            answered=saw if isinstance(saw, int) and is_other else None,
            may_be_slow=not is_other and not where and not (isinstance(saw, str) and saw.startswith(_ANSWERED)),
        )

    @property
    def _by_hand(self) -> str:
        """How a user sees what the server writes."""
        return self.advice.by_hand or where_its_output_is(self.order.log, is_kept=self.log_is_kept)

    def not_its(self, seen: Whereabouts) -> NotIts:
        """Check whether the port in use is its own. Raises LaunchError for another port."""
        if seen.holders:
            return NotIts(held_by=observed.said(seen.holders))
        log, port = self.order.log, self.port
        said = tail(log, _MOST_LINES).splitlines()
        named = {int(number) for line in said if _TAKEN.search(line) for number in _PORT.findall(line)} - {port}
        for other in sorted(named):
            if holders := observed.holders_of(other):
                copies = all(holder.is_ours for holder in holders)
                who = f"{observed.said(holders)}{', which runs at the same time for this test' if copies else ''}"
                raise LaunchError(
                    f"{self.name} found port {other} in use, which it wants besides {port}: {who}",
                    hint=_ONE_PORT if copies else _HOLDER,
                    log_tail=tail(log),
                )
        return NotIts()


def port_taken(name: str, port: int, tries: int, last: NotIts, log: Path) -> LaunchError:
    """Return the error of a server whose ports all belonged to other processes."""
    if last.answered_by:
        message = (
            f"{name} found its port in use: on {tries} ports one after the other, another process answered;"
            f" {last.answered_by}"
        )
        hint = "a command has to be the server: does it only ask another process, such as a container engine, for one?"
    elif last.held_by:
        message = f"{name} found its port in use, on {tries} ports one after the other; {last.held_by}"
        hint = _HOLDER
    else:
        ours = observed.ours()
        copies = f"; at the same time, {observed.said(ours)}" if ours else ""
        message = (
            f"{name} found a port in use in {tries} starts, and none of them was that which it was given:"
            f" nothing listens on {port}, the last{copies}"
        )
        hint = _ONE_PORT if ours else _HOLDER
    return LaunchError(f"{message}{_last(log)}", hint=hint, log_tail=tail(log))


def died_under_load(name: str, exited: Exited, log: Path, *, is_kept: bool = True) -> Failure:
    """Return the failure of a server that ended under load. `is_kept`: whether a user can read the log."""
    return Failure(
        stage="load",
        kind="died",
        message=f"{name} {exited} while it was under test{_last(log)}",
        hint=_hint_for(exited, where_its_output_is(log, is_kept=is_kept)),
        log_tail=tail(log),
    )


def _hint_for(exited: Exited, by_hand: str) -> str:
    return f"{_who_killed(exited)}; {by_hand}" if exited.signal == signal.SIGKILL else by_hand


def where_its_output_is(log: Path, *, is_kept: bool) -> str:
    """Say where the output of a server is; of a log that is removed, how it is kept."""
    if is_kept:
        return f"its whole output is in {log}"
    return f"to see its whole output, keep it with {part('keep', 'DIR')}"


def _who_killed(exited: Exited) -> str:
    """Say who sent SIGKILL, as far as it is known."""
    if exited.because and exited.oom_kills != 0:
        return "the kernel sends SIGKILL to what needs more memory than that: raise `memory`"
    if exited.oom_kills is None:
        return "SIGKILL is sent by a user, or by the kernel when memory runs out, which `dmesg` says"
    if exited.oom_kills:
        return f"the kernel ended {exited.oom_kills} for want of memory while it ran, which `dmesg` names"
    return "the kernel ended nothing for want of memory while it ran, so somebody else sent SIGKILL"


def _last(log: Path) -> str:
    return last_words(tail(log, _MOST_LINES))


def last_words(said: str) -> str:
    """Return the line of an output that names the error, as the end of a sentence."""
    words = error_line(said)
    return f"; its last words: {words}" if words else "; it wrote nothing"


def _spoken(duration_ns: int) -> str:
    return f"{duration_ns / 1e9:.3g} s" if duration_ns >= 1_000_000_000 else f"{duration_ns / 1e6:.3g} ms"


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, without colours and control characters; empty if there are none.

    A program that describes itself does so after what is wrong: the lines are those from there on.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    said = lines_of(text)
    first = max(0, min(len(said) - lines, usage_from(said) - lines // 2))
    return "\n".join(said[first : first + lines])
