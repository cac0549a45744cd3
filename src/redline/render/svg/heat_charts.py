"""Heat maps of response times over time as charts: the middle trial of each cell."""

from collections.abc import Iterator
from math import log

from redline.document.scales import Scale, time_scale
from redline.model import CellReport, Report
from redline.model.timeline import ROWS_PER_DECADE, TrialTimeline
from redline.render.svg.chart import Chart, ChartCells, ChartStretch
from redline.render.svg.run_charts import seconds_scale
from redline.report.views import groups

_LEVELS = 9
"""Shades: in a file each is one path."""


def heat_charts(report: Report) -> Iterator[tuple[str, Chart]]:
    """Each heat map by a name such as `SimpleGet.steady.rust.hyper.heat-map`."""
    for group in groups(report):
        for cell in group.cells:
            if timeline := _middle(cell):
                about = f"{cell.server}, {group.title}, {group.load_text}"
                if chart := heat_chart(timeline, about, trials=len(cell.trials)):
                    yield f"{group.scenario}.{group.load}.{cell.server}.heat-map", chart


def _middle(cell: CellReport) -> TrialTimeline | None:
    """The timeline of the used trial with the middle rate."""
    timelines = {timeline.position: timeline for timeline in cell.trial_timelines}
    used = [trial for trial in cell.trials if trial.used and trial.position in timelines]
    by_rate = sorted(used, key=lambda trial: (trial.rate_per_s or 0.0, trial.position))
    return timelines[by_rate[len(by_rate) // 2].position] if by_rate else None


def heat_chart(timeline: TrialTimeline, about: str, *, trials: int = 1) -> Chart | None:
    """Columns by step, rows by response time; None without a request."""
    edges = timeline.load.edges_s
    ends = [_row_ns(column.first + row) for column in timeline.heat for row in (0, len(column.counts)) if column.counts]
    y = time_scale(ends)
    if y is None:
        return None
    most = log(1 + max(count for column in timeline.heat for count in column.counts))
    shades: list[list[tuple[float, float, float, float]]] = [[] for _ in range(_LEVELS)]
    for place, column in enumerate(timeline.heat):
        for row, count in enumerate(column.counts, column.first):
            if count:
                shade = min(_LEVELS - 1, int(log(1 + count) / most * _LEVELS))
                shades[shade].append((edges[place], edges[place + 1], _row_ns(row), _row_ns(row + 1)))
    middle = ", the middle trial" if trials > 1 else ""
    return Chart(
        "Response times over time",
        f"{about}{middle}; darker: more requests",
        seconds_scale(edges[-1]),
        Scale(min(ends), max(ends), tuple(tick for tick in y.ticks if min(ends) <= tick[0] <= max(ends)), log=True),
        "time since the load began",
        "response time",
        (),
        stretches=(ChartStretch(0.0, timeline.measured_from_s, "warm-up"),) if timeline.measured_from_s else (),
        cells=tuple(ChartCells((place + 1) / _LEVELS, tuple(cells)) for place, cells in enumerate(shades) if cells),
    )


def _row_ns(row: int) -> float:
    """The lower edge of a row."""
    return float(10 ** (row / ROWS_PER_DECADE))
