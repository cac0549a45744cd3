"""What is computed from a set of trials, as a function of how often each trial counts.

A statistic is always that of the trials put together: a quantile of their merged histograms, a ratio of their sums.
Given as a function of weights, the same code serves the estimate (each trial once) and its resampling.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from redline.model import Histogram
from redline.model.hdr import PRECISION, ranks

Floats = NDArray[np.float64]


class Sample(Protocol):
    """The trials of one cell, as one metric sees them."""

    @property
    def n(self) -> int:
        """How many trials."""
        ...

    @property
    def resolution(self) -> float:
        """The relative step in which the statistic can move; 0 when it is continuous."""
        ...

    def at(self, weights: Floats) -> Floats:
        """The statistic for each row of `weights`: shape (rows, n) in, (rows,) out."""
        ...


@dataclass(frozen=True)
class Ratios:
    """A ratio of sums over trials: requests over seconds, CPU time over requests."""

    over: Floats
    under: Floats
    resolution: float = 0.0

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.over)

    def at(self, weights: Floats) -> Floats:
        """The ratio of the weighted sums."""
        ratio: Floats = (weights @ self.over) / (weights @ self.under)
        return ratio


@dataclass(frozen=True)
class Quantiles:
    """A quantile of the merged histograms of some trials; never a mean of their quantiles."""

    histograms: tuple[Histogram, ...]
    q: float
    resolution: float = PRECISION

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.histograms)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Ascending bucket values in ns, shape (buckets,), and cumulative counts, shape (buckets, trials)."""
        parts = [histogram.buckets() for histogram in self.histograms]
        values = np.unique(np.concatenate([values for values, _ in parts]))
        counts = np.zeros((len(values), len(parts)))
        for trial, (own, count) in enumerate(parts):
            counts[np.searchsorted(values, own), trial] = count
        return values.astype(np.float64), np.cumsum(counts, axis=0)

    def at(self, weights: Floats) -> Floats:
        """The quantile of the weighted sum of the histograms, in ns: found by bisection in all rows at once."""
        values, cumulative = self._table
        rank = ranks(np.full(len(weights), self.q), weights @ cumulative[-1])
        low = np.zeros(len(weights), dtype=np.int64)
        high = np.full(len(weights), len(values) - 1)
        while np.any(low < high):
            middle = (low + high) // 2
            enough = np.einsum("rn,rn->r", weights, cumulative[middle]) >= rank
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return values[low]


def plain(sample: Sample) -> float:
    """The statistic with each trial counted once."""
    return float(sample.at(np.ones((1, sample.n)))[0])
