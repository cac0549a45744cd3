"""The page of a history: its changes, a course for every metric, and the runs."""

from collections.abc import Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Column, Fold, Head, Page, Prose, Section, Table, TextCell, key, line, words
from redline.document.figures import Courses, RunCourse
from redline.document.outline import Chapter, Outline
from redline.history import sections as texts
from redline.model import Estimate
from redline.model.history import Followed, History
from redline.report.other_results import other_sections

_KEY = (
    "A dot is a run, and the line through it the 95% interval. **A coloured line** is a change: from the next run on"
    " slower or faster. A dashed line begins an era: other machines are not compared."
)
_CHANGED = (
    Column("line"),
    Column("metric"),
    Column("now", align="right"),
    Column("change"),
    Column("what else changed"),
)
_RUNS = (Column("run", align="right"), Column("name"), Column("begun"), Column("suite"), Column("what changed with it"))


def _head(history: History) -> Head:
    """Count the runs, and say how the metrics stand."""
    facts = texts.overview(history) if history.folder else ()
    counts = (texts.counted(history),) if texts.followed(history) else ()
    return Head("History", facts=(*facts[:1], *counts), footer="Made by redline history.")


def _changed(history: History) -> Iterator[Section]:
    """A row for every change, and the courses of the metrics that changed."""
    cells = texts.changed(history)
    rows = tuple(
        (
            cell.name,
            fmt.label(cell.metric),
            texts.last_value(cell),
            TextCell((line((texts.change_text(change), change.verdict)), line(texts.since(change, history)))),
            words(*texts.other_changes(cell, change, history), look="dim"),
        )
        for cell in cells
        for change in reversed(cell.changes)
    )
    if texts.followed(history):
        none = () if rows else ("No line changed.",)
        blocks = (Prose.of(none), Table(_CHANGED, rows), *_courses(cells, history))
        yield Section("What changed", blocks, anchor="changed", count=len(rows))


def _unchanged(history: History) -> Iterator[Section]:
    """The courses of all other metrics."""
    cells = [cell for cell in texts.followed(history) if not cell.changes]
    if cells:
        yield Section("No change found", _courses(cells, history), anchor="unchanged", count=len(cells))


def _runs(history: History) -> Iterator[Section]:
    """The runs and the differences in their environments, and runs outside the history."""
    if not history.folder:
        return
    rows = tuple(
        (
            str(number),
            run.name,
            fmt.instant(run.started_unix_ns),
            run.suite,
            words(*_begun(number - 1, history), *run.environment_differs),
        )
        for number, run in enumerate(history.runs, start=1)
    )
    out = [f"{run.folder}: {run.reason}" for run in history.left_out]
    single = texts.single_run(history) if len(history.runs) > 1 else ()
    blocks = (
        Fold(line(fmt.count(len(rows), "run")), (Table(_RUNS, tuple(reversed(rows))),), len(rows) <= _FEW)
        if rows
        else None,
        Prose.of([f"Not followed, since only one run has them: {', '.join(single)}"] if single else [], "dim"),
        Prose.of([f"Left out: {text}" for text in out], listed=True),
    )
    yield Section("Runs", tuple(block for block in blocks if block), anchor="runs", count=len(rows))


_FEW = 12
"""The most runs that are shown; more are folded."""


def _begun(place: int, history: History) -> tuple[str, ...]:
    return tuple(
        f"a new era: {'; '.join(era.differs)}" for era in history.eras[1:] if era.first_run == place and era.differs
    )


def _courses(cells: Sequence[Followed], history: History) -> tuple[Prose | Courses, ...]:
    """The courses of these metrics and how to read them; empty if there are none."""
    if not cells:
        return ()
    return Prose((key(_KEY),)), Courses(tuple(_course(cell, history) for cell in cells))


def _course(cell: Followed, history: History) -> RunCourse:
    """Draw the runs that have the cell, at equal distances."""
    places = {point.run: place for place, point in enumerate(cell.points)}
    eras = [history.runs[point.run].era for point in cell.points]
    estimates = [point.estimate for point in cell.points]
    known = sorted((estimate for estimate in estimates if estimate), key=lambda estimate: estimate.value)
    metric = fmt.label(cell.metric)
    changes = ", ".join(f"{change.verdict.value} {texts.since(change, history)}" for change in cell.changes)
    return RunCourse(
        title=cell.name,
        hint=metric,
        value=texts.last_value(cell),
        label=f"{cell.name}, {metric}: now {texts.last_value(cell)}; {changes or 'no change'}",
        points=tuple(_point(estimate) if estimate else None for estimate in estimates),
        ticks=tuple((estimate.value, _tick(estimate, cell)) for estimate in (*known[:1], *known[1:][-1:])),
        first=history.runs[cell.points[0].run].name,
        last=history.runs[cell.points[-1].run].name,
        eras=tuple(place for place in range(1, len(eras)) if eras[place] != eras[place - 1]),
        changes=tuple((places[change.run], change.verdict) for change in cell.changes),
    )


def _point(estimate: Estimate) -> tuple[float, float | None, float | None]:
    """The value and the ends of its interval, unless that says nothing."""
    return (estimate.value, *((None, None) if estimate.says_nothing else (estimate.low, estimate.high)))


def _tick(estimate: Estimate, cell: Followed) -> str:
    return fmt.change(estimate) if cell.baseline else fmt.amount(estimate.value, estimate.unit)


_PAGE = Outline[History](
    _head,
    (
        Chapter(_changed),
        Chapter(_unchanged),
        Chapter(lambda history: other_sections(history.others)),
        Chapter(_runs),
    ),
)


def page(history: History) -> Page:
    """The history as a page, changes first."""
    return _PAGE.page(history)
