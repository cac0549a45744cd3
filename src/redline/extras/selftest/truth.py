"""Response times that are known in closed form, and their random variation in a finite run.

Each law gives the quantiles of the stationary response time, in seconds, without the machine's part (the round trip).
`expected` adds the range of a run's answer by chance, from simulated runs of the same law and number of requests:
neighbours in a queue wait together, so n requests hold less information than n independent draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import optimize, stats

from redline.stats.samples import Floats

_CELLS = 1 << 17
_CELLS_PER_SERVICE = 1000
RUNS = 120
WIDTH = 3.29
"""Half the range in standard deviations: 99.9%, since a selftest judges some fifty points and should not err."""
_BEFORE = 4000
_VALUES_AT_ONCE = 4_000_000
_PIECES = 4


@dataclass(frozen=True)
class Service:
    """A distribution of service times in seconds: a scipy distribution, or `_Steps`."""

    law: Any

    @property
    def mean_s(self) -> float:
        """Its mean."""
        return float(self.law.mean())

    def quantile_s(self, q: float) -> float:
        """The smallest service time that a share `q` does not exceed."""
        return float(self.law.ppf(q))

    def share_within(self, t_s: Floats) -> Floats:
        """The share of service times of at most `t_s`, elementwise."""
        return np.asarray(self.law.cdf(t_s))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Independent service times."""
        return np.asarray(self.law.rvs(size=shape, random_state=rng))


@dataclass(frozen=True)
class _Steps:
    """`slow_s` with probability `slow_share`, else `fast_s`, the smaller one; with scipy's names."""

    fast_s: float
    slow_s: float = 0.0
    slow_share: float = 0.0

    def mean(self) -> float:
        return self.fast_s + (self.slow_s - self.fast_s) * self.slow_share

    def ppf(self, q: float) -> float:
        return self.fast_s if q <= 1 - self.slow_share else self.slow_s

    def cdf(self, t_s: Floats) -> Floats:
        return (1 - self.slow_share) * (t_s >= self.fast_s) + self.slow_share * (t_s >= self.slow_s)

    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> Floats:
        if not self.slow_share:
            return np.full(size, self.fast_s)
        return np.where(random_state.random(size) < self.slow_share, self.slow_s, self.fast_s)


def exponential(rate_per_s: float) -> Service:
    """Exponential service times with mean 1 / rate."""
    return Service(stats.expon(scale=1 / rate_per_s))


def deterministic(each_s: float) -> Service:
    """A constant service time."""
    return Service(_Steps(each_s))


def bimodal(fast_s: float, slow_s: float, slow_share: float) -> Service:
    """`slow_s` with probability `slow_share`, else `fast_s`, the smaller one."""
    return Service(_Steps(fast_s, slow_s, slow_share))


def log_normal(median_s: float, sigma: float) -> Service:
    """Log-normal service times: `median_s` times e to the power of `sigma` times a standard normal variable."""
    return Service(stats.lognorm(sigma, scale=median_s))


class Law(Protocol):
    """A distribution of response times."""

    def quantile_s(self, q: float) -> float:
        """The response time that a share `q` does not exceed; `q` is from 0 to below 1."""


@dataclass(frozen=True)
class ManyServers:
    """M/M/k: Poisson arrivals, `servers` workers with one queue, exponential service.

    A request waits with Erlang's probability C; its wait is then exponential with k mu - lambda (Kleinrock, Queueing
    Systems I, 1975, section 3.5). Waiting and service are independent. With one server this is M/M/1: exponential with
    mu - lambda.
    """

    arrivals_per_s: float
    service: Service
    servers: int = 1

    def quantile_s(self, q: float) -> float:
        """The root of P(response > t) = 1 - q, by Brent's method."""
        mu = 1 / self.service.mean_s
        longest_s = 50 / min(mu, self.servers * mu - self.arrivals_per_s)
        return float(optimize.brentq(lambda t: self.share_above(t) - (1 - q), 0.0, longest_s, xtol=1e-15))

    def share_above(self, t_s: float) -> float:
        """P(response > t)."""
        if t_s <= 0:
            return 1.0
        mu, waits = 1 / self.service.mean_s, self.erlang_c()
        gap = self.servers * mu - self.arrivals_per_s
        alone, queued = math.exp(-mu * t_s), math.exp(-gap * t_s)
        if math.isclose(gap, mu, rel_tol=1e-9):
            both = alone * (1 + mu * t_s)
        else:
            both = (gap * alone - mu * queued) / (gap - mu)
        return (1 - waits) * alone + waits * both

    def erlang_c(self) -> float:
        """The probability that a request has to wait, from Erlang's B by its recursion."""
        offered, blocked = self.arrivals_per_s * self.service.mean_s, 1.0
        for n in range(1, self.servers + 1):
            blocked = offered * blocked / (n + offered * blocked)
        rho = offered / self.servers
        return blocked / (1 - rho + rho * blocked)


