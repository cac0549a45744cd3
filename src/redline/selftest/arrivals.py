"""Whether arrivals came as they were due: Kolmogorov and Smirnov's test of what a server saw."""

import math
from dataclasses import dataclass

import numpy as np

from redline.selftest.truth import Floats

ALPHA = 1e-3
_TERMS = 100


@dataclass(frozen=True)
class UniformFit:
    """The largest distance between what was observed and the law, what chance exceeds with probability ALPHA, and p."""

    distance: float
    critical: float
    p_value: float


def against_uniform(shares: Floats) -> UniformFit:
    """How well numbers between 0 and 1 fit the uniform law; none at all do not."""
    ordered = np.sort(shares)
    n = len(ordered)
    if n == 0:
        return UniformFit(1.0, 0.0, 0.0)
    steps = np.arange(n + 1) / n
    distance = float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))
    return UniformFit(distance, _critical(n), kolmogorov(_scaled(distance, n)))


def exponential_gaps(arrivals_s: Floats, rate_per_s: float) -> UniformFit:
    """How well the gaps fit those of a Poisson process: exponential with its rate."""
    return against_uniform(-np.expm1(-rate_per_s * np.diff(np.sort(arrivals_s))))


def even_lateness(arrivals_s: Floats, rate_per_s: float) -> Floats:
    """How far each arrival is behind an even schedule, in seconds, counted from the least late one.

    The schedule's origin is not known to the receiver, so a constant delay cannot be seen.
    """
    ordered = np.sort(arrivals_s)
    behind = ordered - np.arange(len(ordered)) / rate_per_s
    return np.asarray(behind - np.min(behind))


def kolmogorov(x: float) -> float:
    """The share of Kolmogorov's distribution above x, by its series (Kolmogorov, 1933)."""
    if x < 0.2:  # the series converges slowly there, and the share above is 1 to twelve digits
        return 1.0
    series = sum(math.copysign(math.exp(-2 * k * k * x * x), k % 2 - 0.5) for k in range(1, _TERMS + 1))
    return min(1.0, max(0.0, 2 * series))


def _scaled(distance: float, n: int) -> float:
    """Stephens's correction for finite n (1970)."""
    root = math.sqrt(n)
    return distance * (root + 0.12 + 0.11 / root)


def _critical(n: int) -> float:
    root = math.sqrt(n)
    return math.sqrt(-math.log(ALPHA / 2) / 2) / (root + 0.12 + 0.11 / root)
