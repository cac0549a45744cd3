"""A duet: several servers started afresh, all alive at once, loaded in short slices; then all over again."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.findings.warm_duet import DuetWarmth
from redline.model import Cell, DuetBlock, DuetRecording, DuetTraffic, Failure, PlannedDuet, ServerFacts
from redline.model.duet import CpuOwner
from redline.ports import Drive, Driver, DuetDrive, Launch, LoadOptions, Placement, RunningServer
from redline.running.aborting import FailingDuetAbort
from redline.running.ownership import Watches
from redline.running.parallel import sides
from redline.running.record import Tools, failure_of, verify, warm_up

SLICE_NS, GUARD_NS = {"jvm": 50_000_000}, {"jvm": 10_000_000}
"""How long a slice is, and how much of its beginning is not measured, by what a server runs on."""
DEFAULT_SLICE_NS, DEFAULT_GUARD_NS = 10_000_000, 2_000_000
LONGEST_SLICE_NS = 50_000_000
"""That of servers which need longer for some answers on each connection; see docs/decisions/0021-neighbours.md."""


@dataclass(frozen=True)
class DuetStart:
    """Duets of the same servers, which one start of these serves in turn.

    `cells` holds those of the duets, by id, and `logs` gives the folder for the logs of a duet. With
    `keep_interrupted`, Ctrl-C ends a load early and gives what there is. With `same_answers`, servers that answer
    differently fail before a load. `log_is_kept` says whether a user will find the logs afterwards.
    """

    planned: tuple[PlannedDuet, ...]
    cells: Mapping[str, Cell]
    logs: Callable[[PlannedDuet], Path]
    on_begin: Callable[[PlannedDuet], None] = lambda _planned: None
    on_block: Callable[[PlannedDuet, DuetBlock], None] = lambda _planned, _block: None
    keep_interrupted: bool = False
    same_answers: bool = False
    log_is_kept: bool = True

    def cells_of(self, planned: PlannedDuet, *, first: bool = True) -> tuple[Cell, ...]:
        """The cells of a duet: the baseline's, the others', and the baseline's once more as a control.

        Servers that the `first` duet of a start has warmed up need less of it.
        """
        cells = [self.cells[cell_id] for cell_id in planned.cell_ids]
        if planned.warmup_ns is not None and not first:
            cells = [cell.warming_up_for(planned.warmup_ns) for cell in cells]
        return (*cells, cells[0])


def run_start(start: DuetStart, tools: Tools) -> Iterator[DuetRecording]:
    """The recording of each duet, in order: start the servers, the first twice, check and load them, and stop them.

    In turn, each server has the warm-up and the load's time of its cell; at the same time, each has that of all. What
    goes wrong with a server or a load is in the recording. Where servers died under load, the duets that are left get a
    start of their own; where they do not start, all have that failure. After an interrupt there are no further ones.

    The time of the first recording holds the launch, that of the last the stop. Raises KeyboardInterrupt, unless what
    there is is kept, StoreError when a log cannot be written, and UsageError where servers get too few cores of their
    own.
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
    """The recordings of the first of the duets, up to one whose servers died."""
    with ExitStack() as running:
        for number, duet in enumerate(planned):
            start.on_begin(duet)
            clock = _DuetClock(duet, tools)
            if number == 0:
                try:
                    servers = _launched(start, duet, tools, running)
                except LaunchError as error:
                    failed = _Served(failure=failure_of("launch", error.kind, error, error.log_tail))
                    yield clock.recording(failed)
                    yield from (_DuetClock(other, tools).recording(failed) for other in planned[1:])
                    return
            seen = _measured(start, duet, servers, tools, first=number == 0)
            died = seen.failure is not None and any(server.death() for server in servers)
            if died or duet is planned[-1]:
                running.close()
            yield clock.recording(seen)
            if died:
                return


@dataclass(frozen=True)
class _Served:
    """What is seen of a duet, for its recording."""

    servers: tuple[ServerFacts | None, ...] = ()
    owners: tuple[CpuOwner, ...] = ()
    traffic: DuetTraffic | None = None
    failure: Failure | None = None


class _DuetClock:
    """The time of a duet, and the hosts that it runs on, from now on."""

    def __init__(self, planned: PlannedDuet, tools: Tools) -> None:
        self._planned, self._hosts = planned, tools.hosts()
        self._began_ns, self._began_unix_ns = time.monotonic_ns(), time.time_ns()

    def recording(self, seen: _Served) -> DuetRecording:
        """The recording, which ends now."""
        planned = self._planned
        return DuetRecording(
            cell_ids=(*planned.cell_ids, planned.cell_ids[0]),
            round=planned.round,
            position=planned.position,
            seed=planned.seed,
            places=planned.places,
            started_unix_ns=self._began_unix_ns,
            took_ns=time.monotonic_ns() - self._began_ns,
            servers=seen.servers,
            owners=seen.owners,
            traffic=seen.traffic,
            failure=seen.failure,
            hosts=self._hosts(),
        )


def _launched(start: DuetStart, first: PlannedDuet, tools: Tools, running: ExitStack) -> tuple[RunningServer, ...]:
    """The servers of all duets, which `running` stops; their logs are with the first duet's. Raises LaunchError."""
    cells, logs = start.cells_of(first), start.logs(first)
    where, _ = _placements(first, tools.placement, 0)
    return tuple(
        running.enter_context(
            tools.launcher.running(
                Launch(
                    cell.variant,
                    where[place],
                    logs / f"server-{place}.log",
                    first.seed * len(cells) + place,
                    first.build_number,
                )
            )
        )
        for place, cell in enumerate(cells)
    )


