"""Servers under overload, simulated: one worker that is only busy, slows down, sheds, or never recovers."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from redline.model import Histogram
from redline.search import ProbeSlice
from redline.search.evidence import Floats
from redline.search.overload import OverloadPlan

WARMUP_S = 1.0


@dataclass
class Server:
    """One worker with exponential service of mean 1 / `per_s`, first in, first out.

    `slower` gives a service time's factor from how many wait when it begins. At most `most` wait; more are refused.
    A client that has waited `timeout_s` gives up, and the server does its work all the same.
    """

    per_s: float
    slower: Callable[[int], float] = field(default=lambda _waiting: 1.0)
    most: float = float("inf")
    timeout_s: float = float("inf")
    dies_at_s: float = float("inf")

    def slices(self, plan: OverloadPlan, rng: Generator) -> tuple[ProbeSlice, ...]:
        """The result of a load by this plan, after a warm-up at its first rate."""
        due = arrivals(plan, rng)
        ends, right = self._ends(due, rng)
        return _sliced(plan, due, ends, right, min(plan.seconds, self.dies_at_s))

    def _ends(self, due: Floats, rng: Generator) -> tuple[Floats, Floats]:
        """When requests ended for their clients, and whether well."""
        services = rng.exponential(1 / self.per_s, len(due))
        ends, right = np.empty(len(due)), np.zeros(len(due))
        waiting: deque[float] = deque()  # when those before it will have been served
        free = -WARMUP_S
        for i, at in enumerate(listed := due.tolist()):
            while waiting and waiting[0] <= at:
                waiting.popleft()
            if len(waiting) >= self.most:
                ends[i] = at + 1e-5
                continue
            begins = max(at, free)
            free = begins + services[i] * self.slower(bisect_right(listed, begins) - i - 1)
            waiting.append(free)
            right[i] = free - at <= self.timeout_s
            ends[i] = min(free, at + self.timeout_s)
        return ends, right


def arrivals(plan: OverloadPlan, rng: Generator) -> Floats:
    """Poisson arrivals, in seconds from the beginning of the measurement; those of the warm-up are before it."""
    lengths = ((WARMUP_S + plan.before_s, plan.calm_per_s), (plan.overload_s, plan.overload_per_s))
    begin, found = -WARMUP_S, []
    for seconds, per_s in (*lengths, (plan.after_s, plan.calm_per_s)):
        found.append(begin + rng.random(rng.poisson(per_s * seconds)) * seconds)
        begin += seconds
    return np.sort(np.concatenate(found))


def _sliced(plan: OverloadPlan, due: Floats, ends: Floats, right: Floats, until_s: float) -> tuple[ProbeSlice, ...]:
    """As an engine reports it: what fell due in a slice, and what ended in it."""
    count = round(until_s / plan.slice_s)
    edges = np.arange(count + 1) * plan.slice_s
    slot = np.searchsorted(edges, ends, "right") - 1
    found = []
    for i in range(count):
        mine, asked = slot == i, int(np.count_nonzero((due >= edges[i]) & (due < edges[i + 1])))
        answered = int(right[mine].sum())
        counted = mine & (due >= 0)
        response = Histogram.of((ends[counted] - due[counted]) * 1e9)
        found.append(ProbeSlice(plan.slice_s, asked, answered, int(mine.sum()) - answered, response))
    return tuple(found)
