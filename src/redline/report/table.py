"""The page's table: a row per server of a scenario and load, with its levels, its ratios and their evidence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from redline.document import format as fmt
from redline.document.blocks import (
    Block,
    ChangeCell,
    Column,
    Fold,
    InvalidCell,
    Line,
    Medium,
    Prose,
    ScoreCell,
    Section,
    Table,
    TableCell,
    TextCell,
    WithoutScript,
    filled,
    key,
    line,
)
from redline.model import COMPARED, CellReport, Comparison, Metric, Report, TrialReport
from redline.report.ratios import duet_details, legend, remarks, verdict_counts
from redline.report.results import (
    LEVELS,
    Level,
    level_hint,
    level_name,
    level_score,
    levels_of,
    ranks_of,
    row_notes,
    scored_server,
)
from redline.report.trials import trial_text
from redline.report.views import (
    Group,
    colours,
    comparisons_by_cell,
    groups,
    invalid_findings,
    invalid_reason,
    only_judged,
)

WHOLE = 40
"""The most cells in a single table; a larger study has a table for each workload, folded and made when it is opened."""
_TRIALS = ["round", "recording", "used", "throughput", "p50", "p99", "CPU per request", "warm-up", "failure"]
_MOST_STARTS = 60
_UNDRAWN = "The trials below each row need JavaScript; results.json has them."
_OF_SLICES = (
    "A level is the mean over starts of a server's own slices (the percentiles below are of all slices together), "
    "a change by neighbouring slices in each start"
)
_OF_TRIALS = "A level is of all trials, a change by the trials of each round"


def table_section(report: Report) -> Iterator[Section]:
    """All servers under all loads. A report of many cells has a table for each load; the first is open."""
    made, whole = groups(report), len(report.cells) <= WHOLE
    sheet = _ResultRows(report)
    tables: list[Block] = []
    if whole:
        tables = [sheet.table(made)] if made else []
    else:
        tables = [
            Fold(group.heading(), (sheet.table((group,)),), at == 0, later=at > 0, on=Medium.PAGE)
            for at, group in enumerate(made)
        ]
    explained = filled(*legend(report), remarks(report), Prose.of(sheet.notes(made), "dim"))
    how = Fold(line("How to read this"), tuple(explained), open=False)
    blocks = filled(
        Prose.of([] if made else ["No cell was planned."], "dim"),
        Prose((sheet.said,)) if sheet.said else None,
        None if whole else WithoutScript(_UNDRAWN),
        *tables,
        Prose.of(sheet.reasons_text(), "dim", listed=True),
        how if how.blocks else None,
    )
    counts = verdict_counts(report)
    yield Section("Results", tuple(blocks), anchor="results", aside=Prose(counts) if counts else None)


class _ResultRows:
    """Makes rows, and numbers the reasons why something is not compared."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.reasons: dict[str, int] = {}
        self._ranks, self._series = ranks_of(report), colours(report)
        self._compared = comparisons_by_cell(report)
        known: set[Level] = {
            *levels_of(report),
            *(metric for cell in report.cells for metric in (*cell.known, *cell.bounds)),
        }
        known.update(comparison.metric for comparison in report.comparisons if comparison.ratio)
        self.levels = tuple(level for level in (*LEVELS, Metric.MEMORY) if level in known)

    @property
    def said(self) -> Line:
        """Explain the cells of the table."""
        if not self._compared:
            return ()
        only = only_judged(self.report.comparisons)
        unjudged = any(comparison.ratio and not comparison.primary for comparison in self.report.comparisons)
        signs = f" A change without a sign is described: {only}." if only and unjudged else ""
        made = _OF_TRIALS if self.report.run.alone else _OF_SLICES
        return key(
            "Each cell has the level, with half of its 95% interval, and below it the change against the baseline. "
            f"{made}, so **the change is not the quotient of two levels**. "
            f"Less is better where a column says nothing else.{signs}"
        )

    def table(self, made: tuple[Group, ...]) -> Table:
        """The rows of these groups, with their evidence."""
        rows: list[tuple[TableCell, ...]] = []
        more: list[Fold | None] = []
        for group in made:
            base = f"; baseline {group.baseline}" if group.baseline else ""
            for cell in group.cells:
                server = scored_server(cell, group, self._ranks.get(cell.cell_id, ""), self._series[cell.server])
                compared = self._compared.get(cell.cell_id, {}) if cell.role == "subject" else {}
                rows.append((f"{group.title} {group.load_text}{base}", server, *self._scores(cell, compared)))
                more.append(_fold(cell, compared, later=len(self.report.cells) > WHOLE))
        heads = (Column(level_name(level), "right", hint=level_hint(level)) for level in self.levels)
        columns = (Column("workload", place="above"), Column("server"), *heads)
        title = line("All servers and workloads" if len(made) > 1 else made[0].title)
        return Table(columns, tuple(rows), title, look="scores", more=tuple(more), on=Medium.PAGE)

    def _scores(self, cell: CellReport, compared: Mapping[Metric, Comparison]) -> Iterator[TableCell]:
        ratios = any(comparison.ratio for comparison in compared.values())
        if not (cell.shows_numbers or ratios):
            advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
            yield InvalidCell(invalid_reason(cell), advice)
            return
        for level in self.levels:
            score = level_score(cell, level) if cell.shows_numbers else ScoreCell()
            if level not in COMPARED:
                yield score
                continue
            comparison = compared.get(Metric(level))
            change = self._change(comparison) if comparison else None
            place = score.place
            if self._compared:
                place = 1.0 if cell.is_baseline else None
            if comparison and comparison.ratio:
                place = comparison.ratio.value
            yield replace(score, change=change, place=place)

    def _change(self, comparison: Comparison) -> ChangeCell:
        note = None
        if comparison.ratio is None:
            note = self.reasons.setdefault(comparison.refused or "no reason was given", len(self.reasons) + 1)
        return ChangeCell.of(comparison, note)

    def reasons_text(self) -> Iterator[str]:
        """The reasons why something is not compared, by their numbers in the table."""
        for reason, number in self.reasons.items():
            yield f"[{number}] not compared: {reason}"

    def notes(self, made: tuple[Group, ...]) -> Iterator[str]:
        """Remarks on rows: warm-up, routes, percentiles that need more requests."""
        for group in made:
            for text in row_notes(group):
                yield f"{group.title}: {text}" if len(made) > 1 else text


