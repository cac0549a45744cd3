"""Judge the cells of a stored run: what was judged before is read, and many cells are judged by several processes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from redline.copies import begin_copy, keep_freed_memory, may_copy
from redline.errors import StoreError
from redline.lazily import late
from redline.model import Cell, Plan, Recording, Run
from redline.storage.judged import JudgedStore, key_of
from redline.storage.reading import content_of, trial_of
from redline.storage.runs import RunStore

if TYPE_CHECKING:
    from redline.analysis import judging as cells
    from redline.analysis import results, stored_cell
    from redline.analysis.judging import CellTask, JudgedCell, Judging
    from redline.analysis.stored_cell import EncodedCell
else:  # the first load of a run begins without them
    cells, results, stored_cell = late("redline.analysis", "judging", "results", "stored_cell")

KEPT_FROM = 20
"""Trials from which on judged cells are kept: fewer are judged in half a second."""
SHARED_FROM = 100
"""Trials from which on several processes judge them: fewer take hardly longer than to start these."""
_MOST_PROCESSES = 8


def judging_of(store: RunStore, *, keeps: bool = True) -> Judging:
    """The judging of a stored run: cells as `judge_in_turn` gives them, which are kept unless told not to."""

    def judging(run: Run, tasks: Sequence[CellTask]) -> Iterator[JudgedCell]:
        trials = sum(len(task.places) for task in tasks)
        if trials < KEPT_FROM:
            return cells.judge_in_turn(run, tasks)
        work = _Work(tasks, store, store.recording_files(), keeps=keeps)
        processes = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES)
        return work.shared(processes) if trials >= SHARED_FROM and may_copy() else map(work.judged, tasks)

    return judging


class JudgedAhead:
    """Judges every cell of a run as soon as its last planned trial is stored, and keeps it for the report at the end.

    What cannot be judged now is left to that report. The last trial of a cell costs what judging its trials costs:
    some ten milliseconds each.
    """

    def __init__(self, plan: Plan, store: RunStore) -> None:
        files, tasks = store.recording_files(), cells.tasks_of_plan(plan) if len(plan.trials) >= KEPT_FROM else {}
        self._store, self._files, self._places = store, files, {cell_id: at for at, cell_id in enumerate(tasks)}
        self._tasks = [*tasks.values()]
        self._work = _Work(self._tasks, store, files, keeps=True)
        self._left = {task.cell_id: {trial.position for trial in task.trials} - files.keys() for task in self._tasks}
        self._ceilings = {
            cells.place_of(task.cell): task.cell_id for task in self._tasks if task.cell.role == "ceiling"
        }

    def add(self, recording: Recording, cell: Cell) -> None:
        """Take in a trial that was stored."""
        if not self._tasks:
            return
        self._files[recording.position] = self._store.recording_file(recording.position, cell)
        left = self._left[recording.cell_id]
        left.discard(recording.position)
        if left:
            return
        ceiling = self._ceilings.get(cells.place_of(cell))
        if ceiling == recording.cell_id:
            under = [task.cell_id for task in self._tasks if cells.place_of(task.cell) == cells.place_of(cell)]
        else:
            under = [recording.cell_id]
        for cell_id in under:
            if not self._left[cell_id] and (ceiling is None or not self._left[ceiling]):
                self._judge(cell_id, ceiling)

    def _judge(self, cell_id: str, ceiling: str | None) -> None:
        at = self._places[cell_id]
        if ceiling is not None and ceiling != cell_id:
            place = self._places[ceiling]
            content = self._work.content(place)
            judged = stored_cell.decoded(content, self._tasks[place]) if content is not None else None
            rate = results.rate_per_s(judged.result) if judged else None
            self._tasks[at] = replace(self._tasks[at], ceiling_per_s=rate or None)
        self._work.content(at)


class _Work:
    """The tasks of a run, and what was judged of them before."""

    def __init__(self, tasks: Sequence[CellTask], store: RunStore, files: Mapping[int, Path], *, keeps: bool) -> None:
        self._tasks, self._files, self._keeps = tasks, files, keeps
        self._judged = JudgedStore(store.folder)

    def judged(self, task: CellTask) -> JudgedCell:
        """The cell of a task: as it was judged before, or judged now and kept."""
        contents, key = self._rests_on(task)
        kept = self._judged.read(task, key) if key else None
        known = stored_cell.decoded(kept, task) if kept is not None else None
        return known or self._anew(task, contents, key)[0]

    def content(self, at: int) -> bytes | None:
        """The same as bytes, for another process; None where that has to judge the cell, and to say what is wrong."""
        try:
            task = self._tasks[at]
            contents, key = self._rests_on(task)
            kept = self._judged.read(task, key) if key else None
            if kept is not None:
                return kept
            made = self._anew(task, contents, key)[1]
        except Exception:  # noqa: BLE001 - the other process meets it again
            return None
        return made.content if made else None

    def shared(self, processes: int) -> Iterator[JudgedCell]:
        """The cells of all tasks, in their order, by copies of this process.

        It judges the first one itself, so that its copies share what is imported, built and computed for all cells.
        """
        first, *left = self._tasks
        yield self.judged(first)
        try:
            with ProcessPoolExecutor(processes, get_context("fork"), _begin, (self, os.getpid())) as pool:
                try:
                    for content in _in_order(pool, range(1, len(self._tasks)), 4 * processes):
                        task = left.pop(0)
                        yield (stored_cell.decoded(content, task) if content is not None else None) or self.judged(task)
                except BaseException:  # else its threads end, so that this process may be copied again
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        except BrokenProcessPool:  # a copy was ended, maybe for want of memory
            yield from map(self.judged, left)

    def _rests_on(self, task: CellTask) -> tuple[list[bytes | None], str]:
        """The bytes of the recordings, and the key of the cell; empty unless all of them can be read."""
        contents = [self._content_of(trial.position) for trial in task.trials]
        known = [content for content in contents if content is not None]
        return contents, key_of(task, known) if known and len(known) == len(contents) else ""

    def _content_of(self, position: int) -> bytes | None:
        try:
            return content_of(self._files[position])
        except StoreError:
            return None

    def _anew(
        self, task: CellTask, contents: Sequence[bytes | None], key: str
    ) -> tuple[JudgedCell, EncodedCell | None]:
        """The cell, and its bytes if it can be kept: not one of recordings of which messages name the files."""
        recordings = [
            trial_of(self._files[trial.position], trial, content)
            for trial, content in zip(task.trials, contents, strict=True)
        ]
        judged = cells.judge_task(task, recordings)
        if not key or any(made.failure is not None and made.failure.kind == "unread" for made in recordings):
            return judged, None
        try:
            made = stored_cell.encoded(task, judged)
        except ValueError:
            return judged, None
        if self._keeps:
            self._judged.keep(task, key, made)
        return judged, made


def _in_order(pool: ProcessPoolExecutor, tasks: Iterable[int], ahead: int) -> Iterator[bytes | None]:
    """The cells of these tasks in their order, of which at most so many wait to be taken."""
    begun = deque[Future[bytes | None]]()
    for at in tasks:
        begun.append(pool.submit(_content, at))
        if len(begun) > ahead:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


_work: _Work


def _begin(work: _Work, parent: int) -> None:
    global _work  # noqa: PLW0603 - a pool hands nothing else to its processes
    _work = work
    begin_copy(parent)
    keep_freed_memory()


def _content(at: int) -> bytes | None:
    return _work.content(at)
