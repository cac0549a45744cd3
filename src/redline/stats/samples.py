"""Statistics of a set of trials as functions of the trials' weights, for estimates and resamples.

A statistic is that of all trials together: a quantile of their merged histograms, a ratio of their sums.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from redline.lazily import dataclass
from redline.model import Histogram, HistogramTable
from redline.model.hdr import PRECISION, highest_of, ranks
from redline.stats.distributions import quantile_ranks

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
BATCHES = 10
"""Batches of a trial or a start: long enough to contain correlated values, enough of them to show their variance."""

ENUMERATED_UP_TO = 7
"""With n trials there are C(2n-1, n) different resamples: 1,716 for 7. Up to this n all of them are used."""

DRAWS = 9_999
_ROWS_AT_ONCE = 20_000
"""Rows of resamples whose quantiles are searched together: more would take much memory, and no less time."""
SEED = 20_150_101


@dataclass(frozen=True)
class Resamples:
    """Weights of shape (rows, n), each row summing to n, and the probability of each row."""

    weights: Floats
    probability: Floats


@cache
def resamples(n: int) -> Resamples:
    """All resamples of n trials with replacement if they are few, otherwise `DRAWS` of them from a fixed seed."""
    if n > ENUMERATED_UP_TO:
        drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        return Resamples(drawn.astype(np.float64), np.full(DRAWS, 1 / DRAWS))
    places = list(combinations(range(2 * n - 1), n - 1))
    bars = np.array(places, dtype=np.int64).reshape(len(places), n - 1)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), 2 * n - 1)])
    weights = np.diff(edges, axis=1) - 1
    orders = math.factorial(n) / np.array([math.factorial(k) for k in range(n + 1)])[weights].prod(axis=1)
    return Resamples(weights.astype(np.float64), orders / n**n)


def log_variances(values: Floats, n: int) -> list[float | None]:
    """The bootstrap variances of the logs of statistics by all `resamples` of n trials: shape (statistics, rows).

    None for those that may be zero.
    """
    has_zero = np.minimum.reduce(values, axis=1) <= 0
    logs = np.log(np.where(has_zero[:, np.newaxis], 1.0, values) if has_zero.any() else values)
    made = bootstrap_variances(logs, n)
    return [None if zero else variance for zero, variance in zip(has_zero.tolist(), made, strict=True)]


def bootstrap_variances(values: Floats, n: int) -> list[float]:
    """The variances of statistics by all `resamples` of n trials, which are a row each: corrected by n/(n-1)."""
    probability = resamples(n).probability
    off = values - np.array([row @ probability for row in values])[:, np.newaxis]
    off *= off
    return [float(row @ probability) * n / (n - 1) for row in off]


def batch_variances(scores: Floats) -> list[float | None]:
    """The variances of statistics by the scores of batches: shape (statistics, trials, batches).

    What batches at the same place of all trials share is left out. None for fewer than two trials or batches.
    """
    statistics, trials, batches = scores.shape
    if min(trials, batches) < 2:
        return [None] * statistics
    by_batch = np.add.reduce(scores, axis=1, keepdims=True) / trials
    by_trial = np.add.reduce(scores, axis=2, keepdims=True) / batches
    size = trials * batches
    residuals = scores - by_batch
    residuals -= by_trial
    residuals += (np.add.reduce(scores.reshape(statistics, size), axis=1) / size)[:, np.newaxis, np.newaxis]
    residuals *= residuals
    squares = np.add.reduce(residuals.reshape(statistics, size), axis=1)
    variances: list[float | None] = (squares / ((trials - 1) * (batches - 1)) * trials * batches).tolist()
    return variances


class Sample(ABC):
    """A metric in the `n` trials of a cell.

    `resolution` is the relative step of the statistic; 0 if it is continuous. `hosts` are the hosts of the trials;
    empty if all ran on this host.
    """

    n: int
    resolution: float
    hosts: tuple[str, ...] = ()

    @abstractmethod
    def at(self, weights: Floats) -> Floats:
        """The statistic for every row of `weights`: shape (rows, n) in, (rows,) out."""

    @cached_property
    def scores(self) -> Floats | None:
        """The first-order influence of every batch of every trial on the statistic's log: shape (n, batches).

        None if the trials have no batches.
        """
        return None

    @cached_property
    def held(self) -> tuple[float, float] | None:
        """The order statistics that enclose the quantile by `CONFIDENCE`, for independent requests; else None."""
        return None

    @cached_property
    def value(self) -> float:
        """The statistic with every trial counted once."""
        return float(self.at(np.ones((1, self.n)))[0])

    @cached_property
    def by_trial(self) -> Floats:
        """The statistic of every trial by itself."""
        return self.at(np.eye(self.n))

    @cached_property
    def resampled(self) -> Floats:
        """The statistic of all `resamples` of the trials."""
        return self.at(resamples(self.n).weights)

    @cached_property
    def log_variance(self) -> float | None:
        """The bootstrap variance of the statistic's log over at least two trials; None if it may be zero."""
        return log_variances(self.resampled[np.newaxis], self.n)[0]

    @cached_property
    def batch_variance(self) -> float | None:
        """The variance of the statistic's log by its `scores`; None for fewer than two trials or batches."""
        return None if self.scores is None else batch_variances(self.scores[np.newaxis])[0]


