"""A history as sections: changes first, with a line of bars per cell and metric."""

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import get_args

from redline.defaults import DuetMetric
from redline.document import format as fmt
from redline.document.blocks import Column, Head, Line, Medium, Prose, Section, Table, TableCell, TextCell, line
from redline.document.outline import Chapter, Outline
from redline.history.changes import FEWEST_RUNS
from redline.history.over_runs import silent
from redline.model import Metric, Verdict
from redline.model.history import Change, Followed, History, HistoryPoint
from redline.report.bars import bars
from redline.report.other_results import other_sections

_NEW_ERA = "│"
_MOST = 40
_MOST_ROWS = 20
_HASH = 12
_COMMIT = re.compile("[0-9a-f]{40}")
_COLUMNS = (
    Column("cell", place="above"),
    Column("metric"),
    Column("runs"),
    Column("now", align="right"),
    Column("changes", place="below"),
)


def _standing(history: History) -> Iterator[Section]:
    """Count the runs, and say where eras begin and how the cells stand."""
    if not history.folder:
        return
    first, *eras = overview(history)
    eras_begun = (line((era, Verdict.INCONCLUSIVE)) for era in eras)
    counts = [counted(history)] if followed(history) else []
    yield Section(
        "",
        (
            Prose((line((first, "strong")), *eras_begun, *(line(text) for text in counts)), on=Medium.TERMINAL),
            Prose.of((first, *eras), listed=True, on=Medium.MARKDOWN),
            Prose.of((f"{text}." for text in counts), "strong", on=Medium.MARKDOWN),
        ),
    )


def _changed(history: History) -> Iterator[Section]:
    """The cells that changed; Markdown has the first of them."""
    cells = changed(history)
    more = len(cells) - _MOST_ROWS
    yield Section(
        "Changed",
        (
            _table(cells, history, Medium.TERMINAL),
            _table(cells[:_MOST_ROWS], history, Medium.MARKDOWN),
            Prose.of([f"And {more} more."] if more > 0 else [], on=Medium.MARKDOWN),
        ),
    )


def _unchanged(history: History) -> Iterator[Section]:
    cells = (cell for cell in followed(history) if not cell.changes)
    yield Section("No change found", (_table(cells, history),))


def _silent(history: History) -> Iterator[Section]:
    texts = (f"{cell.name}, {fmt.label(cell.metric)}: {last_value(cell)}" for cell in silent(history))
    yield Section("The last run does not show", (Prose.of(texts, listed=True),))


def _single(history: History) -> Iterator[Section]:
    """The cells of a single run: all of them on a terminal, their number in Markdown."""
    slugs = single_run(history) if len(history.runs) > 1 else ()
    for shown, medium in ((", ".join(slugs), Medium.TERMINAL), (fmt.count(len(slugs), "cell"), Medium.MARKDOWN)):
        text = f"Not followed, since only one run has them: {shown}"
        yield Section("", (Prose.of([text] if slugs else [], "dim", on=medium),))


def _left_out(history: History) -> Iterator[Section]:
    texts = (f"{run.folder}: {run.reason}" for run in history.left_out)
    yield Section("Left out", (Prose.of(texts, listed=True),))


OUTLINE = Outline[History](
    lambda _: Head("History"),
    (
        Chapter(_standing),
        Chapter(_changed),
        Chapter(_unchanged, on=Medium.TERMINAL),
        Chapter(_silent, on=Medium.MARKDOWN),
        Chapter(_single),
        Chapter(lambda history: other_sections(history.others)),
        Chapter(_left_out, on=Medium.MARKDOWN),
    ),
    headed=Medium.MARKDOWN,
)
"""The sections, changes first; a terminal has all followed cells, Markdown what a pull request needs."""


def _table(cells: Iterable[Followed], history: History, on: Medium = Medium.EVERYWHERE) -> Table:
    """A row per metric, with the metrics of a cell together."""
    by_cell: dict[str, list[Followed]] = {}
    for cell in cells:
        by_cell.setdefault(cell.cell_id, []).append(cell)
    return Table(_COLUMNS, tuple(_row(cell, history) for alike in by_cell.values() for cell in alike), on=on)


def _row(cell: Followed, history: History) -> tuple[TableCell, ...]:
    remarks = ("  ceiling" if cell.role == "ceiling" else "") + ("" if cell.current else "  no longer in its suite")
    name = TextCell((line((cell.name, "strong"), (remarks, "dim")),))
    changes = TextCell(tuple(_change_lines(cell, history)))
    return name, fmt.label(cell.metric), sparkline(cell, history), last_value(cell), changes


def _change_lines(cell: Followed, history: History) -> Iterator[Line]:
    for change in cell.changes:
        yield line((change_text(change), change.verdict), f" {since(change, history)}")
        for other in other_changes(cell, change, history):
            yield line((other, "dim"))


def sparkline(cell: Followed, history: History, most: int = _MOST) -> str:
    """The last runs as `bars`; `·` for a run without the value, `│` where an era begins."""
    points = cell.points[-most:]
    drawn, era = "", None
    for point, bar in zip(
        points,
        bars([point.estimate.value if point.estimate else None for point in points], cell.threshold),
        strict=True,
    ):
        own = history.runs[point.run].era
        drawn += _NEW_ERA if era not in (None, own) else ""
        era = own
        drawn += bar
    return drawn


