"""The plots of a report's page as files of SVG, from the same data: lines, histograms, flame graphs and the ratios."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from redline.model.limits import AnyReport, LimitReport
from redline.render.svg.bar_pictures import bar_files
from redline.render.svg.chart import draw_chart
from redline.render.svg.distribution_charts import distribution_charts
from redline.render.svg.flame_picture import difference_files, flame_files
from redline.render.svg.forest_picture import draw_forest
from redline.render.svg.heat_charts import heat_charts
from redline.render.svg.limit_charts import limit_charts
from redline.render.svg.run_charts import run_charts
from redline.report.forest import forest

_LONGEST = 200
"""Characters of a name, below the 255 bytes that file systems allow."""
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._+=,-]+")


def svg_files(report: AnyReport) -> dict[str, bytes]:
    """A file for each plot by its name, in the order of the page; empty where there is nothing valid to draw."""
    if isinstance(report, LimitReport):
        return dict(_with_file_names((name, draw_chart(chart)) for name, chart in limit_charts(report)))
    charts = (
        (name, draw_chart(chart))
        for charts_of in (run_charts, heat_charts, distribution_charts)
        for name, chart in charts_of(report)
    )
    files = dict(_with_file_names((*charts, *bar_files(report), *flame_files(report), *difference_files(report))))
    tables = forest(report)
    return {"changes.svg": draw_forest(tables, report.run.suite), **files} if tables else files


def _with_file_names(pictures: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """With names that a file can have, no two of which are the same."""
    times = Counter[str]()
    for name, content in pictures:
        plain = _UNNAMEABLE.sub("-", name)[:_LONGEST].strip("-.") or "plot"
        times[plain] += 1
        yield f"{plain}{f'.{times[plain]}' if times[plain] > 1 else ''}.svg", content
