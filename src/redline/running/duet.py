"""A duet: several servers started afresh, all alive at once, loaded in short slices; then all over again."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.findings.warm_duet import DuetWarmth
from redline.model import Cell, DuetBlock, DuetRecording, Failure, PlannedDuet
from redline.model.duet import DuetPlan
from redline.ports import Drive, Driver, DuetDrive, Launch, Launcher, LoadOptions, Placement, RunningServer, ServerWatch
from redline.running.aborting import FailingDuetAbort
from redline.running.ownership import Watches
from redline.running.parallel import sides
from redline.running.record import failure_of, settling, verify, warm_up
from redline.suite import draw_places
from redline.suite.budget import FEWEST_STARTS

SLICE_NS, GUARD_NS = {"jvm": 50_000_000}, {"jvm": 10_000_000}
"""How long a slice is, and how much of its beginning is not measured, by what a server runs on."""
DEFAULT_SLICE_NS, DEFAULT_GUARD_NS = 10_000_000, 2_000_000
LONGEST_SLICE_NS = 50_000_000
"""That of servers which need longer for some answers on each connection; see docs/decisions/0021-neighbours.md."""


@dataclass(frozen=True)
class DuetTools:
    """What a duet is made with; a launcher for each cell. `watch` finds whose CPU time is a server's."""

    launchers: tuple[Launcher, ...]
    watch: Callable[[RunningServer], ServerWatch]
    driver: Driver
    placement: Placement


@dataclass(frozen=True)
class DuetStart:
    """One start of a duet: its cells, the baseline first, where its logs go, and who sees its blocks.

    With `keep_interrupted`, Ctrl-C ends the load early and gives what there is. With `same_answers`, servers that
    answer differently fail before the load. `log_is_kept` says whether a user will find the logs afterwards.
    """

    planned: PlannedDuet
    cells: tuple[Cell, ...]
    logs: Path
    on_block: Callable[[DuetBlock], None]
    keep_interrupted: bool = False
    same_answers: bool = False
    log_is_kept: bool = True


@dataclass(frozen=True)
class DuetLogs:
    """Where the logs of a duet go, in a folder for each start, and whether a user will find them afterwards."""

    folder: Path
    are_kept: bool


def run_duet(
    plan: DuetPlan,
    tools: DuetTools,
    logs: DuetLogs,
    on_block: Callable[[int, DuetBlock], None],
    before: Sequence[DuetRecording] = (),
) -> Iterator[DuetRecording]:
    """The recording of each start that `before` lacks, until all have taken the time of the plan.

    The last one may be of a failure, or of an interrupt: then no more are made. Raises StoreError when a log cannot be
    written.
    """
    made = [each for each in before if is_complete(each)]
    done = {each.position for each in made}
    ids = tuple(cell.id for cell in plan.cells)
    for number in count():
        if is_over(plan, made):
            return
        if number in done:
            continue
        places = draw_places(plan.seed, "ab", number, len(ids) + 1) if plan.parallel else ()
        planned = PlannedDuet(cell_ids=ids, round=number, position=number, seed=plan.seed + number, places=places)
        start = DuetStart(
            planned,
            plan.cells,
            logs.folder / f"{number:04d}",
            partial(on_block, number),
            keep_interrupted=True,
            same_answers=plan.same_answers,
            log_is_kept=logs.are_kept,
        )
        recording = run_start(start, tools)
        yield recording
        if not is_complete(recording):
            return
        made.append(recording)


def is_complete(recording: DuetRecording) -> bool:
    """Whether neither a failure nor an interrupt ended this start."""
    traffic = recording.traffic
    return recording.failure is None and traffic is not None and traffic.ended == "complete"


def is_over(plan: DuetPlan, recordings: Sequence[DuetRecording]) -> bool:
    """Whether the starts have taken the time of the plan, or would with one more."""
    took = [each.took_ns for each in recordings if is_complete(each)]
    if plan.once:
        return bool(took)
    return len(took) >= FEWEST_STARTS and sum(took) + took[-1] > plan.lasts_ns


