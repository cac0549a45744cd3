"""Queues that answer a search's probes, thousands in a minute: without sockets or a clock, and seeded."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.random import Generator

from redline.extras.selftest.truth import ManyServers, OneServer, Service, deterministic, exponential
from redline.model import Histogram
from redline.search import Converged, Doomed, Evidence, Exhausted, ProbeSlice, Proposal, Search, hopeless
from redline.search.evidence import Floats

MOST_OPEN = 4.0
"""Seconds past the end of a probe in which answers are still waited for."""


@dataclass
class Queue:
    """A server: Poisson arrivals, `servers` workers with one queue, and `base_s` that no load changes.

    A probe is on a fresh queue, loaded for `warmup_s` before it is measured for `seconds`.
    """

    service: Service
    servers: int = 1
    base_s: float = 0.0
    seconds: float = 5.0
    warmup_s: float = 1.0
    slice_s: float = 0.1
    drift: Callable[[Generator], float] = field(default=lambda _rng: 1.0)

    @property
    def capacity_per_s(self) -> float:
        """Its capacity."""
        return self.servers / self.service.mean_s

    def probe(self, rate_per_s: float, rng: Generator, *, whole: bool = False) -> Evidence:
        """A probe, ended early when it is hopeless, unless the whole probe is wanted."""
        due, responses = self.requests(rate_per_s, rng)
        return evidence(rate_per_s, due, responses, self.seconds, self.slice_s, self.warmup_s, whole=whole)

    def requests(self, rate_per_s: float, rng: Generator) -> tuple[Floats, Floats]:
        """When requests fall due, from the warm-up's beginning, and their service times, in seconds."""
        whole = self.warmup_s + self.seconds
        count = rng.poisson(rate_per_s * whole)
        due = np.sort(rng.random(count)) * whole
        services = self.service.draw(rng, (count,)) * self.drift(rng)
        if self.servers == 1:
            done = np.cumsum(services)
            return due, done + np.maximum.accumulate(due - (done - services)) - due + self.base_s
        free = [0.0] * self.servers
        ends = np.empty(count)
        for index, (at, takes) in enumerate(zip(due.tolist(), services.tolist(), strict=True)):
            ends[index] = end = max(at, free[0]) + takes
            heapq.heapreplace(free, end)
        return due, ends - due + self.base_s


def evidence(
    rate_per_s: float,
    due: Floats,
    responses: Floats,
    seconds: float,
    slice_s: float,
    warmup_s: float = 0.0,
    *,
    whole: bool = False,
) -> Evidence:
    """As an engine would report it: slices by when the outcome was known, and a last slice for the later outcomes."""
    count = round(seconds / slice_s)
    known = due + responses
    measured = due >= warmup_s
    due_in = _counts((due[measured] - warmup_s) / slice_s, count)
    ended_in = _counts((known - warmup_s) / slice_s, count)
    slots = np.minimum((known[measured] - warmup_s) / slice_s, count).astype(int)
    order = np.argsort(slots, kind="stable")
    parts = np.split(responses[measured][order] * 1e9, np.searchsorted(slots[order], np.arange(1, count + 1)))
    slices: list[ProbeSlice] = []
    for index in range(count):
        slices.append(ProbeSlice(slice_s, int(due_in[index]), int(ended_in[index]), 0, Histogram.of(parts[index])))
        if not whole and hopeless(slices):
            return Evidence(rate_per_s, tuple(slices), hopeless=True)
    slices.append(ProbeSlice(0.0, 0, len(parts[count]), 0, Histogram.of(parts[count])))
    return Evidence(rate_per_s, tuple(slices))


def _counts(at: Floats, count: int) -> Floats:
    inside = at[(at >= 0) & (at < count)].astype(int)
    return np.bincount(inside, minlength=count).astype(np.float64)


def searched(search: Search, queue: Queue, seed: int) -> Converged | Exhausted | Doomed:
    """A whole search on this queue."""
    rng = np.random.default_rng([seed, 11])
    while isinstance(step := search.next(), Proposal):
        search.add(queue.probe(step.rate_per_s, rng, whole=step.whole))
    return step


def searched_on_starts(search: Search, start: Callable[[int], Queue], seed: int) -> Converged | Exhausted | Doomed:
    """The same if every fresh start has a queue of its own: `start` makes the queue for a number."""
    rng, turn, number = np.random.default_rng([seed, 11]), 0, 0
    while isinstance(step := search.next(), Proposal):
        if step.fresh_start not in (0, turn):
            turn, number = step.fresh_start, number + 1
        probe = start(number).probe(step.rate_per_s, rng, whole=step.whole)
        search.add(replace(probe, start=number))
    return step


@cache
def true_limit(queue_name: str, servers: int, mean_s: float, base_s: float, q: float, below_s: float) -> float:
    """The rate at which the stationary percentile is `below_s`: M/M/k and M/D/1, by bisection on their laws."""
    low, high = 0.0, servers / mean_s
    for _ in range(50):
        middle = (low + high) / 2
        if queue_name == "md1":
            quantile = OneServer(middle, deterministic(mean_s)).quantile_s(q)
        else:
            quantile = ManyServers(middle, exponential(1 / mean_s), servers).quantile_s(q)
        low, high = (middle, high) if quantile + base_s < below_s else (low, middle)
    return low
