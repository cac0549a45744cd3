"""Findings about times in which the server hardly answered, once or again and again."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redline.findings.courses import LEAST_STEP, RATE, TAIL, SpeedCourse, course, ticks, time_of
from redline.findings.rules import TIME_DEPENDENT, Observation, Rule
from redline.lazily import dataclass
from redline.model import Cell, Closed, Traffic
from redline.quantities import duration, percent
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import FEWEST_FOR_TREND, Plateau, levels, median, noise

STALL = math.log(2.0)
"""At a stall the server has at most half of its usual speed."""

STALL_NOISE = 6.0
"""Standard deviations of the noise from point to point by which a stall is slower as well."""

FEWEST_FOR_PERIOD = 5
"""Fewer stalls may be equally far from each other by chance."""

LONG_S = 0.15
"""Shorter stalls, such as a turn of another process on the core, are said if they come back regularly."""

PER_TICK = 16
"""Answers in a usual tick at least: by chance, none come once in 9 million ticks."""

FEWEST_TICKS = 20
"""Fewer ticks say little about what is usual."""

IN_A_BLOCK = 10
"""Ticks whose median is the speed without stalls of up to half of them."""

COUNTED = 6.0
"""Standard deviations of a random count by which a stall has fewer answers."""

SAME_DISTANCE = 0.1
"""Regular stalls are this share of their mean distance, or one interval, from equal distances, at most."""

STALLED = Rule(
    "stalled",
    note=0.002,
    warn=0.05,
    biases=TIME_DEPENDENT,
    scatters=True,
    text="""Times with at most half of the usual answers, by 50 ms: for 150 ms at least, or regularly, five times or
    more. In open loads also intervals with twice the usual p90. Both are six standard deviations away. The share of the
    answers that it cost, or of the requests that it delayed.

    The numbers include it, and another measurement would have another share of it.

    Advice: See what happened at these times: a collector, a flush to the disk, a timer, other work on the machine.
    Measure over many of them, or compare without them.
    """,
)


@dataclass(frozen=True)
class Standstill:
    """A time in which the server had at most half of its usual speed, in seconds since the measurement began."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Stalls:
    """A course with its usual speed, and whether the server hardly answered, at each point."""

    seen: SpeedCourse
    usual: Floats
    slow: NDArray[np.bool_]

    @cached_property
    def made(self) -> list[Standstill]:
        """The stalls, in order."""
        return standstills(self.seen, self.slow)

    @cached_property
    def period_s(self) -> float | None:
        """The time from stall to stall, if they come regularly."""
        return regular(self.made, self.seen.ends_s[0] - self.seen.starts_s[0])

    def long(self) -> "Stalls":
        """The long ones alone."""
        starts, slow = np.array(self.seen.starts_s), np.zeros(len(self.slow), dtype=np.bool_)
        for stall in self.made:
            if stall.end_s - stall.start_s > LONG_S * (1 - 1e-9):
                slow |= (starts >= stall.start_s) & (starts < stall.end_s)
        return Stalls(self.seen, self.usual, slow)


def stalls(cell: Cell, trial: Trial, traffic: Traffic) -> Iterator[Observation]:
    """The stalls of a measurement: by ticks of 50 ms, or else by intervals."""
    closed = isinstance(cell.load.shape, Closed)
    fine = wide_ticks(cell, traffic)
    if fine is not None:
        usual = usual_of_ticks(fine.speeds)
        by_tick = Stalls(fine, usual, few_answers(fine, usual))
        shown = by_tick if by_tick.period_s else by_tick.long()
        if shown.made:
            yield _observation(shown, closed=closed)
        if shown.made or closed:
            return
    seen = course(trial, traffic, RATE if closed else TAIL)
    if len(seen.speeds) >= FEWEST_FOR_TREND:
        usual = usual_speeds(seen.speeds, seen.levels)
        by_interval = Stalls(seen, usual, is_stalled(seen.speeds, usual))
        if by_interval.made:
            yield _observation(by_interval, closed=closed)


def wide_ticks(cell: Cell, traffic: Traffic) -> SpeedCourse | None:
    """The ticks of a measurement, so wide that usually enough answers come in each; None if there are too few.

    In a closed load answers come in waves of one round trip, and users who think come as they please.
    """
    closed = isinstance(cell.load.shape, Closed)
    if closed and not cell.load.saturates:
        return None
    least_ns = 4 * traffic.response.quantile_ns(0.5) if closed else 0
    for width in (1, 2, 4, 10, 20):
        seen = ticks(traffic, width, least_ns)
        if seen is not None and len(seen.speeds) >= FEWEST_TICKS and median(np.asarray(seen.requests)) >= PER_TICK:
            return seen
    return None


