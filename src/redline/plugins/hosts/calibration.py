"""Pairs of hosts against each other, before a run: a duet of one server with itself on each of them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from redline.model import Cell, Closed, DuetRecording, Load, Plan, PlannedDuet
from redline.plugins.hosts.executor import PairTools
from redline.running.duet import DuetStart, run_start

STARTS = 3
"""On each pair: fewer have no variance to speak of."""
LOAD = Load(name="calibration", shape=Closed(users=16), duration_ns=1_000_000_000)
"""Of each copy of the server."""


def calibrate(pairs: Sequence[PairTools], plan: Plan, logs: Path) -> tuple[DuetRecording, ...]:
    """Start after start of each pair, the pairs at the same time. What failed is in the recordings.

    An interrupt ends the loads.
    """
    cell = reference(plan)
    numbered = list(enumerate(pairs))

    def starts_of(number: int, pair: PairTools) -> list[DuetRecording]:
        return [_start(pair, cell, position, logs) for position in range(number, STARTS * len(pairs), len(pairs))]

    with ThreadPoolExecutor(len(pairs)) as threads:
        made = [threads.submit(starts_of, number, pair) for number, pair in numbered]
        try:
            found = [recording for each in made for recording in each.result()]
        except BaseException:
            for pair in pairs:
                pair.interrupt()
            raise
    return tuple(sorted(found, key=lambda recording: recording.position))


def reference(plan: Plan) -> Cell:
    """The cell whose server is the reference: the first without a virtual machine, which needs time to get warm."""
    subjects = [cell for cell in plan.cells.values() if cell.role == "subject"]
    native = (cell for cell in subjects if not cell.warmup_detect and "jvm" not in cell.variant.runtimes)
    first = next(native, subjects[0])
    return first.model_copy(update={"load": LOAD, "warmup_by": None})


def _start(pair: PairTools, cell: Cell, position: int, logs: Path) -> DuetRecording:
    planned = PlannedDuet(cell_ids=(cell.id, cell.id), round=0, position=position, seed=position)
    hosts = pair.follow()
    start = DuetStart(planned, (cell, cell), logs / f"{position:04d}", lambda _block: None)
    return run_start(start, pair.duet_tools(2)).model_copy(update={"hosts": hosts()})
