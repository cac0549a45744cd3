"""The page's plots of a run, and their data: distributions, and the course of trials over time."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import NotRequired, TypedDict

from redline.document.blocks import Choices, Fold, Prose, Section, filled, line
from redline.document.figures import Legend, Plot, Plots
from redline.model import CellReport, Moment, Report
from redline.report.curves import MORE_TIMES, Distribution, distribution, four_digits, has_band, has_curves, more_curves
from redline.report.distributions import distributions_fold, said_of
from redline.report.overlays import Overlay, overlays, percentile_table, values
from redline.report.single import is_single
from redline.report.views import Group, colours, groups

_MOST_INSTANTS = 300
_LEAST_INSTANTS = 12
_MOST_POINTS = 12_000  # of all cells together: as many as a page can carry, and more than a screen can show
_STYLES = 24  # the number of colours and dashes in page.js before they repeat
_NAMED = 8
_TITLES = {
    "percentiles": "Response time by percentile",
    "rate": "Throughput over time",
    "latency": "p99 of response time over time",
}
_TIMES = (("response", "response time"), ("service", "service time"))
_SCALE = ("scale", "axis of times", (("log", "log"), ("linear", "linear")), "log")
_OVER = ("over", "over time", (("p50", "p50"), ("p99", "p99")), "p99")


class PlotTimeline(TypedDict):
    """A cell over time: middle, lowest and highest trial at the instants of the group's `t`."""

    s: int
    rate: list[list[float | None]]
    p50: list[list[float | None]]
    p99: list[list[float | None]]


class PlotPauses(TypedDict):
    """The longest pauses of a cell: when they began, in seconds, and nanoseconds."""

    s: int
    t: list[float]
    ns: list[int]


class GroupPlots(TypedDict):
    """The plots of a scenario under a load; times in seconds."""

    curves: list[Distribution]
    t: list[float]
    warm: float
    courses: list[PlotTimeline]
    pauses: NotRequired[list[PlotPauses]]


class RunPlots(TypedDict):
    """All plots of a run; the index of a server, or of an overlaid value, is its colour."""

    servers: tuple[str, ...]
    ceilings: list[int]
    groups: list[GroupPlots]


def plots_section(report: Report) -> Iterator[Section]:
    """Distributions and timelines of the groups; by collector if a group's JVMs differ in it."""
    series, every, laid = colours(report), groups(report), _laid(report)
    places = iter(range(len(every), len(every) + sum(len(overlays(group)) for group in every)))
    timed = any(cell.timeline for cell in report.cells)
    text = (
        "Over time, a line is the middle trial and its band reaches from the lowest to the highest; the warm-up is "
        "shaded and is in no result. "
        if timed
        else ""
    )
    text += "A percentile curve is dashed where fewer than ten requests lie above it. "
    text += _bands_text(report)
    if any(cell.memory and cell.memory.longest for cell in report.cells):
        text += " Rings are the longest pauses of a server, at their length."
    drawings = (
        filled(
            *(_overlay(next(places), overlay, laid) for overlay in overlays(group)),
            _plots(place, group, series),
            _undrawn(group),
            said_of(report, group),
        )
        for place, group in enumerate(every)
    )
    if is_single(report):  # its head says what was loaded
        shown = [block for blocks in drawings for block in blocks]
    else:
        is_open = None if len(every) == 1 else False
        shown = [Fold(group.heading(), tuple(blocks), is_open) for group, blocks in zip(every, drawings, strict=True)]
    known = {name for cell in report.cells for name in more_curves(cell)}
    times = (*_TIMES, *((name, title.removeprefix("time ")) for name, title in MORE_TIMES.items() if name in known))
    choices = (
        ("time", "percentiles of", times, "response"),
        _SCALE,
        *((_OVER,) if any(map(_has_p99, report.cells)) else ()),
    )
    blocks = filled(*shown, distributions_fold(report), Prose.of([text], "dim"))
    yield Section("Plots", tuple(blocks), anchor="plots", aside=Choices(choices))


