"""What difference a number of rounds can show, and how many a difference takes: by Student's t, on logarithms."""

import math

from redline.model import Estimate
from redline.stats.distributions import t_quantile
from redline.stats.samples import CONFIDENCE

_MOST = 10_000
"""Nobody makes more rounds."""


def scatter_of(ratio: Estimate) -> float | None:
    """By how much rounds differ, as a standard deviation of the log ratio, if its interval is that of `n` of them."""
    if ratio.low is None or ratio.high is None or ratio.low <= 0 or ratio.n < 2:
        return None
    half = math.log(ratio.high / ratio.low) / 2
    return half * math.sqrt(ratio.n) / _t(ratio.n)


def shown_by(scatter: float, rounds: int) -> float:
    """The smallest relative difference that so many rounds show: half the width of their interval."""
    return math.expm1(min(_t(rounds) * scatter / math.sqrt(rounds), 100.0))


def rounds_for(scatter: float, difference: float) -> int | None:
    """The fewest rounds that show such a difference; None when nobody makes so many."""
    if shown_by(scatter, _MOST) > difference:
        return None
    low, high = 2, _MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shown_by(scatter, middle) <= difference else (middle + 1, high)
    return low


def _t(rounds: int) -> float:
    return t_quantile((1 + CONFIDENCE) / 2, rounds - 1)
