"""The plots of a search as charts: response time against rate, and the overload test over time."""

from collections.abc import Iterator, Sequence

from redline.document.scales import scale_from_zero, time_scale
from redline.model.limits import LimitReport
from redline.quantities import duration, rate
from redline.render.svg.chart import Chart, ChartLine, ChartMarks, ChartRule, ChartStretch, Point
from redline.render.svg.run_charts import CEILING, SERIES, seconds_scale
from redline.report.limit_plots import PERCENTILES, CellPlots, CurvePoints, OverloadTimeline, payload

_COLOURS = (SERIES[2], SERIES[0], SERIES[1], SERIES[3])
_WRONG = "#b23c0a"


def limit_charts(report: LimitReport) -> Iterator[tuple[str, Chart]]:
    """Each plot by a name such as `rust.hyper.SimpleGet.steady.curve`."""
    for cell, plots in zip(report.cells, payload(report.cells)["cells"], strict=True):
        answers = [answer.name for answer in cell.limits if None not in (answer.passed, answer.failed)]
        about = ", ".join(filter(None, (cell.slug, cell.target)))
        if chart := _curve(about, answers, plots):
            yield f"{cell.slug}.curve", chart
        if (course := plots["course"]) is not None and course["t"]:  # none where the server died at once
            yield f"{cell.slug}.overload-rates", _rates(about, course)
            if chart := _times(about, course):
                yield f"{cell.slug}.overload-times", chart


def _curve(about: str, answers: Sequence[str], plots: CellPlots) -> Chart | None:
    kept, lost = plots["kept"], plots["lost"]
    times = [ns for points in (kept, lost) for row in points["y"] for ns in row if ns]
    y = time_scale([*times, *plots["limits"]] if times else ())
    if y is None:
        return None
    bands = plots["bands"]
    farthest = max([*kept["x"], *lost["x"], *(band["high"] for band in bands)])
    lines = [
        ChartLine(name, colour, (_points(kept, place),), dots=True)
        for place, (name, colour) in enumerate(zip(PERCENTILES, _COLOURS, strict=True))
        if _points(kept, place)
    ]
    crosses = [(colour, _points(lost, place)) for place, colour in enumerate(_COLOURS)]
    crosses = [(colour, points) for colour, points in crosses if points]
    marks = (
        ChartMarks("" if place else "did not keep up", colour, points, "cross")
        for place, (colour, points) in enumerate(crosses)
    )
    knee = plots["knee"]
    against, long = ("users",) * 2 if plots["by_users"] else ("answered rate", "answered requests per second")
    return Chart(
        f"Response time against {against}",
        about,
        scale_from_zero(farthest, "{:,.0f}".format if plots["by_users"] else rate),
        y,
        long,
        "response time",
        tuple(lines),
        stretches=tuple(
            ChartStretch(band["low"], band["high"], name, SERIES[band["s"]], 0.27, in_legend=True)
            for band, name in zip(bands, answers, strict=True)
        ),
        marks=tuple(marks),
        rules=(
            *(ChartRule(limit, f"limit {duration(limit)}") for limit in plots["limits"]),
            *(() if knee is None else (ChartRule(knee, f"knee {rate(knee)}", upright=True),)),
        ),
    )


def _points(points: CurvePoints, place: int) -> tuple[Point, ...]:
    return tuple((x, float(ns)) for x, ns in zip(points["x"], points["y"][place], strict=True) if ns)


def _rates(about: str, course: OverloadTimeline) -> Chart:
    named = (("offered", course["asked"], CEILING, "6 4"), ("answered", course["answered"], SERIES[0], ""))
    lines = [
        ChartLine(name, colour, _course(course["t"], values), dash)
        for name, values, colour, dash in (*named, ("errors", course["errors"], _WRONG, ""))
    ]
    highest = max([*course["asked"], *course["answered"], *course["errors"]])
    return Chart(
        "Overload test: requests per second over time",
        about,
        seconds_scale(max(course["t"])),
        scale_from_zero(highest, rate),
        "time since the test began",
        "requests per second",
        tuple(lines),
        stretches=(ChartStretch(*course["over"], "overload"),),
    )


def _times(about: str, course: OverloadTimeline) -> Chart | None:
    y = time_scale(ns for name in ("p50", "p99") for ns in course[name] if ns)
    if y is None:
        return None
    return Chart(
        "Overload test: response time over time",
        about,
        seconds_scale(max(course["t"])),
        y,
        "time since the test began",
        "response time",
        (
            ChartLine("p50", _COLOURS[0], _course(course["t"], course["p50"])),
            ChartLine("p99", _COLOURS[2], _course(course["t"], course["p99"])),
        ),
        stretches=(ChartStretch(*course["over"], "overload"),),
    )


def _course(times: Sequence[float], values: Sequence[float | int | None]) -> tuple[tuple[Point, ...], ...]:
    """The pieces of a line between its gaps."""
    parts: list[list[Point]] = [[]]
    for at, value in zip(times, values, strict=True):
        if value is None:
            parts.append([])
        else:
            parts[-1].append((at, float(value)))
    return tuple(tuple(part) for part in parts if part)
