"""How far off a number may be by chance: over trials, and over blocks of time within them.

Trials are the unit, so the variance over trials is the one that counts. What blocks within trials vary by is a floor
to it: few trials may agree by luck. docs/decisions/0015-two-levels.md has the reasons and the figures.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from redline.stats.resample import resamples
from redline.stats.samples import CONFIDENCE, Floats, Sample


@dataclass(frozen=True)
class Spread:
    """The variance of a logarithm by chance, and its degrees of freedom."""

    variance: float
    freedom: float

    def reach(self, resolution: float) -> float:
        """Half of the 95% interval on the log scale.

        Histograms put a value anywhere into a slot of relative width `resolution`; trials that all fall into one slot
        do not cancel that error, so its variance is added whole.
        """
        return float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom)) * self._error(resolution)

    def chance_of(self, distance: float, resolution: float) -> float:
        """How likely chance alone puts the logarithm at least `distance` above the truth: a one-sided p-value."""
        error = self._error(resolution)
        if error == 0:
            return 0.5 if distance == 0 else float(distance < 0)
        return float(scipy.stats.t.sf(distance / error, self.freedom))

    def _error(self, resolution: float) -> float:
        return math.sqrt(self.variance + resolution**2 / 12)


def over_trials(sample: Sample, against: Sample | None = None) -> Spread | None:
    """The bootstrap variance of the log of a statistic, or of the log ratio of two with the same resampled rounds.

    None for fewer than two trials, and where the statistic may be zero. The bootstrap takes the trials for the
    population, whose variance is (n-1)/n of what n trials tell; n/(n-1) mends that ("narrowness bias" in Hesterberg,
    What Teachers Should Know About the Bootstrap, 2015).
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


def within_trials(sample: Sample, against: Sample | None = None) -> Spread | None:
    """The variance that blocks within trials give the log of a statistic, or the log ratio of two paired by round.

    It is what a bootstrap of the blocks of each trial comes to with endlessly many draws: of a sum that is known
    (Carlstein 1986, blocks that do not overlap). What all trials do at the same time of their course, a ramp or a
    warm-up, is no chance and is taken out, and so is what both cells of a round do: they get the same arrivals.
    None for fewer than two trials or blocks, and where the two were not cut alike.
    """
    scores, theirs = sample.scores(), against.scores() if against else None
    if scores is None or min(scores.shape) < 2:
        return None
    if against is not None:
        if theirs is None or theirs.shape != scores.shape:
            return None
        scores = scores - theirs
    trials, blocks = scores.shape
    residuals = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    freedom = (trials - 1) * (blocks - 1)
    return Spread(float((residuals**2).sum()) / freedom * trials * blocks, freedom)


def both(ours: Spread | None, theirs: Spread | None) -> Spread | None:
    """The spread of the difference of two that have nothing in common. Freedom by Welch and Satterthwaite."""
    if ours is None or theirs is None:
        return None
    variance = ours.variance + theirs.variance
    parts = ours.variance**2 / ours.freedom + theirs.variance**2 / theirs.freedom
    return Spread(variance, variance**2 / parts if parts > 0 else min(ours.freedom, theirs.freedom))
