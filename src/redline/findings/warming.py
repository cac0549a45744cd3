"""Whether a server is warm, while it warms up and afterwards: its speed from the first request on. Pure.

`docs/concepts/warm-up.md` explains it. Source of the method and of four of the kinds: Barrett, Bolz-Tereick, Killick,
Mount and Tratt, "Virtual Machine Warmup Blows Hot and Cold", OOPSLA 2017.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from redline.findings.rules import TREND_P
from redline.lazily import dataclass
from redline.model import Cell, Histogram, Interval, Traffic, WarmUp
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import Plateau, clipped, level_ends, median, noise, trend

FEWEST_POINTS = 3
"""Points of the shortest level: anything shorter is an outlier, and clipped."""

FEWEST_SAMPLES = 20
"""Requests in an interval below which its p50 says little."""

PENALTY = 15.0
"""The penalty per change over log n, in squared noise, as Barrett et al. chose for similar series. White noise needs 2
(Yao 1988), but neighbouring intervals of a server are alike, and such noise looks like steps: see
`tests/studies/warming.py`."""

HASTY_PENALTY = 5.0
"""The same while a server warms up: a false change costs a moment, a missed change a trial."""

SAME = 0.05
"""Levels that differ by less are the same: a virtual machine wanders by a twentieth from second to second."""

SAME_NOISE = 2.0
"""Levels within this many standard deviations of the noise between intervals are the same as well."""

LEAST_S = 5.0
"""A shorter level is not steady: compilers are quiet for some seconds at a time."""

LEAST_SHARE = 2 / 3
"""Share of the time that has passed: a level has to last twice as long as all before it. Compilers come in tiers: one
of five recorded JVMs rested for nine seconds, from its sixth on, at a tenth of its later speed."""

LEAST_POINTS = 8
"""Points of the shortest level that is called steady. A trend is not seen in fewer than 7."""

HASTY_CHANCE = 0.05
"""Chance of taking noise for a trend while the server warms up: that costs a moment, not a trial."""

BLIP = 0.1
"""Share of the steady stretch after it: a shorter disturbance that left all as it was is ignored."""

KEPT_UP = 0.95
"""Share of what falls due. An overloaded server is steady too, once its requests are given up at their timeout, but it
is not warm. With less than this, `rate-missed` makes a trial invalid."""

COMPILING = 0.1
"""Cores that the compilers of a warm virtual machine use or wait for, at most, over the last `LEAST_S`. Those of
light-4j used and waited for 1 to 2 cores for 29 to 38 seconds on a shared core, and for less than 0.1 from then on."""

JUDGED_EVERY_NS = 400_000_000
"""The least time between two judgements, because their cost grows with the number of intervals."""


@dataclass(frozen=True)
class Timeline:
    """How fast a server was, from the first request on: the log of its rate, or of 1 / p50, and when points ended.

    `kept_up` is the answered share of due requests by point; None if it says nothing.
    """

    ends_ns: tuple[int, ...]
    speeds: Floats
    kept_up: Floats | None = None

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.ends_ns)

    def start_ns(self, point: int) -> int:
        """When a point began."""
        return self.ends_ns[point - 1] if point else 0


@dataclass(frozen=True)
class Stretch:
    """The last level of a timeline: its first point, its level, and the fastest level before it.

    `tolerance` is the difference of logs within which levels are the same. `moves`: it rises or falls all the time.
    """

    start: int
    level: float
    best: float
    tolerance: float
    moves: bool


class TimelineBuilder:
    """A timeline that grows interval by interval, reading every interval once."""

    def __init__(self, cell: Cell) -> None:
        # Otherwise the load sets the rate, and speed shows in the p50.
        self._by_rate = cell.load.saturates
        self._waiting: list[Interval] = []
        self._ends: list[int] = []
        self._speeds: list[float] = []
        self._kept_up: list[float] = []

    def add(self, interval: Interval, p50_ns: int | None = None) -> None:
        """Add an interval, with the p50 of its response time where that is known; a drain does not count.

        For a p50, intervals are put together until they have enough requests.
        """
        if interval.phase == "drain" or interval.lasts_ns <= 0:
            return
        self._waiting.append(interval)
        if self._by_rate or sum(interval.counts.outcomes.total for interval in self._waiting) >= FEWEST_SAMPLES:
            self._ends.append(interval.end_ns)
            self._speeds.append(self._speed(p50_ns if len(self._waiting) == 1 else None))
            due = sum(interval.counts.due for interval in self._waiting)
            self._kept_up.append(sum(interval.counts.completed for interval in self._waiting) / due if due else 1.0)
            self._waiting = []

    def _speed(self, p50_ns: int | None) -> float:
        if self._by_rate:
            answered = sum(interval.counts.completed for interval in self._waiting)
            # Half an answer in place of none, since zero has no logarithm.
            return math.log(max(answered, 0.5) / (self._waiting[-1].end_ns - self._waiting[0].start_ns))
        if p50_ns is None:
            p50_ns = Histogram.merged(interval.response for interval in self._waiting).quantile_ns(0.5)
        return -math.log(max(p50_ns, 1))

    def timeline(self) -> Timeline:
        """The timeline so far."""
        return Timeline(tuple(self._ends), np.array(self._speeds), None if self._by_rate else np.array(self._kept_up))


def timeline_of(cell: Cell, trial: Trial) -> Timeline:
    """The timeline of a trial."""
    growing = TimelineBuilder(cell)
    medians = [(None, None, None)] * len(trial.intervals) if cell.load.saturates else trial.interval_quantiles_ns
    for interval, (p50_ns, *_) in zip(trial.intervals, medians, strict=True):
        growing.add(interval, p50_ns)
    return growing.timeline()


def segments(values: Floats, penalty: float = PENALTY) -> list[Plateau]:
    """The levels of a series, in order and without gaps: a single segment if it has a single level, or too few points.

    Every change has to explain `penalty` times log n, in units of the squared noise.
    """
    ends = level_ends(values / noise(values), penalty * math.log(len(values)), FEWEST_POINTS)
    return [Plateau(start, end, float(values[start:end].mean())) for start, end in zip([0, *ends], ends, strict=False)]


def last_stretch(timeline: Timeline, *, hasty: bool = False) -> Stretch:
    """The last level of a timeline of at least one point: back through all points of the same level as its end.

    If `hasty`, less evidence is enough for a change or a trend.
    """
    values = clipped(timeline.speeds)
    tolerance = max(math.log1p(SAME), SAME_NOISE * noise(values))
    stretch, before = _joined(segments(values, HASTY_PENALTY if hasty else PENALTY), tolerance)
    moves = abs(trend(list(np.exp(values[stretch.start :])), HASTY_CHANCE if hasty else TREND_P)) > SAME
    best = max((segment.level for segment in before), default=stretch.level)
    return Stretch(stretch.start, stretch.level, best, tolerance, moves)


def is_warm(timeline: Timeline) -> bool:
    """Whether the measurement may begin, by the timeline so far."""
    if timeline.n < LEAST_POINTS or timeline.ends_ns[-1] < LEAST_S * 1e9:
        return False
    last = last_stretch(timeline, hasty=True)
    newest = median(timeline.speeds[-FEWEST_POINTS:])
    if last.moves or abs(newest - last.level) > last.tolerance:
        return False
    if timeline.kept_up is not None and median(timeline.kept_up[last.start :]) < KEPT_UP:
        return False
    lasted_ns = timeline.ends_ns[-1] - timeline.start_ns(last.start)
    long_enough = lasted_ns >= max(LEAST_S * 1e9, LEAST_SHARE * timeline.ends_ns[-1])
    return long_enough and timeline.n - last.start >= LEAST_POINTS


def warm_up(cell: Cell, trial: Trial) -> WarmUp | None:
    """Classify a trial's warm-up, including its measurement; None if it was short, cut, or changes by design."""
    _, known = trial.once(("warm-up", id(cell)), lambda: (cell, _warm_up(cell, trial)))
    return known


