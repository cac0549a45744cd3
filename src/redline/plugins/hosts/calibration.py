"""Pairs of hosts against each other, before a run: a duet of one server with itself on each of them."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from redline.model import Cell, Closed, DuetRecording, Load, Plan, PlannedDuet
from redline.plugins.hosts.executor import PairTools
from redline.running.duet import DuetStart, run_start

STARTS = 3
"""On each pair: fewer have no variance to speak of."""
LOAD = Load(name="calibration", shape=Closed(users=16), duration_ns=1_000_000_000)
"""Of each of the two copies of the server."""
WARM_UP_NS = 2_000_000_000
"""Of each. A JVM is not warm by then, on any pair; that all are cold alike is enough to compare them."""


def calibrate(pairs: Sequence[PairTools], plan: Plan, logs: Path) -> tuple[DuetRecording, ...]:
    """Start after start of each pair, the pairs at the same time; nothing of a plan without a subject.

    What failed is in the recordings. An interrupt ends the loads.
    """
    cell, is_over = reference(plan), threading.Event()
    if cell is None:
        return ()

    def starts_of(number: int) -> list[DuetRecording]:
        positions = range(number, STARTS * len(pairs), len(pairs))
        return [_start(pairs[number], cell, position, logs) for position in positions if not is_over.is_set()]

    with ThreadPoolExecutor(len(pairs)) as threads:
        made = [threads.submit(starts_of, number) for number in range(len(pairs))]
        try:
            found = [recording for each in made for recording in each.result()]
        except BaseException:
            is_over.set()
            for pair in pairs:
                pair.interrupt()
            raise
    return tuple(sorted(found, key=lambda recording: recording.position))


def reference(plan: Plan) -> Cell | None:
    """The cell whose server is the reference: the first that needs no virtual machine, which takes long to get warm."""
    subjects = [cell for cell in plan.cells.values() if cell.role == "subject"]
    native = (cell for cell in subjects if "jvm" not in cell.variant.runtimes)
    first = next(native, subjects[0] if subjects else None)
    warm_up = {"warmup_ns": WARM_UP_NS, "warmup_detect": False, "warmup_by": None}
    return first and first.model_copy(update={"load": LOAD, **warm_up})


def _start(pair: PairTools, cell: Cell, position: int, logs: Path) -> DuetRecording:
    planned = PlannedDuet(cell_ids=(cell.id,), round=0, position=position, seed=position)
    hosts = pair.follow()
    start = DuetStart(planned, (cell,), logs / f"{position:04d}", lambda _block: None)
    return run_start(start, pair.duet_tools(1)).model_copy(update={"hosts": hosts()})
