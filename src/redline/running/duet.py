"""A duet: several servers started afresh, all alive at once, loaded in short slices in turn; then all over again."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redline.errors import DriveError, LaunchError
from redline.model import Cell, DuetBlock, DuetRecording, Failure
from redline.ports import Drive, DuetDrive, DuetDriver, Launcher, Placement, RunningServer
from redline.running.record import failure_of, verify

SLICE_NS = 50_000_000
GUARD_NS = {"jvm": 10_000_000}
"""How long a slice's beginning is not measured, by what a server runs on."""
DEFAULT_GUARD_NS = 2_000_000
FEWEST_STARTS = 3
"""However little time there is: the interval is over starts, and of two it is hardly one."""


@dataclass(frozen=True)
class DuetTools:
    """What a duet is made with; a launcher for each server. `processes` gives those of a server."""

    launchers: tuple[Launcher, ...]
    processes: Callable[[RunningServer], tuple[int, ...]]
    driver: DuetDriver
    placement: Placement


@dataclass(frozen=True)
class DuetPlan:
    """Cells that differ in their variants alone, and for how long their starts follow each other.

    There are `FEWEST_STARTS` at least. `once`: the servers run already, and cannot be started again: the only start
    takes all of the time. `same_answers`: a start whose servers answer differently fails before its load.
    """

    cells: tuple[Cell, ...]
    seed: int
    lasts_ns: int
    once: bool = False
    same_answers: bool = False


def run_duet(
    plan: DuetPlan, tools: DuetTools, logs: Path, on_block: Callable[[int, DuetBlock], None]
) -> Iterator[DuetRecording]:
    """The recording of each start. The last one may be of a failure, or of an interrupt: then no more are made.

    Raises StoreError when a log cannot be written.
    """
    began = time.monotonic()
    for number in range(1_000_000):
        start_began = time.monotonic()
        recording = _run_start(number, plan, tools, logs / f"{number:04d}", partial(on_block, number))
        yield recording
        now = time.monotonic()
        late = now + (now - start_began) > began + plan.lasts_ns / 1e9
        over = plan.once or (late and number + 1 >= FEWEST_STARTS)
        failed = recording.failure is not None
        if over or failed or recording.traffic is None or recording.traffic.ended != "complete":
            return


def _run_start(
    number: int, plan: DuetPlan, tools: DuetTools, logs: Path, on_block: Callable[[DuetBlock], None]
) -> DuetRecording:
    """Start all servers, check their answers, load them in turn, and stop them."""
    empty = DuetRecording(start=number, seed=plan.seed + number, started_unix_ns=time.time_ns())
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        servers: list[RunningServer] = []
        for place, (cell, launcher) in enumerate(zip(plan.cells, tools.launchers, strict=True)):
            try:
                started = launcher.running(cell.variant, tools.placement, logs / f"server-{place}.log")
                server = running.enter_context(started)
            except LaunchError as error:
                return empty.model_copy(update={"failure": failure_of("launch", error.kind, error, error.log_tail)})
            wrong = verify(cell, server, tools.driver)
            if wrong is not None:
                return empty.model_copy(update={"failure": wrong})
            servers.append(server)
            if plan.same_answers and (wrong := _differing(plan, servers, tools.driver)) is not None:
                return empty.model_copy(update={"failure": wrong})
        cell = plan.cells[0]
        drive = Drive(
            cell=cell,
            endpoint=servers[0].endpoint,
            seed=empty.seed,
            cpus=tools.placement.engine_cpus,
            workers=min(max(1, len(tools.placement.engine_cpus)), cell.load.connections),
            log=logs / "engine.log",
            log_is_kept=False,
            keep_interrupted=True,
        )
        duet = DuetDrive(
            drive=drive,
            others=tuple(
                (each.variant, server.endpoint) for each, server in zip(plan.cells[1:], servers[1:], strict=True)
            ),
            pids=tuple(tools.processes(server) for server in servers),
            slice_ns=SLICE_NS,
            guard_ns=max(GUARD_NS.get(each.variant.runtime, DEFAULT_GUARD_NS) for each in plan.cells),
            on_block=on_block,
        )
        facts = tuple(server.facts for server in servers)
        traffic, failure = None, None
        try:
            traffic = tools.driver.duet(duet)
        except DriveError as error:
            failure = failure_of("load", "engine", error)
        died = next((found for server in servers if (found := server.death()) is not None), None)
        return empty.model_copy(update={"servers": facts, "traffic": traffic, "failure": died or failure})


def _differing(plan: DuetPlan, servers: Sequence[RunningServer], driver: DuetDriver) -> Failure | None:
    """Where the last server answers differently from the first one."""
    cell, last = plan.cells[0], len(servers) - 1
    first, other = servers[0].endpoint, servers[last].endpoint
    names = cell.variant.slug, plan.cells[last].variant.slug
    found = driver.differ(cell, names, (first, other)) if last else None
    if found is None:
        return None
    message = f"{names[0]} and {names[1]} answer differently: {found}"
    if (own := driver.differ(cell, ("its first answer", "its second one"), (first, first))) is not None:
        message = f"{names[0]} does not answer alike twice: {own}"
    hint = "leave out --same-answers, or request what is always answered alike"
    return Failure(stage="verify", kind="wrong_answer", message=message, hint=hint)
