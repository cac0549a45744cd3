"""Gaps in distributions of times: a percentile that lies in one is of either side by chance. Pure."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redline.lazily import dataclass
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
    """A gap: a share of the times lies above it, `high_ns` and longer, and the others take at most `low_ns`.

    The quantile that lies in it is between `least_ns` and `most_ns`, as far as its place is known.
    """

    low_ns: int
    high_ns: int
    above: float
    least_ns: int
    most_ns: int


def gap_at(times: Histogram, q: float) -> Gap | None:
    """The gap in which the quantile `q` (0 to 1) lies, as far as its place is known; None if it is in none."""
    return gaps_at(times, [q]).get(q)


def gaps_at(times: Histogram, quantiles: Sequence[float]) -> dict[float, Gap]:
    """The gaps in which quantiles (0 to 1) lie, without those that are in none."""
    seen = _Gaps(times)
    gaps = {}
    for q in quantiles if len(seen.found) else ():
        slack = max(_ERRORS * math.sqrt(q * (1 - q) / seen.n), SLACK * min(q, 1 - q))
        found = seen.found
        here = found[(seen.below[found] >= (q - slack) * seen.n) & (seen.passed[found] <= (q + slack) * seen.n)]
        if len(here):
            gaps[q] = seen.best(here, *times.quantiles_ns((q - slack, q + slack)))
    return gaps


class _Gaps:
    """Where a distribution has gaps: `found` are the places of the last values below them."""

    def __init__(self, times: Histogram) -> None:
        self._values, counts = times.buckets()
        self.below = np.cumsum(counts)
        self.n = int(self.below[-1]) if len(self.below) else 0
        # Every value is the last below a gap, which ends with the first value that is a factor away.
        self._ends = np.searchsorted(self._values, self._values * APART, side="left")
        self.passed = self.below[self._ends - 1]
        self._above, self._inside = self.n - self.passed, self.passed - self.below
        smaller = np.minimum(self.below, self._above)
        self.found = np.flatnonzero((smaller >= FEWEST_BESIDE) & (self._inside <= MOST_INSIDE * smaller))

    def best(self, places: NDArray[np.intp], least_ns: int, most_ns: int) -> Gap:
        """The gap at one of these places that has the fewest times in it, of a quantile between these times."""
        best = int(places[np.argmin(self._inside[places])])
        low, high = int(self._values[best]), int(self._values[self._ends[best]])
        return Gap(low, high, float(self._above[best]) / self.n, min(least_ns, low), max(most_ns, high))
