"""What a server's limit differs by from start to start: its probes are no independent draws when they share one."""

from collections.abc import Sequence
from math import sqrt

from scipy import stats

from redline.search.waiting import Aim, Fit, Known, Point, fit

FEWEST_STARTS = 3
"""Below which nothing is said of how starts differ."""

_MORE_THAN_CHANCE = 0.95


def between_starts(points: Sequence[Point], known: Known, aim: Aim, whole: Fit, tail: float) -> float:
    """Half the width that the differences between starts ask for; 0 where chance alone makes as large ones.

    `whole` is the model through all points, `tail` the share below the upper end.

    By leaving out the probes of one start at a time, with Student's *t* of so many starts. Starts have different
    numbers of probes: what leaving one out changes counts by its share of them.
    Source: Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, Statistics and Computing 9, 1999.
    """
    starts = sorted({point.start for point in points})
    if len(starts) < FEWEST_STARTS:
        return 0.0
    parts = []
    for start in starts:
        rest = [point for point in points if point.start != start]
        found = fit(rest, known, aim)
        if found is not None:  # few probes at two rates may make no model: then the other starts have to tell
            weight = len(points) / (len(points) - len(rest))
            parts.append((weight - 1) * (whole.edge_per_s - found.edge_per_s) ** 2)
    free = len(parts) - 1
    if free < 1:
        return 0.0
    variance = sum(parts) / len(parts)
    if variance / whole.chance_per_s**2 <= stats.chi2.ppf(_MORE_THAN_CHANCE, free) / free:
        return 0.0
    return float(stats.t.ppf(tail, free)) * sqrt(variance)
