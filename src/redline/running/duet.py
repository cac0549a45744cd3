"""A duet: several fresh servers, all alive at once, loaded in short slices; then again on new starts."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from redline.errors import DriveError, LaunchError
from redline.lazily import LateModule
from redline.model import (
    Cell,
    Closed,
    CpuOwner,
    DuetBlock,
    DuetRecording,
    DuetTraffic,
    Failure,
    PlannedDuet,
    ProfileFacts,
    Series,
    ServerFacts,
)
from redline.ports import Drive, Driver, DuetDrive, Launch, LoadOptions, Placement, Profiler, RunningServer, ServerWatch
from redline.running.aborting import RequestedDuetAbort
from redline.running.parallel import sides
from redline.running.record import Tools, failure_of, follow_server, of_its_sockets, verify, warm_up
from redline.running.together import launched
from redline.suite.planning import unweighted
from redline.wording import part

if TYPE_CHECKING:
    from redline.findings import warm_duet
else:
    warm_duet = LateModule("redline.findings.warm_duet")  # it judges the first blocks

SLICE_NS, GUARD_NS = {"jvm": 50_000_000}, {"jvm": 10_000_000}
"""The length of a slice and of its unmeasured beginning, by runtime."""
DEFAULT_SLICE_NS, DEFAULT_GUARD_NS = 10_000_000, 2_000_000
_AROUND = ("machine", "engine")
_OF_SERVERS = frozenset(
    (
        *("context_switches_voluntary", "context_switches_involuntary"),
        *("cpu_ns", "run_delay_ns", "cores_busy_ns", "cores_interrupts_ns", "listen_drops", "listen_queue"),
        *("quota_periods", "throttled_periods", "throttled_ns", "quota_millicores"),
        *("rss_bytes", "threads", "descriptors", "descriptors_limit", "close_wait"),
        *("minor_faults", "major_faults", "compiler_cpu_ns", "collector_cpu_ns", "safepoints", "safepoint_ns"),
    )
)
"""The series of servers that say what disturbed them, what of them grows, and how they differ."""
LONGEST_SLICE_NS = 50_000_000
"""The slice of slow servers; see docs/decisions/0021-neighbours.md."""
_SLICES_OF_CONVERSATIONS, _LONGEST_OF_ALL_NS = 12, 60_000_000_000
"""So many slices of conversations fit into a load at least: two blocks of three servers; and the engine's limit."""


@dataclass(frozen=True)
class DuetStart:
    """Duets of the same servers, which are started once and serve the duets in turn.

    `logs` gives the folder for the logs of a duet. With `keep_interrupted`, Ctrl-C ends a load early and keeps what was
    measured. `longest_ns` is how long a duet may take where conversations need it. With `same_answers`, servers that
    answer differently fail before the load. `log_is_kept`: whether the user can read the logs afterwards. `profilers`
    makes those of a sampled duet's servers. `later` names what is imported while they warm up (`LoadOptions`).
    """

    planned: tuple[PlannedDuet, ...]
    cells: Mapping[str, Cell]
    logs: Callable[[PlannedDuet], Path]
    on_begin: Callable[[PlannedDuet], None] = lambda _planned: None
    on_block: Callable[[PlannedDuet, DuetBlock], None] = lambda _planned, _block: None
    keep_interrupted: bool = False
    longest_ns: int = 0
    same_answers: bool = False
    log_is_kept: bool = True
    profilers: Callable[[PlannedDuet], tuple[Profiler, ...]] = lambda _planned: ()
    later: Sequence[str] = ()

    def cells_of(self, planned: PlannedDuet, *, first: bool = True) -> tuple[Cell, ...]:
        """Return a duet's cells, and the baseline's again as control; after the `first` duet they warm up for less."""
        cells = [self.cells[cell_id] for cell_id in planned.cell_ids]
        if planned.profile is not None:
            cells = [cell.under_samplers for cell in cells]
        if planned.warmup_ns is not None and not first:
            cells = [cell.warming_up_for(planned.warmup_ns) for cell in cells]
        return (*cells, cells[0])

    def is_within(self, planned: PlannedDuet, warm: Iterable[DuetRecording]) -> bool:
        """Whether the servers were warm in a duet under the same load whose requests include those of this duet."""
        cell = self.cells[planned.cell_ids[0]]
        of_warm = (self.cells[made.cell_ids[0]] for made in warm)
        return any(
            cell.load == other.load and unweighted(cell.scenario) <= unweighted(other.scenario) for other in of_warm
        )

    def was_warm(self, made: DuetRecording) -> bool:
        """Whether the servers of a duet were warm before its measurement."""
        cell = self.cells[made.cell_ids[0]]
        if made.traffic is None or not cell.warmup_detect:
            return False
        blocks = [block for block in made.traffic.blocks if block.phase == "warmup"]
        return warm_duet.are_warm(
            blocks, apart=made.control_is_apart, saturates=cell.load.saturates, after_mix=made.after_mix
        )