def _bands_text(report: Report) -> str:
    """What the bands of percentiles are, and which cells have none."""
    cells = list(filter(has_curves, report.cells))
    without = [cell for cell in cells if not has_band(cell)]
    if cells and len(without) == len(cells):
        return "Percentiles have no bands: an interval needs two trials or starts."
    text = "Its band is the 95% interval of each percentile, from the differences between trials or starts, as far as "
    text += "each start has enough requests."
    if without:
        names = ", ".join(cell.slug for cell in without) if len(without) <= _NAMED else f"{len(without)} cells"
        text += f" Without a band, because an interval needs two trials or starts: {names}."
    return text


def _plots(place: int, group: Group, series: dict[str, int]) -> Plots | None:
    cells = drawn(group)
    names = ", ".join(cell.server for cell in cells) if len(cells) <= _NAMED else f"{len(cells)} servers"
    legend = (
        Legend(f"{cell.server} (ceiling)" if cell.role == "ceiling" else cell.server, series[cell.server], cell.role)
        for cell in cells
    )
    label = f"{group.title}: lines for {names}"
    known = {
        "percentiles": share_one_plot(group),
        "rate": any(cell.timeline for cell in cells),
        "latency": any(moment.p50_ns for cell in cells for moment in cell.timeline),
    }
    kinds = {kind: title for kind, title in _TITLES.items() if known[kind]}
    if "latency" in kinds and not any(map(_has_p99, cells)):
        kinds["latency"] = kinds["latency"].replace("p99", "p50")
    plots = (Plot(kind, title, f"{title}, {label}") for kind, title in kinds.items())
    return Plots(place, tuple(plots), tuple(legend) if len(series) > 1 else (), toggles=True) if cells else None


def _has_p99(cell: CellReport) -> bool:
    """Whether any interval has enough requests for a p99."""
    return any(moment.p99_ns for moment in cell.timeline)


