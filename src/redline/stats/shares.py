"""Shares of samples with intervals. docs/concepts/profiles.md explains the method."""

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
"""The number of stretches for a trial's slices: neighbouring slices are correlated, stretches hardly."""
DESIGN_EFFECT = 2.0
"""The factor by which samples without times count as fewer: consecutive samples are correlated."""
_MANY = 1_000_000.0

METHOD_TRIALS = "t interval over profiled trials"
METHOD_BATCHES = "t interval over batches of slices within trials"
METHOD_COUNT = "binomial, samples taken to be half as many"
METHOD_NONE = "no samples"


@dataclass(frozen=True)
class TrialWeights:
    """Weights in a trial, by slice in order of time: of a part of the samples, and of all samples."""

    part: Floats
    whole: Floats


@dataclass(frozen=True)
class MeasuredShare:
    """A share, or a sum of shares, with its variances by chance and their degrees of freedom."""

    value: float
    spreads: tuple[Spread, ...]
    n: int
    method: str

    @property
    def variance(self) -> float:
        """The variance by chance."""
        return sum(spread.variance for spread in self.spreads)

    def estimate(self, low: float = 0.0, high: float = 1.0) -> Estimate:
        """The share with its 95% interval, clipped to these bounds.

        The quantile is the mean of Student's quantiles, weighted by their variances, so a variance from few trials
        counts as such where it matters. Source: W. G. Cochran and G. M. Cox, Experimental Designs, 1950, section 4.14.
        """
        ends = max(low, self.value - self.half_width), min(high, self.value + self.half_width)
        return _estimate(self.value, ends, self.n, self.method)

    @property
    def half_width(self) -> float:
        """Half the width of the 95% interval."""
        return self._weighted(lambda freedom: t_quantile((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(self.variance)

    @property
    def p(self) -> float | None:
        """The two-sided p-value of zero; None if no variance is known.

        The mean of the p-values by the degrees of freedom of every variance, weighted in the same way.
        """
        if self.method == METHOD_NONE:
            return None
        error = math.sqrt(self.variance)
        if not error:
            return float(self.value == 0)
        return 2 * self._weighted(lambda freedom: t_tail(abs(self.value) / error, freedom))

    def minus(self, other: "MeasuredShare") -> "MeasuredShare":
        """The difference of two independent shares."""
        spreads = (*self.spreads, *other.spreads)
        return MeasuredShare(self.value - other.value, spreads, min(self.n, other.n), _method_of(self, other))

    def _weighted(self, of_freedom: Callable[[float], float]) -> float:
        """The mean over the variances, weighted by them."""
        variance = self.variance
        if not variance:
            return of_freedom(_MANY)
        weighted = (spread.variance * of_freedom(spread.freedom) for spread in self.spreads if spread.variance)
        return sum(weighted) / variance


@dataclass(frozen=True)
class CostChange:
    """The cost of a part relative to another's whole cost, and its difference from the part's share there.

    `ratio` is the ratio of the whole costs, `error` that of its logarithm; it is independent of both shares.
    """

    ours: MeasuredShare
    theirs: MeasuredShare
    ratio: float
    error: Spread

    @property
    def value(self) -> float:
        """Our share times the ratio, minus their share."""
        return self._cost - self.theirs.value

    def estimate(self) -> Estimate:
        """The difference with its 95% interval, from those of the cost and of their share (MOVER: Zou and Donner,
        2008).

        The cost is a product, whose logarithm is as uncertain as those of its factors: an imprecise ratio does not push
        it below zero.
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
        """The two-sided p-value of no difference; None if the chance variation is not known.

        If the two cost the same, the ratio's error applies to their common cost, taken as the logarithmic mean of both,
        so that an error in the ratio alone is tested on its own scale. A part that has no share on one side is not
        affected by the ratio, which is not zero.
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
    """The error of the logarithm of a ratio of CPU times, from its Student's t interval; None without an interval.

    Its degrees of freedom are those of the trials or starts, unless batches within a duet's starts make it wider.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    freedom = ratio.n * (BATCHES - 1) if ratio.method == METHOD_WITHIN_STARTS else max(ratio.n - 1, 1)
    reach = math.log(ratio.high / ratio.low) / 2
    return Spread((reach / t_quantile((1 + CONFIDENCE) / 2, freedom)) ** 2, freedom)


def share(trials: Sequence[TrialWeights], samples: int) -> MeasuredShare:
    """The part's share of all weight, as the ratio of the sums over trials.

    Its variance is the limit of a bootstrap of batches for many draws (Carlstein 1986, blocks that do not overlap;
    linearised): within trials over at most PROFILE_BATCHES, or over several trials, whichever makes the wider interval.
    If no trial has two slices, or the part was never seen, it is that of `samples` draws.
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
