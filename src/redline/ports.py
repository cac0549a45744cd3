"""The five ports of the lab: launchers, drivers, monitors, executors, renderers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from redline.errors import BuildError, DriveError, LaunchError
from redline.lazily import dataclass
from redline.model import (
    Cell,
    CpuOwner,
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
from redline.model.catalogue import OptionValue
from redline.model.way import Access

if TYPE_CHECKING:  # what measures makes no reports
    from redline.model.limits import AnyReport

T = TypeVar("T")
DIRECTLY = Access()
"""The way to a server whose address says where it is."""


@dataclass(frozen=True)
class Placement:
    """The CPUs of server, engine and lab, empty if there are too few to separate; `cores` has CPUs by physical core."""

    server_cpus: tuple[int, ...] = ()
    engine_cpus: tuple[int, ...] = ()
    lab_cpus: tuple[int, ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """The address of a running server. `ca_pem` is the authority of its certificate, if the catalogue names it."""

    host: str
    port: int
    ca_pem: str | None = None
    way: Access = DIRECTLY

    @property
    def address(self) -> tuple[str, int] | None:
        """The only host and port that connections go to; None for a Unix socket, for several, and behind a proxy."""
        if self.way.proxy is not None:
            return None
        if not self.way.connect:
            return None if self.way.addresses == "all" and not _is_ip(self.host) else (self.host, self.port)
        first, *others = self.way.connect
        return None if others or first.socket else (first.host, first.port)

    def __str__(self) -> str:
        through = f" through the proxy {self.way.proxy.text}" if self.way.proxy else ""
        if self.way.connect:
            return ", ".join(place.text for place in self.way.connect) + through
        return (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}") + through


def _is_ip(host: str) -> bool:
    """Whether it is an address, and no name that may have several."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Upstream:
    """The server or proxy behind a proxy: its address, the leg to it, and its readiness request."""

    endpoint: Endpoint
    leg: Leg
    ready: Ready


@dataclass(frozen=True)
class Launch:
    """One start of a server: its variant, its CPUs, its log, and its differences from other starts.

    With a `seed` its environment has a random size, which moves the stack. `build_number` selects a build of the
    server, from 0. The text of each variable in `env` is appended to the variable's value, after a space. A proxy
    is in front of its `upstream`, which is already running. With `any_status` the server is also ready after it has
    answered with another status than its entry's for a second. `log_is_kept` says whether the user can read the log
    afterwards. `on_setup` gets the duration, in nanoseconds, of each command around the start. `is_wanted` is asked
    while the start waits: another server that starts at the same time may have failed. `place` is its place among the
    servers of a start, from 0.
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
    is_wanted: Callable[[], bool] = lambda: True
    place: int = 0

    def check_wanted(self) -> None:
        """Raise LaunchError if the start is not wanted any more."""
        if not self.is_wanted():
            message = f"{self.variant.slug}: its start was given up"
            raise LaunchError(message, hint="see why the other server did not start")


class RunningServer(Protocol):
    """A server that has answered its readiness request."""

    @property
    def endpoint(self) -> Endpoint:
        """The address at which it listens."""

    @property
    def facts(self) -> ServerFacts | None:
        """Facts about its process, for the recording; None for a server that Redline did not start."""

    @property
    def runtimes(self) -> frozenset[str]:
        """The detected runtimes of its processes and of its hops, such as `jvm`; empty if not known."""

    def death(self) -> Failure | None:
        """The cause of its death, with the end of its output; None while it lives."""


@dataclass(frozen=True)
class Building:
    """Servers that a command is building, and the last line that it printed; empty at its beginning."""

    servers: tuple[str, ...]
    line: str = ""


@dataclass(frozen=True)
class BuildOutcome:
    """Content hashes of builds, or failures, by name.

    `took_ns` is the duration of build commands, if they ran; servers built together have the same duration. `runtimes`
    are versions as in recordings (`ServerFacts.runtime_version`). `checkouts` are the folders of checked-out revisions.
    """

    hashes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, BuildError] = field(default_factory=dict)
    took_ns: dict[str, int] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)
    checkouts: dict[str, Path] = field(default_factory=dict)

    @property
    def unavailable(self) -> dict[str, str]:
        """The reasons why servers could not be built, by name."""
        return {name: error.message for name, error in self.failures.items()}

    def hash_of(self, name: str) -> str:
        """The content hash of a server's build. Raises BuildError if it failed."""
        if name in self.failures:
            raise self.failures[name]
        return self.hashes[name]

    def failing(self, names: Iterable[str]) -> "BuildOutcome":
        """The outcome with only these failures."""
        return replace(self, failures={name: self.failures[name] for name in names})

    def joined(self, other: "BuildOutcome") -> "BuildOutcome":
        """Merge the outcome of other servers, or of another build of the same: all failures count, times add up."""
        failures = {**other.failures, **self.failures}
        built = (*self.took_ns, *other.took_ns)
        took_ns = {name: self.took_ns.get(name, 0) + other.took_ns.get(name, 0) for name in built}
        hashes = {name: text for name, text in {**other.hashes, **self.hashes}.items() if name not in failures}
        runtimes = {name: text for name, text in {**other.runtimes, **self.runtimes}.items() if name not in failures}
        return BuildOutcome(hashes, failures, took_ns, runtimes, {**other.checkouts, **self.checkouts})

    def renamed(self, names: dict[str, str]) -> "BuildOutcome":
        """The outcome by new names; `names` maps them to the old names."""

        def by_new(by_old: Mapping[str, T]) -> dict[str, T]:
            return {new: by_old[old] for new, old in names.items() if old in by_old}

        return BuildOutcome(by_new(self.hashes), by_new(self.failures), by_new(self.took_ns), by_new(self.runtimes))


