"""The distributions for tests and intervals.

They are our own: `scipy`, to which the tests hold them, is as large as all else that is installed, and takes longer to
import than a run takes to judge.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-300
_EPSILON = 2.0**-53
_ENOUGH = 2 * _EPSILON
_MOST_TERMS = 1_000_000
_CLOSE = 1e-12
"""A step of Newton's method that is this small leaves an error of its square."""
_NORMAL = NormalDist()
_FEW = 100
"""Values up to which the places of their pairs are remembered: those of more would take much memory."""


def normal_quantile(p: float) -> float:
    """The `p`-quantile of the standard normal distribution."""
    return _NORMAL.inv_cdf(p)


@lru_cache(1024)
def t_quantile(p: float, freedom: float) -> float:
    """The `p`-quantile of Student's t, for p between 0 and 1; NaN without a degree of freedom."""
    if not freedom > 0:
        return math.nan
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    half = 0.5 * (freedom + 1)
    scale = math.exp(math.lgamma(half) - math.lgamma(0.5 * freedom)) / math.sqrt(freedom * math.pi)
    # The tail is convex, and that of the normal distribution is lighter: Newton's steps come from below and stay there.
    value = normal_quantile(p)
    for _ in range(200):
        density = scale * math.exp(-half * math.log1p(value * value / freedom))
        step = (t_tail(value, freedom) - (1 - p)) / density
        value += step
        if abs(step) <= _CLOSE * abs(value):
            break
    return value


def t_tail(value: float, freedom: float) -> float:
    """The probability that Student's t exceeds the value."""
    square = value * value
    if math.isinf(square):
        tail = 0.0
    else:
        tail = 0.5 * _beta_below(freedom / (freedom + square), square / (freedom + square), 0.5 * freedom, 0.5)
    return 1 - tail if value < 0 else tail


def f_tail(value: float, over: float, under: float) -> float:
    """The probability that F with these degrees of freedom exceeds the value."""
    explained, whole = over * max(value, 0.0), under + over * max(value, 0.0)
    return 0.0 if math.isinf(whole) else _beta_below(under / whole, explained / whole, 0.5 * under, 0.5 * over)


def beta_below(value: float, a: float, b: float) -> float:
    """The cumulative probability of a beta distribution: the regularized incomplete beta function."""
    x = min(max(value, 0.0), 1.0)
    return _beta_below(x, 1 - x, a, b)


def _beta_below(x: float, rest: float, a: float, b: float) -> float:
    """The same by both x and 1 - x, of which the smaller one is exact. Source: NIST DLMF, 8.17.22."""
    if math.isnan(x) or x <= 0 or rest <= 0:
        return math.nan if math.isnan(x) else float(x > 0)
    if x * (a + b + 2) > a + 1:  # the fraction of the other tail converges faster
        return 1 - _beta_below(rest, x, b, a)

    return min(b / (a + b) * _binomial(a, b, x, rest) / _beta_fraction(x, a, b), 1.0)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """`_fraction` of the incomplete beta function, whose b are all 1, without a call for each term."""
    value = c = 1.0
    d = 0.0
    for k in range(1, _MOST_TERMS):
        m = k // 2
        factor = -(a + m) * (a + b + m) if k % 2 else m * (b - m)
        part = factor * x / ((a + k - 1) * (a + k))
        d = 1 / (1.0 + part * d or _TINY)
        c = 1.0 + part / c or _TINY
        step = c * d
        value *= step
        if abs(step - 1) <= _ENOUGH:
            break
    return value


def _binomial(a: float, b: float, x: float, rest: float) -> float:
    """The probability of a successes and b failures, also of parts, where they have the probabilities x and 1 - x."""
    if a <= 0 or b <= 0:
        return math.exp(b * math.log(rest)) if a <= 0 else math.exp(a * math.log(x))
    n = a + b
    log = _stirling(n) - _stirling(a) - _stirling(b) - _deviance(a, n * x) - _deviance(b, n * rest)
    return math.exp(log) * math.sqrt(n / (2 * math.pi * a * b))


@lru_cache(1024)
def chi2_quantile(p: float, freedom: float) -> float:
    """The `p`-quantile of chi-square, for p between 0 and 1; NaN without a degree of freedom."""
    if not freedom > 0:
        return math.nan
    low, high = 0.0, freedom + 1.0
    while chi2_tails(high, freedom)[0] < p:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if chi2_tails(middle, freedom)[0] < p else (low, middle)
    return high


def chi2_tails(value: float, freedom: float) -> tuple[float, float]:
    """The probabilities of chi-square below and above the value."""
    return _gamma_tails(0.5 * freedom, 0.5 * max(value, 0.0))


