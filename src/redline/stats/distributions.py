"""The distributions that tests and intervals use. `scipy.stats` has them all, but takes a second to import."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(1024)
def t_quantile(p: float, freedom: float) -> float:
    """The value that Student's t is below with probability `p`."""
    from scipy.special import stdtrit  # noqa: PLC0415 - so that a command that judges nothing starts at once

    return float(stdtrit(freedom, p))


def t_tail(value: float, freedom: float) -> float:
    """How likely Student's t is above the value."""
    from scipy.special import stdtr  # noqa: PLC0415

    return float(stdtr(freedom, -value))


def poisson_two_sided(count: int, mean: float) -> float:
    """Twice the smaller tail of a Poisson count; the count itself is in both."""
    from scipy.special import pdtr, pdtrc  # noqa: PLC0415

    above = pdtrc(count - 1, mean) if count > 0 else 1.0
    return 2 * min(float(pdtr(count, mean)), float(above))


def chi2_tails(value: float, freedom: int) -> tuple[float, float]:
    """How likely chi-square is below the value, and above it."""
    from scipy.special import chdtr, chdtrc  # noqa: PLC0415

    return float(chdtr(freedom, value)), float(chdtrc(freedom, value))


def beta_below(value: float, a: float, b: float) -> float:
    """How likely a beta variable is below the value."""
    from scipy.special import betainc  # noqa: PLC0415

    return float(betainc(a, b, value))


@lru_cache(4096)
def quantile_ranks(count: int, q: float, confidence: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the two of `count` values that hold their `q`-quantile with at least that confidence.

    Each tail has at most half of what the confidence leaves. None when the values are too few for that. Whatever their
    distribution, the number of independent values that do not exceed the quantile is binomial(count, q). Source: J.-Y.
    Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, chapter 2.
    """
    tail = (1 - confidence) / 2
    low, high = _binomial_quantile(tail, count, q), count - _binomial_quantile(tail, count, 1 - q, strict=True) + 1
    return (low, high) if low >= 1 and high <= count else None


def _binomial_quantile(p: float, count: int, q: float, *, strict: bool = False) -> int:
    """The smallest number that a binomial count does not exceed with at least, or with more than, probability `p`."""
    from scipy.special import bdtr, bdtrik  # noqa: PLC0415

    found = max(math.floor(float(bdtrik(p, count, q))) - 1, 0)
    while found < count and not (bdtr(found, count, q) > p if strict else bdtr(found, count, q) >= p):
        found += 1
    return found


def kendall_p(values: NDArray[np.float64]) -> float:
    """The two-sided p-value of Kendall's test that values, in their order, have no trend; NaN when all are equal.

    Exact without ties in up to 33 values, else by the normal approximation. Source: Kendall, Rank Correlation Methods,
    1970. The tests compare it with `scipy.stats.kendalltau`.
    """
    n = len(values)
    pairs = n * (n - 1) // 2
    rows, columns = np.triu_indices(n, 1)
    signs = np.sign(values[columns] - values[rows])
    rising, falling = int((signs > 0).sum()), int((signs < 0).sum())
    if rising + falling == pairs and (n <= 33 or min(rising, falling) <= 1):
        return _kendall_exact(n, min(rising, falling))
    if rising + falling == 0:
        return math.nan
    tied = np.unique_counts(values).counts.astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float((tied * (tied - 1) * (2 * tied + 5)).sum())) / 18
    return math.erfc(abs(rising - falling) / math.sqrt(2 * variance))


def _kendall_exact(n: int, fewer: int) -> float:
    """Of orders of n numbers, the share in which at most `fewer` pairs run one way, for either way."""
    if 4 * fewer == n * (n - 1):
        return 1.0
    counts = np.zeros(fewer + 1)
    counts[:2] = 1.0
    for size in range(3, n + 1):
        counts = np.cumsum(counts)
        if fewer >= size:
            counts[size:] -= counts[: fewer + 1 - size].copy()
    return min(2.0 * float(counts.sum()) / math.factorial(n), 1.0) if n < 171 else 0.0
