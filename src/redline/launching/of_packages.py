"""Launch servers of kinds that other packages bring; Redline waits until they are ready, and looks who answers.

A package brings a launcher by an entry point of the group `redline.launchers`: docs/guide/own-launchers.md.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from redline.driving.engine_process import find_engine
from redline.entry_points import Extension, extension
from redline.errors import DriveError, LaunchError, RedlineError
from redline.launching import observed
from redline.launching.failures import last_words, tail, where_its_output_is
from redline.launching.process import HOST, free_port
from redline.launching.readiness import WaitEnd, wait_until_ready
from redline.linux.cgroup import started_by
from redline.linux.runtimes import runtimes_of
from redline.linux.scheduling import on_cores
from redline.model import Failure, ServerFacts, Variant
from redline.ports import Building, BuildOutcome, Endpoint, Launch, OwnStart, ServerOrder, StartedServer
from redline.quantities import duration

GROUP = "redline.launchers"
PAGE = "docs/guide/own-launchers.md"
GONE_WITHIN_S = 5.0
"""How long the process of a stopped server may take to be gone."""


@dataclass(frozen=True)
class OwnServer:
    """A server that a launcher of another package started, once it has answered."""

    endpoint: Endpoint
    facts: ServerFacts
    process: psutil.Process
    name: str
    log: Path
    log_is_kept: bool = True

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its processes."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Say that its process ended; None while it runs."""
        if _runs(self.process):
            return None
        ended = f"{self.name} ended while it was under test: its process {self.facts.pid} is gone"
        message = f"{ended}{last_words(tail(self.log))}"
        hint = where_its_output_is(self.log, is_kept=self.log_is_kept)
        return Failure(stage="load", kind="died", message=message, hint=hint, log_tail=tail(self.log))


class OwnLauncher:
    """Launcher of the kinds with these names. Raises UsageError for a name that no package brings, or several do."""

    def __init__(self, names: Iterable[str]) -> None:
        found = [extension(GROUP, name, "launcher", PAGE) for name in sorted(names)]
        self._starts: dict[str, tuple[Extension, OwnStart]] = {it.point.name: (it, it.load()) for it in found}

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build nothing, and know nothing about the server's build."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: "" for variant in variants})

    @contextmanager
    def running(self, launch: Launch) -> Iterator[OwnServer]:
        """Start it, wait until it is ready, and have it stopped. Raises LaunchError."""
        entry = launch.variant.catalogued
        brought, start = self._starts[entry.launcher or ""]
        order = ServerOrder(
            name=launch.variant.slug,
            settings=dict(launch.variant.options),
            port=free_port(),
            protocol=launch.variant.serves,
            folder=Path(entry.family_folder).absolute(),
            cpus=launch.placement.server_cpus,
            log=launch.log,
        )
        began_ns = time.monotonic_ns()
        context = self._of_package(brought, order, "start", lambda: start(order))
        with on_cores(order.cpus):
            started = self._of_package(brought, order, "start", lambda: context.__enter__())  # noqa: PLW0108 - it may have none
        try:
            yield self._ready(launch, brought, order, started, began_ns)
        except BaseException as error:
            # What it does with an error is its own; that one goes on.
            self._stopped(brought, order, started, context, error)
            raise
        self._stopped(brought, order, started, context, None)

    def _ready(
        self, launch: Launch, brought: Extension, order: ServerOrder, started: object, began_ns: int
    ) -> OwnServer:
        """Wait until the server is ready, and return it. Raises LaunchError."""
        process = _process(brought, launch, started)
        ready, endpoint = launch.variant.catalogued.ready, Endpoint(HOST, order.port)

        def alive(pause: float) -> bool:
            launch.check_wanted()
            time.sleep(pause)
            return _runs(process)

        try:
            waited = wait_until_ready(
                find_engine(),
                launch.variant,
                endpoint,
                ready,
                alive=alive,
                since_ns=began_ns,
                any_status=launch.any_status,
            )
        except DriveError as error:
            raise LaunchError.of(error) from error
        if waited.ended != "ready":
            raise _not_ready(launch, waited, duration(ready.within_ns), f"GET {ready.path} on port {order.port}")
        if not observed.listens(HOST, order.port, process.pid):
            who = observed.who_answers(HOST, order.port)
            message = f"{order.name}: nothing of process {process.pid} listens on port {order.port}"
            raise LaunchError(f"{message}; {who}" if who else message, hint=brought.hint, log_tail=tail(order.log))
        try:
            pinned = bool(order.cpus) and os.sched_getaffinity(process.pid) == set(order.cpus)
            command = tuple(process.cmdline())
        except (OSError, psutil.Error) as error:
            raise _ended(launch) from error
        facts = ServerFacts(
            pid=process.pid,
            command=command,
            port=order.port,
            cpus=order.cpus if pinned else (),
            build="",
            ready_ns=waited.at_ns - began_ns,
            runtimes=tuple(sorted(runtimes_of(started_by(process.pid)))),
        )
        return OwnServer(endpoint, facts, process, order.name, order.log, launch.log_is_kept)

    def _stopped(
        self,
        brought: Extension,
        order: ServerOrder,
        started: object,
        context: AbstractContextManager[object],
        error: BaseException | None,
    ) -> None:
        """Have the server stopped. Raises LaunchError if that fails, or its process goes on; not after an error."""
        process = _process_or_none(started)
        try:
            self._of_package(brought, order, "stop", lambda: context.__exit__(None, None, None))
        except LaunchError:
            if error is None:
                raise
        if error is None and process is not None and not _gone(process):
            message = f"{brought} has stopped {order.name}, and its process {process.pid} still runs"
            raise LaunchError(message, hint=f"end it: kill {process.pid}; and {brought.hint}")

    def _of_package(self, brought: Extension, order: ServerOrder, what: str, step: Callable[[], Any]) -> Any:
        """Do a step of the package. Raises LaunchError where it fails."""
        try:
            return step()
        except RedlineError as error:
            raise LaunchError.of(error) from error
        except Exception as error:
            message = f"{brought} could not {what} {order.name}: {brought.reason(error)}"
            raise LaunchError(message, hint=brought.hint, log_tail=tail(order.log)) from error


