"""The study behind docs/concepts/limit.md: `python -m tests.studies.limit [SEARCHES [OF_OTHERS]]` prints its tables.

OF_OTHERS is how many searches the settings after the first four get.

Truth: the law of each queue gives the rate at which its percentile reaches the objective. A hit: the search's interval
holds it; an interval without a lower or an upper end misses. For comparison a bisection that trusts every probe, as
load generators have it.
"""

import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from redline.extras.selftest.truth import deterministic, exponential
from redline.model import Objective
from redline.search import Search, Settings, hopeless
from redline.suite import parse_objectives
from tests.fakes.queues import Queue, searched, true_limit

QS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class Setting:
    """A queue and an objective; `trials` is how much the capacity differs from probe to probe (sigma of its log)."""

    kind: str
    capacity: float
    objective: str
    base_s: float = 0.0
    trials: float = 0.0

    @property
    def servers(self) -> int:
        return int(self.kind[2:]) if self.kind.startswith("mm") else 1

    @property
    def condition(self) -> Objective:
        return parse_objectives(self.objective)[0]

    @property
    def truth(self) -> float:
        condition = self.condition
        mean_s = self.servers / self.capacity
        q = QS[condition.metric]
        return true_limit(self.kind, self.servers, mean_s, self.base_s, q, condition.limit / 1e9)

    def queue(self) -> Queue:
        mean_s = self.servers / self.capacity
        service = deterministic(mean_s) if self.kind == "md1" else exponential(1 / mean_s)
        return Queue(service, servers=self.servers, base_s=self.base_s, drift=self._drift())

    def _drift(self) -> Callable[[Generator], float]:
        return lambda rng: float(np.exp(self.trials * rng.standard_normal())) if self.trials else 1.0


SETTINGS = (
    Setting("mm1", 2000, "p99 < 20ms"),
    Setting("mm1", 2000, "p99 < 200ms"),
    Setting("mm1", 2000, "p90 < 10ms"),
    Setting("mm1", 10_000, "p99 < 5ms"),
    Setting("md1", 2000, "p99 < 20ms"),
    Setting("mm4", 2000, "p99 < 20ms"),
    Setting("mm1", 2000, "p99 < 25ms", base_s=0.005),
    Setting("mm1", 2000, "p99 < 20ms", trials=0.01),
    Setting("mm1", 500, "p99 < 50ms"),
)


