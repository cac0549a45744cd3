"""The five ports: what the lab asks of the world. Built-ins stand in `redline.plugins`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from redline.errors import BuildError, DriveError
from redline.model import (
    Cell,
    DuetBlock,
    DuetRecording,
    DuetTraffic,
    Failure,
    Interval,
    Leg,
    PlannedDuet,
    PlannedTrial,
    Profile,
    ProfileFacts,
    Ready,
    Recording,
    RuntimeFacts,
    Series,
    ServerFacts,
    Subject,
    Traffic,
    Variant,
)
from redline.model.duet import CpuOwner
from redline.model.limits import AnyReport

T = TypeVar("T")


@dataclass(frozen=True)
class Placement:
    """The CPUs of server, engine and lab, empty if too few to separate; `cores`: the usable CPUs by physical core."""

    server_cpus: tuple[int, ...] = ()
    engine_cpus: tuple[int, ...] = ()
    lab_cpus: tuple[int, ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """Where a running server listens. `ca_pem` is who signed its certificate, if the catalogue names it."""

    host: str
    port: int
    ca_pem: str | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Upstream:
    """What is behind a proxy: where it listens, the leg to it, and the request that it answers when it is ready."""

    endpoint: Endpoint
    leg: Leg
    ready: Ready


@dataclass(frozen=True)
class Launch:
    """One start of a server: what runs, on which CPUs, where its output goes, and how it differs from other starts.

    With a `seed` its environment has a random size, which moves the stack. `build_number` says which of its builds
    runs, from 0. The text of each variable in `env` is appended to what that variable has, after a space. A proxy
    is in front of its `upstream`, which runs already. With `any_status` it is ready with another status than its entry
    says too, once it has given that for a second. `log_is_kept`: whether a user will find the log afterwards.
    `on_setup` gets the nanoseconds that each command around the start took.
    """

    variant: Variant
    placement: Placement
    log: Path
    seed: int | None = None
    build_number: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    upstream: Upstream | None = None
    any_status: bool = False
    log_is_kept: bool = True
    on_setup: Callable[[int], object] = lambda _ns: None


class RunningServer(Protocol):
    """A server that has answered its readiness request."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""

    @property
    def facts(self) -> ServerFacts | None:
        """How it was run, for the recording; None for a server that somebody else runs."""

    @property
    def runtimes(self) -> frozenset[str]:
        """What its processes, and those of its hops, were seen to run on, such as `jvm`; empty if not known."""

    def death(self) -> Failure | None:
        """Why and how it died, with the end of its output; None while it lives."""


@dataclass(frozen=True)
class Building:
    """Servers that a command builds at this moment, and the last line that it printed; none at its beginning."""

    servers: tuple[str, ...]
    line: str = ""


@dataclass(frozen=True)
class BuildOutcome:
    """Content hashes of what is built, or failures, by name.

    `took_ns` is how long build commands ran, if they did; what was built together has the same time. `runtimes` are
    versions as in recordings (`ServerFacts.runtime_version`).
    """

    hashes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, BuildError] = field(default_factory=dict)
    took_ns: dict[str, int] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)

    @property
    def unavailable(self) -> dict[str, str]:
        """Why servers could not be built, by name."""
        return {name: error.message for name, error in self.failures.items()}

    def hash_of(self, name: str) -> str:
        """The content hash of a server that has to be built. Raises BuildError."""
        if name in self.failures:
            raise self.failures[name]
        return self.hashes[name]

    def failing(self, names: Iterable[str]) -> "BuildOutcome":
        """The same with these failures alone."""
        return replace(self, failures={name: self.failures[name] for name in names})

    def joined(self, other: "BuildOutcome") -> "BuildOutcome":
        """With other servers, or another build of the same: what failed in either has failed, and times add up."""
        failures = {**other.failures, **self.failures}
        built = (*self.took_ns, *other.took_ns)
        took_ns = {name: self.took_ns.get(name, 0) + other.took_ns.get(name, 0) for name in built}
        hashes = {name: text for name, text in {**other.hashes, **self.hashes}.items() if name not in failures}
        runtimes = {name: text for name, text in {**other.runtimes, **self.runtimes}.items() if name not in failures}
        return BuildOutcome(hashes, failures, took_ns, runtimes)

    def renamed(self, names: dict[str, str]) -> "BuildOutcome":
        """The same by new names, which map to the old ones."""

        def by_new(by_old: Mapping[str, T]) -> dict[str, T]:
            return {new: by_old[old] for new, old in names.items() if old in by_old}

        return BuildOutcome(by_new(self.hashes), by_new(self.failures), by_new(self.took_ns), by_new(self.runtimes))