def usual_of_ticks(speeds: Floats) -> Floats:
    """The usual speed at each tick: that of the level to which the medians of blocks of ticks belong."""
    blocks = np.array_split(speeds, max(len(speeds) // IN_A_BLOCK, 1))
    medians = np.array([median(block) for block in blocks])
    usual = usual_speeds(medians, levels(medians, LEAST_STEP))
    return np.repeat(usual, [len(block) for block in blocks])


def few_answers(seen: SpeedCourse, usual: Floats) -> NDArray[np.bool_]:
    """Whether each tick has at most half of the usual answers, beyond the noise and beyond the chance of a count."""
    slower = usual - seen.speeds
    expected = np.exp(usual) * (np.array(seen.ends_s) - np.array(seen.starts_s))
    # Twice the square root of a random count has a standard deviation of about 1, whatever its mean (Anscombe 1948).
    fewer = 2 * (np.sqrt(expected) - np.sqrt(np.array(seen.requests)))
    few: NDArray[np.bool_] = (slower > max(STALL, STALL_NOISE * noise(seen.speeds))) & (fewer > COUNTED)
    return few


def stalled(seen: SpeedCourse) -> NDArray[np.bool_]:
    """Whether each interval of a course is part of a stall.

    What lasts for at least three intervals, and a quarter of the measurement, is a level, and usual.
    """
    return is_stalled(seen.speeds, usual_speeds(seen.speeds, seen.levels))


def is_stalled(speeds: Floats, usual: Floats) -> NDArray[np.bool_]:
    """Whether each speed is at most half of the usual speed, and beyond the noise."""
    stops: NDArray[np.bool_] = usual - speeds > max(STALL, STALL_NOISE * noise(speeds))
    return stops


def usual_speeds(speeds: Floats, found: Sequence[Plateau]) -> Floats:
    """The speed of the level that each point belongs to; for levels shorter than a quarter, that before them."""
    long = [part for part in found if part.n >= len(speeds) / 4] or [max(found, key=lambda part: part.n)]
    usual, last = np.empty(len(speeds)), long[0]
    for part in found:
        last = part if part in long else last
        usual[part.start : part.end] = last.level
    return usual


def standstills(seen: SpeedCourse, slow: NDArray[np.bool_]) -> list[Standstill]:
    """The stalls of a course, in order: what is slow in a row is one stall."""
    made = list[Standstill]()
    for i in np.flatnonzero(slow).tolist():
        follows = bool(made) and bool(slow[i - 1])
        start_s = made.pop().start_s if follows else seen.starts_s[i]
        made.append(Standstill(start_s, seen.ends_s[i]))
    return made


def _observation(found: Stalls, *, closed: bool) -> Observation:
    seen, usual, slow = found.seen, found.usual, found.slow
    if seen.name == RATE:
        would, was = np.exp(usual).sum(), np.exp(np.where(slow, seen.speeds, usual)).sum()
        cost, costs = float(1 - was / would), "of the answers are missing" if closed else "of the answers came later"
    else:
        requests = np.array(seen.requests, dtype=np.float64)
        cost, costs = float(requests[slow].sum() / requests.sum()), "of the requests fell into it"
    worst = int(np.argmax(np.where(slow, usual - seen.speeds, -np.inf)))
    moved = "fell" if seen.name == RATE else "rose"
    least = "0" if seen.name == RATE and not seen.requests[worst] else seen.written(seen.speeds[worst])
    levels_said = f"from {seen.written(usual[worst])} to {least}"
    message = f"{_when(found.made, found.period_s)}, the {seen.name} {moved} {levels_said}: {percent(cost)} {costs}."
    return Observation(cost, message, rule=STALLED)


def _when(made: Sequence[Standstill], period: float | None) -> str:
    longest = duration(max(stall.end_s - stall.start_s for stall in made) * 1e9)
    first = time_of(made[0].start_s)
    if len(made) == 1:
        return f"For {longest} from {first} on"
    if period:
        return f"Every {duration(period * 1e9)} from {first} on, {len(made)} times, for {longest} at most"
    return f"{len(made)} times, first at {first} and last at {time_of(made[-1].start_s)}, for {longest} at most"


def regular(made: Sequence[Standstill], step_s: float) -> float | None:
    """The time from stall to stall in seconds, if all are equally far from the next; None otherwise."""
    if len(made) < FEWEST_FOR_PERIOD:
        return None
    distances = np.diff([(stall.start_s + stall.end_s) / 2 for stall in made])
    period = median(distances)
    off = float(np.abs(distances - period).max())
    # Every other interval is what noise looks like.
    return period if off <= max(SAME_DISTANCE * period, step_s) and period >= 3 * step_s else None
