"""Findings about the course of a measurement: trends, levels, and times in which the server hardly answered."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from redline.findings.growth import explains as is_growth
from redline.findings.growth import growth_of
from redline.findings.rules import ALL_BUT_COUNTS, TIME_DEPENDENT, TREND_P, Observation, Rule, judges
from redline.findings.warming import FEWEST_SAMPLES
from redline.model import Cell, Closed, Grade, Traffic
from redline.quantities import duration, percent, rate
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import FEWEST_FOR_TREND, Plateau, levels, noise, slope, trend

LEAST_STEP = math.log1p(0.05)
"""Levels that differ by less are the same: shared machines wander by a twentieth from second to second."""

MOST_LEVELS_SAID = 4
"""More levels are said by their range."""

STALL = math.log(2.0)
"""At a stall the server has at most half of its usual speed."""

STALL_NOISE = 6.0
"""Standard deviations of the noise from point to point by which a stall is slower as well."""

FEWEST_FOR_PERIOD = 4
"""Fewer stalls may be equally far from each other by chance."""

SAME_DISTANCE = 0.1
"""Regular stalls are this share of their mean distance, or one interval, from equal distances, at most."""

RATE, MEDIAN, TAIL = "rate", "p50 response time", "p90 response time"


@dataclass(frozen=True)
class SpeedCourse:
    """The log of the server's speed in each measured interval: its rate, or 1 / a quantile of response times.

    Starts and ends are seconds since the measurement began.
    """

    name: str
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    speeds: Floats
    requests: tuple[int, ...]

    def written(self, speed: float) -> str:
        """A speed, as readers know it."""
        return rate(math.exp(speed)) if self.name == RATE else duration(math.exp(-speed))

    def without(self, left_out: NDArray[np.bool_]) -> "SpeedCourse":
        """The course without these intervals."""
        kept = np.flatnonzero(~left_out).tolist()
        starts_s, ends_s = (tuple(times[i] for i in kept) for times in (self.starts_s, self.ends_s))
        return SpeedCourse(self.name, starts_s, ends_s, self.speeds[kept], tuple(self.requests[i] for i in kept))


def course(trial: Trial, traffic: Traffic, name: str) -> SpeedCourse:
    """The course of the rate, or of a quantile of response times, without a much shorter last interval."""
    measured = [(i, interval) for i, interval in enumerate(trial.intervals) if interval.phase == "measure"]
    longest = max((interval.lasts_ns for _, interval in measured), default=0)
    whole = [(i, interval) for i, interval in measured if 0 < interval.lasts_ns >= longest / 2]
    if name == RATE:
        # Half an answer in place of none, since zero has no logarithm.
        speeds = [max(interval.counts.completed, 0.5) / interval.lasts_ns * 1e9 for _, interval in whole]
    else:
        whole = [(i, interval) for i, interval in whole if interval.counts.outcomes.total >= FEWEST_SAMPLES]
        column = 0 if name == MEDIAN else 1
        speeds = [1.0 / max(trial.interval_quantiles_ns[i][column], 1) for i, _ in whole]
    since_ns = traffic.measure_start_ns
    return SpeedCourse(
        name,
        tuple((interval.start_ns - since_ns) / 1e9 for _, interval in whole),
        tuple((interval.end_ns - since_ns) / 1e9 for _, interval in whole),
        np.log(speeds),
        tuple(interval.counts.outcomes.total for _, interval in whole),
    )


UNSTEADY = Rule(
    "unsteady",
    warn=0.10,
    invalid=0.50,
    biases=TIME_DEPENDENT,
    scatters=True,
    touches=ALL_BUT_COUNTS,
    text="""Change of the rate (closed loads) or of the p50 (open loads, at most **warn**) over the measurement: a
    Theil-Sen line, if Kendall's test has p < 0.001. Loads that change by design are not judged.

    The mean of what still moves depends on the time. 10% would pass for a difference between servers; past 50% no
    single state is described. Open loads are invalid by `rate-missed` instead.

    Advice: Warm up longer, measure longer, and look for other work on the machine.
    """,
)

_LEVELS = """A level is a stretch of at least three intervals; its neighbours are six standard errors and 5% away. Noise
    of 3% makes two of one less than once in 1,000 times; of ten intervals whose neighbours are alike, eight times.

    Advice: Each level is a result of its own. See what happened at that time: on the timeline, in the server's log, its
    memory and its collector, and other work on the machine. Then measure one of them.
    """

RATE_CHANGED = Rule(
    "rate-changed",
    note=0.05,
    warn=0.10,
    invalid=0.50,
    biases=TIME_DEPENDENT,
    scatters=True,
    touches=ALL_BUT_COUNTS,
    text=f"""*Closed loads.* The rate had one level and then another; how far the highest is above the lowest.

    {_LEVELS}""",
)

LATENCY_CHANGED = Rule(
    "latency-changed",
    note=0.05,
    warn=0.10,
    invalid=0.50,
    biases=TIME_DEPENDENT,
    scatters=True,
    touches={"response times": "unknown", "service times": "unknown"},
    text=f"""*Open loads.* The p50 had one level and then another; how far the highest is above the lowest. A percentile
    of both together is a time that hardly any request took.

    {_LEVELS}""",
)

STALLED = Rule(
    "stalled",
    note=0.002,
    warn=0.05,
    biases=TIME_DEPENDENT,
    scatters=True,
    text="""Intervals with at most half of the usual rate (closed loads), or with twice the usual p90 (open loads), six
    standard deviations of the noise away: the share of the answers that it cost, or of the requests that it delayed.

    The numbers include it, and another measurement would have another share of it.

    Advice: See what happened at these times: a collector, a flush to the disk, a timer, other work on the machine.
    Measure over many of them, or compare without them.
    """,
)

STEADINESS_UNKNOWN = Rule(
    "steadiness-unknown",
    unit=" intervals",
    note=0.0,
    text="""Fewer than seven intervals could be judged.

    With six, even a perfect trend has p = 2 / 6! = 0.003 in Kendall's test.

    Advice: Measure for half a second or longer; open loads need 20 requests in each tenth of that.
    """,
)


@judges("answers")
def unsteady(cell: Cell, trial: Trial, traffic: Traffic) -> Iterator[Observation]:
    """Findings about levels, a trend and stalls; none about a load that changes by design."""
    profile = trial.recording.profile
    if cell.load.changes or (profile is not None and profile.sampled):
        return
    closed = isinstance(cell.load.shape, Closed)
    seen = course(trial, traffic, RATE if closed else MEDIAN)
    if len(seen.speeds) < FEWEST_FOR_TREND:
        if traffic.ended == "complete":  # otherwise another finding reports that it was cut short, and this follows
            yield _unknown(len(seen.speeds))
        return
    # A stall has its own finding, and is no level: the rest of the measurement may be of a single one.
    apart = seen.without(stalled(seen.speeds))
    found = levels(apart.speeds, LEAST_STEP)
    if len(found) > 1 and explains(found, apart.speeds):
        yield _levels(apart, found)
    elif (change := trend(np.exp(seen.speeds) if closed else np.exp(-seen.speeds), TREND_P)) and not (
        (change < 0) is closed and is_growth(growth_of(trial), change)
    ):
        message = (
            f"The {seen.name} {'rose' if change > 0 else 'fell'} by {percent(abs(change))} over the measurement, from "
            f"interval to interval: it was not steady."
        )
        at_most = Grade.INVALID if closed else Grade.WARN
        yield Observation(abs(change), message, rule=UNSTEADY, at_most=at_most)
    yield from _stalls(seen if closed else course(trial, traffic, TAIL))


def _unknown(seen: int) -> Observation:
    intervals = f"{seen} interval{'' if seen == 1 else 's'}"
    message = f"Whether it was steady is not known: {intervals} could be judged, and it takes {FEWEST_FOR_TREND}."
    return Observation(FEWEST_FOR_TREND - seen, message, rule=STEADINESS_UNKNOWN)


def explains(found: Sequence[Plateau], speeds: Floats) -> bool:
    """Whether levels describe a series better than a straight line does, by Schwarz's criterion."""
    n, at = len(speeds), np.arange(len(speeds))
    stepped = speeds - np.concatenate([np.full(part.n, part.level) for part in found])
    sloping = speeds - slope(range(n), speeds) * at
    sloping -= np.median(sloping)

    def criterion(off: Floats, parameters: int) -> float:
        return n * math.log(max(float(np.mean(np.abs(off))), 1e-9)) * 2 + parameters * math.log(n)

    return criterion(stepped, 2 * len(found) - 1) < criterion(sloping, 2)


