"""Order statistics: between which of the sorted requests a quantile lies, whatever their distribution.

Source: J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, chapter 2: of N independent
values, the number that do not exceed the q-quantile is binomial(N, q).
"""

import scipy


def ranks_around(count: int, q: float, confidence: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the two values that hold the `q`-quantile with at least that confidence.

    Each tail has at most half of what the confidence leaves. None when the values are too few for that.
    """
    tail = (1 - confidence) / 2
    below = scipy.stats.binom(count, q)
    low, high = int(below.ppf(tail)), int(below.isf(tail)) + 1
    return (low, high) if low >= 1 and high <= count else None
