"""What is computed from a set of trials, as a function of how often each trial counts.

A statistic is always that of the trials put together: a quantile of their merged histograms, a ratio of their sums.
Given as a function of weights, the same code serves the estimate (each trial once) and its resampling.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redline.model import Histogram
from redline.model.hdr import PRECISION, ranks
from redline.stats.order import ranks_around

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
BLOCKS = 10
"""A trial is cut into so many blocks of time: long enough to hold what hangs together, enough to tell how they vary."""


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

    def scores(self) -> Floats | None:
        """By how much each block of each trial moves the log of the statistic, to first order: shape (n, blocks).

        None when the trials were not cut into blocks.
        """
        ...

    def held(self, confidence: float) -> tuple[float, float] | None:
        """Between which of the requests the statistic lies if all were drawn alike; None when it is no quantile."""
        ...


@dataclass(frozen=True)
class Ratios:
    """A ratio of sums over trials: requests over seconds, CPU time over requests.

    `blocks` are the same two by trial and block, each of shape (trials, blocks).
    """

    over: Floats
    under: Floats
    resolution: float = 0.0
    blocks: tuple[Floats, Floats] | None = None

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.over)

    def at(self, weights: Floats) -> Floats:
        """The ratio of the weighted sums."""
        ratio: Floats = (weights @ self.over) / (weights @ self.under)
        return ratio

    def scores(self) -> Floats | None:
        """What each block has more than its share, over all."""
        if self.blocks is None or self.over.sum() <= 0:
            return None
        over, under = self.blocks
        scores: Floats = (over - plain(self) * under) / self.over.sum()
        return scores

    def held(self, confidence: float) -> None:
        """None: it is no quantile."""


@dataclass(frozen=True)
class Quantiles:
    """A quantile of the merged histograms of some trials; never a mean of their quantiles.

    `parts` are the histograms of the trials' intervals, in order of time; empty when they are not known.
    """

    histograms: tuple[Histogram, ...]
    q: float
    resolution: float = PRECISION
    parts: tuple[tuple[Histogram, ...], ...] = ()

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

    def scores(self) -> Floats | None:
        """What each block has more than its share of requests below the quantile, times the log of a rank's worth.

        A rank's worth is how far the log of the response time goes, around the quantile, from one request to the next.
        """
        held = self._held_ranks(CONFIDENCE)
        blocks = min([BLOCKS, *map(len, self.parts)])
        if held is None or not self.parts or blocks < 2:
            return None
        low, high = np.log(self._at_ranks(held))
        value = plain(self)
        counted = [block_sums(Histogram.counts_up_to(parts, value), blocks) for parts in self.parts]
        below, total = np.moveaxis(np.array(counted), 2, 0)
        if total.sum() == 0:
            return None
        scores: Floats = (below.sum() / total.sum() * total - below) * (high - low) / (held[1] - held[0])
        return scores

    def held(self, confidence: float) -> tuple[float, float] | None:
        """The two requests of all trials together between which the quantile lies, in ns."""
        ranks_held = self._held_ranks(confidence)
        if ranks_held is None:
            return None
        low, high = self._at_ranks(ranks_held)
        return float(low), float(high)

    def _held_ranks(self, confidence: float) -> tuple[int, int] | None:
        return ranks_around(int(self._table[1][-1].sum()), self.q, confidence)

    def _at_ranks(self, wanted: tuple[int, int]) -> Floats:
        values, cumulative = self._table
        return values[np.searchsorted(cumulative.sum(axis=1), wanted)]


def block_sums(values: ArrayLike, blocks: int) -> Floats:
    """The sums of so many runs of consecutive values, or rows, as equal in length as they can be; no more than values.

    Shape (values, ...) in, (blocks, ...) out.
    """
    rows = np.asarray(values, dtype=np.float64)
    sums: Floats = np.add.reduceat(rows, np.arange(blocks) * len(rows) // blocks, axis=0)
    return sums


def plain(sample: Sample) -> float:
    """The statistic with each trial counted once."""
    return float(sample.at(np.ones((1, sample.n)))[0])