def _levels(seen: SpeedCourse, found: Sequence[Plateau]) -> Observation:
    speeds = [part.level for part in found]
    apart = math.expm1(max(speeds) - min(speeds))
    first = f"The {seen.name} was {seen.written(speeds[0])} until {_at(seen.ends_s[found[0].end - 1])}"
    if len(found) <= MOST_LEVELS_SAID:
        between = (f"{seen.written(part.level)} until {_at(seen.ends_s[part.end - 1])}" for part in found[1:-1])
        said = ", then ".join((first, *between, seen.written(speeds[-1])))
    else:
        low, high = sorted((min(speeds), max(speeds)), reverse=seen.name != RATE)
        said = f"{first}, and changed {len(found) - 2} more times between {seen.written(low)} and {seen.written(high)}"
    rule = RATE_CHANGED if seen.name == RATE else LATENCY_CHANGED
    return Observation(apart, f"{said}: it was not steady.", rule=rule)


@dataclass(frozen=True)
class Standstill:
    """Intervals in a row in which the server had at most half of its usual speed."""

    start_s: float
    end_s: float


def stalled(speeds: Floats) -> NDArray[np.bool_]:
    """Whether each interval is part of a stall: at most at half of the usual speed, and beyond the noise.

    What lasts for at least three intervals, and a quarter of the measurement, is a level, and usual.
    """
    slower = _usual(speeds) - speeds
    is_stalled: NDArray[np.bool_] = slower > max(STALL, STALL_NOISE * noise(speeds))
    return is_stalled