def _laid(report: Report) -> dict[str, int]:
    """The colours of overlaid values, after those of the servers; they are drawn like the first servers."""
    first = -(-len(colours(report)) // _STYLES) * _STYLES
    return {value: first + place for place, value in enumerate(values(report))}


def _overlay(place: int, overlay: Overlay, series: dict[str, int]) -> Fold:
    """A plot with a line per collector, and the percentiles as a table."""
    legend = (Legend(value, series[value]) for value in overlay.cells)
    title = f"{overlay.title}: {_TITLES['percentiles'].lower()}"
    plot = Plot("percentiles", title, f"{title}: lines for {', '.join(overlay.cells)}")
    plots = Plots(place, (plot,), tuple(legend), toggles=True)
    return Fold(line((overlay.title, "strong")), (plots, percentile_table(overlay)))


def share_one_plot(group: Group) -> bool:
    """Whether the curves of all servers are drawn in one plot: not if all are in plots by collector."""
    laid = {cell.cell_id for overlay in overlays(group) for cell in overlay.cells.values()}
    return not laid.issuperset(cell.cell_id for cell in group.cells if has_curves(cell))


def _undrawn(group: Group) -> Prose:
    missing, tails = [cell for cell in group.cells if not has_curves(cell)], list(filter(_is_cut, group.cells))
    said = []
    if nothing := [cell.server for cell in missing if not cell.shows_numbers]:
        said.append(f"Not drawn, because there is no valid measurement: {', '.join(nothing)}.")
    if untimed := [cell.server for cell in missing if cell.shows_numbers]:
        said.append(f"Without a curve, because its response times are not known, or only bounds: {', '.join(untimed)}.")
    if tails:
        names = ", ".join(cell.server for cell in tails)
        said.append(f"The curve has only the percentiles that are known, not those that are bounds: {names}.")
    return Prose.of(said, "dim")


def _is_cut(cell: CellReport) -> bool:
    return has_curves(cell) and any(point.bound for point in cell.response_percentiles)


def payload(report: Report) -> RunPlots:
    """The data of all plots. What is not known is left out: a curve is a number, too."""
    every, index = groups(report), colours(report)
    ceilings = sorted({index[cell.server] for cell in report.cells if cell.role == "ceiling"})
    cells = sum(len(drawn(group)) for group in every)
    most = max(_LEAST_INSTANTS, min(_MOST_INSTANTS, _MOST_POINTS // max(cells, 1)))
    laid = _laid(report)
    own = [_group(group, index, most) for group in every]
    by_value: list[GroupPlots] = []
    for overlay in (overlay for group in every for overlay in overlays(group)):
        curves = [distribution(laid[value], cell) for value, cell in overlay.cells.items()]
        by_value.append({"curves": curves, "t": [], "warm": 0.0, "courses": []})
    gap = [""] * (min(laid.values(), default=len(index)) - len(index))
    return {"servers": (*index, *gap, *laid), "ceilings": ceilings, "groups": [*own, *by_value]}


def drawn_curves(report: Report) -> list[list[str]]:
    """The ids of the cells whose curves the plots of groups have, in their order, by group."""
    return [[cell.cell_id for cell in _curved(group)] for group in groups(report)]


def drawn(group: Group) -> tuple[CellReport, ...]:
    """The group's cells that have curves, or a course over time."""
    return tuple(cell for cell in group.cells if has_curves(cell) or cell.timeline)


def _curved(group: Group) -> tuple[CellReport, ...]:
    """Those whose curves the group's plot has."""
    return tuple(filter(has_curves, group.cells)) if share_one_plot(group) else ()


def _group(group: Group, index: dict[str, int], most: int) -> GroupPlots:
    cells = drawn(group)
    moments = [[m for m in cell.timeline if m.phase != "drain"] for cell in cells]
    starts = _instants(moments, most)
    pauses: list[PlotPauses] = [
        {
            "s": index[cell.server],
            "t": [round(mark.at_s, 3) for mark in cell.memory.longest],
            "ns": [mark.duration_ns for mark in cell.memory.longest],
        }
        for cell in cells
        if cell.memory
    ]
    plots: GroupPlots = {
        "curves": [distribution(index[cell.server], cell) for cell in _curved(group)],
        "t": [round(start, 3) for start in starts],
        "warm": _warmup_end([m for cell in moments for m in cell]),
        "courses": [
            _course(index[cell.server], mine, starts) for cell, mine in zip(cells, moments, strict=True) if mine
        ],
    }
    return {**plots, "pauses": pauses} if pauses else plots


def _instants(moments: list[list[Moment]], most: int) -> list[float]:
    """Return the instants, in seconds, at which trials are compared; close moments share an instant.

    Trials of a load have their intervals at the same times, with some jitter. There are at most about `most`.
    """
    times = sorted(m.at_s for cell in moments for m in cell)
    if not times:
        return []
    width = max(_usual_gap(moments) / 4, (times[-1] - times[0]) / most)
    starts = [times[0]]
    for at_s in times:
        if at_s - starts[-1] > width:
            starts.append(at_s)
    return starts


def _usual_gap(moments: list[list[Moment]]) -> float:
    """The median distance between successive moments of a trial, in seconds."""
    trials: dict[tuple[int, int], list[float]] = defaultdict(list)
    for place, cell in enumerate(moments):
        for moment in cell:
            trials[place, moment.position].append(moment.at_s)
    gaps = [b - a for times in trials.values() for a, b in pairwise(sorted(times))]
    return median(gaps) if gaps else 0.0


def _warmup_end(moments: list[Moment]) -> float:
    """A time between the last moment of the warm-up and the first measured moment; 0 without a warm-up."""
    warm = [m.at_s for m in moments if m.phase == "warmup"]
    measured = [m.at_s for m in moments if m.phase == "measure"]
    return round((max(warm) + min(measured)) / 2, 3) if warm and measured else 0.0


def _course(server: int, moments: list[Moment], starts: list[float]) -> PlotTimeline:
    here: list[list[Moment]] = [[] for _ in starts]
    for moment in moments:
        here[bisect_right(starts, moment.at_s) - 1].append(moment)
    return {
        "s": server,
        "rate": _band([[float(round(m.rate_per_s)) for m in there] for there in here]),
        "p50": _band([[float(four_digits(m.p50_ns)) for m in there if m.p50_ns > 0] for there in here]),
        "p99": _band([[float(four_digits(m.p99_ns)) for m in there if m.p99_ns > 0] for there in here]),
    }


def _band(values: list[list[float]]) -> list[list[float | None]]:
    """Middle, lowest and highest at the instants; None if no trial has a value."""
    return [[_whole(pick(there)) if there else None for there in values] for pick in (median, min, max)]


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
