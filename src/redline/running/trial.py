"""One trial: start, verify, warm up, measure, stop. One page, because its order is the method."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from redline.errors import DriveError, LaunchError, RedlineError
from redline.findings.warming import Watch
from redline.model import (
    Cell,
    Failure,
    FailureKind,
    Interval,
    PlannedTrial,
    Recording,
    Series,
    ServerFacts,
    Stage,
    Traffic,
)
from redline.ports import Drive, Driver, Launcher, Placement, Probe, RunningServer


class Watcher(Protocol):
    """Is told how trials go, to show it."""

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """A trial begins: its server is about to be started."""
        ...

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """The engine reported one more interval."""
        ...

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """The trial's recording is kept."""
        ...


DYING_S = 0.5


@dataclass(frozen=True)
class Tools:
    """What trials are made with. `probes` makes new ones for each trial."""

    launcher: Launcher
    driver: Driver
    probes: Callable[[], tuple[Probe, ...]]
    placement: Placement


@dataclass
class Trial:
    """One execution of a cell on a freshly started server, and what is known of it so far."""

    planned: PlannedTrial
    cell: Cell
    tools: Tools
    logs: Path
    on_interval: Callable[[Interval], None]
    server: ServerFacts | None = None
    traffic: Traffic | None = None
    series: tuple[Series, ...] = ()
    failure: Failure | None = None
    stages_ns: dict[Stage, int] = field(default_factory=dict)
    log_bytes: int | None = None

    def run(self) -> Recording:
        """Run it. What goes wrong with the server or the load is in the recording.

        Out come interrupts, and StoreError when a log cannot be written: the next trial's could not be either.
        """
        started_unix_ns, started_ns = time.time_ns(), time.monotonic_ns()
        probes = self.tools.probes()
        try:
            self._measure(probes)
        except LaunchError as error:
            self.failure = _failure("launch", error.kind, error, error.log_tail)
        except DriveError as error:
            self.failure = self.failure or _failure("load", "engine", error)
        if self.failure is not None:  # what a budget is asked for: a stage that failed took its time too
            spent_ns = time.monotonic_ns() - started_ns - sum(self.stages_ns.values())
            self.stages_ns.setdefault(self.failure.stage, spent_ns)
        return Recording(
            cell_id=self.planned.cell_id,
            round=self.planned.round,
            position=self.planned.position,
            seed=self.planned.seed,
            started_unix_ns=started_unix_ns,
            server=self.server,
            traffic=self.traffic,
            series=self.series,
            perturbed=any(probe.perturbs for probe in probes),
            failure=self.failure,
            stages_ns=self.stages_ns,
            log_bytes=self.log_bytes,
        )

    @property
    def _server_log(self) -> Path:
        return self.logs / "server.log"

    def _measure(self, probes: tuple[Probe, ...]) -> None:
        lap = _laps(self.stages_ns)
        running = self.tools.launcher.running(self.cell.variant, self.tools.placement, self._server_log)
        with running as server:
            self.server = server.facts
            lap("launch")
            self.failure = self._verify(server)
            lap("verify")
            if self.failure is None:
                self._load(server, probes)
                lap("load")
        lap("stop")

    def _verify(self, server: RunningServer) -> Failure | None:
        wrong = self.tools.driver.verify(self.cell, server.endpoint)
        if wrong is None:
            return None
        return death_soon(server) or Failure(
            stage="verify",
            kind="wrong_answer",
            message=f"{self.cell.variant.slug} answered {self.cell.scenario.name} wrongly before any load: {wrong}",
            hint="mend the server, or the scenario's expected answer; nothing was timed",
        )

    def _load(self, server: RunningServer, probes: tuple[Probe, ...]) -> None:
        def follow(pid: int) -> None:
            for probe in probes:
                probe.follow("engine", pid)

        cpus = self.tools.placement.engine_cpus
        drive = Drive(
            cell=self.cell,
            endpoint=server.endpoint,
            seed=self.planned.seed,
            cpus=cpus,
            workers=min(max(1, len(cpus)), self.cell.load.connections),
            log=self.logs / "engine.log",
            on_start=follow,
            on_interval=self.on_interval,
            is_warm=Watch(self.cell).is_warm if self.cell.warmup_detect else None,
        )
        for probe in probes:
            probe.follow("server", server.facts.pid)
        written_before = _size_of(self._server_log)
        try:
            self.traffic = self.tools.driver.drive(drive)
        except DriveError:
            self.failure = death_soon(server)
            raise
        finally:
            self.series = tuple(series for probe in probes for series in probe.finish())
            self.log_bytes = _growth(written_before, _size_of(self._server_log))
        self.failure = death_soon(server) if lost_connections(self.traffic) else server.death()


def lost_connections(traffic: Traffic) -> bool:
    """Whether some connection could not be made or was lost: then the server may be dying."""
    ended = traffic.counts.outcomes
    return ended.connect + ended.tls + ended.reset + ended.closed + ended.refused > 0


def death_soon(server: RunningServer) -> Failure | None:
    """The death of a server that no longer answers: it closes its sockets a moment before it is gone."""
    deadline = time.monotonic() + DYING_S
    while (death := server.death()) is None and time.monotonic() < deadline:
        time.sleep(DYING_S / 50)
    return death


def _size_of(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def _growth(before: int | None, after: int | None) -> int | None:
    """By how much what only grows has grown; None where it is not there to be seen."""
    return None if before is None or after is None else max(after - before, 0)


def _failure(stage: Stage, kind: FailureKind, error: RedlineError, log_tail: str = "") -> Failure:
    return Failure(stage=stage, kind=kind, message=error.problems[0].message, hint=error.hint, log_tail=log_tail)


def _laps(stages_ns: dict[Stage, int]) -> Callable[[Stage], None]:
    """Note, at the end of each stage, how long it took."""
    last = time.monotonic_ns()

    def lap(stage: Stage) -> None:
        nonlocal last
        now = time.monotonic_ns()
        stages_ns[stage], last = now - last, now

    return lap