class Launcher(Protocol):
    """Variant -> running server."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants need, `builds` times in separate folders. The outcome is by variant slug."""

    def running(self, launch: Launch) -> AbstractContextManager[RunningServer]:
        """Start a server, wait until it is ready, and stop it whatever happens. Raises LaunchError."""


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What the caller of a load decides, beyond its cell.

    `log` gets the engine's messages, and `log_is_kept` says whether a user will find it afterwards; `server_log` is
    where the server writes, if anybody knows. Without `workers` there is one for each core of the engine. With
    `keep_interrupted`, the first Ctrl-C ends the load early and gives the traffic so far, and a NoResultError has it.
    `interval_ns` is the length of an interval, where that is not left to the driver. `on_start` gets the engine's
    process id, where it runs on this machine. `profiler` is one more monitor, for the measurement alone.
    """

    log: Path
    server_log: Path | None = None
    log_is_kept: bool = True
    workers: int | None = None
    keep_interrupted: bool = False
    interval_ns: int | None = None
    on_start: Callable[[int], None] = field(default=lambda _pid: None)
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    profiler: "Profiler | None" = None


class NoResultError(DriveError):
    """A load ended without a result. `traffic` is what was seen of it, where that is wanted."""

    def __init__(self, message: str, *, hint: str, traffic: Traffic | None = None) -> None:
        super().__init__(message, hint=hint)
        self.traffic = traffic


@dataclass(frozen=True, kw_only=True)
class Drive(LoadOptions):
    """One load on one server, as a driver is asked for it.

    `is_warm` is asked after every interval of the warm-up, in a duet after every block (`DuetBlock`); when it says so
    the measurement begins at the end of a later one. Without it the warm-up has its length. `pids` are the server's
    processes, whose CPU time is read at both ends of the measurement.
    """

    cell: Cell
    endpoint: Endpoint
    seed: int
    cpus: tuple[int, ...]
    workers: int
    pids: tuple[int, ...] = ()
    is_warm: Callable[[Any], bool] | None = None

    @classmethod
    def of(cls, options: LoadOptions, cell: Cell, endpoint: Endpoint, seed: int, cpus: tuple[int, ...]) -> "Drive":
        """With one worker for each of the engine's CPUs, unless the options say how many."""
        given = {**vars(options), "workers": options.workers or max(1, len(cpus))}
        return cls(**given, cell=cell, endpoint=endpoint, seed=seed, cpus=cpus)


@dataclass(frozen=True)
class DuetDrive:
    """Several servers, loaded in short slices in turn: that of `drive`, and the other servers with their endpoints.

    `pids` are the processes by server, that of `drive` first; empty for a server that somebody else runs. A slice takes
    `slice_ns`, up to `longest_slice_ns` of slow servers; its first `guard_ns` are not measured. If `parallel`, all are
    loaded at the same time by `workers` on CPUs of their own, listed in turn in the drive's `cpus`.
    """

    drive: Drive
    other_servers: tuple[tuple[Variant, Endpoint], ...]
    pids: tuple[tuple[int, ...], ...]
    slice_ns: int
    longest_slice_ns: int
    guard_ns: int
    parallel: bool = False
    on_block: Callable[[DuetBlock], None] = field(default=lambda _block: None)


class ServerWatch(Protocol):
    """Whose CPU time is read for a server: `pids`, and what they start during the load."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Its processes; none where they are not known."""

    def look(self) -> None:
        """Look at it under load, once for each block."""

    def finish(self) -> CpuOwner:
        """Whether that was all, once the load has ended."""


class Driver(Protocol):
    """Scenario + Load -> Traffic."""

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Ask once and compare the whole answer: what is wrong with it, or None. Raises DriveError."""

    def drive(self, drive: Drive) -> Traffic:
        """Warm up, load and measure. Raises DriveError when there is no traffic to speak of."""

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """Where two servers first answer differently, in one line; None without a difference. Raises DriveError."""

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        """Load several servers in slices. An interrupt ends it early. Raises DriveError when there is no traffic."""


class Monitor(Protocol):
    """Watches a trial: a monitor of processes, or a profiler."""

    @property
    def perturbs(self) -> bool:
        """Whether watching changes what is watched; a perturbed trial is never compared."""

    def follow(self, subject: Subject, pid: int) -> None:
        """Begin to watch a process and its descendants; called once for each subject. The machine comes for free."""

    def finish(self) -> tuple[Series, ...]:
        """End, and give what was seen. Called once, whatever happened before."""

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """What the server's runtime says of this time, some in the server's output; None where it says nothing."""


class Profiler(Monitor, Protocol):
    """A monitor that samples stacks between `begin` and `end`. What goes wrong with it is in its facts."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that the server needs, so that its stacks can be read."""

    def begin(self) -> None:
        """Sample from now on; nothing if it does so already, or has ended."""

    def end(self) -> None:
        """Sample no longer. `finish` does this too."""

    def facts(self, traffic: Traffic | None) -> ProfileFacts:
        """Keep what was sampled during that traffic's measurement. The server has ended."""


class Profilers(Protocol):
    """What can be profiled on this machine."""

    def missing(self, variant: Variant, profile: Profile, progress: Callable[[str], None]) -> str:
        """Get ready what it takes, fetched if need be. Why it cannot be profiled, with a hint; empty if it can."""

    def profiler(self, planned: PlannedTrial, cell: Cell, folder: Path) -> Profiler:
        """The profiler of one trial, whose files go to the folder, `RUN/profiles/NAME`."""


class Executor(Protocol):
    """Where trials run. Yields recordings as trials and duets end."""

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        """Run the trials and duets in order."""


Renderer = Callable[[AnyReport], bytes]
"""The whole report in one format; the same report gives the same bytes."""