def run_start(start: DuetStart, tools: DuetTools) -> DuetRecording:
    """Start all servers, the first twice, check their answers, load them, and stop them.

    In turn, each server has the warm-up and the load's time of its cell; at the same time, each has that of all. What
    goes wrong with a server or the load is in the recording. Raises KeyboardInterrupt, unless what there is is kept,
    StoreError when a log cannot be written, and UsageError where servers get too few cores of their own.
    """
    planned, began_ns = start.planned, time.monotonic_ns()
    empty = DuetRecording(
        cell_ids=(*planned.cell_ids, planned.cell_ids[0]),
        round=planned.round,
        position=planned.position,
        seed=planned.seed,
        places=planned.places,
        started_unix_ns=time.time_ns(),
    )
    start.logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        found = _load(start, tools, running)
    return empty.model_copy(update={**found, "took_ns": time.monotonic_ns() - began_ns})


def _load(start: DuetStart, tools: DuetTools, running: ExitStack) -> dict[str, object]:
    """What is seen of a start, for its recording; `running` stops the servers."""
    cells, launchers = (*start.cells, start.cells[0]), (*tools.launchers, tools.launchers[0])
    where, cpus = _placements(start.planned, tools.placement, cells[0].load.connections)
    servers: list[RunningServer] = []
    for place, (cell, launcher) in enumerate(zip(cells, launchers, strict=True)):
        try:
            log, seed = start.logs / f"server-{place}.log", start.planned.seed * len(cells) + place
            launch = Launch(cell.variant, where[place], log, seed, start.planned.build_number)
            server = running.enter_context(launcher.running(launch))
        except LaunchError as error:
            return {"failure": failure_of("launch", error.kind, error, error.log_tail)}
        wrong = verify(cell, server, tools.driver)
        if wrong is not None:
            return {"failure": wrong}
        servers.append(server)
        if start.same_answers and (wrong := _differing(cells[: place + 1], servers, tools.driver)) is not None:
            return {"failure": wrong}
    options = LoadOptions(log=start.logs / "engine.log", log_is_kept=start.log_is_kept)
    for cell, server, placement in zip(cells, servers, where, strict=True):
        if cell.warmup_by is not None:
            drive = Drive.of(options, cell, server.endpoint, start.planned.seed, placement.engine_cpus)
            if (failure := warm_up(drive, cell.warmup_by, server, tools.driver)) is not None:
                return {"failure": failure}
    first, number = settling(cells[0]) if cells[0].warmup_by else cells[0], len(cells)
    apart = all(server.facts is not None for server in servers)  # not where the control is the same process
    load = first.load.model_copy(update={"duration_ns": first.load.duration_ns * number})
    entire = {"load": load, "warmup_ns": first.warmup_ns * number, "warmup_detect": False}
    options = replace(
        options,
        workers=min(max(1, len(where[0].engine_cpus)), load.connections),
        keep_interrupted=start.keep_interrupted,
    )
    abort = FailingDuetAbort(number)
    drive = replace(
        Drive.of(options, first.model_copy(update=entire), servers[0].endpoint, start.planned.seed, cpus),
        on_start=abort.started,
        is_warm=DuetWarmth(apart=apart, saturates=first.load.saturates).is_warm if first.warmup_detect else None,
    )
    watches = Watches(servers, tools.watch)

    def shown(block: DuetBlock) -> None:
        start.on_block(block)
        abort.seen(block)

    runtimes = {runtime for each in cells for runtime in each.variant.runtimes}.union(*(s.runtimes for s in servers))
    duet = DuetDrive(
        drive=drive,
        other_servers=tuple(
            (each.variant, server.endpoint) for each, server in zip(cells[1:], servers[1:], strict=True)
        ),
        pids=watches.pids,
        slice_ns=max(SLICE_NS.get(runtime, DEFAULT_SLICE_NS) for runtime in runtimes),
        longest_slice_ns=LONGEST_SLICE_NS,
        guard_ns=max(GUARD_NS.get(runtime, DEFAULT_GUARD_NS) for runtime in runtimes),
        parallel=bool(start.planned.places),
        on_block=watches.looking(shown),
    )
    facts = tuple(server.facts for server in servers)
    traffic, failure = None, None
    try:
        traffic, failure = abort.ended(tools.driver.duet(duet), _names(cells))
    except DriveError as error:
        failure = failure_of("load", "engine", error)
    died = next((found for server in servers if (found := server.death()) is not None), None)
    return {"servers": facts, **watches.finish(traffic), "failure": died or failure}


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
