"""How the engine is compared with a closed form: which part of a difference is the machine's, and which is chance.

The engine's response time of a request is X = T + N: its true response time T and the machine's noise N >= 0. For every
t and every allowance a,

    P(T > t)  <=  P(X > t)                          (noise only adds)
    P(X > t + a)  <=  P(T > t) + P(N > a)           (union bound)

so the first bound needs no knowledge of the noise, and the second only one point of its distribution. N has parts: the
engine took the request up late, or received its answer late; the oracle read it late, or answered late; and the round
trip. The engine's and the oracle's lateness are measured *in the same run*. A process that is kept from its core for a
while delays an arrival as likely as a departure, so each of the two lateness distributions stands for both parts. The
round trip is measured by a run against `null` on the same machine.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from bench.rig import OwnLateness
from redline.extras.selftest.truth import ManyServers, one_server
from redline.model import Histogram, Traffic

ALPHA = 1e-6
Z = float(norm.isf(ALPHA / 2))
PRECISION = 1e-3
"""The histogram's: a bucket's highest value lies at most this share above the recorded value."""


def share_above(histogram: Histogram, t_ns: float) -> float:
    """The share of durations above `t_ns`; those in its bucket count as above."""
    values, counts = histogram.buckets()
    return float(counts[values >= t_ns].sum()) / histogram.count


def share_surely_above(histogram: Histogram, t_ns: float) -> float:
    """The same without the durations in its bucket, which may lie below."""
    return share_above(histogram, t_ns * (1 + PRECISION) + 1)


@dataclass(frozen=True)
class Noise:
    """An allowance, and the share of requests that may exceed it, for arrival and departure separately."""

    allowance_ns: int
    arriving: float
    leaving: float

    @property
    def share(self) -> float:
        """The share of requests that noise may delay by more than the allowance."""
        return self.arriving + self.leaving


def noise(traffic: Traffic, null: Traffic, oracle: OwnLateness, at_most_ns: float) -> Noise | None:
    """The finest noise level whose allowance is at most `at_most_ns`; None on a machine too noisy for that.

    The round trip, the engine twice and the oracle twice may each take their quantile of that level, and each
    exceed it with the remaining probability.
    """
    for level, oracle_ns in ((0.999, oracle.late_p999_ns), (0.99, oracle.late_p99_ns)):
        engine_ns = traffic.lateness.quantile_ns(level)
        allowance_ns = null.response.quantile_ns(level) + 2 * engine_ns + 2 * oracle_ns
        if allowance_ns <= at_most_ns:
            rest = 1 - level
            return Noise(allowance_ns, arriving=3 * rest, leaving=2 * rest)
    return None


def binomial_slack(share: float, n: int, inflation: float = 1.0) -> float:
    """The deviation of a share of `n` draws from its truth that is exceeded with probability at most ALPHA.

    `inflation` multiplies the variance of independent draws. One draw in `n` is added for the step of the empirical
    distribution.
    """
    return Z * float(np.sqrt(inflation * share * (1 - share) / n)) + 1 / n


def inflation(queue: ManyServers, q: float) -> float:
    """How much larger the variance of the share above the q-quantile is in this M/M/1 than among independent draws.

    Neighbours in a queue wait together, so a run of n requests shows less than n draws. Simulated: 400 runs of 5,000.
    """
    n, runs = 5000, 400
    found = one_server(queue.arrivals_per_s, queue.service, runs, n, np.random.default_rng(7))
    shares = (found > queue.quantile_s(q)).mean(axis=1)
    return float(np.var(shares)) / (q * (1 - q) / n)
