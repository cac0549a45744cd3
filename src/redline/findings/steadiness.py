"""Whether a trial's numbers were still moving while they were measured."""

import math

import numpy as np
import scipy

from redline.findings.doubt import doubt
from redline.findings.rules import TREND_P
from redline.model import Cell, Closed, Finding, FindingKind, Grade, Interval, Recording, Traffic
from redline.quantities import percent

FEWEST_INTERVALS = 7
"""With six, even a perfect trend has a chance of 2 / 6! = 0.003 under Kendall's test, above what is asked for."""

FEWEST_SAMPLES = 20
"""Requests in an interval below which its p50 says little."""


def unsteady(cell: Cell, recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """The finding of a trend over the measured intervals, neither chance nor small; or that none can be seen.

    A load that changes by design is not judged: whatever follows it changes too.
    """
    if cell.load.changes:
        return ()
    closed = isinstance(cell.load.shape, Closed)
    values = _rates(traffic) if closed else _medians(traffic)
    if len(values) < FEWEST_INTERVALS:
        return _unknown(recording, traffic, len(values))
    change = trend(values)
    name = "rate" if closed else "p50 response time"
    message = (
        f"The {name} {'rose' if change > 0 else 'fell'} by {percent(abs(change))} over the measurement, "
        f"from interval to interval: it was not steady."
    )
    return doubt(
        FindingKind.UNSTEADY,
        abs(change),
        message,
        recording,
        at_most=Grade.INVALID if closed else Grade.WARN,
    )


def _unknown(recording: Recording, traffic: Traffic, seen: int) -> tuple[Finding, ...]:
    if traffic.ended != "complete":
        return ()  # that it was cut short is told, and what follows from it need not be
    message = (
        f"Whether it was steady is not known: {seen} interval{'' if seen == 1 else 's'} could be judged, and it takes "
        f"{FEWEST_INTERVALS}."
    )
    return doubt(FindingKind.STEADINESS_UNKNOWN, FEWEST_INTERVALS - seen, message, recording)


def trend(values: list[float], chance: float = TREND_P) -> float:
    """The relative change from first to last along the Theil-Sen line of the logs; 0 when it may be chance.

    Kendall's rank test and the median of slopes are not moved by a few intervals in which the machine was disturbed.
    Sources: Mann 1945, Kendall 1975; Theil 1950, Sen 1968.
    """
    if len(values) < FEWEST_INTERVALS:
        return 0.0
    order = np.arange(len(values))
    logs = np.log(values)
    if not scipy.stats.kendalltau(order, logs).pvalue < chance:  # NaN when all values are equal
        return 0.0
    return math.expm1(float(scipy.stats.theilslopes(logs, order).slope) * (len(values) - 1))


def _rates(traffic: Traffic) -> list[float]:
    # Half an answer where there was none, which has no logarithm.
    return [max(i.counts.completed, 0.5) / (i.end_ns - i.start_ns) * 1e9 for i in _whole_intervals(traffic)]


def _medians(traffic: Traffic) -> list[float]:
    whole = _whole_intervals(traffic)
    return [float(i.response.quantile_ns(0.5)) for i in whole if i.counts.outcomes.total >= FEWEST_SAMPLES]


def _whole_intervals(traffic: Traffic) -> list[Interval]:
    """The measured intervals, without a last one that is much shorter than the others."""
    measured = [i for i in traffic.intervals if i.phase == "measure" and i.end_ns > i.start_ns]
    longest = max((i.end_ns - i.start_ns for i in measured), default=0)
    return [i for i in measured if 2 * (i.end_ns - i.start_ns) >= longest]
