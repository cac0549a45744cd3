"""Shares of samples with intervals. docs/concepts/profiles.md teaches the method."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redline.model import Estimate
from redline.stats.distributions import t_quantile, t_tail
from redline.stats.duets import BATCHES, METHOD_WITHIN_STARTS
from redline.stats.estimate import Spread
from redline.stats.samples import CONFIDENCE, Floats

PROFILE_BATCHES = 20
"""Into so many stretches of time the slices of a trial are put: neighbours resemble each other, stretches hardly."""
DESIGN_EFFECT = 2.0
"""Samples say so much less than their number where no times are known: those in a row resemble each other."""
_MANY = 1_000_000.0

METHOD_TRIALS = "t interval over profiled trials"
METHOD_BATCHES = "t interval over batches of slices within trials"
METHOD_COUNT = "binomial, samples taken to be half as many"
METHOD_NONE = "no samples"


@dataclass(frozen=True)
class TrialWeights:
    """Weights in one trial, by slice in order of time: of a part of the samples, and of all of them."""

    part: Floats
    whole: Floats


@dataclass(frozen=True)
class MeasuredShare:
    """A share, or a sum of such, with the variances that chance adds to it, each with its degrees of freedom."""

    value: float
    spreads: tuple[Spread, ...]
    n: int
    method: str

    @property
    def variance(self) -> float:
        """The variance by chance."""
        return sum(spread.variance for spread in self.spreads)

    def estimate(self, low: float = 0.0, high: float = 1.0) -> Estimate:
        """With its 95% interval, held within these bounds.

        Its quantile is the mean of those of Student's t, each weighted with its variance: what few trials say counts
        as few wherever it matters. Source: W. G. Cochran and G. M. Cox, Experimental Designs, 1950, section 4.14.
        """
        ends = max(low, self.value - self.half_width), min(high, self.value + self.half_width)
        return _estimate(self.value, ends, self.n, self.method)

    @property
    def half_width(self) -> float:
        """Half the width of its 95% interval."""
        return self._weighted(lambda freedom: t_quantile((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(self.variance)

    @property
    def p(self) -> float | None:
        """How likely chance alone puts it as far from zero, to either side; None where chance is not known.

        The mean of the p-values that each variance's own degrees of freedom give, weighted in the same way.
        """
        if self.method == METHOD_NONE:
            return None
        error = math.sqrt(self.variance)
        if not error:
            return float(self.value == 0)
        return 2 * self._weighted(lambda freedom: t_tail(abs(self.value) / error, freedom))

    def minus(self, other: "MeasuredShare") -> "MeasuredShare":
        """The difference of two that have nothing in common."""
        spreads = (*self.spreads, *other.spreads)
        return MeasuredShare(self.value - other.value, spreads, min(self.n, other.n), _method_of(self, other))

    def _weighted(self, of_freedom: Callable[[float], float]) -> float:
        """The mean over the variances, the larger ones counting more."""
        variance = self.variance
        if not variance:
            return of_freedom(_MANY)
        weighted = (spread.variance * of_freedom(spread.freedom) for spread in self.spreads if spread.variance)
        return sum(weighted) / variance


@dataclass(frozen=True)
class CostChange:
    """What a part costs in parts of another's whole cost, and how that differs from its share there.

    `ratio` is the one whole cost over the other, `error` that of its logarithm; it has nothing in common with either
    share.
    """

    ours: MeasuredShare
    theirs: MeasuredShare
    ratio: float
    error: Spread

    @property
    def value(self) -> float:
        """Our share times the ratio, less their share."""
        return self._cost - self.theirs.value

    def estimate(self) -> Estimate:
        """With its 95% interval, from those of the cost and of their share (MOVER: Zou and Donner, 2008).

        The cost is a product, whose logarithm is as uncertain as those of its factors: it does not fall below zero
        because the ratio is hardly known.
        """
        share, half, off = self.ours.value, self.ours.half_width, self.theirs.half_width
        reach = t_quantile((1 + CONFIDENCE) / 2, self.error.freedom) * math.sqrt(self.error.variance)
        below = self._cost * math.exp(-math.hypot(reach, math.log(share / (share - half)))) if share > half else 0.0
        above = self.ratio * half * math.exp(reach)
        if share > 0:
            above = self._cost * math.exp(math.hypot(reach, math.log1p(half / share)))
        low = self.value - math.hypot(self._cost - below, off)
        high = self.value + math.hypot(above - self._cost, min(off, self.theirs.value))
        return _estimate(self.value, (low, high), min(self.ours.n, self.theirs.n), self._method)

    @property
    def p(self) -> float | None:
        """How likely chance alone puts it as far from zero, to either side; None where chance is not known.

        If the two cost the same, the ratio's error is that of this same cost, in between what was seen of both: their
        logarithmic mean, so that a wrong ratio alone is tested on its own scale. What has no share in one of them is
        not made doubtful by the ratio, which is not zero.
        """
        if self._method == METHOD_NONE:
            return None
        alike = _logarithmic_mean(self._cost, self.theirs.value)
        spreads = (
            *(Spread(self.ratio**2 * spread.variance, spread.freedom) for spread in self.ours.spreads),
            *self.theirs.spreads,
            Spread(alike**2 * self.error.variance, self.error.freedom),
        )
        return MeasuredShare(self.value, spreads, 1, self._method).p

    @property
    def _cost(self) -> float:
        return self.ours.value * self.ratio

    @property
    def _method(self) -> str:
        return _method_of(self.ours, self.theirs)


def _method_of(ours: MeasuredShare, theirs: MeasuredShare) -> str:
    return METHOD_NONE if METHOD_NONE in (ours.method, theirs.method) else ours.method


def _estimate(value: float, ends: tuple[float, float], n: int, method: str) -> Estimate:
    low, high = (None, None) if method == METHOD_NONE else ends
    return Estimate(value=value, low=low, high=high, unit="share", n=n, method=method)


def _logarithmic_mean(ours: float, theirs: float) -> float:
    """The logarithmic mean; 0 where either is 0."""
    if min(ours, theirs) <= 0:
        return 0.0
    apart = math.log(ours / theirs)
    return (ours - theirs) / apart if abs(apart) > 1e-9 else ours


def error_of(ratio: Estimate) -> Spread | None:
    """The error of the logarithm of a ratio of CPU times, from its interval, which is Student's t; None without one.

    Its freedom is that of its trials, or starts, but for a duet's where the batches within starts make it wider.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    freedom = ratio.n * (BATCHES - 1) if ratio.method == METHOD_WITHIN_STARTS else max(ratio.n - 1, 1)
    reach = math.log(ratio.high / ratio.low) / 2
    return Spread((reach / t_quantile((1 + CONFIDENCE) / 2, freedom)) ** 2, freedom)


