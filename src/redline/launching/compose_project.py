"""A start of a compose file as its own project: creation, readiness, and removal."""

import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from redline.driving.engine_process import find_engine
from redline.errors import DriveError, LaunchError
from redline.files import as_store_error
from redline.launching import failures, observed
from redline.launching.compose_file import ComposeFile, ContainerState, OwnStart, override, read_containers
from redline.launching.compose_provider import Provider
from redline.launching.container_engine import (
    ANSWER_WITHIN_S,
    WORK_WITHIN_S,
    ContainerEngineError,
    has_systemd,
)
from redline.launching.containers import catches_sigterm, is_first_of_its_namespace
from redline.launching.failures import OF_SERVICE, FailedStart, tail
from redline.launching.guard import Exited, LaunchOrder
from redline.launching.observed import Whereabouts
from redline.launching.process import HOST
from redline.launching.readiness import wait_until_ready
from redline.launching.variables import hidden_in
from redline.launching.warden import Redactor
from redline.linux import cgroup, procfs
from redline.linux.cgroup import started_by
from redline.linux.runtimes import runtimes_of
from redline.model import Failure, ServerFacts
from redline.model.catalogue import ComposeService
from redline.ports import Endpoint, Launch

START_LABEL = "redline.start"
_PAUSE_S = 0.1
_KEPT_LINES = 10_000
"""The last lines of a service's output that its log keeps."""
_COPIED_BYTES = 1 << 20
_BY_SIGNAL = 128


class PortTakenError(Exception):
    """Another process has taken the port that was chosen for the server."""


@dataclass(frozen=True)
class Composed:
    """A compose file that can be started: its images are here. `built` are the images that were built, by service.

    `secrets` are hidden in the output of its services.
    """

    provider: Provider
    file: ComposeFile
    path: Path
    built: dict[str, str]
    hash: str
    version: str
    secrets: tuple[str, ...] = ()

    def hidden(self, text: str) -> str:
        """Hide the secrets in a text."""
        return hidden_in(text, self.secrets)


@dataclass(frozen=True)
class ComposedServer:
    """A service that has answered its readiness request."""

    endpoint: Endpoint
    facts: ServerFacts
    project: "ComposeProject"

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its processes."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Return why and how it died, with the end of its output; None while it runs."""
        if is_alive(self.facts.pid):
            return None
        launch = self.project.launch
        return failures.died_under_load(
            self.project.name, self.project.exited(), launch.log, is_kept=launch.log_is_kept
        )


