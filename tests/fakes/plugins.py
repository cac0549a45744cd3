"""Fakes behind the ports: trials are run without a process, a socket or a wait."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.model import (
    Cell,
    DuetBlock,
    DuetRecording,
    DuetTraffic,
    Failure,
    Interval,
    PlannedDuet,
    PlannedTrial,
    Precision,
    Recording,
    Run,
    RuntimeFacts,
    Series,
    ServerFacts,
    Subject,
    Traffic,
    Variant,
)
from redline.ports import Building, BuildOutcome, Drive, DuetDrive, Endpoint, Launch
from redline.running.quiet import Look
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import simulated_recording

ENDPOINT = Endpoint("127.0.0.1", 8080)
FACTS = ServerFacts(pid=4321, command=("fake",), port=8080, build="abc", ready_ns=1)
DEATH = Failure(stage="load", kind="died", message="killed by SIGKILL", hint="see its log", log_tail="Killed")


@dataclass
class FakeServer:
    """A server that does what the test tells it, and notes that it was stopped."""

    dead: Failure | None = None
    slow_to_die: int = 0
    stopped: bool = False
    endpoint: Endpoint = ENDPOINT
    facts: ServerFacts | None = FACTS
    runtimes: frozenset[str] = frozenset()

    def death(self) -> Failure | None:
        self.slow_to_die -= 1
        return self.dead if self.slow_to_die < 0 else None


@dataclass
class FakeLauncher:
    """Starts fake servers, or fails to. `stop_errors` are raised after each stop, in turn."""

    events: list[str]
    server: FakeServer = field(default_factory=FakeServer)
    error: LaunchError | None = None
    launches: list[Launch] = field(default_factory=list)
    stop_errors: list[LaunchError | None] = field(default_factory=list)

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        return BuildOutcome(hashes={variant.slug: "abc" for variant in variants})

    @contextmanager
    def running(self, launch: Launch) -> Iterator[FakeServer]:
        self.events.append("start")
        self.launches.append(launch)
        if self.error:
            raise self.error
        try:
            yield self.server
        finally:
            self.server.stopped = True
            self.events.append("stop")
        error = self.stop_errors.pop(0) if self.stop_errors else None
        if error is not None:
            raise error


class WithoutDuets:
    """The part of a driver that is not used in a test without duets."""

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        raise AssertionError(f"no duet was planned: {drive}")

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        return None


@dataclass
class FakeDriver(WithoutDuets):
    """Returns the traffic of a simulated trial, or fails."""

    events: list[str]
    wrong: str | None = None
    error: BaseException | None = None
    kills: FakeServer | None = None
    drives: list[Drive] = field(default_factory=list)
    duets: list[DuetDrive] = field(default_factory=list)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        self.events.append("verify")
        return self.wrong

    def drive(self, drive: Drive) -> Traffic:
        self.events.append("drive")
        self.drives.append(drive)
        drive.on_start(99)
        if self.kills:
            self.kills.dead = DEATH
        if self.error:
            raise self.error
        traffic = simulated_recording(drive.cell, seed=drive.seed).traffic
        if traffic is None:
            raise DriveError("nothing simulated", hint="none")
        for interval in traffic.intervals:
            drive.on_interval(interval)
        return traffic

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        self.events.append("duet")
        self.duets.append(drive)
        if self.error:
            raise self.error
        traffic = simulated_duet(0, (1.0,) * len(drive.other_servers)).traffic
        assert traffic is not None
        for block in traffic.blocks:
            drive.on_block(block)
        return traffic


@dataclass
class FakeMonitor:
    """Notes the processes that it follows."""

    events: list[str]
    perturbs: bool = False

    def follow(self, subject: Subject, pid: int) -> None:
        self.events.append(f"follow {subject} {pid}")

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        return None

    def finish(self) -> tuple[Series, ...]:
        self.events.append("finish")
        return (
            Series(name="cpu_ns", unit="ns", subject="server", kind="counter", times_unix_ns=(1, 2), values=(0.0, 5.0)),
        )


@dataclass
class QuietListener:
    """Keeps all reports."""

    started: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    intervals: int = 0
    judged: list[Precision] = field(default_factory=list)
    compared_starts: list[int] = field(default_factory=list)
    waits: list[tuple[Look | None, float]] = field(default_factory=list)

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        self.started.append(planned.position)

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        self.intervals += 1

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        self.ended.append(recording.position)

    def rounds_judged(self, precision: Precision) -> None:
        self.judged.append(precision)

    def moved(self, planned: PlannedTrial | PlannedDuet, cells: tuple[Cell, ...], failure: Failure) -> None:
        pass

    def repeated(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> None:
        self.again += [step.position for step in steps]

    def duet_started(self, planned: PlannedDuet, cells: tuple[Cell, ...]) -> None:
        self.started.append(planned.position)

    def block_seen(self, planned: PlannedDuet, block: DuetBlock) -> None:
        self.intervals += 1

    def duet_ended(self, recording: DuetRecording, cells: tuple[Cell, ...]) -> None:
        self.ended.append(recording.position)

    def waiting(self, look: Look, at_most_s: float) -> None:
        self.waits.append((look, at_most_s))

    def waited(self, last: Look | None, waited_s: float) -> None:
        self.waits.append((last, waited_s))

    def compared(self, run: Run) -> None:
        self.compared_starts.append(len(run.duets))
