"""The difference of two statistics over trials of the same rounds, in the unit of both."""

import math

import scipy

from redline.model import Estimate, Metric
from redline.stats import CONFIDENCE
from redline.stats.estimate import METHOD_NONE
from redline.stats.resample import resamples
from redline.stats.samples import Sample, plain

METHOD_DIFFERENCE = "t interval with the bootstrap standard error of the difference, over trials paired by round"


def paired_difference(cell: Sample, baseline: Sample, metric: Metric) -> Estimate:
    """Cell minus baseline, where trial i of both ran in the same round; without an interval when n < 2.

    The interval is that of `paired_ratio` with a difference in place of the log of the ratio: rounds are resampled, and
    both cells with them, so what made a whole round slow is in both and cancels. It is symmetric about the value, and
    zero lies in it where the two cannot be told apart. A baseline of zero is no obstacle, as it is to a ratio.
    """
    value = plain(cell) - plain(baseline)
    half = _half_width(cell, baseline)
    return Estimate(
        value=value,
        low=None if half is None else value - half,
        high=None if half is None else value + half,
        confidence=CONFIDENCE,
        unit=metric.unit,
        n=min(cell.n, baseline.n),
        method=METHOD_NONE if half is None else METHOD_DIFFERENCE,
    )


def _half_width(cell: Sample, baseline: Sample) -> float | None:
    if cell.n < 2:
        return None
    drawn = resamples(cell.n)
    differences = cell.at(drawn.weights) - baseline.at(drawn.weights)
    mean = float(differences @ drawn.probability)
    # The bootstrap's spread is too small by (n-1)/n, as for a ratio; a value lies anywhere in its histogram's slot.
    variance = float((differences - mean) ** 2 @ drawn.probability) * cell.n / (cell.n - 1)
    slots = (cell.resolution * plain(cell)) ** 2 + (baseline.resolution * plain(baseline)) ** 2
    return float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, cell.n - 1)) * math.sqrt(variance + slots / 12)