@dataclass(frozen=True)
class OneServer:
    """M/G/1: Poisson arrivals, one worker, first come first served, general service.

    Pollaczek and Khinchine: the wait is a geometric sum of residual services (Asmussen, Applied Probability and Queues,
    2003, chapter VIII.5). The sum is taken by Fourier transform on a grid of a thousandth of the mean service:
    quantiles are exact to about half of that.
    """

    arrivals_per_s: float
    service: Service

    def quantile_s(self, q: float) -> float:
        """The first point of the grid whose cumulative probability reaches q."""
        return float(np.searchsorted(self._cumulative, q)) * self._step_s

    @cached_property
    def _step_s(self) -> float:
        return self.service.mean_s / _CELLS_PER_SERVICE

    @cached_property
    def _cumulative(self) -> Floats:
        edges: Floats = (np.arange(_CELLS + 1, dtype=np.float64) - 0.5) * self._step_s
        within = self.service.share_within(edges + self._step_s * 1e-6)
        within[0] = 0.0
        services = np.diff(within)
        residual = (1 - within[:-1]) / self.service.mean_s * self._step_s
        residual[0] /= 2  # its cell is half as wide, since times are not negative
        residual /= residual.sum()
        rho = self.arrivals_per_s * self.service.mean_s
        waits = (1 - rho) / (1 - rho * np.fft.rfft(residual))
        responses = np.fft.irfft(waits * np.fft.rfft(services), _CELLS)
        return np.minimum(np.cumsum(responses), 1.0)


@dataclass(frozen=True)
class PeriodicStop:
    """Evenly spaced requests, which are held during a stop and answered at its end.

    A stop of `for_s` in every `every_s`: a share (S - t) / T waits longer than t.
    """

    every_s: float
    for_s: float

    def quantile_s(self, q: float) -> float:
        """S - (1 - q) T, at least 0."""
        return max(0.0, self.for_s - (1 - q) * self.every_s)


@dataclass(frozen=True)
class Chance:
    """The truth at a quantile and the range of a run's answer by chance, in seconds."""

    q: float
    truth_s: float
    low_s: float
    high_s: float


def expected(law: Law, requests: int, qs: tuple[float, ...], *, seed: int = 1) -> tuple[Chance, ...]:
    """The truth and its range for each q (1 is the largest), for a run of that many requests.

    A `Service` is the law of a server in which every request has its own worker.
    """
    if isinstance(law, PeriodicStop):
        return tuple(_of_stops(law, requests, q) for q in qs)
    simulated = _simulated(_simulation(law), requests, qs, np.random.default_rng(seed))
    return tuple(_of_runs(law, q, simulated[:, index]) for index, q in enumerate(qs))


def _of_stops(law: PeriodicStop, requests: int, q: float) -> Chance:
    """The range without randomness: the first and last period are cut, and counts are exact to one request."""
    off = _PIECES / requests
    low, high = law.quantile_s(max(0.0, q - off)), law.quantile_s(min(1.0, q + off))
    return Chance(q, law.quantile_s(q), low, high)


def _of_runs(law: Law, q: float, runs: Floats) -> Chance:
    """The range from the spread of logarithms: a quantile of waiting times is skewed, its logarithm far less."""
    truth = law.quantile_s(q) if q < 1 else float(np.median(runs))
    if truth <= 0 or float(runs.min()) <= 0:
        return Chance(q, truth, truth, float(runs.max()))
    factor = float(np.exp(WIDTH * np.std(np.log(runs))))
    return Chance(q, truth, truth / factor, truth * factor)


Simulation = Callable[[int, int, np.random.Generator], Floats]
"""Simulates response times in seconds: runs (rows) by requests (columns)."""


def _simulated(simulate: Simulation, requests: int, qs: tuple[float, ...], rng: np.random.Generator) -> Floats:
    """Quantiles of simulated runs: RUNS rows, a column per q. Runs are large, so few are held at a time."""
    parts = -(-RUNS * (requests + _BEFORE) // _VALUES_AT_ONCE)
    at_once = -(-RUNS // parts)
    ranks = [min(requests, max(1, int(np.ceil(np.nextafter(q * requests, 0.0))))) - 1 for q in qs]
    rows = [np.sort(simulate(at_once, requests, rng), axis=1)[:, ranks] for _ in range(parts)]
    return np.concatenate(rows)[:RUNS]


def _simulation(law: Law) -> Simulation:
    match law:
        case Service():
            return lambda runs, n, rng: law.draw(rng, (runs, n))
        case ManyServers(servers=servers) if servers > 1:
            return lambda runs, n, rng: several_servers(law, runs, n, rng)
        case OneServer(rate, service) | ManyServers(rate, service):
            return lambda runs, n, rng: one_server(rate, service, runs, n, rng)
        case _:
            raise TypeError(f"no simulation of {law}")


def one_server(rate_per_s: float, service: Service, runs: int, n: int, rng: np.random.Generator) -> Floats:
    """Response times, `runs` rows of `n`, of M/G/1: Lindley's recursion, unrolled. The first ones are left out."""
    length = n + _BEFORE
    gaps = rng.exponential(1 / rate_per_s, (runs, length))
    services = service.draw(rng, (runs, length))
    steps = np.concatenate((np.zeros((runs, 1)), services[:, :-1] - gaps[:, 1:]), axis=1)
    backlog = np.cumsum(steps, axis=1)
    waits = backlog - np.minimum.accumulate(backlog, axis=1)
    return np.asarray((waits + services)[:, _BEFORE:])


def several_servers(law: ManyServers, runs: int, n: int, rng: np.random.Generator) -> Floats:
    """The same for k workers with one queue: Kiefer and Wolfowitz's recursion, all runs in step."""
    length = n + _BEFORE
    gaps = rng.exponential(1 / law.arrivals_per_s, (length, runs))
    services = law.service.draw(rng, (length, runs))
    busy_for = np.zeros((runs, law.servers))
    responses = np.empty((length, runs))
    for index in range(length):
        np.maximum(busy_for - gaps[index][:, None], 0.0, out=busy_for)
        first = busy_for[:, 0] + services[index]
        responses[index] = first
        busy_for[:, 0] = first
        busy_for.sort(axis=1)
    return np.asarray(responses[_BEFORE:].T)
