"""A history as sections: what changed first, with a line of bars for each cell and metric."""

import math
from collections.abc import Iterable, Iterator

from redline.analysis.changes import FEWEST_RUNS
from redline.analysis.history import silent
from redline.model import Verdict
from redline.model.history import Change, Followed, History, HistoryPoint
from redline.report import format as fmt
from redline.report.document import Column, Line, Prose, Section, Span, Table, TextCell, filled, line, words

_BARS = "▁▂▃▄▅▆▇█"
_MISSING = "·"
_NEW_ERA = "│"
_MOST = 40
_MOST_ROWS = 20
_HASH = 12
_COLUMNS = (
    Column("cell", place="above"),
    Column("metric"),
    Column("runs"),
    Column("now", align="right"),
    Column("changes", place="below"),
)


def history_summary(history: History) -> tuple[Section, ...]:
    """All that is followed, for a terminal: the runs and their eras, cells that changed, those that did not."""
    found = changed(history)
    kept = [one for one in followed(history) if one not in found]
    first, *eras = overview(history)
    lines = (line((first, "strong")), *(line((era, Verdict.INCONCLUSIVE)) for era in eras))
    count = ((Span(counted(history)),),) if found or kept else ()
    single = single_run(history) if len(history.runs) > 1 else ()
    listed = Prose.of([f"Not followed, since only one run has them: {', '.join(single)}"] if single else [], "dim")
    sections = (
        Section("", (Prose((*lines, *count)),)),
        Section("Changed", tuple(filled(_table(found, history)))),
        Section("No change found", tuple(filled(_table(kept, history)))),
        Section("", tuple(filled(listed))),
    )
    return tuple(section for section in sections if section.blocks)


def history_comment(history: History) -> tuple[Section, ...]:
    """What changed, for a pull request: short, regressions first, and what cannot be said."""
    found, single = changed(history), single_run(history) if len(history.runs) > 1 else ()
    more = len(found) - _MOST_ROWS
    unknown = [f"{one.name}, {fmt.label(one.metric)}: {last_value(one)}" for one in silent(history)]
    left_out = [f"{one.folder}: {one.reason}" for one in history.left_out]
    blocks = filled(
        Prose.of(overview(history), listed=True),
        Prose.of([f"{counted(history)}."] if followed(history) else [], "strong"),
        _table(found[:_MOST_ROWS], history),
        Prose.of([f"And {more} more."] if more > 0 else []),
        Prose.of(["The last run says nothing of:"] if unknown else []),
        Prose.of(unknown, listed=True),
        Prose.of([f"Not followed, since only one run has them: {fmt.count(len(single), 'cell')}."] if single else []),
        Prose.of(["Left out:"] if left_out else []),
        Prose.of(left_out, listed=True),
    )
    return (Section("History", tuple(blocks), level=1),)


def _table(cells: Iterable[Followed], history: History) -> Table:
    """A row for each metric, those of one cell together."""
    by_cell: dict[str, list[Followed]] = {}
    for cell in cells:
        by_cell.setdefault(cell.cell_id, []).append(cell)
    rows = (
        (
            _name(member),
            words(fmt.label(member.metric)),
            words(sparkline(member, history)),
            words(last_value(member)),
            changes,
        )
        for members in by_cell.values()
        for member in members
        for changes in [TextCell(tuple(_change_lines(member, history)))]
    )
    return Table(_COLUMNS, tuple(rows))


def _name(one: Followed) -> TextCell:
    remarks = ("  ceiling" if one.role == "ceiling" else "") + ("" if one.current else "  no longer in its suite")
    return TextCell((line((one.name, "strong"), (remarks, "dim")),))


def _change_lines(one: Followed, history: History) -> Iterator[Line]:
    for change in one.changes:
        yield line((change_text(change), change.verdict), f" {since(change, history)}")
        for other in other_changes(change, history):
            yield line((other, "dim"))