def run_start(start: DuetStart, tools: Tools) -> Iterator[DuetRecording]:
    """Start the servers, the baseline twice, check and load them, and stop them. Yields a recording for every duet.

    Failures of servers and loads are in the recordings. If servers die under load, the remaining duets get a start of
    their own; if they do not start, all duets have that failure. After an interrupt there are no further recordings.

    The first recording's time includes the launch, the last recording's the stop. Raises KeyboardInterrupt, unless
    interrupted duets are kept, StoreError if a log cannot be written, and UsageError if there are too few cores.
    """
    left = start.planned
    while left:
        made = 0
        for recording in _one_start(start, left, tools):
            made += 1
            yield recording
            if recording.is_interrupted:
                return
        left = left[made:]


def _one_start(start: DuetStart, planned: Sequence[PlannedDuet], tools: Tools) -> Iterator[DuetRecording]:
    """Yield the recordings of the first duets, until servers die."""
    warm, setup_ns, was_loaded = list[DuetRecording](), list[int](), False
    with ExitStack() as running:
        for number, duet in enumerate(planned):
            start.on_begin(duet)
            after_mix, profilers = start.is_within(duet, warm), start.profilers(duet)
            turn = _Turn(duet, is_first=not was_loaded, after_mix=after_mix, profilers=profilers)
            recorded = _begun(turn, tools, setup_ns)
            launch_ns = 0
            if number == 0:
                began_ns = time.monotonic_ns()
                try:
                    servers = _launched(start, turn, tools, running, setup_ns.append)
                except LaunchError as error:
                    with suppress(LaunchError):  # the first error has precedence
                        running.close()  # the other servers may still start, and their commands take time
                    failed = _Served(failure=failure_of("launch", error.kind, error, error.log_tail))
                    yield recorded(failed)
                    yield from (_begun(_Turn(other), tools, setup_ns)(failed) for other in planned[1:])
                    return
                launch_ns = time.monotonic_ns() - began_ns - sum(setup_ns)
            seen = replace(_measured(start, turn, servers, tools), launch_ns=launch_ns)
            was_loaded = was_loaded or seen.traffic is not None
            died = seen.failure is not None and any(server.death() for server in servers)
            if died or duet is planned[-1]:
                try:
                    running.close()
                except LaunchError as error:
                    stopped = failure_of("stop", error.kind, error, error.log_tail)
                    seen = replace(seen, failure=_first_of(seen.failure, stopped))
            recording = recorded(seen)
            yield recording
            if died:
                return
            if start.was_warm(recording):
                warm.append(recording)