def poisson_two_sided(count: int, mean: float) -> float:
    """Twice the smaller tail of a Poisson count; both tails include the count itself."""
    above = _gamma_tails(count, mean)[0] if count else 1.0
    return 2 * min(_gamma_tails(count + 1, mean)[1], above)


def _gamma_tails(a: float, x: float) -> tuple[float, float]:
    """The regularized incomplete gamma functions P and Q. Source: NIST DLMF, 8.11.4 and 8.9.2."""
    if x <= 0 or math.isinf(x):
        return float(x > 0), float(x <= 0)
    factor = math.exp(-_stirling(a) - _deviance(a, x)) * math.sqrt(a / (2 * math.pi))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, _MOST_TERMS):
            term *= x / (a + n)
            total += term
            if term < total * _EPSILON:
                break
        below = min(factor * total, 1.0)
        return below, 1 - below
    above = min(factor / _fraction(x + 1 - a, lambda k: (-k * (k - a), x + 2 * k + 1 - a)), 1.0)
    return 1 - above, above


def _fraction(first: float, term: Callable[[int], tuple[float, float]]) -> float:
    """`first + a1 / (b1 + a2 / (b2 + ...))` with (a, b) of each k from 1 on, by Lentz's method.

    Source: I. J. Thompson and A. R. Barnett, Coulomb and Bessel Functions, J. of Computational Physics 64, 1986.
    """
    value, c, d = first or _TINY, first or _TINY, 0.0
    for k in range(1, _MOST_TERMS):
        a, b = term(k)
        d = 1 / (b + a * d or _TINY)
        c = b + a / c or _TINY
        value *= c * d
        if abs(c * d - 1) <= _ENOUGH:
            break
    return value


def _stirling(n: float) -> float:
    """The logarithm of the gamma function of n + 1, less that of Stirling's formula.

    With `_deviance` it gives large binomial and Poisson probabilities without the difference of large logarithms.
    Source: C. Loader, Fast and Accurate Computation of Binomial Probabilities, 2000.
    """
    if n < 15:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / n


def _deviance(x: float, mean: float) -> float:
    """`x log(x / mean) + mean - x`, also where both are nearly equal."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * math.log(x / mean) + mean - x
    share = (x - mean) / (x + mean)
    total, term = (x - mean) * share, 2 * x * share
    for k in range(3, 1000, 2):
        term *= share * share
        after = total + term / k
        if after == total:
            break
        total = after
    return total


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
    low, high = (_binomial_quantile(share, count, q) for share in (tail, 1 - tail))
    return (low, high + 1) if low >= 1 and high < count else None


def _binomial_quantile(share: float, count: int, q: float) -> int:
    """The smallest number that a binomial count does not exceed with at least this probability.

    From that of the normal distribution it is a few steps away.
    """
    number = min(max(round(count * q + normal_quantile(share) * math.sqrt(count * q * (1 - q))), 0), count)
    chance = _binomial(number, count - number, q, 1 - q)
    below = beta_below(1 - q, count - number, number + 1) if number < count else 1.0
    while below < share and number < count:
        number += 1
        chance *= (count - number + 1) / number * q / (1 - q)
        below += chance
    while number > 0 and below - chance >= share:
        below -= chance
        chance *= number / (count - number + 1) * (1 - q) / q
        number -= 1
    return number


def pairs_of(n: int, apart: int = 1) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of all pairs of n values which are at least so far apart."""
    return _few_pairs(n, apart) if n <= _FEW else np.triu_indices(n, apart)


@lru_cache(64)
def _few_pairs(n: int, apart: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, apart)


def kendall_p(values: NDArray[np.float64]) -> float:
    """The two-sided p-value of Kendall's test that values, in their order, have no trend; NaN if all are equal.

    Exact for up to 33 values without ties, otherwise by the normal approximation. Source: Kendall, Rank Correlation
    Methods, 1970. The tests compare it with `scipy.stats.kendalltau`.
    """
    n = len(values)
    pairs = n * (n - 1) // 2
    rows, columns = pairs_of(n)
    steps = values[columns] - values[rows]
    rising, falling = int(np.count_nonzero(steps > 0)), int(np.count_nonzero(steps < 0))
    if rising + falling == pairs and (n <= 33 or min(rising, falling) <= 1):
        return _kendall_exact(n, min(rising, falling))
    if rising + falling == 0:
        return math.nan
    tied = np.unique_counts(values).counts.astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float((tied * (tied - 1) * (2 * tied + 5)).sum())) / 18
    return math.erfc(abs(rising - falling) / math.sqrt(2 * variance))


@lru_cache(1024)
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
