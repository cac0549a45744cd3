"""The plots of a report's page as files of SVG, from the same data: its lines, and the picture beside the answer."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from redline.model.limits import AnyReport, LimitReport
from redline.report.render.svg.chart import Chart, draw_chart
from redline.report.render.svg.forest_picture import draw_forest
from redline.report.render.svg.heat_charts import heat_charts
from redline.report.render.svg.limit_charts import limit_charts
from redline.report.render.svg.run_charts import run_charts
from redline.report.sections.forest import forest, forest_scale

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._+=,-]+")


def svg_files(report: AnyReport) -> dict[str, bytes]:
    """A file for each plot by its name, in the order of the page; empty where there is nothing valid to draw."""
    if isinstance(report, LimitReport):
        return {name: draw_chart(chart) for name, chart in _named(limit_charts(report))}
    charts = (*run_charts(report), *heat_charts(report))
    files = {name: draw_chart(chart) for name, chart in _named(charts)}
    table, scale = forest(report), forest_scale(report)
    if table is None or scale is None:
        return files
    return {"changes.svg": draw_forest(table, scale, report.run.suite), **files}


def _named(charts: Iterable[tuple[str, Chart]]) -> Iterator[tuple[str, Chart]]:
    """With names that a file can have, no two of which are the same."""
    times = Counter[str]()
    for name, chart in charts:
        plain = _UNNAMEABLE.sub("-", name).strip("-.") or "plot"
        times[plain] += 1
        yield f"{plain}{f'.{times[plain]}' if times[plain] > 1 else ''}.svg", chart