def _fold(cell: CellReport, compared: Mapping[Metric, Comparison], *, later: bool) -> Fold | None:
    """The trials of a row, and the starts of its duets; None if there are none."""
    starts = max((comparison.duet.starts for comparison in compared.values() if comparison.duet), default=0)
    counts = [fmt.count(len(cell.trials), "trial")] if cell.trials else []
    counts += [fmt.count(starts, "start")] if starts else []
    if not counts:
        return None
    blocks: list[Block] = []
    if not cell.valid:
        lacks = "Not all levels are known" if cell.shows_numbers else "No level"
        blocks.append(Prose.of([f"{lacks}: {invalid_reason(cell)}"]))
    details = (*duet_details(compared.values()), *_controls(compared.values()), *_starts(compared.values()))
    blocks.append(Prose(tuple(details), listed=True))
    if cell.trials:
        heads = (Column(head, "left" if head in ("warm-up", "failure") else "right") for head in _TRIALS)
        unused = frozenset(at for at, trial in enumerate(cell.trials) if not (trial.used or trial.partly))
        rows = tuple(tuple(_trial(trial)) for trial in cell.trials)
        blocks.append(Table(tuple(heads), rows, muted=unused, later=later, on=Medium.PAGE))
    return Fold(line(", ".join(counts)), tuple(filled(*blocks)), open=False)


def _controls(compared: Iterable[Comparison]) -> Iterator[Line]:
    """The baseline over itself: the control without any difference."""
    for comparison in compared:
        if comparison.duet and comparison.duet.control:
            control = fmt.with_bounds(comparison.duet.control)
            yield line((f"{fmt.label(comparison.metric)}, baseline over itself: ", "dim"), control)


def _starts(compared: Iterable[Comparison]) -> Iterator[Line]:
    """The ratio of each start, as a change."""
    for comparison in compared:
        ratios = comparison.duet.of_starts if comparison.duet else ()
        changes = ", ".join(f"{fmt.signed((ratio - 1) * 100, 1)}%" for ratio in ratios[:_MOST_STARTS])
        more = f" and {len(ratios) - _MOST_STARTS} more" if len(ratios) > _MOST_STARTS else ""
        if changes:
            yield line((f"{fmt.label(comparison.metric)} by start: ", "dim"), f"{changes}{more}")


def _trial(trial: TrialReport) -> Iterator[TableCell]:
    """A trial; rounds count from 1, and files of recordings from 0000."""
    used = "yes" if trial.used else "in part" if trial.partly else "no"
    yield from (str(trial.round + 1), f"{trial.position:04}", used, _rate(trial))
    times = {Metric.P50: trial.p50_ns, Metric.P99: trial.p99_ns, Metric.CPU_PER_REQUEST: trial.cpu_per_request_ns}
    for metric, ns in times.items():
        bound = trial.bounds.get(metric)
        yield fmt.bound_sign(bound) if bound else "" if ns is None else fmt.duration(ns)
    yield trial_text(trial.warm_up)
    yield TextCell((line(trial.failure),), trial.log_tail) if trial.failure or trial.log_tail else ""


def _rate(trial: TrialReport) -> str:
    if trial.rate_per_s is not None:
        return fmt.rate(trial.rate_per_s)
    answered = trial.outcomes is None or trial.outcomes.ok
    if answered and (bound := trial.bounds.get(Metric.THROUGHPUT)):
        return fmt.bound_sign(bound)
    return "" if trial.failure else fmt.NO_ANSWERS
