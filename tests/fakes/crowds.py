"""Users of a closed load without think time in front of one queue: without sockets or a clock, and seeded."""

import heapq
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from redline.extras.selftest.truth import Service
from redline.search import Converged, Doomed, Evidence, Exhausted, Proposal, Search
from tests.fakes.queues import evidence


@dataclass(frozen=True)
class Crowd:
    """A server of `servers` workers with one queue, whose users ask again once they are answered."""

    service: Service
    servers: int = 1
    seconds: float = 5.0
    warmup_s: float = 1.0
    slice_s: float = 0.1

    def probe(self, users: int, rng: Generator) -> Evidence:
        """A probe with so many users."""
        ends_s, most = self.warmup_s + self.seconds, round((self.warmup_s + self.seconds) * 1.5 * self.most_per_s)
        services = iter(self.service.draw(rng, (most + 10 * users + 1000,)).tolist())
        asks, free = [0.0] * users, [0.0] * self.servers
        due, responses = list[float](), list[float]()
        while (at := heapq.heappop(asks)) < ends_s:
            end = max(at, free[0]) + next(services)
            heapq.heapreplace(free, end)
            heapq.heappush(asks, end)
            due.append(at)
            responses.append(end - at)
        made = evidence(
            *(float(users), np.array(due), np.array(responses), self.seconds, self.slice_s, self.warmup_s), whole=True
        )
        return replace(made, by_users=True)

    @property
    def most_per_s(self) -> float:
        """What it answers at most."""
        return self.servers / self.service.mean_s


def searched(search: Search, crowd: Crowd, seed: int) -> Converged | Exhausted | Doomed:
    """A whole search by users of this server."""
    rng = np.random.default_rng([seed, 13])
    while isinstance(step := search.next(), Proposal):
        assert step.rate_per_s == round(step.rate_per_s) >= 1, "users are whole"
        search.add(crowd.probe(round(step.rate_per_s), rng))
    return step
