"""What the page's plots are drawn from, as compact JSON that cannot end its script element."""

import json
import math
from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from statistics import median
from typing import NotRequired, TypedDict

from redline.model import CellReport, Moment, Percentile
from redline.report.sections.views import Group

_CERTAIN = 10  # a percentile that fewer requests than this lie above is drawn as a dashed tail
_MOST_INSTANTS = 300
_LEAST_INSTANTS = 12
_MOST_POINTS = 12_000  # of all cells together: what a page can carry, and more than a screen can show


class Curve(TypedDict):
    """Nines (-log10(1 - q)), nanoseconds, and how many leading points rest on enough requests."""

    x: list[float]
    y: list[int]
    certain: int


class Distribution(TypedDict):
    """The curves of one cell; `s` is the server's index. `service` is left out when it is the same as `response`."""

    s: int
    response: Curve
    service: NotRequired[Curve]


class PlotTimeline(TypedDict):
    """One cell over time: middle, lowest and highest trial at each instant of the group's `t`."""

    s: int
    rate: list[list[float | None]]
    p50: list[list[float | None]]
    p99: list[list[float | None]]


class GroupPlots(TypedDict):
    """The plots of one scenario under one load; times in seconds."""

    curves: list[Distribution]
    t: list[float]
    warm: float
    courses: list[PlotTimeline]


def payload(groups: tuple[Group, ...], servers: tuple[str, ...]) -> str:
    """The JSON for all groups. Invalid cells are left out: a curve is a number, too."""
    index = {server: place for place, server in enumerate(servers)}
    ceilings = sorted({index[cell.server] for group in groups for cell in group.cells if cell.role == "ceiling"})
    cells = sum(len(drawn(group)) for group in groups)
    most = max(_LEAST_INSTANTS, min(_MOST_INSTANTS, _MOST_POINTS // max(cells, 1)))
    data = {"servers": servers, "ceilings": ceilings, "groups": [_group(group, index, most) for group in groups]}
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def drawn(group: Group) -> tuple[CellReport, ...]:
    """The group's cells that have curves."""
    return tuple(filter(has_curves, group.cells))


def has_curves(cell: CellReport) -> bool:
    """Whether there are valid percentiles to draw."""
    return cell.valid and bool(cell.response_percentiles)


def _group(group: Group, index: dict[str, int], most: int) -> GroupPlots:
    cells = drawn(group)
    moments = [[m for m in cell.timeline if m.phase != "drain"] for cell in cells]
    starts = _instants(moments, most)
    return {
        "curves": [_distribution(index[cell.server], cell) for cell in cells],
        "t": [round(start, 3) for start in starts],
        "warm": _warmup_end([m for cell in moments for m in cell]),
        "courses": [
            _course(index[cell.server], mine, starts) for cell, mine in zip(cells, moments, strict=True) if mine
        ],
    }


def _distribution(server: int, cell: CellReport) -> Distribution:
    response = _curve(cell.response_percentiles, cell.response.count)
    service = _curve(cell.service_percentiles, cell.response.count)
    if service == response:
        return {"s": server, "response": response}
    return {"s": server, "response": response, "service": service}


def _curve(percentiles: tuple[Percentile, ...], count: int) -> Curve:
    """The largest value (q = 1) stands where one request in `count` lies above."""
    points = [(p.q, p.ns) for p in percentiles if p.ns > 0]
    farthest = math.log10(max(count, 10))
    return {
        "x": [round(farthest if q >= 1 else min(farthest, -math.log10(1 - q)), 4) for q, _ in points],
        "y": [ns for _, ns in points],
        "certain": sum(1 for q, _ in points if count * (1 - q) >= _CERTAIN),
    }


def _instants(moments: list[list[Moment]], most: int) -> list[float]:
    """The instants, in seconds, at which trials are held against each other: each takes what follows it closely.

    Trials of one load have their intervals at the same times, but for some jitter. There are at most about `most`.
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
    """The median distance of two moments of one trial, in seconds."""
    trials: dict[tuple[int, int], list[float]] = defaultdict(list)
    for place, cell in enumerate(moments):
        for moment in cell:
            trials[place, moment.position].append(moment.at_s)
    gaps = [b - a for times in trials.values() for a, b in pairwise(sorted(times))]
    return median(gaps) if gaps else 0.0


def _warmup_end(moments: list[Moment]) -> float:
    """Between the last moment of the warm-up and the first that was measured; 0 without a warm-up."""
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
        "p50": _band([[float(m.p50_ns) for m in there if m.p50_ns > 0] for there in here]),
        "p99": _band([[float(m.p99_ns) for m in there if m.p99_ns > 0] for there in here]),
    }


def _band(values: list[list[float]]) -> list[list[float | None]]:
    """Middle, lowest and highest at each instant; None where no trial has one."""
    return [[_whole(pick(there)) if there else None for there in values] for pick in (median, min, max)]


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
