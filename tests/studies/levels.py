"""The study behind docs/decisions/0015-two-levels.md: `python -m tests.studies.levels [SEEDS]` prints its table.

How often a 95% interval of a rate holds the truth, overall and in the third of the cells whose trials agree best, and
how wide it is. Trials differ by `between`, and their batches by so much that a trial's mean differs by `within`.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redline.model import Metric
from redline.stats import Ratios
from redline.stats.estimate import Spread, estimate, over_trials, within_trials
from redline.stats.samples import BATCHES, Floats

TRUTH = 1_000.0


@dataclass(frozen=True)
class Levels:
    """Sigmas of the log: `follows` is how much of a batch's deviation the next keeps, `ramp` all trials' course."""

    between: float
    within: float
    follows: float = 0.0
    ramp: float = 0.0

    def cell(self, trials: int, rng: np.random.Generator) -> Ratios:
        """Requests and seconds of this many trials, by batch."""
        noise = np.zeros((trials, BATCHES))
        last = rng.normal(size=trials)
        for batch in range(BATCHES):
            last = self.follows * last + np.sqrt(1 - self.follows**2) * rng.normal(size=trials)
            noise[:, batch] = last
        keeps = self.follows ** np.abs(np.subtract.outer(range(BATCHES), range(BATCHES)))
        noise *= self.within * BATCHES / np.sqrt(keeps.sum())
        course = self.ramp * np.linspace(-0.5, 0.5, BATCHES)
        rates = TRUTH * (1 + rng.normal(0, self.between, (trials, 1)) + noise + course)
        seconds = np.full((trials, BATCHES), 1 / BATCHES)
        over = rates * seconds
        return Ratios(over.sum(axis=1), np.ones(trials), batches=(over, seconds))


def in_use(cell: Ratios) -> float:
    """Redline's method: the wider of the two levels."""
    made = estimate(cell, Metric.THROUGHPUT)
    assert made.high is not None
    return float(np.log(made.high / made.value))


def trials_alone(cell: Ratios) -> float:
    """The upper level alone."""
    spread = over_trials(cell)
    assert spread is not None
    return spread.reach(0)


def resampled_twice(cell: Ratios) -> float:
    """Trials are resampled, and batches within the drawn trials: the variances of both levels add."""
    spread, within = over_trials(cell), within_trials(cell)
    assert spread is not None
    assert within is not None
    return Spread(spread.variance + within.variance, spread.freedom).reach(0)


METHODS: dict[str, Callable[[Ratios], float]] = {
    "in use": in_use,
    "trials alone": trials_alone,
    "both resampled": resampled_twice,
}
WORLDS = {
    "1% between, 1% within": Levels(0.01, 0.01),
    "3% between, 0.3% within": Levels(0.03, 0.003),
    "0.3% between, 1% within": Levels(0.003, 0.01),
    "0 between, 1% within": Levels(0, 0.01),
    "0 between, 1% within, batches keep 0.5": Levels(0, 0.01, follows=0.5),
    "1% between, 0.3% within, 10% ramp": Levels(0.01, 0.003, ramp=0.1),
}


def coverage(world: Levels, trials: int, seeds: int) -> dict[str, tuple[float, float, float]]:
    """Coverage, coverage where trials agree best, and median half width, per method."""
    off: Floats = np.zeros(seeds)
    seen: Floats = np.zeros(seeds)
    reach = {name: np.zeros(seeds) for name in METHODS}
    for seed in range(seeds):
        cell = world.cell(trials, np.random.default_rng([seed, trials]))
        off[seed] = abs(np.log(cell.over.sum() / cell.under.sum() / TRUTH))
        seen[seed] = cell.over.std()
        for name, method in METHODS.items():
            reach[name][seed] = method(cell)
    lucky = seen <= np.quantile(seen, 1 / 3)
    return {
        name: (float((off <= half).mean()), float((off <= half)[lucky].mean()), float(np.median(half)))
        for name, half in reach.items()
    }


def main() -> None:
    """Print the table in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(f"coverage of 95% intervals / where trials agree best / median half width, {seeds} seeds\n")
    print("| world | trials |", " | ".join(METHODS), "|")
    print("|---" * (2 + len(METHODS)) + "|")
    for name, world in WORLDS.items():
        for trials in (2, 3, 5, 10):
            found = coverage(world, trials, seeds).values()
            columns = (f"{share:.1%} / {lucky:.1%} / ±{half:.1%}" for share, lucky, half in found)
            print(f"| {name} | {trials} |", " | ".join(columns), "|")


if __name__ == "__main__":
    main()
