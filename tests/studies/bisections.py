"""How often a bisection is right: `python -m tests.studies.bisections [HISTORIES]` prints the table of its decision.

A history has 8 to 1,000 commits, of which three in ten touch no code, and one change of 1 to 20%; sizes and effects are
uniform in their logarithm, the culprit is drawn by the prior. A measurement has four starts, which scatter by .5 to .8%
(docs/decisions/0018-duets.md) and, from measurement to measurement, by a factor of its own; builds differ by .1%.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from redline.search.bisection import (
    BUILD_SD,
    FOUND,
    BisectAnswer,
    BisectCosts,
    CommitGraph,
    MeasuredCommit,
    answer,
    next_commit,
    posterior,
)

LITTLE = 0.05
STARTS = 4
EFFECTS = (0.01, 0.02, 0.05, 0.1, 0.2)
Levels = Callable[[np.random.Generator, CommitGraph, float], tuple[np.ndarray, int]]
"""Makes the level of each commit, and names the one that holds the only change; -1 if there is none."""


@dataclass(frozen=True)
class World:
    """A history, and how it is measured: the truth is `levels`, the log ratio of each commit to the oldest one."""

    rng: np.random.Generator
    commits: CommitGraph
    levels: np.ndarray
    culprit: int
    broken: frozenset[int] = frozenset()
    builds: dict[int, float] = field(default_factory=dict)

    def measured(self, commit: int, scatter: float) -> MeasuredCommit:
        """A measurement of a commit."""
        build = self.builds.setdefault(commit, self.rng.normal(0, BUILD_SD))
        sd = scatter * math.exp(self.rng.normal(0, 0.3))
        starts = self.levels[commit] + build + self.rng.normal(0, sd, STARTS)
        return MeasuredCommit(commit, tuple(map(float, starts)))


@dataclass(frozen=True)
class Outcome:
    """How a search in a world ended, after how many measurements and tries of commits that do not build."""

    world: World
    found: BisectAnswer
    measurements: int
    skipped: int

    @property
    def is_right(self) -> bool:
        """Whether the only change is where it says."""
        return self.found.ending == FOUND and self.world.culprit in self.found.commits


def one_change(rng: np.random.Generator, commits: CommitGraph, effect: float) -> tuple[np.ndarray, int]:
    """A single change, of a commit drawn by its prior."""
    culprit = int(rng.choice(len(commits.prior), p=commits.prior))
    return np.log1p(effect) * commits.contains[:, culprit], culprit


def two_changes(rng: np.random.Generator, commits: CommitGraph, effect: float) -> tuple[np.ndarray, int]:
    """The effect in two halves, which are a tenth of the history apart at least."""
    count = len(commits.prior)
    first = int(rng.integers(0, count - max(2, count // 10)))
    second = int(rng.integers(first + max(1, count // 10), count))
    return np.log1p(effect) / 2 * (commits.contains[:, first] + commits.contains[:, second].astype(float)), -1


def drift(_rng: np.random.Generator, commits: CommitGraph, effect: float) -> tuple[np.ndarray, int]:
    """Every commit adds as much."""
    return np.log1p(effect) * commits.contains.mean(axis=1), -1


def world(seed: int, effect: float, count: int = 0, levels: Levels = one_change, broken: float = 0.0) -> World:
    """A history of so many commits, or of 8 to 1,000, a share of which, but not the last, do not build."""
    rng = np.random.default_rng(seed)
    count = count or round(math.exp(rng.uniform(math.log(8), math.log(1000))))
    commits = CommitGraph.in_line(np.where(rng.random(count) < 0.3, LITTLE, 1.0).tolist())
    truth, culprit = levels(rng, commits, effect)
    lost = frozenset(int(at) for at in np.flatnonzero(rng.random(count - 1) < broken))
    return World(rng, commits, truth, culprit, lost)


def searched(it: World) -> Outcome:
    """Search until there is an answer."""
    scatter = it.rng.uniform(0.005, 0.008)
    last = it.commits.last
    measured, broken = [it.measured(last, scatter)], set[int]()
    while True:
        known = posterior(it.commits, measured)
        if found := answer(it.commits, known, broken, len(measured) + len(broken)):
            return Outcome(it, found, len(measured), len(broken))
        commit = next_commit(it.commits, measured, broken, known, BisectCosts(starts=STARTS))
        if commit in it.broken:
            broken.add(commit)
        else:
            measured.append(it.measured(commit, scatter))


def calibration(outcomes: list[Outcome]) -> tuple[float, float, float, float]:
    """The share that found a commit, the stated probability and the share of right ones among these, and the cost.

    The cost is the measurements over those of a bisection without noise: the logarithm of the number of commits.
    """
    found = [one for one in outcomes if one.found.ending == FOUND]
    stated = float(np.mean([one.found.probability for one in found]))
    right = float(np.mean([one.is_right for one in found]))
    costs = [one.measurements / math.log2(len(one.world.commits.prior)) for one in outcomes]
    return len(found) / len(outcomes), stated, right, float(np.mean(costs))


def main(histories: int) -> None:
    """Print the tables."""
    print(f"{'effect':>7} {'histories':>9} {'found':>7} {'stated':>7} {'right':>7} {'cost':>6}")
    each = histories // len(EFFECTS)
    every: list[Outcome] = []
    for number, effect in enumerate(EFFECTS):
        outcomes = [searched(world(number * each + seed, effect)) for seed in range(each)]
        every += outcomes
        found, stated, right, cost = calibration(outcomes)
        print(f"{effect:7.0%} {each:9} {found:7.1%} {stated:7.1%} {right:7.1%} {cost:6.2f}", flush=True)
    found, stated, right, cost = calibration(every)
    print(f"{'all':>7} {len(every):9} {found:7.1%} {stated:7.1%} {right:7.1%} {cost:6.2f}", flush=True)
    outcomes = [searched(world(seed, 0.05, broken=0.2)) for seed in range(each // 4)]
    found, stated, right, cost = calibration(outcomes)
    print(f"one in five does not build, 5%: {found:.1%} {stated:.1%} {right:.1%} {cost:.2f}", flush=True)
    for name, levels in (("two changes", two_changes), ("a drift", drift)):
        for effect in EFFECTS[1:4]:
            outcomes = [searched(world(seed, effect, levels=levels)) for seed in range(each // 20)]
            endings = [one.found.ending for one in outcomes]
            shares = ", ".join(f"{ending} {endings.count(ending) / len(endings):.0%}" for ending in sorted({*endings}))
            print(f"{name} of {effect:.0%} in all: {shares}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