def share(trials: Sequence[TrialWeights], samples: int) -> MeasuredShare:
    """The part's share of all weight, by trials of slices: the ratio of the sums.

    Its variance is that of a bootstrap of batches with endlessly many draws (Carlstein 1986, blocks that do not
    overlap; linearised): within trials over at most PROFILE_BATCHES, or over several trials, whichever makes the wider
    interval. Where no trial has two slices, or the part was never seen, it is that of `samples` draws.
    """
    whole = float(sum(trial.whole.sum() for trial in trials))
    if whole <= 0:
        return MeasuredShare(0.0, (), len(trials), METHOD_NONE)
    value = float(sum(trial.part.sum() for trial in trials)) / whole
    spreads = [*filter(None, (_within(trials, value, whole), _over(trials, value, whole)))]
    if not spreads or value == 0:
        draws = max(samples, 1) / DESIGN_EFFECT
        # Agresti and Coull, The American Statistician 52, 1998: two hits and two misses more.
        near = (value * draws + 2) / (draws + 4)
        return MeasuredShare(value, (Spread(near * (1 - near) / (draws + 4), _MANY),), len(trials), METHOD_COUNT)
    spread, method = max(spreads, key=lambda spread: spread[0].reach(0.0))
    return MeasuredShare(value, (spread,), len(trials), method)


def _within(trials: Sequence[TrialWeights], value: float, whole: float) -> tuple[Spread, str] | None:
    variance, freedom = 0.0, 0
    for trial in trials:
        batches = min(PROFILE_BATCHES, len(trial.whole))
        if batches < 2:
            continue
        residuals = np.array([batch.sum() for batch in np.array_split(trial.part - value * trial.whole, batches)])
        variance += float(((residuals - residuals.mean()) ** 2).sum()) * batches / (batches - 1)
        freedom += batches - 1
    return (Spread(variance / whole**2, freedom), METHOD_BATCHES) if freedom else None


def _over(trials: Sequence[TrialWeights], value: float, whole: float) -> tuple[Spread, str] | None:
    if len(trials) < 2:
        return None
    residuals = np.array([(trial.part - value * trial.whole).sum() for trial in trials])
    variance = float((residuals**2).sum()) * len(trials) / (len(trials) - 1) / whole**2
    return Spread(variance, len(trials) - 1), METHOD_TRIALS