def _first_of(seen: Failure | None, stopped: Failure) -> Failure:
    """Return the failure of a duet whose servers also failed to stop.

    A wrong answer need not end a session, and must not hide a failure that does.
    """
    if seen is not None and seen.stage == "verify" and seen.kind == "wrong_answer":
        said = f"{seen.message}; {stopped.message}"
        return Failure(stage="stop", kind=stopped.kind, message=said, hint=stopped.hint, log_tail=stopped.log_tail)
    return seen or stopped


@dataclass(frozen=True)
class _Turn:
    """A duet among those of its start.

    `is_first`: nothing was loaded before it. `after_mix`: the servers were warm in a mix that contains its requests.
    `profilers` sample its servers; none in most duets.
    """

    planned: PlannedDuet
    is_first: bool = False
    after_mix: bool = False
    profilers: tuple[Profiler, ...] = ()


@dataclass(frozen=True)
class _Served:
    """Facts of a duet for its recording."""

    servers: tuple[ServerFacts | None, ...] = ()
    owners: tuple[CpuOwner, ...] = ()
    traffic: DuetTraffic | None = None
    failure: Failure | None = None
    launch_ns: int = 0
    users: int | None = None
    series: tuple[Series, ...] = ()
    server_series: tuple[tuple[Series, ...], ...] = ()
    profiles: tuple[ProfileFacts, ...] = ()


def _begun(turn: _Turn, tools: Tools, setup_ns: Sequence[int]) -> Callable[[_Served], DuetRecording]:
    """Begin a duet. The returned function ends it, and makes its recording.

    `setup_ns` grows by the time that each command around the starts of servers took.
    """
    planned, set_up_ns = turn.planned, sum(setup_ns)
    hosts, began_ns, began_unix_ns = tools.hosts(), time.monotonic_ns(), time.time_ns()

    def ended(seen: _Served) -> DuetRecording:
        own_setup_ns = sum(setup_ns) - set_up_ns
        return DuetRecording(
            cell_ids=(*planned.cell_ids, planned.cell_ids[0]),
            round=planned.round,
            position=planned.position,
            seed=planned.seed,
            places=planned.places,
            after_mix=turn.after_mix,
            started_unix_ns=began_unix_ns,
            took_ns=time.monotonic_ns() - began_ns - own_setup_ns,
            setup_ns=own_setup_ns,
            launch_ns=seen.launch_ns,
            servers=seen.servers,
            owners=seen.owners,
            users=seen.users,
            series=seen.series,
            server_series=seen.server_series,
            profiles=seen.profiles,
            traffic=seen.traffic,
            failure=seen.failure,
            hosts=hosts(),
        )

    return ended


def _launched(
    start: DuetStart, turn: _Turn, tools: Tools, running: ExitStack, on_setup: Callable[[int], object]
) -> tuple[RunningServer, ...]:
    """Launch the servers of all duets; `running` stops them. Logs are with the first duet's. Raises LaunchError."""
    first = turn.planned
    envs = [profiler.env for profiler in turn.profilers]
    cells, logs = start.cells_of(first), start.logs(first)
    where, _ = _placements(first, tools.placement, 0)
    launches = [
        Launch(
            cell.variant,
            at,
            logs / f"server-{place}.log",
            first.seed * len(cells) + place,
            first.build_number,
            envs[place] if envs else {},
            on_setup=on_setup,
            log_is_kept=start.log_is_kept,
            place=place,
        )
        for place, (cell, at) in enumerate(zip(cells, where, strict=True))
    ]
    return launched(tools.launcher, launches, running)


def _has_conversations(cell: Cell) -> bool:
    return any(request.stream is not None for request in cell.scenario.requests)


