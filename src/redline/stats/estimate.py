"""Estimates with intervals, and comparisons of two of them. The method is taught in docs/concepts/statistics.md."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from redline.model import Estimate, Metric, Verdict
from redline.stats.resample import resamples
from redline.stats.samples import Floats, Sample, plain

CONFIDENCE = 0.95
METHOD = "t interval with the bootstrap standard error of the log, over trials"
METHOD_PAIRED = f"{METHOD} paired by round"
METHOD_UNPAIRED = f"{METHOD} of two independent runs"
METHOD_NONE = "too few trials for an interval"


@dataclass(frozen=True)
class Spread:
    """The variance of a logarithm over trials, and its degrees of freedom."""

    variance: float
    freedom: float

    def half_width(self, resolution: float) -> float:
        """Half of the interval on the log scale.

        Histograms put a value anywhere into a slot of relative width `resolution`; trials that all fall into one slot
        do not cancel that error, so its variance is added whole.
        """
        error = math.sqrt(self.variance + resolution**2 / 12)
        return float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom)) * error


def estimate(sample: Sample, metric: Metric) -> Estimate:
    """The metric of these trials put together, with its interval; without one when n < 2 or it may be zero."""
    value = plain(sample)
    spread = _spread(sample)
    low, high = _around(value, spread.half_width(sample.resolution)) if spread else (None, None)
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        unit=metric.unit,
        n=sample.n,
        method=METHOD if spread else METHOD_NONE,
    )


def paired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    """Cell over baseline, where trial i of both ran in the same round; None when either is zero."""
    return _ratio(cell, baseline, _spread(cell, baseline), METHOD_PAIRED)


def unpaired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    """Cell over baseline of two runs; None when either is zero. Freedom by Welch and Satterthwaite."""
    ours, theirs = _spread(cell), _spread(baseline)
    both = None
    if ours and theirs:
        variance = ours.variance + theirs.variance
        parts = ours.variance**2 / ours.freedom + theirs.variance**2 / theirs.freedom
        freedom = variance**2 / parts if parts > 0 else min(ours.freedom, theirs.freedom)
        both = Spread(variance, freedom)
    return _ratio(cell, baseline, both, METHOD_UNPAIRED)


def verdict(ratio: Estimate, metric: Metric, threshold: float) -> Verdict:
    """What the interval of a ratio allows to say; `threshold` is the smallest relative difference that matters."""
    if ratio.low is None or ratio.high is None:
        return Verdict.INCONCLUSIVE
    if 1 / (1 + threshold) <= ratio.low and ratio.high <= 1 + threshold:
        return Verdict.EQUIVALENT
    if ratio.low <= 1 <= ratio.high:
        return Verdict.INCONCLUSIVE
    return Verdict.FASTER if (ratio.low > 1) == metric.higher_is_better else Verdict.SLOWER


def _ratio(cell: Sample, baseline: Sample, spread: Spread | None, method: str) -> Estimate | None:
    over, under = plain(cell), plain(baseline)
    if over <= 0 or under <= 0:
        return None
    value = over / under
    resolution = math.hypot(cell.resolution, baseline.resolution)
    low, high = _around(value, spread.half_width(resolution)) if spread else (None, None)
    return Estimate(
        value=value,
        low=low,
        high=high,
        confidence=CONFIDENCE,
        unit="ratio",
        n=min(cell.n, baseline.n),
        method=method if spread else METHOD_NONE,
    )


def _around(value: float, half_width: float) -> tuple[float, float]:
    # Two trials that differ wildly give a half width whose exponential is past a double; it then says "anything".
    reach = math.exp(min(half_width, 300.0))
    return value / reach, value * reach


def _spread(sample: Sample, against: Sample | None = None) -> Spread | None:
    """The bootstrap variance of the log of a statistic, or of the log ratio of two with the same resampled rounds.

    The bootstrap takes the trials for the population, whose variance is (n-1)/n of what n trials tell; n/(n-1) mends
    that ("narrowness bias" in Hesterberg, What Teachers Should Know About the Bootstrap, 2015).
    """
    if sample.n < 2:
        return None
    drawn = resamples(sample.n)
    values = sample.at(drawn.weights)
    others = against.at(drawn.weights) if against else np.ones_like(values)
    if np.any(values <= 0) or np.any(others <= 0):
        return None
    logs: Floats = np.log(values) - np.log(others)
    mean = float(logs @ drawn.probability)
    variance = float((logs - mean) ** 2 @ drawn.probability) * sample.n / (sample.n - 1)
    return Spread(variance, sample.n - 1)