class ComposeProject:
    """A start of a compose file, or of some of its `services`. `close` must be called, whatever happens.

    With `beside` it starts in that project, whose services run already.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what starts, how, where, and beside what
        self,
        launch: Launch,
        composed: Composed,
        start: OwnStart,
        folder: Path,
        services: Collection[str],
        beside: "ComposeProject | None" = None,
    ) -> None:
        """Raises OSError if its files cannot be written."""
        self.launch, self._composed, self._start, self._folder = launch, composed, start, folder
        self._services, self._beside = services, beside
        self.name = launch.variant.slug
        self.has_served = False
        self._engine = composed.provider.engine
        self._state: ContainerState | None = None
        self._running = frozenset[str]()
        (folder / "start.yaml").write_text(override(composed.file, start))

    @property
    def project(self) -> str:
        """Its name in the container engine."""
        return self._start.project

    @property
    def cpus(self) -> tuple[int, ...]:
        """The cores of its services."""
        return self._start.cpus

    @cached_property
    def _service(self) -> ComposeService:
        service = self.launch.variant.catalogued.compose
        assert service is not None, f"{self.name} is no service"
        return service

    @property
    def _common(self) -> tuple[str, ...]:
        return ("-p", self._start.project, "-f", str(self._composed.path), "-f", str(self._folder / "start.yaml"))

    def bring_up(self) -> ComposedServer:
        """Start all services, and wait for their health checks and an answer. Raises LaunchError, PortTakenError."""
        began_ns = time.monotonic_ns()
        try:
            self._start_all()
            state = self._its_container()
            self._verify(state)
        except ContainerEngineError as error:
            raise LaunchError(f"{self.name}: {self._composed.hidden(str(error))}", hint=error.hint) from error
        ready_at_ns = self._wait(state)
        return ComposedServer(Endpoint(HOST, self._start.port), self._facts(state, ready_at_ns - began_ns), self)

    def start_services(self) -> None:
        """Start its services, none of which is the server. Raises LaunchError."""
        try:
            self._start_all()
            self._running = frozenset(state.id for state in self._states() if not state.has_ended)
        except ContainerEngineError as error:
            raise LaunchError(f"{self.name}: {self._composed.hidden(str(error))}", hint=error.hint) from error

    def check_services(self) -> None:
        """Raise LaunchError unless all services still run that did when they had started.

        A service that no other depends on, such as one that fills a database, may have ended successfully.
        """
        try:
            states = {state.id: state for state in self._states()}
        except ContainerEngineError as error:
            raise LaunchError(f"{self.name}: {self._composed.hidden(str(error))}", hint=error.hint) from error
        for number in sorted(self._running):
            state = states.get(number)
            if state is None:
                message = f"{self.name}: a container of {self._service.file} that other starts need is gone"
                raise LaunchError(message, hint="remove no containers with the label `redline.lab` meanwhile")
            if state.has_ended and (state.exit_code or self._composed.file.is_needed(state.service)):
                said = self._tail(state)
                message = (
                    f"{self.name}: the service {state.service} of {self._service.file}, which runs through all starts, "
                    f"{_exit_of(state)}{failures.last_words(said)}"
                )
                raise LaunchError(message, hint=OF_SERVICE.by_hand, log_tail=said)

    def _start_all(self) -> None:
        for all_ in self._composed.file.waves:
            wave = tuple(name for name in all_ if name in self._services)
            if not wave:
                continue
            self.launch.check_wanted()
            try:
                words = ("up", "-d", "--no-build", "--no-deps", *wave)
                self._composed.provider.call(self._folder, self._common, *words)
            except ContainerEngineError as error:
                if failures.says_port_is_taken(error.said):
                    raise PortTakenError from error
                raise
            self._settle(wave)

    def _settle(self, wave: tuple[str, ...]) -> None:
        """Wait until the services are healthy, or have ended successfully if others need that. Raises LaunchError."""
        within_ns = self.launch.variant.catalogued.ready.within_ns
        deadline = time.monotonic() + within_ns / 1e9
        needed = self._composed.file.completing
        # Without systemd, only this loop runs podman's checks: then their number is no measure, but the time is.
        runs_checks = self._engine.name == "podman" and not has_systemd()
        while True:
            self.launch.check_wanted()
            waiting = []
            for state in self._states():
                self._check_running(state)
                if state.service not in wave or state.has_ended:
                    continue
                if state.service in needed or state.health not in ("", "healthy"):
                    waiting.append(state)
                if state.health == "unhealthy" and not runs_checks:
                    raise self._unhealthy(state, "failed")
                if state.health not in ("", "healthy") and runs_checks:
                    with suppress(ContainerEngineError):
                        self._engine.call("healthcheck", "run", state.id)
            if not waiting:
                return
            if time.monotonic() > deadline:
                within = f"within {within_ns / 1e9:.3g} s"
                if waiting[0].health in ("", "healthy"):
                    message = (
                        f"{self.name}: the service {waiting[0].service} did not end {within}, and others wait for it"
                    )
                    raise LaunchError(message, hint=OF_SERVICE.longer, log_tail=self._tail(waiting[0]))
                raise self._unhealthy(waiting[0], f"did not pass {within}")
            time.sleep(_PAUSE_S)

    def _check_running(self, state: ContainerState) -> None:
        """Raise LaunchError for a service that ended, unless it ended successfully and is not the server."""
        if not state.has_ended or (state.exit_code == 0 and state.service != self._start.service):
            return
        said = self._tail(state)
        last = failures.last_words(said)
        message = (
            f"{self.name}: the service {state.service} of {self._service.file} {_exit_of(state)} at its start{last}"
        )
        raise LaunchError(message, hint=OF_SERVICE.by_hand, log_tail=said)

    def _unhealthy(self, state: ContainerState, how: str) -> LaunchError:
        message = (
            f"{self.name}: the health check of the service {state.service} {how}: {self._composed.hidden(state.said)}"
        )
        hint = f"see its `healthcheck` in {self._service.file}; if it only needs longer, {OF_SERVICE.longer}"
        return LaunchError(message, hint=hint, kind="not_ready", log_tail=self._tail(state))

    def _states(self) -> tuple[ContainerState, ...]:
        ids = self._all("ps", "--all", "--no-trunc")
        return read_containers(self._engine.call("container", "inspect", *ids)) if ids else ()

    def _all(self, *words: str) -> list[str]:
        """List the identifiers of what this start has made. Raises ContainerEngineError."""
        label = f"label={START_LABEL}={self._start.project}"
        return self._engine.call(*words, "--quiet", "--filter", label).split()

    def _its_container(self) -> ContainerState:
        """Return the container that is measured. Raises LaunchError and ContainerEngineError."""
        states = [state for state in self._states() if state.service == self._start.service]
        for state in states:
            self._check_running(state)
        if len(states) != 1:
            message = (
                f"{self.name}: {len(states)} containers run for the service {self._start.service}, in place of one"
            )
            raise LaunchError(message, hint=OF_SERVICE.by_hand)
        (self._state,) = states
        inside = f"{self._start.inside}/tcp"
        if self._start.port not in states[0].published.get(inside, ()):
            message = f"{self.name}: port {self._start.inside} of the service {self._start.service} was not published"
            hint = f"does its network publish ports? Look at it by hand: {self._engine.name} compose up"
            raise LaunchError(message, hint=hint)
        return states[0]

    def _verify(self, state: ContainerState) -> None:
        """Check that its process is on this machine, and its cores. Raises LaunchError."""
        cpus = self._start.cpus
        if not is_first_of_its_namespace(state.pid):
            if not is_alive(state.pid):
                return  # waiting for its answer says so
            message = f"{self.name}: process {state.pid}, which {self._engine.name} names, is not one of its container"
            raise LaunchError(
                message, hint="run Redline where the container engine runs, not in a container of its own"
            )
        with suppress(OSError):
            actual = tuple(sorted(os.sched_getaffinity(state.pid)))
            if cpus and actual != cpus:
                message = f"{self.name}: the cores of its container should be {cpus}, and are {actual}"
                hint = f"can {self._engine.name} use the controller cpuset? See `redline doctor`"
                raise LaunchError(message, hint=hint)

    def _wait(self, state: ContainerState) -> int:
        """Wait for the answer, and return its time (CLOCK_MONOTONIC, ns). Raises LaunchError."""
        variant, upstream = self.launch.variant, self.launch.upstream
        ready = variant.catalogued.ready
        assert upstream is None, "a service is no proxy"
        endpoint, since_ns = Endpoint(HOST, self._start.port), time.monotonic_ns()

        def alive(pause: float) -> bool:
            self.launch.check_wanted()
            time.sleep(pause)
            return is_alive(state.pid)

        try:
            waited = wait_until_ready(
                find_engine(),
                variant,
                endpoint,
                ready,
                alive=alive,
                since_ns=since_ns,
                any_status=self.launch.any_status,
            )
        except DriveError as error:
            raise LaunchError.of(error) from error
        if waited.ended == "ready" and is_alive(state.pid):
            if observed.listens(HOST, self._start.port, state.pid, self._start.inside):
                return waited.at_ns
            raise PortTakenError
        order = self._order()
        failed = FailedStart(self.name, HOST, self._start.port, order, OF_SERVICE)
        if not is_alive(state.pid):
            exited = self.exited()
            raise failed.exited_early(exited, exited.at_ns - since_ns, Whereabouts())
        self.keep_log()
        seen = Whereabouts.of(state.pid, HOST, self._start.inside)
        where = ""
        if observed.is_out_of_reach(self._start.inside, seen.listening):
            where = (
                f"it listens on 127.0.0.1 of its container alone, whose port {self._start.inside} nobody else reaches"
            )
        elif not seen.reached:
            where = observed.said(seen.listening) or "nothing listens in its container"
        raise failed.not_ready(ready, waited.last_answer, where)

    def _order(self) -> LaunchOrder:
        """Return the start as messages need it."""
        return LaunchOrder(
            command=self._composed.provider.command(self._folder, *self._common, "up", "-d"),
            folder=self._composed.path.parent,
            env={},
            cpus=(),
            grace_ns=0,
            cgroup_parent=None,
            log=self.launch.log,
        )

    def order_of_commands(self) -> LaunchOrder:
        """Return the start as the commands around it need it: they run in the lab's environment."""
        folder = Path(self.launch.variant.catalogued.family_folder)
        return replace(self._order(), folder=folder, env=dict(os.environ), secrets=self._composed.secrets)

    def _facts(self, state: ContainerState, ready_ns: int) -> ServerFacts:
        others = (other.service for other in self._states() if other.service != state.service and not other.has_ended)
        beside = tuple(dict.fromkeys(others))
        served = self._beside is not None and self._beside.has_served
        return ServerFacts(
            pid=state.pid,
            command=self._order().command,
            port=self._start.port,
            cpus=self._start.cpus,
            build=self._composed.hash,
            runtime_version=self._composed.version,
            cgroup=cgroup.own_group_of(state.pid) is not None,
            ready_ns=ready_ns,
            padding_bytes=self._start.padding_bytes,
            runtimes=tuple(sorted(runtimes_of(started_by(state.pid)))),
            beside=beside,
            kept=tuple(name for name in beside if name not in self._services) if served else (),
        )

    def exited(self) -> Exited:
        """Return how the server ended, as far as the engine knows, after keeping its log."""
        self.keep_log()
        now_ns, state = time.monotonic_ns(), None
        with suppress(ContainerEngineError):
            state = next((state for state in self._states() if state.service == self._start.service), None)
        if state is None or not state.has_ended:
            return Exited(None, None, now_ns)
        if state.exit_code > _BY_SIGNAL:
            return Exited(None, state.exit_code - _BY_SIGNAL, now_ns)
        return Exited(state.exit_code, None, now_ns)

    def keep_log(self) -> None:
        """Write the output of the server to its log, as far as the engine has it. Raises StoreError."""
        if self._state is None:
            return
        with as_store_error(self.launch.log):
            self.launch.log.parent.mkdir(parents=True, exist_ok=True)
            self._write_log(self._state, self.launch.log)

    def _tail(self, state: ContainerState) -> str:
        """Return the last lines of a service's output."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            self._write_log(state, Path(folder) / "log")
            return tail(Path(folder) / "log")

    def _write_log(self, state: ContainerState, file: Path) -> None:
        command = (*self._engine.command, "logs", "--tail", str(_KEPT_LINES), state.id)
        with tempfile.TemporaryFile() as output:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=ANSWER_WITHIN_S,
                    check=False,
                    start_new_session=True,
                )
            output.seek(0)
            redactor = Redactor(self._composed.secrets)
            with file.open("wb") as log:
                while data := output.read(_COPIED_BYTES):
                    log.write(redactor.passed(data))
                log.write(redactor.passed(b"", last=True))

    def close(self) -> None:
        """Stop and remove everything that the start has made. Raises LaunchError if something is left."""
        if self._beside is not None:
            self._remove_containers()
            return
        grace_s = math.ceil(self.launch.variant.catalogued.stop.within_ns / 1e9)
        down = ("down", "--volumes", "--remove-orphans", "--timeout", str(grace_s))
        reason: ContainerEngineError | None = None
        with suppress(ContainerEngineError):
            self.keep_log()
            for state in self._states():
                if state.pid and not catches_sigterm(state.pid):  # it would get SIGKILL after the time to end
                    with suppress(ContainerEngineError):
                        self._engine.call("kill", state.id)
        try:
            within_s = WORK_WITHIN_S + grace_s * len(self._composed.file.services)
            self._composed.provider.call(self._folder, self._common, *down, within_s=within_s)
        except ContainerEngineError as error:
            reason = error
        try:
            self._remove_what_is_left()
        except ContainerEngineError as error:
            message = f"what {self.name} has started could not be removed: {reason or error}"
            raise LaunchError(message, hint=(reason or error).hint) from error

    def _remove_containers(self) -> None:
        """Stop and remove the containers of its services, and nothing of what they start beside."""
        grace_s = math.ceil(self.launch.variant.catalogued.stop.within_ns / 1e9)
        try:
            with suppress(ContainerEngineError):
                self.keep_log()
            own = [state for state in self._states() if state.service in self._services]
            for state in own:
                if state.pid and catches_sigterm(state.pid):
                    within_s = grace_s + ANSWER_WITHIN_S
                    with suppress(ContainerEngineError):
                        self._engine.call("stop", "-t", str(grace_s), state.id, within_s=within_s)
                elif state.pid:  # it would get SIGKILL after the time to end
                    with suppress(ContainerEngineError):
                        self._engine.call("kill", state.id)
            if own:
                ids = (state.id for state in own)
                self._engine.call("rm", "--force", "--volumes", *ids, within_s=WORK_WITHIN_S)
        except ContainerEngineError as error:
            message = f"what {self.name} has started could not be removed: {error}"
            raise LaunchError(message, hint=error.hint) from error

    def _remove_what_is_left(self) -> None:
        """Remove what `down` left, such as services that were not started. Raises ContainerEngineError."""
        for listed, removed in (
            (("ps", "--all"), ("rm", "--force", "--volumes")),
            (("network", "ls"), ("network", "rm")),
            (("volume", "ls"), ("volume", "rm", "--force")),
        ):
            if left := self._all(*listed):
                self._engine.call(*removed, *left, within_s=WORK_WITHIN_S)


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    stat = procfs.read_stat(pid) if pid else None
    return stat is not None and stat.state not in "ZX"


def _exit_of(state: ContainerState) -> str:
    number = state.exit_code - _BY_SIGNAL
    exited = Exited(None, number, 0) if number in [*signal.Signals] else Exited(state.exit_code, None, 0)
    return str(exited)
