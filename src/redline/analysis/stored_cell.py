"""A judged cell as bytes and back, for other processes and for later reports. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter

from redline.analysis.cells import with_courses
from redline.analysis.judging import CellTask, JudgedCell
from redline.analysis.results import CellResult, Computed
from redline.analysis.trials import TrialResult
from redline.model import CellReport, Finding, MemoryReport, WatchedSeries
from redline.model.timeline import TrialTimeline


@dataclass(frozen=True)
class EncodedCell:
    """A judged cell as bytes. `intervals` are those of each of its timelines, which have at most `steps` steps."""

    content: bytes = field(repr=False)
    steps: int
    intervals: tuple[int, ...]

    def fits(self, task: CellTask) -> bool:
        """Whether its timelines are as fine as the task wants them."""
        return is_as_fine(self.steps, self.intervals, task.detail.steps)


def is_as_fine(steps: int, intervals: Sequence[int], wanted: int) -> bool:
    """Whether timelines of these intervals in at most `steps` steps are those of at most `wanted` steps."""
    return steps == wanted or all(math.ceil(n / max(steps, 1)) == math.ceil(n / max(wanted, 1)) for n in intervals)


@dataclass(frozen=True)
class _Stored:
    """What a judged cell is made of, without what its task or its trials say."""

    trials: tuple[TrialResult, ...]
    own_findings: tuple[Finding, ...]
    valid: bool
    memory: MemoryReport | None
    watched: tuple[WatchedSeries, ...]
    timelines: tuple[TrialTimeline, ...]
    known: Computed
    report: CellReport


def encoded(task: CellTask, judged: JudgedCell) -> EncodedCell:
    """The cell as bytes. Raises ValueError for one that cannot be read back, as none is that was measured."""
    result = judged.result
    stored = _Stored(
        trials=result.trials,
        own_findings=result.own_findings,
        valid=result.valid,
        memory=result.memory,
        watched=result.watched,
        timelines=result.timelines,
        known=result.known,
        report=judged.report.with_courses((), (), ()),
    )
    content = _adapter().dump_json(stored)
    return EncodedCell(content, task.detail.steps, tuple(timeline.intervals for timeline in result.timelines))


def decoded(content: bytes, task: CellTask) -> JudgedCell | None:
    """The cell of this task; None for bytes that `encoded` did not make."""
    try:
        return _cell_of(_adapter().validate_json(content), task)
    except ValueError:
        return None


def _cell_of(stored: _Stored, task: CellTask) -> JudgedCell:
    result = CellResult(
        cell=task.cell,
        planned=task.planned,
        trials=stored.trials,
        own_findings=stored.own_findings,
        valid=stored.valid,
        memory=stored.memory,
        watched=stored.watched,
        timelines=stored.timelines,
    )
    result.know_id(task.cell_id)
    result.know(stored.known)
    return JudgedCell(result, with_courses(stored.report, result))


@cache
def _adapter() -> TypeAdapter[_Stored]:
    return TypeAdapter(_Stored)
