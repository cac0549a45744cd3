"""What a server's limit differs by from start to start: its probes are no independent draws when they share one."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy

from redline.search.queue_model import Aim, Fit, Known, Point, fit

FEWEST_STARTS = 3
"""Below which nothing is said of how starts differ."""

_MORE_THAN_CHANCE = 0.95


@dataclass(frozen=True)
class BetweenStarts:
    """The edge of the typical start, all of them weighing the same, and half the width of its interval."""

    edge_per_s: float
    half_per_s: float


def between_starts(points: Sequence[Point], known: Known, aim: Aim, whole: Fit, tail: float) -> BetweenStarts | None:
    """The answer where starts differ by more than chance does; None where they do not.

    `whole` is the model through all points, `tail` the share below the upper end. What each start says alone is told
    by leaving it out: with *h* times as many points in all as it has, h * whole - (h - 1) * rest. Of these, Student's
    *t*.
    Source: Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, Statistics and Computing 9, 1999.
    """
    starts = sorted({point.start for point in points})
    if len(starts) < FEWEST_STARTS:
        return None
    alone = []
    for start in starts:
        rest = [point for point in points if point.start != start]
        found = fit(rest, known, aim)
        if found is not None:  # few probes at two rates may make no model: then the other starts have to tell
            weight = len(points) / (len(points) - len(rest))
            alone.append(weight * whole.edge_per_s - (weight - 1) * found.edge_per_s)
    if len(alone) < FEWEST_STARTS:
        return None
    free, error = len(alone) - 1, float(np.std(alone, ddof=1)) / sqrt(len(alone))
    if (error / whole.chance_per_s) ** 2 <= scipy.stats.chi2.ppf(_MORE_THAN_CHANCE, free) / free:
        return None
    return BetweenStarts(float(np.mean(alone)), float(scipy.stats.t.ppf(tail, free)) * error)
