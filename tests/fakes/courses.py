"""Speeds of servers that warm up, or do not, from interval to interval, for the laws of warm-up detection."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from redline.findings.warming import Timeline, is_warm
from redline.stats.samples import Floats

INTERVAL_S = 0.5
BUDGET_S = 60.0

Shape = Callable[[Floats], Floats]
"""The log of a server's speed at each of these seconds after its first request."""


def flat(seconds: Floats) -> Floats:
    """As fast from the beginning as at the end."""
    return np.zeros_like(seconds)


def stepped(at_s: float, by: float) -> Shape:
    """Faster by a share from then on; slower if it is negative."""
    return lambda seconds: np.where(seconds < at_s, 0.0, np.log1p(by))


def compiled(over_s: float, from_share: float = 0.1) -> Shape:
    """Exponentially from a share of the final speed up to it."""
    return lambda seconds: np.log1p((from_share - 1) * np.exp(-seconds / over_s))


def rising(seconds: Floats) -> Floats:
    """Faster by 5% every second, without end."""
    return 0.05 * seconds


def restless(every_s: float = 4.0, by: float = 0.3) -> Shape:
    """Up and down by a share, again and again."""
    return lambda seconds: np.log1p(by) * (np.floor(seconds / every_s) % 2)


@dataclass(frozen=True)
class Noise:
    """From interval to interval: `sigma` of the log, how alike neighbours are (AR(1)), and how often an outlier is."""

    sigma: float = 0.02
    alike: float = 0.0
    blips: float = 0.0

    def draw(self, n: int, rng: Generator) -> Floats:
        """Noise of this many intervals."""
        fresh = rng.normal(0.0, self.sigma * np.sqrt(1 - self.alike**2), n)
        values = np.empty(n)
        last = rng.normal(0.0, self.sigma)
        for i in range(n):
            last = values[i] = self.alike * last + fresh[i]
        return values - np.where(rng.random(n) < self.blips, 0.5, 0.0)


def course(shape: Shape, noise: Noise, rng: Generator, seconds: float = BUDGET_S) -> Timeline:
    """This many seconds of a server of this shape."""
    ends = np.arange(1, round(seconds / INTERVAL_S) + 1, dtype=np.float64) * np.float64(INTERVAL_S)
    speeds = shape(ends - INTERVAL_S / 2) + noise.draw(len(ends), rng)
    return Timeline(tuple(int(end * 1e9) for end in ends), speeds)


def begun_s(whole: Timeline) -> float | None:
    """When the measurement would have begun, tested after every interval; None when the course was not long enough."""
    for n in range(1, len(whole.ends_ns) + 1):
        if is_warm(Timeline(whole.ends_ns[:n], whole.speeds[:n])):
            return whole.ends_ns[n - 1] / 1e9
    return None
