"""The page's view of a report: what stands in which row of which table, as text and positions."""

from dataclasses import dataclass

from redline.findings import REASSURING
from redline.model import (
    SHOWN,
    CellReport,
    Comparison,
    Estimate,
    FindingKind,
    Grade,
    Metric,
    Percentile,
    Report,
    Verdict,
)
from redline.report import format as fmt
from redline.report.render.html.forest import Axis, Mark, bar
from redline.report.render.html.plots import drawn
from redline.report.sections.views import Group, comparisons_by_cell, groups, servers, weighed_findings

_UNFOLDED = 6
_DRAWN_EACH = 200


@dataclass(frozen=True)
class Score:
    """One metric of one server: its value, and its ratio to the baseline when there is one."""

    metric: Metric
    value: str
    spread: str
    bounds: str
    ratio: str = ""
    ratio_bounds: str = ""
    verdict: Verdict | None = None
    refused: str = ""
    chances: str = ""
    held_back: str = ""
    mark: Mark | None = None
    bar: Mark | None = None


@dataclass(frozen=True)
class Row:
    """One server in one group; `series` is its colour on the whole page."""

    cell: CellReport
    series: int
    scores: tuple[Score, ...]
    doubts: tuple[tuple[FindingKind, Grade], ...]

    @property
    def rests_on(self) -> str:
        """`5 trials, bootstrap of the mean, BCa`; with the metrics where not all rest on the same."""
        bases: dict[str, list[str]] = {}
        for metric, estimate in self.cell.estimates.items():
            trials = f"{estimate.n} trial{'' if estimate.n == 1 else 's'}"
            bases.setdefault(f"{trials}, {estimate.method}", []).append(fmt.label(metric))
        if len(bases) < 2:
            return next(iter(bases), "")
        return "; ".join(f"{', '.join(metrics)}: {basis}" for basis, metrics in bases.items())

    @property
    def times(self) -> tuple[tuple[str, tuple[Percentile, ...]], ...]:
        """The percentiles of both times, by name; of one when they are the same."""
        response, service = self.cell.response_percentiles, self.cell.service_percentiles
        return (("both", response),) if response == service else (("response", response), ("service", service))


@dataclass(frozen=True)
class Section:
    """One scenario under one load."""

    group: Group
    rows: tuple[Row, ...]
    drawn: tuple[Row, ...]

    @property
    def compared(self) -> bool:
        """Whether any ratio is drawn."""
        return any(score.mark for row in self.rows if row.cell.valid for score in row.scores)

    @property
    def shares(self) -> tuple[float, ...]:
        """Every share that a percentile of any drawn cell has; cells with more requests have deeper ones."""
        cells = [row.cell for row in self.drawn]
        return tuple(sorted({p.q for cell in cells for p in (*cell.response_percentiles, *cell.service_percentiles)}))

    def by_share(self, points: tuple[Percentile, ...]) -> tuple[str, ...]:
        """The points as text, one for each of `shares`; empty where there is none."""
        told = {point.q: fmt.duration(point.ns) for point in points}
        return tuple(told.get(q, "") for q in self.shares)


@dataclass(frozen=True)
class Page:
    """The whole page. `axes` is empty when nothing is compared: then values are drawn as bars."""

    report: Report
    sections: tuple[Section, ...]
    axes: dict[Metric, Axis]
    metrics: tuple[Metric, ...]

    @property
    def folds(self) -> bool:
        """Whether sections are folded: a page of many is read by looking one up."""
        return len(self.sections) > _UNFOLDED

    @property
    def strips(self) -> bool:
        """Whether each value has its picture beside it; of a large study the overview draws the same."""
        return not self.axes or len(self.report.cells) <= _DRAWN_EACH


def page(report: Report) -> Page:
    """Lay the report out."""
    compared = comparisons_by_cell(report)
    colours = {server: place for place, server in enumerate(servers(report))}
    axes = _axes(report)
    metrics = tuple(m for m in SHOWN if any(m in cell.estimates for cell in report.cells)) or SHOWN
    sections = []
    for group in groups(report):
        rows = tuple(
            Row(
                cell,
                colours[cell.server],
                tuple(_score(cell, metric, compared.get(cell.cell_id, {}), axes, group) for metric in metrics),
                _doubts(cell),
            )
            for cell in group.cells
        )
        sections.append(Section(group, rows, tuple(row for row in rows if row.cell in drawn(group))))
    return Page(report, tuple(sections), axes, metrics)


def _doubts(cell: CellReport) -> tuple[tuple[FindingKind, Grade], ...]:
    """Each kind once, at its gravest; trials of one cell are often late by more and by less. Not what is no doubt."""
    gravest: dict[FindingKind, Grade] = {}
    for found in weighed_findings(cell):
        if found.kind not in REASSURING:
            gravest.setdefault(found.kind, found.grade)
    return tuple(gravest.items())


def _axes(report: Report) -> dict[Metric, Axis]:
    """One axis for each metric, for all groups, so that rows may be compared down the page."""
    if not report.comparisons:
        return {}
    ceilings = {cell.cell_id for cell in report.cells if cell.role == "ceiling"}
    shown = [c for c in report.comparisons if c.cell_id not in ceilings]
    return {metric: Axis.of((c for c in shown if c.metric is metric), report.run.threshold) for metric in Metric}


def _score(
    cell: CellReport, metric: Metric, compared: dict[Metric, Comparison], axes: dict[Metric, Axis], group: Group
) -> Score:
    estimate = cell.estimates.get(metric)
    if estimate is None:
        return Score(metric, "not measured", "", "")
    score = Score(metric, fmt.amount(estimate.value, estimate.unit), fmt.spread(estimate), fmt.interval(estimate))
    if not axes:
        return Score(score.metric, score.value, score.spread, score.bounds, bar=_bar(estimate, metric, group))
    comparison = compared.get(metric)
    if comparison is None or cell.role == "ceiling":
        return score
    return _against(score, comparison, axes[metric])


def _against(score: Score, comparison: Comparison, axis: Axis) -> Score:
    ratio = comparison.ratio
    return Score(
        score.metric,
        score.value,
        score.spread,
        score.bounds,
        ratio=fmt.ratio(ratio.value) if ratio else "",
        ratio_bounds=fmt.interval(ratio) if ratio else "",
        verdict=comparison.verdict,
        refused=comparison.refused,
        chances=fmt.chances(comparison),
        held_back=fmt.held_back(comparison),
        mark=axis.mark(ratio) if ratio else None,
    )


def _bar(estimate: Estimate, metric: Metric, group: Group) -> Mark | None:
    """None for a value that stands alone: a bar says something beside another."""
    shown = [cell.estimates[metric] for cell in group.cells if cell.valid and metric in cell.estimates]
    if len(shown) < 2:
        return None
    return bar(estimate, 1.04 * max([estimate.value, *(e.value if e.high is None else e.high for e in shown)]))
