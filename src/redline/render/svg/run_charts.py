"""The plots of a run as charts: percentiles, and throughput, p50 and p99 over time."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from redline.document.scales import Scale, scale_from_zero, time_scale
from redline.model import Report
from redline.quantities import duration, percent, rate
from redline.render.svg.chart import Chart, ChartArea, ChartLine, ChartMarks, ChartStretch, Point
from redline.report.curves import MORE_TIMES, Curve, Distribution
from redline.report.overlays import overlays
from redline.report.plots import GroupPlots, PlotTimeline, RunPlots, payload
from redline.report.views import groups

SERIES = ("#2462c9", "#c4501b", "#0d8066", "#8944b5", "#946a00", "#bd2f6b", "#33768f", "#656a1c")
CEILING = "#7b818c"
DASHES = ("", "8 5", "2 4")
_TAIL = "2 4"
_TIMES = {"response": "response time", "service": "service time"} | MORE_TIMES
_OVER: tuple[Literal["p50", "p99"], ...] = ("p50", "p99")


def run_charts(report: Report) -> Iterator[tuple[str, Chart]]:
    """Each plot by a name such as `SimpleGet.saturate.response-percentiles`."""
    data, every = payload(report), groups(report)
    names = [(f"{group.scenario}.{group.load}", f"{group.title}, {group.load_text}") for group in every]
    names += [
        (f"{group.scenario}.{group.load}.{overlay.title}", f"{group.title}, {overlay.title}")
        for group in every
        for overlay in overlays(group)
    ]
    for (name, about), plots in zip(names, data["groups"], strict=True):
        for time in _TIMES if plots["curves"] else ():
            if chart := _percentiles(about, plots, data, time):
                yield f"{name}.{time.replace(' ', '-')}-percentiles", chart
        if plots["courses"]:
            yield f"{name}.throughput", _throughput(about, plots, data)
            for over in _OVER:
                if chart := _latency(about, plots, data, over):
                    yield f"{name}.{over}", chart


def _percentiles(about: str, plots: GroupPlots, data: RunPlots, time: str) -> Chart | None:
    curves = [(drawn["s"], curve) for drawn in plots["curves"] if (curve := _times(drawn, time))]
    y = time_scale(ns for _, curve in curves for ns in curve["y"])
    if y is None:
        return None
    farthest = max([1.0, *(x for _, curve in curves for x in curve["x"])])
    median = math.log10(2)
    nines = (median, *(float(place) for place in range(1, math.floor(farthest) + 1)))
    x = Scale(median, farthest * 1.02, tuple((at, percent(1 - 10**-at) if at >= 1 else "50%") for at in nines))
    lines = [line for server, curve in curves for line in _curve(server, curve, data)]
    areas = [ChartArea(_colour(server, data), band) for server, curve in curves if (band := _band(curve))]
    name = _TIMES[time]
    banded = "; band: 95% interval" if areas else ""
    return Chart(
        f"{name[0].upper()}{name[1:]} by percentile",
        f"{about}; dashed where fewer than ten requests lie above{banded}",
        x,
        y,
        "share of requests",
        name,
        tuple(lines),
        tuple(areas),
    )


def _times(drawn: Distribution, time: str) -> Curve | None:
    """The curve of this time; None where the cell has none."""
    if time in ("response", "service"):
        return drawn.get("service", drawn["response"]) if time == "service" else drawn["response"]
    return drawn.get("more", {}).get(time)


def _band(curve: Curve) -> tuple[tuple[float, float, float], ...]:
    """The intervals where there are any, within the axis that the curves have."""
    ends = zip(curve["x"], curve.get("low", ()), curve.get("high", ()), strict=False)
    return tuple((x, float(low), float(high)) for x, low, high in ends if low is not None and high is not None)


def _curve(server: int, curve: Curve, data: RunPlots) -> Iterator[ChartLine]:
    points = [*zip(curve["x"], map(float, curve["y"]), strict=True)]
    certain = curve["certain"]
    yield _series(server, data, (tuple(points[:certain]),))
    if certain < len(points):
        yield ChartLine("", _colour(server, data), (tuple(points[max(0, certain - 1) :]),), _TAIL, 1.5)


def _throughput(about: str, plots: GroupPlots, data: RunPlots) -> Chart:
    highest = max((high for course in plots["courses"] for high in course["rate"][2] if high is not None), default=0.0)
    return _over_time(
        "Throughput over time", about, plots, data, scale_from_zero(highest, rate), lambda course: course["rate"]
    )


def _latency(about: str, plots: GroupPlots, data: RunPlots, over: Literal["p50", "p99"]) -> Chart | None:
    pauses = tuple(
        ChartMarks("", _colour(marks["s"], data), tuple(zip(marks["t"], map(float, marks["ns"]), strict=True)))
        for marks in plots.get("pauses", ())
        if marks["t"]
    )
    values = [ns for course in plots["courses"] for row in course[over] for ns in row if ns is not None]
    highest = [max(y for _, y in marks.points) for marks in pauses]
    y = time_scale([*values, *highest])
    if y is None:
        return None
    title = f"{over} of response time over time"
    return _over_time(title, about, plots, data, y, lambda course: course[over], pauses)


def _over_time(  # noqa: PLR0913, PLR0917 - what, of what, on which scale
    title: str,
    about: str,
    plots: GroupPlots,
    data: RunPlots,
    y: Scale,
    rows: Callable[[PlotTimeline], Sequence[Sequence[float | None]]],
    marks: tuple[ChartMarks, ...] = (),
) -> Chart:
    """The middle trial as a line, and a band from the lowest to the highest."""
    times, lines, areas = plots["t"], [], []
    for course in plots["courses"]:
        middle, low, high = rows(course)
        lines.append(_series(course["s"], data, (_known(times, middle),)))
        known = [(x, a, b) for x, a, b in zip(times, low, high, strict=True) if a is not None and b is not None]
        areas.append(ChartArea(_colour(course["s"], data), tuple(known)))
    warm = (ChartStretch(0.0, plots["warm"], "warm-up"),) if plots["warm"] else ()
    rings = "; rings: the longest pauses" if marks else ""
    return Chart(
        title,
        f"{about}; line: the middle trial, band: lowest to highest{rings}",
        seconds_scale(max(times, default=1.0)),
        y,
        "time since the load began",
        title.removesuffix(" over time"),
        tuple(lines),
        tuple(areas),
        warm,
        marks,
    )


def seconds_scale(last: float) -> Scale:
    """Seconds from zero."""
    return scale_from_zero(last / 1.06, lambda at: duration(at * 1e9) if at else "0 s")


def _known(xs: Sequence[float], ys: Sequence[float | None]) -> tuple[Point, ...]:
    return tuple((x, y) for x, y in zip(xs, ys, strict=True) if y is not None)


def _series(server: int, data: RunPlots, parts: tuple[tuple[Point, ...], ...]) -> ChartLine:
    ceiling = server in data["ceilings"]
    name = f"{data['servers'][server]} (ceiling)" if ceiling else data["servers"][server]
    dash = DASHES[server // len(SERIES) % len(DASHES)]
    return ChartLine(name, _colour(server, data), parts, dash, 1.5 if ceiling else 2.0)


def _colour(server: int, data: RunPlots) -> str:
    return CEILING if server in data["ceilings"] else SERIES[server % len(SERIES)]
