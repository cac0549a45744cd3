"""Gaps in distributions of times: a percentile that lies in one is of either side by chance. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from redline.model import Histogram

APART = 2.0
"""Times on both sides of a gap differ by at least this factor."""

FEWEST_BESIDE = 20
"""The fewest times on either side: the few slowest of any long tail are a factor apart."""

MOST_INSIDE = 0.1
"""The most times in a gap, relative to those on its smaller side."""

SLACK = 0.05
"""Another measurement has up to this share more or fewer slow requests."""

_ERRORS = 3.0
"""Standard errors of a share, by chance alone."""


@dataclass(frozen=True)
class Gap:
    """A gap: a share of the times lies above it, `high_ns` and longer, and the others take at most `low_ns`."""

    low_ns: int
    high_ns: int
    above: float


def gap_at(times: Histogram, q: float) -> Gap | None:
    """The gap in which the quantile `q` (0 to 1) lies, as far as its place is known; None if it is in none."""
    return gaps_at(times, [q]).get(q)


def gaps_at(times: Histogram, quantiles: Sequence[float]) -> dict[float, Gap]:
    """The gaps in which quantiles (0 to 1) lie, without those that are in none."""
    values, counts = times.buckets()
    if len(values) < 2:
        return {}
    below = np.cumsum(counts)
    n = int(below[-1])
    # Every value is the last below a gap, which ends with the first value that is a factor away.
    ends = np.searchsorted(values, values * APART, side="left")
    passed = below[ends - 1]
    above, inside = n - passed, passed - below
    smaller = np.minimum(below, above)
    found = np.flatnonzero((smaller >= FEWEST_BESIDE) & (inside <= MOST_INSIDE * smaller))
    gaps = {}
    for q in quantiles if len(found) else ():
        slack = max(_ERRORS * math.sqrt(q * (1 - q) / n), SLACK * min(q, 1 - q))
        here = found[(below[found] >= (q - slack) * n) & (passed[found] <= (q + slack) * n)]
        if len(here):
            best = int(here[np.argmin(inside[here])])
            gaps[q] = Gap(int(values[best]), int(values[ends[best]]), float(above[best]) / n)
    return gaps