def _longest_slice_ns(cell: Cell) -> int:
    """The longest slice. A slice has to hold several exchanges, and a conversation may take seconds."""
    if not _has_conversations(cell):
        return LONGEST_SLICE_NS
    return min(max(cell.load.duration_ns // _SLICES_OF_CONVERSATIONS, LONGEST_SLICE_NS), _LONGEST_OF_ALL_NS)


def _measured(start: DuetStart, turn: _Turn, servers: Sequence[RunningServer], tools: Tools) -> _Served:
    """Check the answers of running servers, warm them up, and load them."""
    planned, driver = turn.planned, tools.driver
    cells = start.cells_of(planned, first=turn.is_first)
    facts = tuple(server.facts for server in servers)
    for place, (cell, server) in enumerate(zip(cells, servers, strict=True)):
        wrong = verify(cell, server, driver)
        if wrong is None and start.same_answers and place:
            wrong = _differing(cells[: place + 1], servers[: place + 1], driver)
        if wrong is not None:
            return _Served(servers=facts, failure=wrong)
    cells, users = _within_capacity(cells, servers, tools)
    where, cpus = _placements(planned, tools.placement, cells[0].load.connections)
    options = LoadOptions(log=start.logs(planned) / "engine.log", log_is_kept=start.log_is_kept)
    for cell, server, placement in zip(cells, servers, where, strict=True):
        if cell.warmup_by is not None:
            drive = Drive.of(options, cell, server.endpoint, planned.seed, placement.engine_cpus)
            if (failure := warm_up(drive, cell.warmup_by, server, driver)) is not None:
                return _Served(servers=facts, failure=failure)
    names = [cell.variant.slug for cell in cells]
    abort = RequestedDuetAbort(cells[0].abort_when, [*names[:-1], f"the second {names[-1]}"])
    watches, monitors = _Watches(servers, tools.watch), _Monitors(servers, tools)
    samplers = _Samplers(turn.profilers, servers, cells[0].unprofiled_ns * len(cells))

    def started(pid: int) -> None:
        abort.started(pid)
        monitors.started(pid)

    def seen(block: DuetBlock) -> None:
        watches.look()
        start.on_block(planned, block)
        samplers.seen(block)
        abort.seen(block)

    options = replace(
        options,
        workers=min(max(1, len(where[0].engine_cpus)), cells[0].load.connections),
        keep_interrupted=start.keep_interrupted,
        on_start=started,
        on_remote=abort.started_on_hosts,
        later=start.later,
    )
    talks = _has_conversations(cells[0])
    longest_ns = start.longest_ns if talks else 0
    drive = _drive(cells, servers, options, turn, cpus)
    runtimes = {runtime for cell in cells for runtime in cell.variant.runtimes}.union(*(s.runtimes for s in servers))
    duet = DuetDrive(
        drive=replace(drive, overrun_ns=longest_ns),
        other_servers=tuple(
            (cell.variant, server.endpoint) for cell, server in zip(cells[1:], servers[1:], strict=True)
        ),
        pids=watches.pids,
        slice_ns=max(SLICE_NS.get(runtime, DEFAULT_SLICE_NS) for runtime in runtimes),
        longest_slice_ns=_longest_slice_ns(cells[0]),
        # Conversations that outlast a slice all begin in its guard.
        guard_ns=0 if talks else max(GUARD_NS.get(runtime, DEFAULT_GUARD_NS) for runtime in runtimes),
        fewest_blocks=warm_duet.FEWEST_OF_COURSE if talks else 0,
        longest_ns=longest_ns,
        parallel=bool(planned.places),
        last_is_first=servers[0].facts is None and not planned.places,
        on_block=seen,
    )
    traffic, failure = None, None
    try:
        monitors.begin(watches.pids)
        traffic, failure = abort.ended(driver.duet(duet).with_labels(cells[0].scenario.several_labels))
    except DriveError as error:
        failure = failure_of("load", "engine", error)
    finally:
        samplers.end()
        series, of_servers = monitors.finish()
    died = next((death for server in servers if (death := server.death()) is not None), None)
    traffic, owners = watches.finish(traffic)
    counted = samplers.finish()
    of_servers = tuple(own + (counted[place] if counted else ()) for place, own in enumerate(of_servers))
    of_servers = _proved(of_servers, owners)
    return _Served(
        servers=facts,
        owners=owners,
        traffic=traffic,
        failure=died or failure,
        users=users,
        series=series,
        server_series=of_servers,
        profiles=samplers.facts(),
    )


def _within_capacity(
    cells: tuple[Cell, ...], servers: Sequence[RunningServer], tools: Tools
) -> tuple[tuple[Cell, ...], int | None]:
    """Return the cells with as many users as all servers take at once, and their number if it is smaller than asked.

    A user whose connection is dropped tries again after a second, in which many slices would have passed.
    """
    load = cells[0].load
    known = [tools.takes_at_once(cell, server) for cell, server in zip(cells, servers, strict=True)]
    fewest = min((users for users in known if users is not None), default=None)
    if not isinstance(load.shape, Closed) or not load.saturates or fewest is None or fewest >= load.shape.users:
        return cells, None
    fewer = load.shaped(load.shape.at_most(fewest))
    return tuple(cell.under(fewer) for cell in cells), fewest


def _proved(of_servers: tuple[tuple[Series, ...], ...], owners: Sequence[CpuOwner]) -> tuple[tuple[Series, ...], ...]:
    """The series of servers, without those of processes that turned out not to be a server's."""
    unknown = [bool(owner.unknown) for owner in owners] or [False] * len(of_servers)
    return tuple(of_its_sockets(own) if hidden else own for own, hidden in zip(of_servers, unknown, strict=False))


class _Watches:
    """A watch over each server; servers at the same address share a watch."""

    def __init__(self, servers: Sequence[RunningServer], watch: Callable[[RunningServer], ServerWatch]) -> None:
        self._endpoints = [server.endpoint for server in servers]
        self._watches = {endpoint: watch(server) for endpoint, server in {s.endpoint: s for s in servers}.items()}

    @property
    def pids(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._watches[endpoint].pids for endpoint in self._endpoints)

    def look(self) -> None:
        for watch in self._watches.values():
            watch.look()

    def finish(self, traffic: DuetTraffic | None) -> tuple[DuetTraffic | None, tuple[CpuOwner, ...]]:
        """Return the traffic without CPU time that may not be the server's, and notable owners of CPU time."""
        known = {endpoint: watch.finish() for endpoint, watch in self._watches.items()}
        owners = tuple(known[endpoint] for endpoint in self._endpoints)
        unknown = frozenset(target for target, owner in enumerate(owners) if owner.unknown)
        traffic = traffic.without_cpu(unknown) if traffic and unknown else traffic
        return traffic, owners if any(owner != CpuOwner() for owner in owners) else ()


class _Monitors:
    """What watches the machine, the engine and each server while a duet is loaded."""

    def __init__(self, servers: Sequence[RunningServer], tools: Tools) -> None:
        self._servers, self._monitors = servers, tools.duet_monitors(servers)

    def begin(self, pids: Sequence[tuple[int, ...]]) -> None:
        """Watch the servers, of which these are the processes."""
        for server, monitors, own in zip(self._servers, self._monitors, pids, strict=False):
            follow_server(server, monitors, own)

    def started(self, pid: int) -> None:
        """Watch the engine of this process."""
        for monitor in self._monitors[0] if self._monitors else ():
            monitor.follow("engine", pid)

    def finish(self) -> tuple[tuple[Series, ...], tuple[tuple[Series, ...], ...]]:
        """End, and return the series of machine and engine, and those of each server."""
        seen = [[series for monitor in monitors for series in monitor.finish()] for monitors in self._monitors]
        around = (series for series in (seen[0] if seen else ()) if series.subject in _AROUND)
        return tuple(around), tuple(
            tuple(series for series in own if series.subject not in _AROUND and series.name in _OF_SERVERS)
            for own in seen
        )


class _Samplers:
    """The profilers of the servers of a duet, which sample from a time of the measurement on."""

    def __init__(self, profilers: Sequence[Profiler], servers: Sequence[RunningServer], after_ns: int) -> None:
        self._profilers, self._after_ns, self._measured_from_ns = profilers, after_ns, -1
        self._at_once(lambda profiler, server: follow_server(server, [profiler], ()), servers)

    def _at_once(self, step: Callable[..., None], *arguments: Iterable[object]) -> None:
        """Have all profilers do a step that each takes half a second for."""
        with ThreadPoolExecutor(max(1, len(self._profilers))) as pool:
            list(pool.map(step, self._profilers, *arguments))

    def seen(self, block: DuetBlock) -> None:
        """Begin to sample, once the servers were measured for long enough without."""
        if block.phase != "measure" or not block.slices:
            return
        if self._measured_from_ns < 0:
            self._measured_from_ns = block.slices[0].start_ns
            self._at_once(lambda profiler: profiler.warm())
        if block.slices[-1].end_ns - self._measured_from_ns >= self._after_ns:
            for profiler in self._profilers:
                profiler.begin()

    def end(self) -> None:
        """Stop sampling."""
        self._at_once(lambda profiler: profiler.end())

    def finish(self) -> tuple[tuple[Series, ...], ...]:
        """What was counted of each server."""
        return tuple(profiler.finish() for profiler in self._profilers)

    def facts(self) -> tuple[ProfileFacts, ...]:
        """Keep the samples."""
        return tuple(profiler.facts(None) for profiler in self._profilers)


def _drive(
    cells: Sequence[Cell],
    servers: Sequence[RunningServer],
    options: LoadOptions,
    turn: _Turn,
    cpus: tuple[int, ...],
) -> Drive:
    """Return the load on the first server, for the time of all servers together."""
    first, number = cells[0].settling if cells[0].warmup_by else cells[0], len(cells)
    apart = servers[0].facts is not None  # not if the control is the same process
    entire = first.under(first.load.lasting(first.load.duration_ns * number), warmup_ns=first.warmup_ns * number)
    drive = Drive.of(options, entire, servers[0].endpoint, turn.planned.seed, cpus)
    if not first.warmup_detect:
        return drive

    @cache
    def warmth() -> "warm_duet.DuetWarmth":
        return warm_duet.DuetWarmth(apart=apart, saturates=first.load.saturates, after_mix=turn.after_mix)

    return replace(drive, is_warm=lambda block: warmth().is_warm(block))


def _placements(
    planned: PlannedDuet, alone: Placement, connections: int
) -> tuple[tuple[Placement, ...], tuple[int, ...]]:
    """Return the placement of each server, and the engine's CPUs; in a parallel duet in the order of its workers."""
    if not planned.places:
        return (alone,) * (len(planned.cell_ids) + 1), alone.engine_cpus
    places = sides(alone.cores, len(planned.places))
    where = tuple(places[place] for place in planned.places)
    return where, tuple(cpu for side in where for cpu in side.engine_cpus[:connections])


def _differing(cells: Sequence[Cell], servers: Sequence[RunningServer], driver: Driver) -> Failure | None:
    """Say how the last server answers differently from the first."""
    cell, first, other = cells[0], servers[0].endpoint, servers[-1].endpoint
    names = cell.variant.slug, cells[-1].variant.slug
    try:
        difference = driver.differ(cell, names, (first, other)) if len(servers) > 1 else None
        own = difference and driver.differ(cell, ("its first answer", "its second answer"), (first, first))
    except DriveError as error:
        return failure_of("verify", "engine", error)
    if difference is None:
        return None
    message = f"{names[0]} and {names[1]} answer differently: {difference}"
    if own is not None:
        message = f"{names[0]} does not answer alike twice: {own}"
    hint = f"leave out {part('same_answers')}, or request what is always answered alike"
    return Failure(stage="verify", kind="wrong_answer", message=message, hint=hint)