def _usual(speeds: Floats) -> Floats:
    """The speed of the level that each interval belongs to; for levels shorter than a quarter, that before them."""
    found = levels(speeds, LEAST_STEP)
    long = [part for part in found if part.n >= len(speeds) / 4] or [max(found, key=lambda part: part.n)]
    usual, last = np.empty(len(speeds)), long[0]
    for part in found:
        last = part if part in long else last
        usual[part.start : part.end] = last.level
    return usual


def standstills(seen: SpeedCourse) -> list[Standstill]:
    """The stalls of a course, in order."""
    slow, made = stalled(seen.speeds), list[Standstill]()
    for i in np.flatnonzero(slow).tolist():
        follows = bool(made) and bool(slow[i - 1])
        start_s = made.pop().start_s if follows else seen.starts_s[i]
        made.append(Standstill(start_s, seen.ends_s[i]))
    return made


def _stalls(seen: SpeedCourse) -> Iterator[Observation]:
    if len(seen.speeds) < FEWEST_FOR_TREND or not (made := standstills(seen)):
        return
    slow, usual = stalled(seen.speeds), _usual(seen.speeds)
    if seen.name == RATE:
        would, was = np.exp(usual).sum(), np.exp(np.where(slow, seen.speeds, usual)).sum()
        cost, costs = float(1 - was / would), "of the answers are missing"
    else:
        requests = np.array(seen.requests, dtype=np.float64)
        cost, costs = float(requests[slow].sum() / requests.sum()), "of the requests fell into it"
    worst = int(np.argmax(np.where(slow, usual - seen.speeds, -np.inf)))
    moved = "fell" if seen.name == RATE else "rose"
    levels_said = f"from {seen.written(usual[worst])} to {seen.written(seen.speeds[worst])}"
    message = f"{_when(made, seen)}, the {seen.name} {moved} {levels_said}: {percent(cost)} {costs}."
    yield Observation(cost, message, rule=STALLED)


def _when(made: Sequence[Standstill], seen: SpeedCourse) -> str:
    longest = duration(max(stall.end_s - stall.start_s for stall in made) * 1e9)
    first = _at(made[0].start_s)
    if len(made) == 1:
        return f"For {longest} from {first} on"
    if period := regular(made, seen.ends_s[0] - seen.starts_s[0]):
        return f"Every {duration(period * 1e9)} from {first} on, {len(made)} times, for {longest} at most"
    return f"{len(made)} times, first at {first} and last at {_at(made[-1].start_s)}, for {longest} at most"


def regular(made: Sequence[Standstill], step_s: float) -> float | None:
    """The time from stall to stall in seconds, if all are equally far from the next; None otherwise."""
    if len(made) < FEWEST_FOR_PERIOD:
        return None
    middles = [(stall.start_s + stall.end_s) / 2 for stall in made]
    period = (middles[-1] - middles[0]) / (len(made) - 1)
    off = max(abs(b - a - period) for a, b in pairwise(middles))
    # Every other interval is what noise looks like.
    return period if off <= max(SAME_DISTANCE * period, step_s) and period >= 3 * step_s else None


def _at(seconds: float) -> str:
    return duration(seconds * 1e9) if seconds else "its beginning"
