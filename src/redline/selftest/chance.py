"""What chance does to a run of finite length: quantiles of simulated runs of the same law and number of requests.

Neighbours in a queue wait together, so a run of n requests holds less information than n independent draws;
simulating the run includes that.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redline.selftest.truth import Alone, Floats, Held, Law, ManyServers, OneServer, Service

RUNS = 120
WIDTH = 3.29
"""Of the range in standard deviations: 99.9%, because a selftest judges some fifty points and should not err in one."""
_BEFORE = 4000
_TOGETHER = 4_000_000
_PIECES = 4


@dataclass(frozen=True)
class Chance:
    """The truth at one quantile and the range in which chance leaves a run's answer, all in seconds."""

    q: float
    truth_s: float
    low_s: float
    high_s: float


def expected(law: Law, requests: int, qs: tuple[float, ...], *, seed: int = 1) -> tuple[Chance, ...]:
    """For each q (1 is the largest) the truth and its range, for a run of that many requests."""
    if isinstance(law, Held):
        return tuple(_of_held(law, requests, q) for q in qs)
    rng = np.random.default_rng(seed)
    found = _quantiles(_simulation(law), requests, qs, rng)
    return tuple(_of_runs(law, q, found[:, index]) for index, q in enumerate(qs))


def _of_held(law: Held, requests: int, q: float) -> Chance:
    """Nothing is drawn; but the first and the last period are cut, and each piece of a stop counts to within one."""
    off = _PIECES / requests
    low, high = law.quantile_s(max(0.0, q - off)), law.quantile_s(min(1.0, q + off))
    return Chance(q, law.quantile_s(q), low, high)


def _of_runs(law: Law, q: float, runs: Floats) -> Chance:
    """The spread of logarithms: a quantile of waiting times is skewed, its logarithm far less."""
    truth = law.quantile_s(q) if q < 1 else float(np.median(runs))
    if truth <= 0 or float(runs.min()) <= 0:
        return Chance(q, truth, truth, float(runs.max()))
    factor = float(np.exp(WIDTH * np.std(np.log(runs))))
    return Chance(q, truth, truth / factor, truth * factor)


def _quantiles(
    simulate: Callable[[int, int, np.random.Generator], Floats],
    requests: int,
    qs: tuple[float, ...],
    rng: np.random.Generator,
) -> Floats:
    """Of each simulated run its quantiles: RUNS rows, a column for each q. Few runs at a time, for they are large."""
    parts = -(-RUNS * (requests + _BEFORE) // _TOGETHER)
    at_once = -(-RUNS // parts)
    rows: list[Floats] = []
    for _ in range(parts):
        runs = np.sort(simulate(at_once, requests, rng), axis=1)
        ranks = [min(requests, max(1, int(np.ceil(np.nextafter(q * requests, 0.0))))) - 1 for q in qs]
        rows.append(runs[:, ranks])
    return np.concatenate(rows)[:RUNS]


def _simulation(law: Law) -> Callable[[int, int, np.random.Generator], Floats]:
    match law:
        case Alone(service):
            return lambda runs, n, rng: service.draw(rng, (runs, n))
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
