"""The middle of a few values of which some may be far off, and its error: medians over all pairs of them.

Percentiles of a trial that the host took CPU time from are off by factors, and no number of other trials makes up for
that in a mean. The Hodges-Lehmann estimate and Shamos' measure of spread withstand that in 29% of the values, and lose
5% and 14% of the precision where nothing is off. Exact intervals by ranks exist from six values on alone, and are owned
by one value of nine. Sources: J. L. Hodges and E. L. Lehmann, Annals of Mathematical Statistics 34, 1963; M. I. Shamos,
Geometry and Statistics, 1976. docs/decisions/0019-tails.md has the study.
"""

import numpy as np

from redline.stats.samples import Floats

_FEW = {2: (0.707, 1.0), 3: (0.732, 2.0), 4: (0.872, 3.0)}
_FACTOR, _FACTOR_LESS, _FREEDOM = 1.073, 0.76, 0.765


def middle(values: Floats) -> float:
    """The Hodges-Lehmann estimate: the median of the averages of all pairs, each value with itself too."""
    rows, columns = np.triu_indices(len(values))
    return float(np.median((values[rows] + values[columns]) / 2))


def middle_variance(values: Floats) -> tuple[float, float]:
    """The variance of the `middle` of two values or more, and its degrees of freedom.

    From the median distance of all pairs. Factor and freedom are fitted so that the middle over its error has Student's
    distribution for normal values (tests/studies/tails.py); the factor of many values is 1.0484 * sqrt(pi / 3).
    """
    n = len(values)
    rows, columns = np.triu_indices(n, 1)
    factor, freedom = _FEW.get(n) or (_FACTOR - _FACTOR_LESS / n, _FREEDOM * (n - 1))
    return (factor * float(np.median(np.abs(values[rows] - values[columns])))) ** 2 / n, freedom


def middle_shift(ours: Floats, theirs: Floats) -> float:
    """By how much ours are above theirs: the median of all differences between one of each."""
    return float(np.median(ours[:, np.newaxis] - theirs))
