"""Response times that are known before anything is measured.

Each law gives the quantiles of the stationary response time, in seconds. What a machine adds (the round trip) is not
in them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BISECTIONS = 200
_CELLS = 1 << 17
_CELLS_PER_SERVICE = 1000


class Law(Protocol):
    """A distribution of response times."""

    def quantile_s(self, q: float) -> float:
        """What a share `q`, from 0 to below 1, of the response times does not exceed."""
        ...


class Service(Protocol):
    """A distribution of service times in seconds."""

    @property
    def mean_s(self) -> float:
        """Its mean."""
        ...

    def share_within(self, t_s: Floats) -> Floats:
        """The share of service times of at most `t_s`, for each."""
        ...

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Independent service times."""
        ...


@dataclass(frozen=True)
class Exponential:
    """Memoryless, with `rate_per_s` as its inverse mean."""

    rate_per_s: float

    @property
    def mean_s(self) -> float:
        """Its mean."""
        return 1 / self.rate_per_s

    def share_within(self, t_s: Floats) -> Floats:
        """1 - exp(-rate t)."""
        return -np.expm1(-self.rate_per_s * np.maximum(t_s, 0.0))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Independent service times."""
        return rng.exponential(1 / self.rate_per_s, shape)


@dataclass(frozen=True)
class Deterministic:
    """Always the same."""

    each_s: float

    @property
    def mean_s(self) -> float:
        """Its mean."""
        return self.each_s

    def share_within(self, t_s: Floats) -> Floats:
        """A step."""
        return (t_s >= self.each_s).astype(np.float64)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """The same, again and again."""
        del rng
        return np.full(shape, self.each_s)


@dataclass(frozen=True)
class Bimodal:
    """`slow_s` with probability `slow_share`, else `fast_s`, the smaller one."""

    fast_s: float
    slow_s: float
    slow_share: float

    @property
    def mean_s(self) -> float:
        """Its mean."""
        return self.fast_s + (self.slow_s - self.fast_s) * self.slow_share

    def share_within(self, t_s: Floats) -> Floats:
        """Two steps."""
        return (1 - self.slow_share) * (t_s >= self.fast_s) + self.slow_share * (t_s >= self.slow_s)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Independent service times."""
        return np.where(rng.random(shape) < self.slow_share, self.slow_s, self.fast_s)


@dataclass(frozen=True)
class LogNormal:
    """Its logarithm is normal: `median_s` times e to the power of `sigma` times a standard normal one."""

    median_s: float
    sigma: float

    @property
    def mean_s(self) -> float:
        """Its mean."""
        return self.median_s * math.exp(self.sigma**2 / 2)

    def share_within(self, t_s: Floats) -> Floats:
        """The normal distribution at the logarithm."""
        with np.errstate(divide="ignore"):
            z = np.log(np.maximum(t_s, 0.0) / self.median_s) / self.sigma
        return 0.5 * np.asarray([math.erfc(-each / math.sqrt(2)) for each in np.ravel(z)]).reshape(z.shape)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Independent service times."""
        return self.median_s * np.exp(self.sigma * rng.standard_normal(shape))


@dataclass(frozen=True)
class Alone:
    """Every request has a worker of its own: the response time is the service time."""

    service: Service

    def quantile_s(self, q: float) -> float:
        """By bisection."""
        return smallest_s(lambda t: float(self.service.share_within(np.asarray([t]))[0]), q, self.service.mean_s)


@dataclass(frozen=True)
class ManyServers:
    """M/M/k: Poisson arrivals, `servers` workers with one queue, exponential service.

    A wait is exponential with k mu - lambda where there is one, which has Erlang's probability C (Kleinrock, Queueing
    Systems I, 1975, section 3.5). Waiting and service are independent. With one server it is M/M/1: exponential with
    mu - lambda.
    """

    arrivals_per_s: float
    service: Exponential
    servers: int = 1

    def quantile_s(self, q: float) -> float:
        """By bisection."""
        return smallest_s(lambda t: 1 - self.share_above(t), q, self.service.mean_s)

    def share_above(self, t_s: float) -> float:
        """P(response > t)."""
        if t_s <= 0:
            return 1.0
        mu, waits = self.service.rate_per_s, self.erlang_c()
        gap = self.servers * mu - self.arrivals_per_s
        alone, queued = math.exp(-mu * t_s), math.exp(-gap * t_s)
        if math.isclose(gap, mu, rel_tol=1e-9):
            both = alone * (1 + mu * t_s)
        else:
            both = (gap * alone - mu * queued) / (gap - mu)
        return (1 - waits) * alone + waits * both

    def erlang_c(self) -> float:
        """The probability that a request has to wait, from Erlang's B by its recursion."""
        offered, blocked = self.arrivals_per_s / self.service.rate_per_s, 1.0
        for n in range(1, self.servers + 1):
            blocked = offered * blocked / (n + offered * blocked)
        rho = offered / self.servers
        return blocked / (1 - rho + rho * blocked)


@dataclass(frozen=True)
class OneServer:
    """M/G/1: Poisson arrivals, one worker, first come first served, any service.

    Pollaczek and Khinchine: the wait is a geometric sum of residual services (Asmussen, Applied Probability and Queues,
    2003, chapter VIII.5). The sum is taken by Fourier transform on a grid of a thousandth of the mean service:
    quantiles are exact to about half of that.
    """

    arrivals_per_s: float
    service: Service

    def quantile_s(self, q: float) -> float:
        """The first point of the grid with so much below it."""
        return float(np.searchsorted(self._cumulative, q)) * self._step_s

    @property
    def _step_s(self) -> float:
        return self.service.mean_s / _CELLS_PER_SERVICE

    @cached_property
    def _cumulative(self) -> Floats:
        edges: Floats = (np.arange(_CELLS + 1, dtype=np.float64) - 0.5) * self._step_s
        within = self.service.share_within(edges + self._step_s * 1e-6)
        within[0] = 0.0
        services = np.diff(within)
        residual = (1 - within[:-1]) / self.service.mean_s * self._step_s
        residual[0] /= 2  # its cell is half as wide: nothing is below 0
        residual /= residual.sum()
        rho = self.arrivals_per_s * self.service.mean_s
        waits = (1 - rho) / (1 - rho * np.fft.rfft(residual))
        responses = np.fft.irfft(waits * np.fft.rfft(services), _CELLS)
        return np.minimum(np.cumsum(responses), 1.0)


@dataclass(frozen=True)
class Held:
    """Requests due evenly in time, all of which are held while a stop lasts and answered at its end.

    A stop of `for_s` in every `every_s`: a share (S - t) / T waits longer than t.
    """

    every_s: float
    for_s: float

    def quantile_s(self, q: float) -> float:
        """S - (1 - q) T, where that is not less than nothing."""
        return max(0.0, self.for_s - (1 - q) * self.every_s)


def smallest_s(share_within: Callable[[float], float], q: float, start_s: float) -> float:
    """The smallest t at which a rising `share_within` reaches `q`, by bisection to the precision of doubles."""
    low, high = 0.0, start_s
    while share_within(high) < q:
        low, high = high, high * 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if share_within(middle) >= q else (middle, high)
    return high
