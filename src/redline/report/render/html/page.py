"""The page's view of a report: what stands in which row of which table, as text and positions."""

from dataclasses import dataclass
from functools import cached_property

from redline.model import CellReport, Metric, Percentile, Report
from redline.report import format as fmt
from redline.report.document import ScoreCell, ServerCell, Table
from redline.report.render.html.forest import Axis, Mark, bar
from redline.report.render.html.plots import has_curves
from redline.report.sections.run import result_table, shown_metrics
from redline.report.sections.views import Group, comparisons_by_cell, groups, servers

_UNFOLDED = 6
_DRAWN_EACH = 200


@dataclass(frozen=True)
class Row:
    """One server in one group: its name with what belongs to it, and its metrics; none when it is invalid."""

    cell: CellReport
    server: ServerCell
    scores: tuple[ScoreCell, ...]

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
class PageSection:
    """One scenario under one load."""

    group: Group
    rows: tuple[Row, ...]
    drawn: tuple[Row, ...]

    @property
    def compared(self) -> bool:
        """Whether any ratio is drawn."""
        return any(score.comparison and score.comparison.ratio for row in self.rows for score in row.scores)

    @cached_property
    def largest(self) -> dict[Metric, float]:
        """Where bars of each metric end that more than one server has."""
        found: dict[Metric, list[float]] = {}
        for score in (score for row in self.rows for score in row.scores):
            if (one := score.estimate) is not None:
                found.setdefault(score.metric, []).append(max(one.value, one.high or 0.0))
        return {metric: 1.04 * max(ends) for metric, ends in found.items() if len(ends) > 1}

    @property
    def undrawn(self) -> tuple[str, ...]:
        """The servers that have no curves."""
        return tuple(row.cell.server for row in self.rows if not has_curves(row.cell))

    @property
    def shares(self) -> tuple[float, ...]:
        """Every share that a percentile of any drawn cell has; cells with more requests have deeper ones."""
        cells = [row.cell for row in self.drawn]
        return tuple(sorted({p.q for cell in cells for p in (*cell.response_percentiles, *cell.service_percentiles)}))

    def by_share(self, points: tuple[Percentile, ...]) -> tuple[str, ...]:
        """The points as text, one for each of `shares`; empty where there is none."""
        texts = {point.q: fmt.duration(point.ns) for point in points}
        return tuple(texts.get(q, "") for q in self.shares)


@dataclass(frozen=True)
class Page:
    """The whole page. `axes` is empty when nothing is compared: then values are drawn as bars."""

    report: Report
    sections: tuple[PageSection, ...]
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

    def bar(self, score: ScoreCell, section: PageSection) -> Mark | None:
        """The value as a bar, where nothing is compared; None for one that stands alone."""
        largest = section.largest.get(score.metric)
        return None if self.axes or score.estimate is None or largest is None else bar(score.estimate, largest)


def page(report: Report) -> Page:
    """Lay the report out."""
    compared, metrics = comparisons_by_cell(report), shown_metrics(report)
    colours = {server: place for place, server in enumerate(servers(report))}
    sections = (_page_section(group, result_table(group, colours, compared, metrics)) for group in groups(report))
    return Page(report, tuple(sections), _axes(report), metrics)


def _page_section(group: Group, table: Table) -> PageSection:
    rows = []
    for cell, (name, *scores) in zip(group.cells, table.rows, strict=True):
        assert isinstance(name, ServerCell)
        rows.append(Row(cell, name, tuple(score for score in scores if isinstance(score, ScoreCell))))
    return PageSection(group, tuple(rows), tuple(row for row in rows if has_curves(row.cell)))


def _axes(report: Report) -> dict[Metric, Axis]:
    """One axis for each metric, for all groups, so that rows may be compared down the page."""
    if not report.comparisons:
        return {}
    ceilings = {cell.cell_id for cell in report.cells if cell.role == "ceiling"}
    shown = [c for c in report.comparisons if c.cell_id not in ceilings]
    return {metric: Axis.of((c for c in shown if c.metric is metric), report.run.threshold) for metric in Metric}
