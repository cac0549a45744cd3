"""How often a search says that its server changed: `python -m tests.studies.changing [SEARCHES]` prints the tables.

A false alarm: a server whose capacity stays, and of which a change is said. Power: a capacity that falls or rises in
the middle of the search. Searches begin anywhere from a quarter of the capacity to all of it, as by a warm-up's rate.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from redline.extras.selftest.truth import Service, deterministic, exponential
from redline.search import Proposal, Search, Settings
from redline.suite import parse_objectives
from tests.fakes.queues import Queue


@dataclass(frozen=True)
class Setting:
    """A queue of 1,000/s; `factor` times as fast from the middle of the search on. `drift`: sigma between probes."""

    kind: str = "mm1"
    factor: float = 1.0
    drift: float = 0.0
    base_s: float = 0.0
    objective: str = "p99 < 50ms, errors < 1%"
    capacity: float = 1000.0
    seconds: float = 5.0

    def queue(self, speed: float) -> Queue:
        """The server while it has this speed."""
        servers = int(self.kind[2:]) if self.kind.startswith("mm") else 1
        mean_s = servers / self.capacity / speed
        service: Service = deterministic(mean_s) if self.kind == "md1" else exponential(1 / mean_s)
        drift = self.drift
        return Queue(
            service, servers, self.base_s, self.seconds, drift=lambda rng: float(np.exp(drift * rng.standard_normal()))
        )


STEADY = (
    Setting(),
    Setting("md1"),
    Setting("mm4"),
    Setting(base_s=0.01),
    Setting(objective="p99 < 200ms"),
    Setting(seconds=2.0),
    Setting(drift=0.03),
    Setting(drift=0.1),
)
CHANGING = tuple(Setting(factor=factor) for factor in (0.95, 0.9, 0.7, 1.05, 1.1, 1.3))


def said(setting: Setting, seed: int) -> str:
    """`slower`, `faster`, or nothing: what a search says of a server that changes after half of its probes."""
    rng = np.random.default_rng([seed, 31])
    settings = Settings(start_per_s=setting.capacity * 2 ** rng.uniform(-2, 0), lowest_per_s=100 / setting.seconds)
    search = Search({"it": parse_objectives(setting.objective)}, settings)
    before, since = setting.queue(1.0), setting.queue(setting.factor)
    while isinstance(step := search.next(), Proposal):
        queue = before if len(search.evidence) < settings.probes // 2 else since
        search.add(queue.probe(step.rate_per_s, rng, whole=step.whole))
    change = search.change
    return "" if change is None else "slower" if change.slower else "faster"


def counts(setting: Setting, searches: int) -> tuple[int, int]:
    """How many of so many searches say that the server became slower, and faster."""
    answers = [said(setting, seed) for seed in range(searches)]
    return answers.count("slower"), answers.count("faster")


def rows(settings: tuple[Setting, ...], searches: int) -> Iterator[str]:
    """The lines of a table."""
    with ProcessPoolExecutor(1) as pool:
        for setting, (slower, faster) in zip(
            settings, pool.map(partial(counts, searches=searches), settings), strict=True
        ):
            yield (
                f"| {setting.kind}, {setting.objective}, {setting.seconds:g} s, base {setting.base_s * 1e3:g} ms, "
                f"drift {setting.drift:.0%} | x {setting.factor:g} | {searches} | {slower / searches:.1%} "
                f"| {faster / searches:.1%} |"
            )


def main() -> None:
    """Print the tables in Markdown."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| server | capacity | searches | said: slower | said: faster |\n|---|---|---|---|---|")
    for row in rows(STEADY + CHANGING, searches):
        print(row, flush=True)


if __name__ == "__main__":
    main()
