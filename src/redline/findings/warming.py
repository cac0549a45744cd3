"""Whether a server is warm, while it warms up and afterwards: its course from the first request on. Pure.

`docs/concepts/warm-up.md` teaches it. Source of the method and of the four kinds: Barrett, Bolz-Tereick, Killick, Mount
and Tratt, "Virtual Machine Warmup Blows Hot and Cold", OOPSLA 2017.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from redline.findings.changes import (
    FEWEST_POINTS,
    HASTY_PENALTY,
    PENALTY,
    Floats,
    Segment,
    clipped,
    noise,
    segments,
)
from redline.findings.rules import TREND_P
from redline.findings.steadiness import FEWEST_SAMPLES, trend
from redline.model import Cell, Closed, Interval, Recording, WarmUp

SAME = 0.05
"""Levels that differ by less are one: a twentieth is what a virtual machine wanders by from second to second."""

SAME_NOISE = 2.0
"""So many standard deviations of the noise from interval to interval are one level as well."""

LEAST_S = 5.0
"""A level that has lasted for less is not called steady: compilers are quiet for some seconds at a time."""

LEAST_SHARE = 2 / 3
"""Of the time that has passed: a level has to last twice as long as all before it. Compilers come in tiers: of five
JVMs that were recorded one rested for nine seconds, from its sixth on, at a tenth of its later speed."""

LEAST_POINTS = 8
"""Of a level that is called steady. A trend is not seen in fewer than 7."""

HASTY_CHANCE = 0.05
"""How often what is steady may be taken for what rises, while it warms up: that costs a moment and not a trial."""

BLIP = 0.1
"""Of the steady stretch after it: a disturbance that lasted no longer, and left all as it was, is passed over."""


KEPT_UP = 0.95
"""Of what falls due. A server that is given more than it can do is steady as well, once its requests are given up at
their timeout: that is no warmth. With less than this, `rate-missed` makes a trial invalid."""

JUDGED_EVERY_NS = 400_000_000
"""While it warms up, and not sooner: so after every interval of half a second, and not after all that are shorter."""


@dataclass(frozen=True)
class Course:
    """How fast a server was, from the first request on: the log of its rate, or of 1 / p50, and when points ended.

    `kept_up` is the share that was answered in each of what fell due in it; None where that says nothing.
    """

    ends_ns: tuple[int, ...]
    speeds: Floats
    kept_up: Floats | None = None

    @property
    def n(self) -> int:
        """How many points."""
        return len(self.ends_ns)

    def start_ns(self, point: int) -> int:
        """When a point began."""
        return self.ends_ns[point - 1] if point else 0


@dataclass(frozen=True)
class Stretch:
    """The last level of a course: from which point on it lasts, and how fast the server is then.

    `best` is the fastest level before it, `tolerance` how far apart (of logs) two levels may be and still be one, and
    `moves` says whether it rises or falls all the time.
    """

    start: int
    level: float
    best: float
    tolerance: float
    moves: bool


def judged_by_rate(cell: Cell) -> bool:
    """Whether speed shows in the rate: users who ask at once. Otherwise the load sets the rate, and the p50 tells."""
    shape = cell.load.shape
    return isinstance(shape, Closed) and shape.think is None and shape.pace_per_s is None


class CourseSoFar:
    """A course that grows interval by interval; each is looked at once."""

    def __init__(self, cell: Cell) -> None:
        self._by_rate = judged_by_rate(cell)
        self._waiting: list[Interval] = []
        self._ends: list[int] = []
        self._speeds: list[float] = []
        self._kept_up: list[float] = []

    def add(self, interval: Interval) -> None:
        """One more; intervals of the drain are no part of it.

        Where the p50 tells, intervals run together until they have enough requests for one.
        """
        if interval.phase == "drain" or interval.end_ns <= interval.start_ns:
            return
        self._waiting.append(interval)
        if self._by_rate or sum(each.counts.outcomes.total for each in self._waiting) >= FEWEST_SAMPLES:
            self._ends.append(interval.end_ns)
            self._speeds.append(_speed(self._waiting, by_rate=self._by_rate))
            self._kept_up.append(_kept_up(self._waiting))
            self._waiting = []

    def course(self) -> Course:
        """As far as it is known."""
        return Course(tuple(self._ends), np.array(self._speeds), None if self._by_rate else np.array(self._kept_up))


def course_of(cell: Cell, intervals: Iterable[Interval]) -> Course:
    """The course of a trial so far."""
    growing = CourseSoFar(cell)
    for interval in intervals:
        growing.add(interval)
    return growing.course()


def last_stretch(course: Course, *, hasty: bool = False) -> Stretch:
    """The last level of a course of one point or more: back through all that is of one level with its end.

    Where it is `hasty`, changes and trends are taken for real more readily.
    """
    values = clipped(course.speeds)
    found = segments(values, HASTY_PENALTY if hasty else PENALTY)
    tolerance = max(math.log1p(SAME), SAME_NOISE * noise(values))
    stretch, before = _joined(found, tolerance)
    moves = abs(trend(list(np.exp(values[stretch.start :])), HASTY_CHANCE if hasty else TREND_P)) > SAME
    best = max((segment.level for segment in before), default=stretch.level)
    return Stretch(stretch.start, stretch.level, best, tolerance, moves)


def is_warm(course: Course) -> bool:
    """Whether, by what has been seen so far, the measurement may begin."""
    if course.n < LEAST_POINTS or course.ends_ns[-1] < LEAST_S * 1e9:
        return False
    last = last_stretch(course, hasty=True)
    newest = float(np.median(course.speeds[-FEWEST_POINTS:]))
    if last.moves or abs(newest - last.level) > last.tolerance:
        return False
    if course.kept_up is not None and float(np.median(course.kept_up[last.start :])) < KEPT_UP:
        return False
    lasted_ns = course.ends_ns[-1] - course.start_ns(last.start)
    long_enough = lasted_ns >= max(LEAST_S * 1e9, LEAST_SHARE * course.ends_ns[-1])
    return long_enough and course.n - last.start >= LEAST_POINTS


def warm_up(cell: Cell, recording: Recording) -> WarmUp | None:
    """What a trial was like, its measurement included; None when it was too short, was cut, or changes by design."""
    traffic = recording.traffic
    if traffic is None or cell.load.changes or traffic.ended != "complete":
        return None
    course = course_of(cell, traffic.intervals)
    if course.n < 2 * LEAST_POINTS:
        return None
    last = last_stretch(course)
    from_ns, measured_ns = course.start_ns(last.start), traffic.measure_start_ns
    if last.moves or from_ns > measured_ns:
        return WarmUp(kind="never steady", measured_from_ns=measured_ns)
    if last.best - last.level > last.tolerance:
        lost = -math.expm1(last.level - last.best)
        return WarmUp(kind="slowing down", steady_from_ns=from_ns, measured_from_ns=measured_ns, lost=lost)
    kind = "flat" if last.start == 0 else "warmed up"
    return WarmUp.model_validate({"kind": kind, "steady_from_ns": from_ns, "measured_from_ns": measured_ns})


class Watch:
    """Follows a warm-up interval by interval, until it says that the measurement may begin.

    Judging takes the longer the more intervals there are, so where they are short it is not done after each.
    """

    def __init__(self, cell: Cell) -> None:
        self._seen = CourseSoFar(cell)
        self._judge_from_ns = round(LEAST_S * 1e9)

    def is_warm(self, interval: Interval) -> bool:
        """Whether it is warm now, after one more interval of the warm-up."""
        self._seen.add(interval)
        if interval.end_ns < self._judge_from_ns:
            return False
        self._judge_from_ns = interval.end_ns + JUDGED_EVERY_NS
        return is_warm(self._seen.course())


def _speed(intervals: list[Interval], *, by_rate: bool) -> float:
    if by_rate:
        answered = sum(each.counts.completed for each in intervals)
        # Half an answer where there was none, which has no logarithm.
        return math.log(max(answered, 0.5) / (intervals[-1].end_ns - intervals[0].start_ns))
    response = type(intervals[0].response).merged(each.response for each in intervals)
    return -math.log(max(response.quantile_ns(0.5), 1))


def _kept_up(intervals: list[Interval]) -> float:
    due = sum(each.counts.due for each in intervals)
    return sum(each.counts.completed for each in intervals) / due if due else 1.0


def _joined(found: list[Segment], tolerance: float) -> tuple[Segment, list[Segment]]:
    """The last level with all before it that is the same, short disturbances between included; and what is left."""
    left = list(found)
    last = left.pop()
    while left:
        same = abs(left[-1].level - last.level) <= tolerance
        if not same and (len(left) < 2 or left[-1].n > BLIP * last.n):
            break
        if not same:
            if abs(left[-2].level - last.level) > tolerance:
                break
            left.pop()
        before = left.pop()
        level = (before.level * before.n + last.level * last.n) / (before.n + last.n)
        last = Segment(before.start, last.end, level)
    return last, left
