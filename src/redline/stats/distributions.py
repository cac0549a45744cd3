"""The distributions that tests and intervals use. `scipy` has them all, but takes a third of a second to import.

The tests compare them with `scipy.stats`.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(1024)
def t_quantile(p: float, freedom: float) -> float:
    """The value that Student's t is below with probability `p`, which must be one half or more."""
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    value, step = 0.0, math.inf
    while step > 1e-15 * value:  # Newton's method: the tail is convex here, so the steps never pass the quantile
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(value**2 / freedom))
        step = (t_tail(value, freedom) - (1 - p)) / density
        value += step
    return value


def t_tail(value: float, freedom: float) -> float:
    """How likely Student's t is above the value."""
    square = value**2
    if square < 1:  # by the other end of the same beta distribution, so that no digits are lost
        beyond = (1 - beta_below(square / (freedom + square), 0.5, freedom / 2)) / 2
    else:
        beyond = beta_below(freedom / (freedom + square), freedom / 2, 0.5) / 2
    return beyond if value > 0 else 1 - beyond


def beta_below(value: float, a: float, b: float) -> float:
    """How likely a beta variable is below the value. Source: the continued fraction 8.17.22 of https://dlmf.nist.gov."""
    if not 0 < value < 1:
        return float(value >= 1)
    if value > (a + 1) / (a + b + 2):
        return 1 - beta_below(1 - value, b, a)
    fraction = 1.0
    for index in range(40 + 2 * math.isqrt(round(a + b)), 0, -1):
        half, odd = divmod(index, 2)
        term = -(a + half) * (a + b + half) if odd else half * (b - half)
        fraction = 1 + term * value / ((a + index - 1) * (a + index) * fraction)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(value) + b * math.log1p(-value)) / (a * fraction)


def chi2_tails(value: float, freedom: int) -> tuple[float, float]:
    """How likely chi-square is below the value, and above it. Source: 8.4.6 and 8.8.2 of https://dlmf.nist.gov."""
    if value <= 0:
        return 0.0, 1.0
    half, odd = value / 2, freedom % 2
    powers = (odd / 2 + index for index in range(freedom // 2))
    above = math.erfc(math.sqrt(half)) if odd else 0.0
    above += math.fsum(math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers)
    return 1 - above, above


def poisson_two_sided(count: int, mean: float) -> float:
    """Twice the smaller tail of a Poisson count; the count itself is in both."""
    counts = _likely_counts(mean, mean)
    chances = _from_ratios(mean / counts[1:])
    return 2 * float(min(chances[counts <= count].sum(), chances[counts >= count].sum()))


@lru_cache(4096)
def quantile_ranks(count: int, q: float, confidence: float) -> tuple[int, int] | None:
    """The ranks, from 1, of the two of `count` values that hold their `q`-quantile with at least that confidence.

    Each tail has at most half of what the confidence leaves. None when the values are too few for that. Whatever their
    distribution, the number of independent values that do not exceed the quantile is binomial(count, q). Source: J.-Y.
    Le Boudec, Performance Evaluation of Computer and Communication Systems, 2010, chapter 2.
    """
    tail = (1 - confidence) / 2
    below = _likely_counts(count * q, count * q * (1 - q), count)
    chances = _from_ratios((count + 1 - below[1:]) / below[1:] * (q / (1 - q)))
    low = int(below[np.searchsorted(np.cumsum(chances), tail)])
    high = int(below[::-1][np.searchsorted(np.cumsum(chances[::-1]), tail, side="right")]) + 1
    return (low, high) if low >= 1 and high <= count else None


def _likely_counts(mean: float, variance: float, most: float = math.inf) -> NDArray[np.int64]:
    """The counts that lie no farther from their mean than chance takes them, to the precision of a double."""
    reach = 30 + 9 * math.sqrt(variance)
    return np.arange(max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), most) + 1, dtype=np.int64)


def _from_ratios(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chances, of which each is so many times the one before it."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    weights = np.exp(logs - logs.max())
    chances: NDArray[np.float64] = weights / weights.sum()
    return chances


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
