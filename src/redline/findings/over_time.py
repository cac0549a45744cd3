"""Findings about the course of a measurement: trends, levels, and times in which the server hardly answered."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from redline.findings.courses import MEDIAN, RATE, SpeedCourse, course, time_of
from redline.findings.growth import explains as is_growth
from redline.findings.growth import growth_of
from redline.findings.rules import ALL_BUT_COUNTS, TIME_DEPENDENT, TREND_P, Observation, Rule, judges
from redline.findings.stalls import stalled, stalls
from redline.model import Cell, Closed, Grade, Traffic
from redline.quantities import percent
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import FEWEST_FOR_TREND, Plateau, median, slope, trend

MOST_LEVELS_SAID = 4
"""More levels are said by their range."""

UNSTEADY = Rule(
    "unsteady",
    warn=0.10,
    invalid=0.50,
    biases=TIME_DEPENDENT,
    scatters=True,
    touches=ALL_BUT_COUNTS,
    text="""Change of the rate (closed loads) or of the p50 (open loads, at most **warn**) over the measurement: a
    Theil-Sen line, if Kendall's test has p < 0.001. Loads that change by design are not judged.

    The mean of what still moves depends on the time. Open loads are invalid by `rate-missed` instead.

    Advice: Warm up longer, measure longer, and look for other work on the machine.
    """,
)

_LEVELS = """A level is a stretch of at least three intervals; its neighbours are six standard errors and 5% away.

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
    touches={"response times": "unknown", "service times": "unknown", "message times": "unknown"},
    text=f"""*Open loads.* The p50 had one level and then another; how far the highest is above the lowest. A percentile
    of both together is a time that hardly any request took.

    {_LEVELS}""",
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
    apart = seen.without(stalled(seen))
    found = apart.levels
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
    yield from stalls(cell, trial, traffic)


def _unknown(seen: int) -> Observation:
    intervals = f"{seen} interval{'' if seen == 1 else 's'}"
    message = f"Whether it was steady is not known: {intervals} could be judged, and it takes {FEWEST_FOR_TREND}."
    return Observation(FEWEST_FOR_TREND - seen, message, rule=STEADINESS_UNKNOWN)


def explains(found: Sequence[Plateau], speeds: Floats) -> bool:
    """Whether levels describe a series better than a straight line does, by Schwarz's criterion."""
    n, at = len(speeds), np.arange(len(speeds))
    stepped = speeds - np.concatenate([np.full(part.n, part.level) for part in found])
    sloping = speeds - slope(range(n), speeds) * at
    sloping -= median(sloping)

    def criterion(off: Floats, parameters: int) -> float:
        return n * math.log(max(float(np.mean(np.abs(off))), 1e-9)) * 2 + parameters * math.log(n)

    return criterion(stepped, 2 * len(found) - 1) < criterion(sloping, 2)


def _levels(seen: SpeedCourse, found: Sequence[Plateau]) -> Observation:
    speeds = [part.level for part in found]
    apart = math.expm1(max(speeds) - min(speeds))
    first = f"The {seen.name} was {seen.written(speeds[0])} until {time_of(seen.ends_s[found[0].end - 1])}"
    if len(found) <= MOST_LEVELS_SAID:
        between = (f"{seen.written(part.level)} until {time_of(seen.ends_s[part.end - 1])}" for part in found[1:-1])
        said = ", then ".join((first, *between, seen.written(speeds[-1])))
    else:
        low, high = sorted((min(speeds), max(speeds)), reverse=seen.name != RATE)
        said = f"{first}, and changed {len(found) - 2} more times between {seen.written(low)} and {seen.written(high)}"
    rule = RATE_CHANGED if seen.name == RATE else LATENCY_CHANGED
    return Observation(apart, f"{said}: it was not steady.", rule=rule)
