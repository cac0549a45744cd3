"""The distributions for tests and intervals, from `scipy.special`: `scipy.stats` is several times slower to import."""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray


@lru_cache(1024)
def t_quantile(p: float, freedom: float) -> float:
    """The `p`-quantile of Student's t."""
    return float(scipy.special.stdtrit(freedom, p))


def t_tail(value: float, freedom: float) -> float:
    """The probability that Student's t exceeds the value."""
    return float(scipy.special.stdtr(freedom, -value))


def beta_below(value: float, a: float, b: float) -> float:
    """The cumulative probability of a beta distribution."""
    return float(scipy.special.betainc(a, b, min(max(value, 0.0), 1.0)))


def chi2_tails(value: float, freedom: int) -> tuple[float, float]:
    """The probabilities of chi-square below and above the value."""
    at = max(value, 0.0)
    return float(scipy.special.chdtr(freedom, at)), float(scipy.special.chdtrc(freedom, at))


def poisson_two_sided(count: int, mean: float) -> float:
    """Twice the smaller tail of a Poisson count; both tails include the count itself."""
    above = float(scipy.special.pdtrc(count - 1, mean)) if count else 1.0
    return 2 * min(float(scipy.special.pdtr(count, mean)), above)


@lru_cache(4096)
def quantile_ranks(count: int, q: float, confidence: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the two of `count` values that enclose their `q`-quantile with at least this confidence.

    Each tail has at most half of the remaining probability. None if there are too few values. For any distribution, the
    number of independent values that do not exceed the quantile is binomial(count, q). Source: J.-Y. Le Boudec,
    Performance Evaluation of Computer and Communication Systems, 2010, chapter 2.
    """
    if count == 0:
        return None
    tail = (1 - confidence) / 2
    low, high = (math.ceil(scipy.special.bdtrik(share, count, q)) for share in (tail, 1 - tail))
    return (low, high + 1) if low >= 1 and high < count else None


def kendall_p(values: NDArray[np.float64]) -> float:
    """The two-sided p-value of Kendall's test that values, in their order, have no trend; NaN if all are equal.

    Exact for up to 33 values without ties, otherwise by the normal approximation. Source: Kendall, Rank Correlation
    Methods, 1970. The tests compare it with `scipy.stats.kendalltau`.
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
    """The share of permutations of n numbers in which at most `fewer` pairs run in one direction or in the other."""
    if 4 * fewer == n * (n - 1):
        return 1.0
    counts = np.zeros(fewer + 1)
    counts[:2] = 1.0
    for size in range(3, n + 1):
        counts = np.cumsum(counts)
        if fewer >= size:
            counts[size:] -= counts[: fewer + 1 - size].copy()
    return min(2.0 * float(counts.sum()) / math.factorial(n), 1.0) if n < 171 else 0.0
