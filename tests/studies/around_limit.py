"""The study of the knee and of overload tests: `python -m tests.studies.around_limit [SEARCHES]`.

Truth: the knee of a queue follows from its mean response time; what a simulated server does under
overload is known.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redline.extras.selftest.truth import deterministic, exponential
from redline.limits.answers import probe
from redline.model.limits import Knee
from redline.search import Proposal, Search
from redline.search.curve import curve, knee, rates_for_curve
from redline.search.overload import judge_overload, overload_plan
from redline.suite import parse_objectives
from tests.fakes.overload import Server
from tests.fakes.queues import Queue


@dataclass(frozen=True)
class Setting:
    """A queue of this many requests per second, and its mean response time in seconds at a rate."""

    name: str
    queue: Queue
    mean_s: Callable[[float], float]
    objective: str = "p99 < 20ms"

    @property
    def truth(self) -> float:
        rates = np.linspace(1, self.queue.capacity_per_s - 1, 20_000)
        return float(rates[np.argmax([rate / self.mean_s(rate) for rate in rates])])


SETTINGS = (
    Setting("M/M/1, 2000/s", Queue(exponential(2000)), lambda rate: 1 / (2000 - rate)),
    Setting(
        "M/D/1, 2000/s",
        Queue(deterministic(1 / 2000)),
        lambda rate: (1 + (rate / 2000) / (2 * (1 - rate / 2000))) / 2000,
    ),
    Setting("M/M/1, 2000/s, 5 ms base", Queue(exponential(2000), base_s=0.005), lambda rate: 0.005 + 1 / (2000 - rate)),
)


def knees(setting: Setting, searches: int) -> str:
    """A row: how far the knees of this many searches are from the truth, and how often their range holds it."""
    found: list[Knee] = []
    for seed in range(searches):
        rng = np.random.default_rng([seed, 23])
        search = Search({"one": parse_objectives(setting.objective)})
        while isinstance(step := search.next(), Proposal):
            search.add(setting.queue.probe(step.rate_per_s, rng, whole=step.whole))
        probes = [probe(each, search.sets) for each in search.evidence]
        lacking = rates_for_curve(curve(probes), 20)
        probes.extend(probe(setting.queue.probe(rate, rng), search.sets) for rate in lacking)
        at = knee(curve(probes))
        found.extend([at] if isinstance(at, Knee) else [])
    away = [each.rate_per_s / setting.truth - 1 for each in found]
    held = sum(each.low_per_s <= setting.truth <= each.high_per_s for each in found)
    middle, most = np.median(away), np.quantile(np.abs(away), 0.9)
    return (
        f"| {setting.name} | {setting.truth:,.0f} | {searches} | {len(found)} | {middle:+.0%} | {most:.0%} "
        f"| {held / searches:.0%} |"
    )


def verdicts(per_s: float, server: Server, loads: int) -> str:
    """A row: the results of this many overload tests of a server."""
    plan = overload_plan([(0.93 * per_s, 0.97 * per_s)], per_s, 5.0)
    judged = [judge_overload(plan, server.slices(plan, np.random.default_rng(seed))) for seed in range(loads)]
    said = Counter((each.goodput, each.recovery) for each in judged)
    gone = [
        each.backlog_gone_s * (per_s - plan.calm_per_s) / each.backlog_at_most
        for each in judged
        if each.backlog_gone_s is not None and each.backlog_at_most
    ]
    low, high = np.quantile(gone, (0.05, 0.95)) if gone else (float("nan"), float("nan"))
    results = ", ".join(f"{goodput} and {recovery} {count}" for (goodput, recovery), count in said.most_common())
    return f"| {per_s:,.0f}/s | {loads} | {results} | {low:.2f} to {high:.2f} |"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    print("| queue | knee | searches | found | median error | 9 in 10 within | flat stretch holds it |")
    print("|---|---|---|---|---|---|---|")
    for each in SETTINGS:
        print(knees(each, count), flush=True)
    print("\n| server that is only busy | loads | result | drained, to b / (capacity - rate) |\n|---|---|---|---|")
    for rate_per_s in (100.0, 300.0, 1000.0, 3000.0):
        print(verdicts(rate_per_s, Server(rate_per_s), count), flush=True)