class Launcher(Protocol):
    """Variant -> running server."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build the variants, `builds` times in separate folders. The outcome is by variant slug."""

    def running(self, launch: Launch) -> AbstractContextManager[RunningServer]:
        """Start a server, wait until it is ready, and always stop it on exit. Raises LaunchError."""


@dataclass(frozen=True)
class ServerOrder:
    """What a launcher of another package is to start: a server that listens on `port` of 127.0.0.1.

    `settings` is what the suite has under `with`, `protocol` the leg to serve, and `folder` the suite's folder. The
    server is to run on the cores `cpus`, or anywhere if there are none, and to write its output to the file `log`.
    """

    name: str
    settings: Mapping[str, OptionValue]
    port: int
    protocol: Leg
    folder: Path
    cpus: tuple[int, ...]
    log: Path


@dataclass(frozen=True)
class StartedServer:
    """A server that was started. Its CPU time, memory and death are those of the process `pid` and its descendants."""

    pid: int


OwnStart = Callable[[ServerOrder], AbstractContextManager[StartedServer]]
"""Starts a server of another package's kind, and stops it on exit. It need not be ready."""


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a load that its caller chooses, besides its cell.

    `log` gets the engine's messages, and `log_is_kept` says whether the user can read it afterwards; `server_log` is
    the server's log, if known. Without `workers` there is a worker for each core of the engine. With
    `keep_interrupted`, the first Ctrl-C ends the load early and gives the traffic so far, also in a NoResultError.
    `interval_ns` is the length of an interval; by default the driver chooses it. `on_start` gets the engine's
    process id, if it runs on this machine. `on_remote` gets what ends the load early where the engine runs on other
    hosts, if its intervals or blocks are reported during the load. `profiler` is a further monitor, for the
    measurement only. Single requests of the measurement are logged into the folder `request_log`, if one is given.
    `later` names modules that are needed afterwards, to be imported while the server warms up; `module:Model` builds
    a model's validator too. With `looks_after`, monitors watch a server that its load leaves idle a moment longer,
    without load; a Ctrl-C that comes then ends that alone, and `on_stopped` is called.
    """

    log: Path
    server_log: Path | None = None
    log_is_kept: bool = True
    workers: int | None = None
    keep_interrupted: bool = False
    interval_ns: int | None = None
    on_start: Callable[[int], None] = field(default=lambda _pid: None)
    on_remote: Callable[[Callable[[], None]], None] = field(default=lambda _end: None)
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    profiler: "Profiler | None" = None
    request_log: Path | None = None
    later: Sequence[str] = ()
    looks_after: bool = False
    on_stopped: Callable[[], None] = field(default=lambda: None)


class NoResultError(DriveError):
    """A load ended without a result. `traffic` is the traffic so far, with `keep_interrupted`."""

    def __init__(self, message: str, *, hint: str, traffic: Traffic | None = None) -> None:
        super().__init__(message, hint=hint)
        self.traffic = traffic


@dataclass(frozen=True, kw_only=True)
class Drive(LoadOptions):
    """A driver's order: one load on one server.

    `is_warm` is called after every interval of the warm-up, in a duet after every block (`DuetBlock`); once it returns
    true, the measurement begins at the end of a later interval or block. Without it the warm-up has a fixed length.
    `pids` are the server's processes, whose CPU time is read at both ends of the measurement. `overrun_ns`: so much
    later than planned it may end.
    """

    cell: Cell
    endpoint: Endpoint
    seed: int
    cpus: tuple[int, ...]
    workers: int
    pids: tuple[int, ...] = ()
    is_warm: Callable[[Any], bool] | None = None
    overrun_ns: int = 0

    @classmethod
    def of(cls, options: LoadOptions, cell: Cell, endpoint: Endpoint, seed: int, cpus: tuple[int, ...]) -> "Drive":
        """Make a drive, by default with one worker for each of the engine's CPUs."""
        given = {**vars(options), "workers": options.workers or max(1, len(cpus))}
        return cls(**given, cell=cell, endpoint=endpoint, seed=seed, cpus=cpus)


