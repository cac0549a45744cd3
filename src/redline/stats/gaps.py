"""Gaps in distributions of times: a percentile that lies in one is of either side by chance. Pure."""

import math
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
    values, counts = times.buckets()
    if len(values) < 2:
        return None
    below = np.cumsum(counts)
    n = int(below[-1])
    slack = max(_ERRORS * math.sqrt(q * (1 - q) / n), SLACK * min(q, 1 - q))
    # Every value is the last below a gap, which ends with the first value that is a factor away.
    ends = np.searchsorted(values, values * APART, side="left")
    passed = np.where(ends > 0, below[np.maximum(ends - 1, 0)], 0)
    above, inside = n - passed, passed - below
    smaller = np.minimum(below, above)
    is_gap = (smaller >= FEWEST_BESIDE) & (inside <= MOST_INSIDE * smaller)
    is_gap &= (below >= (q - slack) * n) & (passed <= (q + slack) * n)
    if not is_gap.any():
        return None
    best = int(np.argmin(np.where(is_gap, inside, n + 1)))
    return Gap(int(values[best]), int(values[ends[best]]), float(above[best]) / n)
