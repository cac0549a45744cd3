"""The M/M/1 queue, simulated: what chance does to a run of finite length."""

import numpy as np
from numpy.typing import NDArray

_BEFORE = 2000


def mm1_responses(arrival_rate: float, service_rate: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Response times in seconds of `n` successive requests of a stationary M/M/1 queue: Lindley's recursion, unrolled.

    Rates are per second, `arrival_rate` the smaller one. The first requests, which find the queue empty, are left out.
    """
    gaps = rng.exponential(1 / arrival_rate, n + _BEFORE)
    services = rng.exponential(1 / service_rate, n + _BEFORE)
    backlog = np.concatenate(([0.0], np.cumsum(services[:-1] - gaps[1:])))
    waits = backlog - np.minimum.accumulate(backlog)
    return np.asarray((waits + services)[_BEFORE:])