def _process(brought: Extension, launch: Launch, started: object) -> psutil.Process:
    """Return the process of a started server. Raises LaunchError if there is none."""
    name = launch.variant.slug
    if not isinstance(started, StartedServer):
        message = f"{brought} gave {type(started).__name__} for {name}, not redline.ports.StartedServer"
        raise LaunchError(message, hint=brought.hint)
    process = _process_or_none(started)
    if process is None:
        raise _ended(launch)
    if os.getpid() in started_by(process.pid):
        message = f"{brought} runs {name} in the process of Redline, whose work would count as the server's"
        raise LaunchError(message, hint="start a process of its own")
    return process


def _process_or_none(started: object) -> psutil.Process | None:
    try:
        return psutil.Process(started.pid) if isinstance(started, StartedServer) else None
    except (psutil.Error, TypeError, ValueError):
        return None


def _runs(process: psutil.Process) -> bool:
    """Whether it runs; a process that nobody has waited for has ended."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _gone(process: psutil.Process) -> bool:
    deadline = time.monotonic() + GONE_WITHIN_S
    while _runs(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _runs(process)


def _ended(launch: Launch) -> LaunchError:
    message = f"{launch.variant.slug} ended before it was ready{last_words(tail(launch.log))}"
    hint = where_its_output_is(launch.log, is_kept=launch.log_is_kept)
    return LaunchError(message, hint=hint, log_tail=tail(launch.log))


def _not_ready(launch: Launch, waited: WaitEnd, within: str, request: str) -> LaunchError:
    """Return the error for a server that died, or did not answer in time."""
    if waited.ended == "died":
        return _ended(launch)
    said = tail(launch.log)
    answer = waited.last_answer
    saw = f"status {answer}" if isinstance(answer, int) else answer
    message = f"{launch.variant.slug} was not ready within {within}: the last {request} got: {saw}{last_words(said)}"
    hint = "write what a ready server answers, `ready: {path: /health}`, or how long it may take, `{within: 1m}`"
    return LaunchError(message, hint=hint, kind="not_ready", log_tail=said)