def sparkline(one: Followed, history: History, most: int = _MOST) -> str:
    """The last runs as bars on a log scale, lowest to highest; `·` where a run says nothing, `│` where an era begins.

    The scale spans at least four thresholds, so that noise does not look like mountains.
    """
    points = one.points[-most:]
    logs = [math.log(point.estimate.value) for point in points if point.estimate and point.estimate.value > 0]
    if not logs:
        return _MISSING * len(points)
    middle = (min(logs) + max(logs)) / 2
    half = max((max(logs) - min(logs)) / 2, 2 * math.log1p(one.threshold))
    drawn, era = "", None
    for point in points:
        own = history.runs[point.run].era
        drawn += _NEW_ERA if era not in (None, own) else ""
        era = own
        value = point.estimate.value if point.estimate else 0.0
        height = (math.log(value) - middle + half) / (2 * half) if value > 0 else 0.0
        drawn += _BARS[min(len(_BARS) - 1, int(height * len(_BARS)))] if value > 0 else _MISSING
    return drawn


def change_text(change: Change) -> str:
    """`▲ faster +5.1% [+4.3, +5.9]`: the change and its interval, in percent."""
    parts = (fmt.MARKS[change.verdict], change.verdict.value, fmt.change(change.ratio), fmt.change_bounds(change.ratio))
    return " ".join(part for part in parts if part)


def since(change: Change, history: History) -> str:
    """`since run 20 of 30, 20261110-020000-nightly`."""
    return f"since run {change.run + 1} of {len(history.runs)}, {history.runs[change.run].name}"


def other_changes(change: Change, history: History) -> tuple[str, ...]:
    """What else changed with that run, and may explain it: the server's build, the machine."""
    before, after = (each[:_HASH] for each in (change.build_before, change.build_after))
    built = (f"build: {before} -> {after}",) if before and after and before != after else ()
    return (*built, *history.runs[change.run].environment_differs)


def last_value(one: Followed) -> str:
    """`91.0 k/s ±0.7%`, `+5.1% [+4.3, +5.9]` of a ratio, or why the last run says nothing."""
    if one.last is None:
        return one.points[-1].missing
    if one.baseline:
        return f"{fmt.change(one.last)} {fmt.change_bounds(one.last)}".rstrip()
    return fmt.with_spread(one.last)


def followed(history: History) -> tuple[Followed, ...]:
    """The cells that more than one run has."""
    return tuple(cell for cell in history.cells if len(cell.points) > 1)


def single_run(history: History) -> tuple[str, ...]:
    """The names of cells that only one run has: there is nothing to follow."""
    return tuple(dict.fromkeys(cell.name for cell in history.cells if len(cell.points) == 1))


def changed(history: History) -> tuple[Followed, ...]:
    """Those with change points: regressions first, then the latest change first."""
    found = [one for one in followed(history) if one.changes]
    return tuple(sorted(found, key=lambda one: (not (one.regressed and one.current), -one.changes[-1].run)))


def counted(history: History) -> str:
    """`12 metrics followed: 1 changed for the worse, 2 for the better, 9 did not change`: where they stand.

    Only the last era of each counts; where that has too few runs nothing is said of change.
    """
    everything = followed(history)
    judged = [one for one in everything if len(_of_last_era(one, history)) >= FEWEST_RUNS]
    last = [verdict for one in judged if (verdict := _stands(one, history))]
    worse, better = last.count(Verdict.SLOWER), last.count(Verdict.FASTER)
    parts = [f"{worse} changed for the worse", f"{better} for the better", f"{len(judged) - len(last)} did not change"]
    few = len(everything) - len(judged)
    parts += [f"{few} with too few runs to tell ({FEWEST_RUNS} of an era)"] if few else []
    return f"{len(everything)} metrics followed: {', '.join(parts)}"


def _of_last_era(one: Followed, history: History) -> tuple[HistoryPoint, ...]:
    era = history.runs[one.points[-1].run].era
    return tuple(point for point in one.known if history.runs[point.run].era == era)


def _stands(one: Followed, history: History) -> Verdict | None:
    """Where its last change left it, if that is in its last era; slower as long as a loss is not made good."""
    if one.regressed:
        return Verdict.SLOWER
    era = history.runs[one.points[-1].run].era
    return next((change.verdict for change in reversed(one.changes) if history.runs[change.run].era == era), None)


def overview(history: History) -> tuple[str, ...]:
    """How many runs, from when to when, and where eras begin."""
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