@dataclass(frozen=True)
class DuetDrive:
    """Several servers, loaded in short slices in turn: the server of `drive`, and other servers with their endpoints.

    `pids` are the processes by server, the server of `drive` first; empty for a server that Redline did not start. A
    slice takes `slice_ns`, up to `longest_slice_ns` for slow servers; its first `guard_ns` are not measured. If
    `parallel`, all servers are loaded at the same time by `workers` on separate CPUs, in order in the drive's `cpus`.
    If `last_is_first`, the last server is the first once more, and shares its slices: all serve for as long. Where the
    time has no room for `fewest_blocks`, the warm-up ends early for them, and all may last for `longest_ns`.
    """

    drive: Drive
    other_servers: tuple[tuple[Variant, Endpoint], ...]
    pids: tuple[tuple[int, ...], ...]
    slice_ns: int
    longest_slice_ns: int
    guard_ns: int
    fewest_blocks: int = 0
    longest_ns: int = 0
    parallel: bool = False
    last_is_first: bool = False
    on_block: Callable[[DuetBlock], None] = field(default=lambda _block: None)


class ServerWatch(Protocol):
    """The processes whose CPU time is read for a server: `pids`, and processes that they start during the load."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Its processes; empty if not known."""

    def look(self) -> None:
        """Inspect it under load, once for each block."""

    def finish(self) -> CpuOwner:
        """The owner of the CPU time, and whether it is complete, once the load has ended."""


class Driver(Protocol):
    """Scenario + Load -> Traffic."""

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Send a request and compare the whole answer: the first mistake in it, or None. Raises DriveError."""

    def drive(self, drive: Drive) -> Traffic:
        """Warm up, load and measure. Raises DriveError if there is no traffic to report."""

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """The first difference between the answers of two servers, in one line, or None. Raises DriveError."""

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        """Load several servers in slices. An interrupt ends it early. Raises DriveError when there is no traffic."""


class Monitor(Protocol):
    """Watches a trial: a monitor of processes, or a profiler."""

    @property
    def perturbs(self) -> bool:
        """Whether it perturbs the trial that it watches; a perturbed trial is never compared."""

    def follow(self, subject: Subject, pid: int) -> None:
        """Begin to watch a process and its descendants; called once for each subject. The machine is always watched."""

    def finish(self) -> tuple[Series, ...]:
        """End, and return the series. Always called once, also after errors."""

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """Facts from the server's runtime about this time, partly from the server's output; None if it reports none."""


class ServerUsage(NamedTuple):
    """CPU time of a server since `began_unix_ns`, and its memory now; None where nothing was read."""

    began_unix_ns: int
    cpu_ns: int | None
    rss_bytes: int | None


@runtime_checkable
class UsageMonitor(Monitor, Protocol):
    """A monitor that also says meanwhile what the server uses."""

    def usage(self) -> ServerUsage:
        """What the server, without its hops, used so far. In any thread."""


@runtime_checkable
class OwnerMonitor(Monitor, Protocol):
    """A monitor that also watches servers which somebody else runs."""

    def follow_owner(self, pids: tuple[int, ...]) -> None:
        """Begin to watch these processes of the server, and those that they start; none if they are not known."""


class Profiler(Monitor, Protocol):
    """A monitor that samples stacks between `begin` and `end`. Its facts contain its errors."""

    @property
    def env(self) -> Mapping[str, str]:
        """Environment variables that make the server's stacks readable."""

    def warm(self) -> None:
        """End what is counted in the warm-up: the measurement of a duet begins."""

    def begin(self) -> None:
        """Begin to sample; without effect if it samples already or has ended."""

    def end(self) -> None:
        """Stop sampling. `finish` does this too."""

    def facts(self, traffic: Traffic | None) -> ProfileFacts:
        """Keep the samples of that traffic's measurement, or all without it. Called after the load."""


class Profilers(Protocol):
    """The profilers of this machine."""

    def missing(self, variant: Variant, profile: Profile, progress: Callable[[str], None]) -> str:
        """Prepare a profiler, and fetch it if necessary. Returns why it is missing, with a hint, or an empty text."""

    def profiler(self, planned: PlannedTrial | PlannedDuet, cell: Cell, folder: Path) -> Profiler:
        """The profiler of a server of one trial or duet, whose files go to the folder, `RUN/profiles/NAME`."""


class Executor(Protocol):
    """Runs trials and duets. Yields their recordings as they end."""

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        """Run the trials and duets in order."""


Renderer: TypeAlias = "Callable[[AnyReport], bytes]"
"""The whole report in one format; the same report gives the same bytes."""
