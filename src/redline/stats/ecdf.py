"""The difference of two servers' cumulative distributions: which share of requests each had answered by a time.

The value is of all requests of the rounds together. The interval resamples rounds, as that of a difference does
(docs/concepts/statistics.md), and is never narrower than chance among independent requests implies, since few rounds
may agree by luck, and all of them do where no request is that slow. That floor is the one of Agresti and Caffo (The
American Statistician 54, 2000), which is not zero for shares of 0 and 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from redline.model import Histogram, HistogramTable
from redline.stats.distributions import t_quantile
from redline.stats.samples import CONFIDENCE, Floats, resamples

METHOD_SHARES = "t interval with the bootstrap standard error over rounds, at least that of independent requests"
METHOD_SHARES_NONE = "too few rounds for an interval"
_EARLIEST, _LATEST = 0.001, 0.9999
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class ShareDifferences:
    """Two servers' shares by time, and the interval of their difference, ours minus theirs; None for a single round."""

    ours: Floats
    theirs: Floats
    interval: tuple[Floats, Floats] | None

    @property
    def differences(self) -> Floats:
        """Ours minus theirs."""
        return self.ours - self.theirs


def times_between(histograms: Sequence[Histogram], most: int) -> tuple[int, ...]:
    """At most so many times in nanoseconds, ascending, from the fastest 1‰ to the slowest 0.1‰ of any histogram.

    Their ratio is about constant, and they have three digits, as they are shown. Empty if all histograms are.
    """
    filled = [part for part in histograms if part.count]
    if not filled:
        return ()
    ends = HistogramTable(filled).quantiles_ns((_EARLIEST, _LATEST))
    low, high = int(ends[:, 0].min()), int(ends[:, 1].max())
    return tuple(sorted({int(float(f"{ns:.3g}")) for ns in np.geomspace(low, high, most)}))


def share_differences(
    ours: Sequence[Histogram], theirs: Sequence[Histogram], times_ns: Sequence[int]
) -> ShareDifferences:
    """Compare the shares at these times; part i of both is of the same round. Raises ValueError for an empty part."""
    n = len(ours)
    if n != len(theirs) or not n or not all(part.count for part in (*ours, *theirs)):
        raise ValueError("every round needs requests of both")
    sides = [_Side.of(parts, times_ns) for parts in (ours, theirs)]
    first, second = (side.at(np.ones((1, n)))[0] for side in sides)
    if n < 2:
        return ShareDifferences(first, second, None)
    drawn = resamples(n)
    values = sides[0].at(drawn.weights) - sides[1].at(drawn.weights)
    variance = drawn.probability @ np.square(values - drawn.probability @ values) * n / (n - 1)
    floor = sum((side.chance for side in sides), np.zeros(len(times_ns)))
    half = np.maximum(t_quantile((1 + CONFIDENCE) / 2, n - 1) * np.sqrt(variance), _Z * np.sqrt(floor))
    value = first - second
    return ShareDifferences(first, second, (np.maximum(value - half, -1.0), np.minimum(value + half, 1.0)))


@dataclass(frozen=True)
class _Side:
    """A server's requests: `within` by round and time, shape (rounds, times), and `totals` by round."""

    within: Floats
    totals: Floats

    @classmethod
    def of(cls, parts: Sequence[Histogram], times_ns: Sequence[int]) -> "_Side":
        table = HistogramTable(parts)
        return cls(table.counts_up_to_each(times_ns).astype(np.float64).T, table.counts.astype(np.float64))

    def at(self, weights: Floats) -> Floats:
        """The shares for every row of weights of rounds: shape (rows, times)."""
        shares: Floats = (weights @ self.within) / (weights @ self.totals)[:, np.newaxis]
        return shares

    @property
    def chance(self) -> Floats:
        """The variance of each share, as if requests were independent, with a further request on either side."""
        requests = self.totals.sum() + 2
        share = (self.within.sum(axis=0) + 1) / requests
        variance: Floats = share * (1 - share) / requests
        return variance
