"""What the page's plots are drawn from, as compact JSON that cannot end its script element."""

import json
import math
from collections import defaultdict
from statistics import median
from typing import TypedDict

from redline.model import CellReport, Moment, Percentile
from redline.report.renderers.views import Group

_CERTAIN = 10  # a percentile that fewer requests than this lie above is drawn as a dashed tail


class Curve(TypedDict):
    """Nines (-log10(1 - q)), nanoseconds, and how many leading points rest on enough requests."""

    x: list[float]
    y: list[int]
    certain: int


class Distribution(TypedDict):
    """The curves of one cell; `s` is the server's index."""

    s: int
    response: Curve
    service: Curve


class Course(TypedDict):
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
    courses: list[Course]


def payload(groups: tuple[Group, ...], servers: tuple[str, ...]) -> str:
    """The JSON for all groups. Invalid cells are left out: a curve is a number, too."""
    index = {server: place for place, server in enumerate(servers)}
    ceilings = sorted({index[cell.server] for group in groups for cell in group.cells if cell.role == "ceiling"})
    data = {"servers": servers, "ceilings": ceilings, "groups": [_group(group, index) for group in groups]}
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def drawn(group: Group) -> tuple[CellReport, ...]:
    """The group's cells that have curves."""
    return tuple(cell for cell in group.cells if cell.valid and cell.response_percentiles)


def _group(group: Group, index: dict[str, int]) -> GroupPlots:
    cells = drawn(group)
    moments = [[m for m in cell.timeline if m.phase != "drain"] for cell in cells]
    step = _step(moments)
    ticks = sorted({round(m.at_s / step) for cell in moments for m in cell})
    measured = [m.at_s for cell in moments for m in cell if m.phase == "measure"]
    return {
        "curves": [
            {
                "s": index[cell.server],
                "response": _curve(cell.response_percentiles, cell.response.count),
                "service": _curve(cell.service_percentiles, cell.response.count),
            }
            for cell in cells
        ],
        "t": [round(tick * step, 4) for tick in ticks],
        "warm": round(min(measured), 4) if measured else 0.0,
        "courses": [
            _course(index[cell.server], mine, ticks, step) for cell, mine in zip(cells, moments, strict=True) if mine
        ],
    }


def _curve(percentiles: tuple[Percentile, ...], count: int) -> Curve:
    """The largest value (q = 1) stands where one request in `count` lies above."""
    points = [(p.q, p.ns) for p in percentiles if p.ns > 0]
    farthest = math.log10(max(count, 10))
    return {
        "x": [round(farthest if q >= 1 else min(farthest, -math.log10(1 - q)), 4) for q, _ in points],
        "y": [ns for _, ns in points],
        "certain": sum(1 for q, _ in points if count * (1 - q) >= _CERTAIN),
    }


def _step(moments: list[list[Moment]]) -> float:
    """The usual distance of two moments of one trial, in seconds."""
    times: dict[tuple[int, int], list[float]] = defaultdict(list)
    for place, cell in enumerate(moments):
        for moment in cell:
            times[place, moment.position].append(moment.at_s)
    gaps = [b - a for trial in times.values() for a, b in zip(sorted(trial), sorted(trial)[1:], strict=False) if b > a]
    return median(gaps) if gaps else 1.0


def _course(server: int, moments: list[Moment], ticks: list[int], step: float) -> Course:
    at: dict[int, list[Moment]] = defaultdict(list)
    for moment in moments:
        at[round(moment.at_s / step)].append(moment)
    here = [at.get(tick, []) for tick in ticks]
    return {
        "s": server,
        "rate": _band([[round(m.rate_per_s, 1) for m in there] for there in here]),
        "p50": _band([[float(m.p50_ns) for m in there if m.p50_ns > 0] for there in here]),
        "p99": _band([[float(m.p99_ns) for m in there if m.p99_ns > 0] for there in here]),
    }


def _band(values: list[list[float]]) -> list[list[float | None]]:
    """Middle, lowest and highest at each instant; None where no trial has one."""
    return [[_whole(pick(there)) if there else None for there in values] for pick in (median, min, max)]


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