def _warm_up(cell: Cell, trial: Trial) -> WarmUp | None:
    traffic = trial.traffic
    if traffic is None or cell.load.changes or traffic.ended != "complete":
        return None
    timeline = timeline_of(cell, trial)
    if timeline.n < 2 * LEAST_POINTS:
        return None
    last = last_stretch(timeline)
    from_ns, measured_ns = timeline.start_ns(last.start), traffic.measure_start_ns
    if last.moves or from_ns > measured_ns:
        return WarmUp(kind="never steady", measured_from_ns=measured_ns)
    if last.best - last.level > last.tolerance:
        lost = -math.expm1(last.level - last.best)
        return WarmUp(kind="slowing down", steady_from_ns=from_ns, measured_from_ns=measured_ns, lost=lost)
    compiling = sum(compiler_cores(trial, traffic) or ()) > COMPILING
    kind = "still compiling" if compiling else "flat" if last.start == 0 else "warmed up"
    return WarmUp.model_validate({"kind": kind, "steady_from_ns": from_ns, "measured_from_ns": measured_ns})


def compiler_cores(trial: Trial, traffic: Traffic) -> tuple[float, float] | None:
    """The cores that the compilers of the server's virtual machine used and waited for during the measurement."""
    used_ns, waited_ns = (trial.increase(f"compiler_{clock}_ns", "server") for clock in ("cpu", "wait"))
    if used_ns is None or waited_ns is None or traffic.seconds <= 0:
        return None
    return used_ns / traffic.seconds / 1e9, waited_ns / traffic.seconds / 1e9