class Ratios(Sample):
    """A ratio of sums over trials: requests over seconds, CPU time over requests.

    `batches` are the two terms by trial and batch, both of shape (trials, batches).
    """

    def __init__(
        self, over: Floats, under: Floats, resolution: float = 0.0, batches: tuple[Floats, Floats] | None = None
    ) -> None:
        self.over, self.under, self.resolution, self.batches = over, under, resolution, batches
        self.n = len(over)

    def at(self, weights: Floats) -> Floats:
        """The ratio of the weighted sums."""
        ratio: Floats = (weights @ self.over) / (weights @ self.under)
        return ratio

    @cached_property
    def scores(self) -> Floats | None:
        """The excess of every batch over its share, relative to the total."""
        if self.batches is None or self.over.sum() <= 0:
            return None
        over, under = self.batches
        scores: Floats = (over - self.value * under) / self.over.sum()
        return scores


class Merged:
    """The histograms of trials side by side, for all of their quantiles.

    `parts` are the histograms of the trials' intervals, in order of time; empty if they are not known. Decoded data is
    large; after `release` it is decoded again when needed.
    """

    def __init__(self, histograms: Sequence[Histogram], parts: Sequence[Sequence[Histogram]] = ()) -> None:
        self.histograms, self.parts = tuple(histograms), tuple(parts)
        self.samples: dict[float, Quantiles] = {}

    @cached_property
    def table(self) -> tuple[Floats, Floats]:
        """Ascending bucket values in ns, shape (buckets,), and cumulative counts, shape (buckets, trials)."""
        slots, counts = HistogramTable(self.histograms).aligned()
        return highest_of(slots).astype(np.float64), counts.cumsum(axis=1).astype(np.float64).T

    def sample(self, q: float) -> "Quantiles":
        """The sample of a quantile, the same one until these are released."""
        if q not in self.samples:
            self.samples[q] = Quantiles(self, q)
        return self.samples[q]

    @cached_property
    def columns(self) -> Floats:
        """The cumulative counts of each trial, one trial after the other: shape (trials, buckets)."""
        return self.table[1].T

    @cached_property
    def total(self) -> Floats:
        """The cumulative counts of all trials together."""
        total: Floats = self.columns.sum(axis=0)
        return total

    @cached_property
    def intervals(self) -> HistogramTable:
        """The parts of all trials, one trial after the other."""
        return HistogramTable([part for parts in self.parts for part in parts])

    @cached_property
    def batches(self) -> int:
        """The number of batches of each trial; 0 without parts."""
        return min([BATCHES, *map(len, self.parts)]) if self.parts else 0

    @cached_property
    def _batch_starts(self) -> NDArray[np.int64]:
        """The first of the `intervals` of each batch, trial by trial."""
        lengths = np.array([len(parts) for parts in self.parts])
        own = np.arange(self.batches) * lengths[:, np.newaxis] // self.batches
        starts: NDArray[np.int64] = (own + (np.cumsum(lengths) - lengths)[:, np.newaxis]).ravel()
        return starts

    def by_batch(self, counts: NDArray[np.int64]) -> Floats:
        """The sums of the counts of the `intervals` by trial and batch, as `batch_sums` cuts each trial.

        Shape (..., intervals) in, (..., trials, batches) out.
        """
        sums = np.add.reduceat(counts, self._batch_starts, axis=-1).astype(np.float64)
        return sums.reshape(*counts.shape[:-1], len(self.parts), self.batches)

    @cached_property
    def batch_totals(self) -> Floats:
        """The requests of each batch, by trial."""
        return self.by_batch(self.intervals.counts)

    def release(self) -> None:
        """Free the decoded data, and the resamples."""
        for name in ("table", "columns", "total", "intervals"):
            self.__dict__.pop(name, None)
        for sample in self.samples.values():
            sample.__dict__.pop("resampled", None)
        self.samples.clear()


