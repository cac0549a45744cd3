"""The data of the plots of a limit."""

from collections.abc import Sequence
from typing import TypedDict

from redline.errors import WrongValueError
from redline.model.limits import Beyond, BeyondMoment, CellLimit, CurvePoint, LimitAnswer
from redline.suite import parse_objectives

PERCENTILES = ("p50", "p90", "p99", "p99.9")
_FIELDS = ("p50_ns", "p90_ns", "p99_ns", "p999_ns")
_NUDGE = 1e-9


class CurvePoints(TypedDict):
    """Points by ascending answered rate, in requests per second, or users; and known percentiles in nanoseconds."""

    x: list[float]
    y: list[list[int | None]]


class Band(TypedDict):
    """An answer: between these rates a set of objectives stops being met; `s` is its colour."""

    s: int
    low: float
    high: float


class OverloadTimeline(TypedDict):
    """The overload test: seconds, rates per second, nanoseconds, and when the overload began and ended."""

    t: list[float]
    asked: list[float]
    answered: list[float]
    errors: list[float]
    p50: list[int | None]
    p99: list[int | None]
    over: tuple[float, float]


class CellPlots(TypedDict):
    """A cell: the rates that it kept up with, the other rates, and the marks among them."""

    kept: CurvePoints
    lost: CurvePoints
    by_users: bool
    bands: list[Band]
    limits: list[float]
    knee: float | None
    course: OverloadTimeline | None


class LimitPlots(TypedDict):
    """The plots of all cells of a search."""

    cells: list[CellPlots]


def payload(cells: Sequence[CellLimit]) -> LimitPlots:
    """The data of all plots."""
    return {"cells": [_cell(cell) for cell in cells]}


def known_percentiles(cell: CellLimit) -> tuple[str, ...]:
    """The percentiles that some point of the curve has."""
    columns = zip(PERCENTILES, zip(*map(_times, cell.curve), strict=True), strict=False)
    return tuple(name for name, times in columns if any(times))


def band_colour(place: int) -> int:
    """The colour of an answer by its place; other than the colours of the first percentiles."""
    return (place + 4) % 8


def _cell(cell: CellLimit) -> CellPlots:
    return {
        "kept": _points([point for point in cell.curve if not point.overloaded]),
        "lost": _points([point for point in cell.curve if point.overloaded]),
        "by_users": cell.by_users,
        "bands": [band for place, answer in enumerate(cell.limits) if (band := _band(place, answer)) is not None],
        "limits": sorted({limit for answer in cell.limits for limit in time_limits(answer)}),
        "knee": None if cell.knee is None else round(cell.knee.rate_per_s, 3),
        "course": None if cell.beyond is None else _overload_timeline(cell.beyond),
    }


def _points(points: Sequence[CurvePoint]) -> CurvePoints:
    """Return points with distinct, rising x, as a plot needs."""
    x: list[float] = []
    rising = sorted(points, key=lambda point: (point.users or 0, point.answered_per_s))
    for point in rising:
        least = x[-1] * (1 + _NUDGE) if x else 0.0
        x.append(max(point.answered_per_s if point.users is None else point.users, least))
    times = [_times(point) for point in rising]
    return {"x": x, "y": [list(column) for column in zip(*times, strict=True)] if times else [[] for _ in _FIELDS]}


def _times(point: CurvePoint) -> list[int | None]:
    return [getattr(point, name) or None for name in _FIELDS]


def _band(place: int, answer: LimitAnswer) -> Band | None:
    if answer.passed is None or answer.failed is None:
        return None
    return {"s": band_colour(place), "low": answer.passed, "high": answer.failed}


def time_limits(answer: LimitAnswer) -> list[float]:
    """The times that must not be exceeded, in nanoseconds; conditions written by later versions may be unknown."""
    limits: list[float] = []
    for text in answer.conditions:
        try:
            limits.extend(objective.limit for objective in parse_objectives(text) if objective.metric in PERCENTILES)
        except WrongValueError:
            continue
    return limits


def _overload_timeline(beyond: Beyond) -> OverloadTimeline:
    moments: Sequence[BeyondMoment] = beyond.course
    return {
        "t": [moment.at_s for moment in moments],
        "asked": [round(moment.asked_per_s, 1) for moment in moments],
        "answered": [round(moment.answered_per_s, 1) for moment in moments],
        "errors": [round(moment.errors_per_s, 1) for moment in moments],
        "p50": [moment.p50_ns or None for moment in moments],
        "p99": [moment.p99_ns or None for moment in moments],
        "over": (beyond.before_s, beyond.before_s + beyond.overload_s),
    }