def still_compiling(compiled: Sequence[tuple[int, int]]) -> bool:
    """Whether compilers worked, or waited for a core, over the last seconds.

    `compiled`: instants, with the time that compilers had used and waited for a core by then.
    """
    if not compiled:
        return False
    end_ns, last_ns = compiled[-1]
    earlier = [point for point in compiled if point[0] <= end_ns - LEAST_S * 1e9] or compiled[:1]
    begin_ns, first_ns = earlier[-1]
    return last_ns - first_ns > COMPILING * (end_ns - begin_ns)


class WarmupDetector:
    """Follows a warm-up interval by interval, until it says that the measurement may begin."""

    def __init__(self, cell: Cell, compiling_ns: Callable[[], int | None] = lambda: None) -> None:
        """`compiling_ns` gives the time that compilers have used and waited for a core; None where none is known."""
        self._seen = TimelineBuilder(cell)
        self._judge_from_ns = round(LEAST_S * 1e9)
        self._compiling_ns = compiling_ns
        self._compiled: list[tuple[int, int]] = []

    def is_warm(self, interval: Interval) -> bool:
        """Take in an interval of the warm-up, and return whether the server is now warm."""
        self._seen.add(interval)
        if (compiled_ns := self._compiling_ns()) is not None:
            self._compiled.append((interval.end_ns, compiled_ns))
        if interval.end_ns < self._judge_from_ns:
            return False
        self._judge_from_ns = interval.end_ns + JUDGED_EVERY_NS
        return not still_compiling(self._compiled) and is_warm(self._seen.timeline())


def _joined(levels: list[Plateau], tolerance: float) -> tuple[Plateau, list[Plateau]]:
    """The last level joined with earlier levels equal to it, across short disturbances; and the remaining levels."""
    *left, last = levels
    while left:
        if abs(left[-1].level - last.level) > tolerance:
            if len(left) < 2 or left[-1].n > BLIP * last.n or abs(left[-2].level - last.level) > tolerance:
                break
            left.pop()
        before = left.pop()
        level = (before.level * before.n + last.level * last.n) / (before.n + last.n)
        last = Plateau(before.start, last.end, level)
    return last, left