_MOST_SEARCHED = 4
_ASKED = re.compile(r"--probes (\d+)")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a search relative to the truth; an unknown end is infinitely far away."""

    low: float
    high: float
    probes: int
    decided: bool
    modelled: bool
    reason: str = ""
    probes_differ: bool = False

    @property
    def hit(self) -> bool:
        return bool(-np.inf < self.low <= 1 <= self.high < np.inf)


def one(setting: Setting, seed: int, *, precision: float = 0.03, probes: int = 12) -> Outcome:
    """A search that begins anywhere from a quarter of the capacity to all of it, without its looks at early rates."""
    start = setting.capacity * 2 ** np.random.default_rng([seed, 5]).uniform(-2, 0)
    settings = Settings(start_per_s=start, precision=precision, probes=probes, looks=False)
    search = Search({"it": (setting.condition,)}, settings)
    searched(search, setting.queue(), seed)
    (limit,) = search.limits()
    low = -np.inf if limit.low_per_s is None else limit.low_per_s / setting.truth
    high = np.inf if limit.high_per_s is None else limit.high_per_s / setting.truth
    said = limit.decided, limit.modelled, limit.reason, limit.probes_differ
    return Outcome(float(low), float(high), len(search.evidence), *said)


def plain(setting: Setting, seed: int) -> Outcome:
    """Double, then bisect to 3%, a probe per step, without repetitions."""
    rng = np.random.default_rng([seed, 12])
    queue, condition = setting.queue(), setting.condition
    rate, low, high, probes = setting.capacity * 2 ** np.random.default_rng([seed, 5]).uniform(-2, 0), 0.0, np.inf, 0
    while probes < 12 and (high == np.inf or (high - low) / (high + low) > 0.03):
        probe = queue.probe(rate, rng)
        met = not probe.hopeless and probe.response.quantile_ns(QS[condition.metric]) < condition.limit
        low, high = (rate, high) if met else (low, rate)
        rate = 2 * rate if high == np.inf else (low + high) / 2
        probes += 1
    return Outcome(
        low / setting.truth if low > 0 else -np.inf, high / setting.truth, probes, decided=True, modelled=False
    )


def row(setting: Setting, searches: int) -> str:
    """A line of the table."""
    ours = [one(setting, seed) for seed in range(searches)]
    theirs = [plain(setting, seed) for seed in range(searches)]
    halves = [(each.high - each.low) / 2 for each in ours]
    name = f"{setting.kind}, {setting.capacity:g}/s" + (f", {setting.base_s * 1e3:g} ms base" if setting.base_s else "")
    name += f", {setting.trials:.0%} between probes" if setting.trials else ""
    cells = (
        name,
        setting.objective,
        str(searches),
        f"{setting.truth:.1f}",
        f"**{np.mean([each.hit for each in ours]):.1%}**",
        f"{sum(each.high < 1 for each in ours)} / {sum(each.low > 1 for each in ours)}",
        f"{np.median(halves):.1%}",
        f"{np.quantile(halves, 0.9):.1%}",
        f"{np.mean([each.probes for each in ours]):.1f}",
        f"{np.mean([not each.decided for each in ours]):.0%}",
        f"{np.mean([not each.hit for each in theirs]):.0%}",
        f"{np.mean([each.probes for each in theirs]):.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def scattered_row(sigma: float, searches: int) -> str:
    """The row for servers with this scatter between probes: 12 probes, then as many as the answer needs."""
    setting = Setting("mm1", 2000, "p99 < 20ms", trials=sigma)
    firsts = [one(setting, seed) for seed in range(searches)]
    asked = [int(found[1]) if (found := _ASKED.search(each.reason)) else 0 for each in firsts]
    seconds = [one(setting, 1000 + seed, probes=probes) for seed, probes in enumerate(asked) if probes]
    halves = [(each.high - each.low) / 2 for each in firsts]
    cells = (
        f"{sigma:.0%}",
        str(searches),
        f"{np.mean([each.hit for each in firsts]):.0%}",
        f"{np.median(halves):.1%}",
        f"{sum(each.decided for each in firsts)} / {sum(map(bool, asked))}",
        f"{np.median([each for each in asked if each]):.0f}",
        f"{sum(each.decided for each in seconds)} of {len(seconds)}",
        f"{np.mean([each.hit for each in seconds]):.0%}",
        f"{np.median([each.probes for each in seconds]):.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def false_alarms(load: float, searches: int) -> tuple[float, float]:
    """The share of probes at that share of the capacity that are called hopeless, and after how many seconds."""
    queue, rng = Queue(exponential(2000.0)), np.random.default_rng(17)
    probes = [queue.probe(load * 2000, rng) for _ in range(searches)]
    called = [probe.seconds for probe in probes if probe.hopeless or hopeless(probe.timed)]
    return len(called) / searches, float(np.median(called)) if called else float("nan")


def main() -> None:
    """Print the tables in Markdown."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    others = int(sys.argv[2]) if len(sys.argv) > 2 else searches
    counts = [searches] * _MOST_SEARCHED + [others] * (len(SETTINGS) - _MOST_SEARCHED)
    print("12 probes of 5 s at most, 95% confidence, precision 3%\n")
    columns = (
        "queue|objective|searches|truth|holds it|too low / high|half width|9 in 10|probes|wider|plain misses|its probes"
    )
    print(f"| {columns.replace('|', ' | ')} |\n{'|---' * 12}|")
    with ProcessPoolExecutor() as pool:
        for line in pool.map(row, SETTINGS, counts):
            print(line, flush=True)
    columns = "differ by|searches|holds it|half width|decided / asks for more|asks for|then decided|holds it|probes"
    print(f"\n| {columns.replace('|', ' | ')} |\n{'|---' * 9}|")
    for sigma in (0.05, 0.15):
        print(scattered_row(sigma, others), flush=True)
    print("\n| load | called hopeless | after |\n|---|---|---|")
    for load in (0.8, 0.95, 0.99, 1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0):
        share, seconds = false_alarms(load, 10 * searches)
        print(f"| {load:.0%} | {share:.1%} | {seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