def change_text(change: Change) -> str:
    """`▲ faster +5.1% [+4.3, +5.9]`: the change and its interval, in percent."""
    parts = (fmt.VerdictSign(change.verdict.value).mark, change.verdict.value, fmt.with_bounds(change.ratio))
    return " ".join(parts)


def since(change: Change, history: History) -> str:
    """`since run 20 of 30, 20261110-020000-nightly`."""
    return f"since run {change.run + 1} of {len(history.runs)}, {history.runs[change.run].name}"


def other_changes(cell: Followed, change: Change, history: History) -> tuple[str, ...]:
    """Other changes in that run that may explain it: builds of the servers, the machine; and how to find the commit."""
    known = (
        ("build", change.build_before, change.build_after),
        ("baseline", change.baseline_build_before, change.baseline_build_after),
    )
    differ = [(name, before, after) for name, before, after in known if before and after and before != after]
    built = [f"{name}: {before[:_HASH]} -> {after[:_HASH]}" for name, before, after in differ]
    flags = _bisect_flags(cell)
    # Of two builds, either may be the cause.
    if flags and len(differ) == 1 and all(map(_COMMIT.fullmatch, differ[0][1:])):
        name, *ends = differ[0]
        if (change.verdict is Verdict.FASTER) != (name == "baseline"):  # beside a faster baseline, a server is slower
            ends.reverse()
        good, bad = (end[:_HASH] for end in ends)
        built.append(f"the commit: redline bisect {good} {bad} {shlex.join(flags)}, with the same flags")
    return (*built, *history.runs[change.run].environment_differs)


def _bisect_flags(cell: Followed) -> tuple[str, ...]:
    """The flags by which a bisection is about this metric and request; empty if it cannot be about the metric."""
    metric = "cpu" if cell.metric is Metric.CPU_PER_REQUEST else cell.metric.value
    request = ("-m", cell.request) if cell.request else ()
    return ("--metric", metric, *request) if metric in get_args(DuetMetric) else ()


def last_value(cell: Followed) -> str:
    """`91.0 k/s ±0.7%`, `+5.1% [+4.3, +5.9]` for a ratio, or why the last run has no value."""
    if cell.last is None:
        return cell.points[-1].missing
    return fmt.with_bounds(cell.last) if cell.baseline else fmt.with_spread(cell.last)


def followed(history: History) -> tuple[Followed, ...]:
    """The cells that several runs have."""
    return tuple(cell for cell in history.cells if len(cell.points) > 1)


def single_run(history: History) -> tuple[str, ...]:
    """The names of cells that only a single run has, which cannot be followed."""
    return tuple(dict.fromkeys(cell.name for cell in history.cells if len(cell.points) == 1))


def changed(history: History) -> tuple[Followed, ...]:
    """The cells with change points: regressions first, then the latest change first."""
    cells = [cell for cell in followed(history) if cell.changes]
    return tuple(sorted(cells, key=lambda cell: (not (cell.regressed and cell.current), -cell.changes[-1].run)))


def counted(history: History) -> str:
    """`12 metrics followed: 1 changed for the worse, 2 for the better, 9 did not change`: the state of all metrics.

    Only the last era of a cell counts; if it has too few runs, no change is reported.
    """
    everything = followed(history)
    judged = [cell for cell in everything if len(_of_last_era(cell, history)) >= FEWEST_RUNS]
    last = [verdict for cell in judged if (verdict := _stands(cell, history))]
    worse, better = last.count(Verdict.SLOWER), last.count(Verdict.FASTER)
    parts = [f"{worse} changed for the worse", f"{better} for the better", f"{len(judged) - len(last)} did not change"]
    few = len(everything) - len(judged)
    parts += [f"{few} with too few runs to tell ({FEWEST_RUNS} of an era)"] if few else []
    return f"{fmt.count(len(everything), 'metric')} followed: {', '.join(parts)}"


def _of_last_era(cell: Followed, history: History) -> tuple[HistoryPoint, ...]:
    era = history.runs[cell.points[-1].run].era
    return tuple(point for point in cell.known if history.runs[point.run].era == era)


def _stands(cell: Followed, history: History) -> Verdict | None:
    """The verdict of its last change, if that is in its last era; slower as long as a loss is not made good."""
    if cell.regressed:
        return Verdict.SLOWER
    era = history.runs[cell.points[-1].run].era
    return next((change.verdict for change in reversed(cell.changes) if history.runs[change.run].era == era), None)


def overview(history: History) -> tuple[str, ...]:
    """Say how many runs there are, from when to when, and where eras begin."""
    if not history.runs:
        return (f"no run below {history.folder}",)
    first, last = history.runs[0], history.runs[-1]
    if len(history.runs) == 1:
        return (f"one run below {history.folder}, {first.name}: there is nothing to compare it with yet",)
    span = f"{fmt.instant(first.started_unix_ns)} to {fmt.instant(last.started_unix_ns)}"
    begun = [
        f"a new era, not compared with earlier runs, from {history.runs[era.first_run].name} on: "
        f"{'; '.join(era.differs)}"
        for era in history.eras[1:]
    ]
    return (f"{len(history.runs)} runs below {history.folder}, {span}", *begun)