class Quantiles(Sample):
    """A quantile of the merged histograms of trials; never a mean of their quantiles."""

    def __init__(self, merged: Merged | Sequence[Histogram], q: float) -> None:
        self.merged = merged if isinstance(merged, Merged) else Merged(merged)
        self.q = q
        self.n = len(self.merged.histograms)
        self.resolution = PRECISION

    def at(self, weights: Floats) -> Floats:
        """The quantile of the weighted sum of the histograms, in ns."""
        return self._search(np.ascontiguousarray(weights.T), *self._rows(weights))

    def _rows(self, weights: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """The rank of the quantile in every weighted sum, and the buckets that enclose it."""
        rank = ranks(np.full(len(weights), self.q), weights @ self.merged.table[1][-1])
        return rank, *self._bounds(weights, rank)

    def _search(self, by_trial: Floats, rank: Floats, low: NDArray[np.int64], high: NDArray[np.int64]) -> Floats:
        """The values at these ranks of the sums weighted `by_trial`, by bisection in all of its columns at once."""
        columns = self.merged.columns
        last, furthest = low - 1, high - 1  # the last bucket that is known to be too low, and how far it may be
        step = 1 << int((high - low).max(initial=0)).bit_length() >> 1
        while step:
            at = np.minimum(last + step, furthest)
            last = np.where(np.einsum("nr,nr->r", by_trial, columns.take(at, axis=1)) < rank, at, last)
            step >>= 1
        return self.merged.table[0][last + 1]

    @classmethod
    def several(cls, merged: Merged, qs: Sequence[float]) -> "list[Quantiles]":
        """The samples of several quantiles, which are computed together, in far fewer calls."""
        samples = [merged.sample(q) for q in qs]
        new = [sample for sample in samples if "resampled" not in vars(sample)]
        if len(merged.histograms) > 1:
            weights = resamples(len(merged.histograms)).weights
            size = max(_ROWS_AT_ONCE // len(weights), 1)
            for first in range(0, len(new), size):
                _SeveralQuantiles(merged, new[first : first + size]).compute(weights)
        return samples

    @cached_property
    def value(self) -> float:
        """The quantile with every trial counted once."""
        rank = ranks(np.array([self.q]), float(self.merged.total[-1]))
        return float(self._at_ranks(rank)[0])

    @cached_property
    def by_trial(self) -> Floats:
        """The quantile of every trial by itself."""
        values, cumulative = self.merged.table
        if not cumulative[-1].all():
            return super().by_trial
        return values[self._own]

    @cached_property
    def _own(self) -> NDArray[np.int64]:
        """The bucket of every trial's quantile; 0 for a trial without requests."""
        wanted = ranks(np.array(self.q), self.merged.table[1][-1])
        return np.array(
            [np.searchsorted(column, rank) for column, rank in zip(self.merged.columns, wanted, strict=True)],
            dtype=np.int64,
        )

    def _bounds(self, weights: Floats, rank: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The buckets that enclose the quantile of every row: a mixture's quantile lies between those of its parts."""
        cumulative = self.merged.table[1]
        own = self._own[cumulative[-1] > 0]
        low, high = int(own.min(initial=len(cumulative) - 1)), int(own.max(initial=0))
        # Rounding of ranks may move it by a bucket, so the ends are tried.
        if np.any(weights @ cumulative[high] < rank) or (low > 0 and np.any(weights @ cumulative[low - 1] >= rank)):
            low, high = 0, len(cumulative) - 1
        return np.full(len(weights), low), np.full(len(weights), high)

    @cached_property
    def scores(self) -> Floats | None:
        """The excess of every batch over its share of requests below the quantile, times the worth of a rank.

        A rank's worth is the step of the log response time from one request to the next around the quantile.
        """
        held = self._held_ranks
        if held is None or self.merged.batches < 2:
            return None
        low, high = np.log(self._at_ranks(held))
        intervals = self.merged.intervals
        below, total = self.merged.by_batch(intervals.counts_up_to(self.value)), self.merged.batch_totals
        if total.sum() == 0:
            return None
        scores: Floats = (below.sum() / total.sum() * total - below) * (high - low) / (held[1] - held[0])
        return scores

    @cached_property
    def held(self) -> tuple[float, float] | None:
        """The times of the two requests, over all trials together, that enclose the quantile, in ns."""
        if self._held_ranks is None:
            return None
        low, high = self._at_ranks(self._held_ranks)
        return float(low), float(high)

    @cached_property
    def _held_ranks(self) -> tuple[int, int] | None:
        return quantile_ranks(int(self.merged.total[-1]), self.q, CONFIDENCE)

    def _at_ranks(self, wanted: ArrayLike) -> Floats:
        return self.merged.table[0][np.searchsorted(self.merged.total, wanted)]


class _SeveralQuantiles:
    """Several quantiles of the same trials, computed at once to the values that each would have by itself."""

    def __init__(self, merged: Merged, samples: Sequence[Quantiles]) -> None:
        self._merged, self._samples = merged, samples
        self._qs = np.array([sample.q for sample in samples])

    def compute(self, weights: Floats) -> None:
        """Give each sample its value, the values of its trials and resamples, and the scores of its batches."""
        values, cumulative = self._merged.table
        whole = np.searchsorted(self._merged.total, ranks(self._qs, float(self._merged.total[-1])))
        wanted = ranks(self._qs[:, np.newaxis], cumulative[-1])
        columns = [np.searchsorted(column, wanted[:, at]) for at, column in enumerate(self._merged.columns)]
        own = np.stack(columns, axis=1)
        resampled = self._resampled(own, weights)
        variances = log_variances(resampled, len(self._merged.histograms))
        rows = zip(self._samples, values[whole].tolist(), own, resampled, variances, strict=True)
        all_have_some, by_trial = cumulative[-1].all(), values[own]
        for at, (sample, value, places, found, variance) in enumerate(rows):
            sample.value, sample._own, sample.resampled = value, places, found  # noqa: SLF001
            sample.log_variance = variance
            if all_have_some:
                sample.by_trial = by_trial[at]
        self._compute_scores()

    def _resampled(self, own: NDArray[np.int64], weights: Floats) -> Floats:
        """The quantiles of all resamples: shape (quantiles, rows). As `Quantiles.at`; sums of counts are exact."""
        cumulative = self._merged.table[1]
        rank = ranks(self._qs[:, np.newaxis], weights @ cumulative[-1])
        known = own[:, cumulative[-1] > 0]
        low, high = known.min(axis=1, initial=len(cumulative) - 1), known.max(axis=1, initial=0)
        short = np.any(rank > (weights @ cumulative[high].T).T, axis=1)
        over = (low > 0) & np.any(rank <= (weights @ cumulative[np.maximum(low - 1, 0)].T).T, axis=1)
        low[short | over], high[short | over] = 0, len(cumulative) - 1
        rows, n = len(weights), len(self._samples)
        ends = np.repeat(low, rows), np.repeat(high, rows)
        by_trial = np.tile(np.ascontiguousarray(weights.T), (1, n))
        found = self._samples[0]._search(by_trial, rank.ravel(), *ends)  # noqa: SLF001
        return found.reshape(n, rows)

    def _compute_scores(self) -> None:
        held = [sample._held_ranks if 0 < sample.q < 1 else None for sample in self._samples]  # noqa: SLF001 - of our own module
        known = [sample for sample, ends in zip(self._samples, held, strict=True) if ends is not None]
        if not known:
            return
        ends = np.array([ranks for ranks in held if ranks is not None])
        times = self._merged.table[0][np.searchsorted(self._merged.total, ends)]
        for sample, (low, high) in zip(known, times.tolist(), strict=True):
            sample.held = low, high
        if self._merged.batches < 2 or self._merged.batch_totals.sum() == 0:
            return
        spans = np.log(times)
        counts = self._merged.intervals.counts_up_to_each([sample.value for sample in known])
        below, total = self._merged.by_batch(counts), self._merged.batch_totals
        share = below.sum(axis=(1, 2)) / total.sum()
        worth, requests = (spans[:, 1] - spans[:, 0]), (ends[:, 1] - ends[:, 0])
        over = share[:, np.newaxis, np.newaxis] * total - below
        scores = over * worth[:, np.newaxis, np.newaxis] / requests[:, np.newaxis, np.newaxis]
        for sample, own, variance in zip(known, scores, batch_variances(scores), strict=True):
            sample.scores, sample.batch_variance = own, variance


class LogRatios(Sample):
    """The log ratios of two servers in fresh starts of a duet; the statistic is the geometric mean of the ratios."""

    def __init__(self, logs: Floats, resolution: float = 0.0) -> None:
        self.logs, self.resolution = logs, resolution
        self.n = len(logs)

    def at(self, weights: Floats) -> Floats:
        """The geometric mean of the weighted ratios."""
        means: Floats = np.exp(weights @ self.logs / weights.sum(axis=1))
        return means


def pooled(samples: Sequence[Sample]) -> Sample:
    """All trials of at least one sample of the same metric, in their order, without batches.

    Raises TypeError for samples of different kinds.
    """
    starts = [sample for sample in samples if isinstance(sample, LogRatios)]
    if len(starts) == len(samples):
        return LogRatios(np.concatenate([sample.logs for sample in starts]), max(one.resolution for one in starts))
    ratios = [sample for sample in samples if isinstance(sample, Ratios)]
    if len(ratios) == len(samples):
        over = np.concatenate([ratio.over for ratio in ratios])
        under = np.concatenate([ratio.under for ratio in ratios])
        return Ratios(over, under, max(ratio.resolution for ratio in ratios))
    quantiles = [sample for sample in samples if isinstance(sample, Quantiles)]
    if len(quantiles) != len(samples):
        raise TypeError("samples of different kinds have no trials in common")
    return Quantiles([histogram for quantile in quantiles for histogram in quantile.merged.histograms], quantiles[0].q)


def batch_sums(values: ArrayLike, batches: int) -> Floats:
    """Sum consecutive values, or rows, in batches of nearly equal length; at most as many batches as values.

    Shape (values, ...) in, (batches, ...) out.
    """
    rows = np.asarray(values, dtype=np.float64)
    sums: Floats = np.add.reduceat(rows, np.arange(batches) * len(rows) // batches, axis=0)
    return sums
