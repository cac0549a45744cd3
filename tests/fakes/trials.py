"""Trials simulated as numbers to estimate from, thousands in a second: for the laws of the statistics.

A trial has an effect of its own (another memory layout, another neighbour), the machine drifts from round to round,
and within a trial requests are sampled. A few trials may be much slower, as on shared machines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy import optimize, stats

from redline.model import Histogram, Metric
from redline.stats import Quantiles, Ratios, Sample
from redline.stats.samples import Floats, Merged

USERS = 64
MEDIAN_NS = 1_000_000.0
CPU_NS = 20_000.0


@dataclass(frozen=True)
class World:
    """How trials differ: sigmas and shifts are of the log, so 0.03 is 3%."""

    trials: int = 5
    effect: float = 0.03
    slow_share: float = 0.0
    slow_by: float = 0.2
    drift: float = 0.0
    spread: float = 0.4
    requests: int = 2_000

    def effects(self, n: int, rng: Generator) -> Floats:
        """The log of how much slower each of n trials is."""
        slow = np.where(rng.random(n) < self.slow_share, self.slow_by, 0.0)
        return rng.normal(0.0, self.effect, n) + slow

    def drifts(self) -> Floats:
        """The log of how much slower the machine is in each round."""
        return np.linspace(0.0, self.drift, self.trials)

    def cell(self, rng: Generator, ratio: float = 1.0) -> dict[Metric, Sample]:
        """The trials of a cell whose response times are `ratio` times those of the standard cell."""
        logs = np.log(MEDIAN_NS * ratio) + self.effects(self.trials, rng) + self.drifts()
        responses = [rng.lognormal(log, self.spread, self.requests) for log in logs]
        seconds = np.array([response.mean() * self.requests / USERS / 1e9 for response in responses])
        requests = np.full(self.trials, float(self.requests))
        cpu = requests * CPU_NS * ratio * np.exp(self.effects(self.trials, rng) + self.drifts())
        merged = Merged([Histogram.of(response) for response in responses])
        return {
            Metric.THROUGHPUT: Ratios(requests, seconds),
            Metric.P50: Quantiles(merged, 0.5),
            Metric.P75: Quantiles(merged, 0.75),
            Metric.P90: Quantiles(merged, 0.9),
            Metric.P95: Quantiles(merged, 0.95),
            Metric.P99: Quantiles(merged, 0.99),
            Metric.P999: Quantiles(merged, 0.999),
            Metric.CPU_PER_REQUEST: Ratios(cpu, requests),
        }

    def true_quantile_ns(self, q: float) -> float:
        """The quantile of all requests of endlessly many trials, without drift."""
        effects = self.effects(100_000, np.random.default_rng(0))

        def excess(log: float) -> float:
            return float(stats.norm.cdf((log - effects) / self.spread).mean()) - q

        return MEDIAN_NS * float(np.exp(optimize.brentq(excess, -3.0, 5.0)))