def _measured(
    start: DuetStart, planned: PlannedDuet, servers: Sequence[RunningServer], tools: Tools, *, first: bool
) -> _Served:
    """Check the answers of running servers, warm them up, and load them."""
    cells, driver = start.cells_of(planned, first=first), tools.driver
    facts = tuple(server.facts for server in servers)
    for place, (cell, server) in enumerate(zip(cells, servers, strict=True)):
        wrong = verify(cell, server, driver)
        if wrong is None and start.same_answers and place:
            wrong = _differing(cells[: place + 1], servers[: place + 1], driver)
        if wrong is not None:
            return _Served(servers=facts, failure=wrong)
    where, cpus = _placements(planned, tools.placement, cells[0].load.connections)
    options = LoadOptions(log=start.logs(planned) / "engine.log", log_is_kept=start.log_is_kept)
    for cell, server, placement in zip(cells, servers, where, strict=True):
        if cell.warmup_by is not None:
            drive = Drive.of(options, cell, server.endpoint, planned.seed, placement.engine_cpus)
            if (failure := warm_up(drive, cell.warmup_by, server, driver)) is not None:
                return _Served(servers=facts, failure=failure)
    abort, watches = FailingDuetAbort(len(cells)), Watches(servers, tools.watch)

    def shown(block: DuetBlock) -> None:
        start.on_block(planned, block)
        abort.seen(block)

    options = replace(
        options,
        workers=min(max(1, len(where[0].engine_cpus)), cells[0].load.connections),
        keep_interrupted=start.keep_interrupted,
        on_start=abort.started,
    )
    runtimes = {runtime for cell in cells for runtime in cell.variant.runtimes}.union(*(s.runtimes for s in servers))
    duet = DuetDrive(
        drive=_drive(cells, servers, options, planned.seed, cpus),
        other_servers=tuple(
            (cell.variant, server.endpoint) for cell, server in zip(cells[1:], servers[1:], strict=True)
        ),
        pids=watches.pids,
        slice_ns=max(SLICE_NS.get(runtime, DEFAULT_SLICE_NS) for runtime in runtimes),
        longest_slice_ns=LONGEST_SLICE_NS,
        guard_ns=max(GUARD_NS.get(runtime, DEFAULT_GUARD_NS) for runtime in runtimes),
        parallel=bool(planned.places),
        on_block=watches.looking(shown),
    )
    traffic, failure = None, None
    try:
        traffic, failure = abort.ended(driver.duet(duet), _names(cells))
    except DriveError as error:
        failure = failure_of("load", "engine", error)
    died = next((death for server in servers if (death := server.death()) is not None), None)
    traffic, owners = watches.finish(traffic)
    return _Served(facts, owners, traffic, died or failure)


def _drive(
    cells: Sequence[Cell], servers: Sequence[RunningServer], options: LoadOptions, seed: int, cpus: tuple[int, ...]
) -> Drive:
    """The load on the first server, for the time that all of them have."""
    first, number = cells[0].settling if cells[0].warmup_by else cells[0], len(cells)
    apart = servers[0].facts is not None  # not where the control is the same process
    entire = first.under(first.load.lasting(first.load.duration_ns * number), warmup_ns=first.warmup_ns * number)
    drive = Drive.of(options, entire, servers[0].endpoint, seed, cpus)
    warmth = DuetWarmth(apart=apart, saturates=first.load.saturates) if first.warmup_detect else None
    return replace(drive, is_warm=warmth.is_warm) if warmth else drive


def _names(cells: Sequence[Cell]) -> list[str]:
    """What the servers of a start are called; the last one is the first once more."""
    names = [cell.variant.slug for cell in cells]
    return [*names[:-1], f"the second {names[-1]}"]


def _placements(
    planned: PlannedDuet, alone: Placement, connections: int
) -> tuple[tuple[Placement, ...], tuple[int, ...]]:
    """Where each server runs, and the engine's CPUs: of a parallel duet, those of one worker after the other."""
    if not planned.places:
        return (alone,) * (len(planned.cell_ids) + 1), alone.engine_cpus
    found = sides(alone.cores, len(planned.places))
    where = tuple(found[place] for place in planned.places)
    return where, tuple(cpu for side in where for cpu in side.engine_cpus[:connections])


def _differing(cells: Sequence[Cell], servers: Sequence[RunningServer], driver: Driver) -> Failure | None:
    """Where the last server answers differently from the first one."""
    cell, first, other = cells[0], servers[0].endpoint, servers[-1].endpoint
    names = cell.variant.slug, cells[-1].variant.slug
    try:
        found = driver.differ(cell, names, (first, other)) if len(servers) > 1 else None
        own = found and driver.differ(cell, ("its first answer", "its second one"), (first, first))
    except DriveError as error:
        return failure_of("verify", "engine", error)
    if found is None:
        return None
    message = f"{names[0]} and {names[1]} answer differently: {found}"
    if own is not None:
        message = f"{names[0]} does not answer alike twice: {own}"
    hint = "leave out --same-answers, or request what is always answered alike"
    return Failure(stage="verify", kind="wrong_answer", message=message, hint=hint)
