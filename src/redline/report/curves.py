"""The curves of percentiles that the page and the files of SVG draw, with the bands of their intervals."""

import math
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from redline.model import BandedPercentile, CellReport, Percentile

_FIRST = 0.5
"""Curves begin at the median: what is below it says little, and would take a tenth of the axis."""
MORE_TIMES = {
    "first message": "time to the first message",
    "between messages": "time between messages",
    "to server": "time to the server",
    "from server": "time from the server",
}
"""Times beside the response and the service time, in the order of choices, and their names in titles."""
_CERTAIN = 10
"""A percentile with fewer requests than this above it is drawn as a dashed tail."""


class Curve(TypedDict):
    """Nines (-log10(1 - q)), nanoseconds to four digits, and how many leading points rest on enough requests.

    `low` and `high` are the ends of the intervals, None where a point has none; left out if none has any.
    """

    x: list[float]
    y: list[int]
    certain: int
    low: NotRequired[list[int | None]]
    high: NotRequired[list[int | None]]


class Distribution(TypedDict):
    """The curves of a cell; `s` is the server's index. `service` is left out when it is the same as `response`.

    `more` are its other times by name: one-way times, and those of messages.
    """

    s: int
    response: Curve
    service: NotRequired[Curve]
    more: NotRequired[dict[str, Curve]]


def has_curves(cell: CellReport) -> bool:
    """Whether there are percentiles to draw: a bound is not drawn, nor what is below the median."""
    return cell.shows_numbers and any(not point.bound and point.q >= _FIRST for point in cell.response_percentiles)


def has_band(cell: CellReport) -> bool:
    """Whether any percentile of the response time has an interval."""
    return any(point.low_ns is not None for point in cell.response_curve)


def distribution(server: int, cell: CellReport) -> Distribution:
    """All curves of a cell."""
    count = cell.response.count or cell.counts.due
    response = _curve(cell.response_curve, cell.response_percentiles, count)
    service = _curve(
        cell.service_curve or (cell.response_curve if cell.service_percentiles == cell.response_percentiles else ()),
        cell.service_percentiles,
        count,
    )
    made: Distribution = {"s": server, "response": response}
    if service != response:
        made["service"] = service
    if more := more_curves(cell):
        made["more"] = more
    return made


def more_curves(cell: CellReport) -> dict[str, Curve]:
    """The curves of one-way times and of messages, by the names in `MORE_TIMES`.

    Times below 0 have no place on their logarithmic axis.
    """
    if not cell.shows_numbers:
        return {}
    times: dict[str, tuple[Sequence[Percentile], int]] = {
        time.name: (time.points, time.count) for time in cell.other_times if time.is_one_way
    }
    if (streams := cell.streams) is not None:
        times["first message"] = streams.first_event, streams.begun
        times["between messages"] = streams.gaps, max(0, streams.events_of_begun - streams.begun)
    drawn = {
        name: any(p.ns > 0 and p.q >= _FIRST and not p.bound for p in points) for name, (points, _) in times.items()
    }
    return {name: _curve((), *times[name]) for name in MORE_TIMES if drawn.get(name)}


def _curve(curve: Sequence[BandedPercentile], percentiles: Sequence[Percentile], count: int) -> Curve:
    """The finer `curve` if there is one, and what `percentiles` has beyond its end.

    Place the largest value (q = 1) where a single request of `count` lies above.
    """
    last = curve[-1].q if curve else -1.0
    every = [
        *curve,
        *(BandedPercentile(q=point.q, ns=point.ns) for point in percentiles if point.q > last and not point.bound),
    ]
    points = [point for point in every if point.ns > 0 and point.q >= _FIRST]
    farthest = math.log10(max(count, 10))
    made: Curve = {
        "x": [round(farthest if p.q >= 1 else min(farthest, -math.log10(1 - p.q)), 4) for p in points],
        "y": [four_digits(point.ns) for point in points],
        "certain": sum(1 for point in points if round(count * (1 - point.q), 6) >= _CERTAIN),
    }
    if any(point.low_ns is not None for point in points):
        made["low"] = [None if point.low_ns is None else four_digits(point.low_ns) for point in points]
        made["high"] = [None if point.high_ns is None else four_digits(point.high_ns) for point in points]
    return made


def four_digits(ns: int) -> int:
    """The time as a plot shows it: a pixel is coarser, and a page stays small."""
    return round(ns, min(0, 4 - len(str(abs(ns)))))
