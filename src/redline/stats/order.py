"""Order statistics: between which of the sorted requests a quantile lies, whatever their distribution.

Source: J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, chapter 2: of N independent
values, the number that do not exceed the q-quantile is binomial(N, q).
"""

from functools import lru_cache

import scipy


@lru_cache(4096)  # each cell's percentiles are asked for once by its estimate, and again by each comparison
def ranks_around(count: int, q: float, confidence: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the two values that hold the `q`-quantile with at least that confidence.

    Each tail has at most half of what the confidence leaves. None when the values are too few for that.
    """
    tail = (1 - confidence) / 2
    low, high = int(scipy.stats.binom.ppf(tail, count, q)), int(scipy.stats.binom.isf(tail, count, q)) + 1
    return (low, high) if low >= 1 and high <= count else None
