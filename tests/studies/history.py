"""The study behind docs/guide/history.md: `python -m tests.studies.history [HISTORIES]` prints its tables.

Runs of five trials that differ by 1%, on a machine that itself differs by 1% from run to run: a run's estimate is then
off by 1.1%. The method gets nothing but the trials.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from redline.history.changes import steps
from redline.model import Metric
from tests.fakes.histories import level

SPEED = 1000.0
THRESHOLD = 0.02
LENGTHS = (4, 6, 8, 12, 20, 30, 60)
STEPS = (0.02, 0.03, 0.05, 0.1)
Machine = Callable[[Generator, int], np.ndarray]

MACHINES: dict[str, Machine] = {
    "1% from run to run": lambda rng, n: rng.normal(0.0, 0.01, n),
    "no difference from run to run": lambda _rng, n: np.zeros(n),
    "1%, one run in ten 5% slow": lambda rng, n: rng.normal(0.0, 0.01, n) - 0.05 * (rng.random(n) < 0.1),
}


def changes(speeds: list[float], machine: Machine, seed: int) -> list[int]:
    """Where a simulated history changes."""
    rng = np.random.default_rng(seed)
    days = np.exp(machine(rng, len(speeds)))
    series = [level(speed * day, rng) for speed, day in zip(speeds, days, strict=True)]
    return [one.at for one in steps(series, Metric.THROUGHPUT, THRESHOLD)]


def flat(histories: int) -> None:
    """How many flat histories have a change all the same."""
    print(f"| a flat history of a machine with | {' | '.join(f'{n} runs' for n in LENGTHS)} |")
    print(f"|---|{'---|' * len(LENGTHS)}")
    for name, machine in MACHINES.items():
        shares = [
            sum(bool(changes([SPEED] * n, machine, seed)) for seed in range(histories)) / histories for n in LENGTHS
        ]
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")


def planted(histories: int) -> None:
    """How often a step is detected, at most one run too early or too late."""
    print("\n| of 30 runs, so many are slower | " + " | ".join(f"by {step:.0%}" for step in STEPS) + " |")
    print(f"|---|{'---|' * len(STEPS)}")
    for name, count in (("the last ten", 10), ("the last three", 3), ("the last two", 2), ("the last", 1)):
        shares = []
        for step in STEPS:
            speeds = [SPEED] * (30 - count) + [SPEED * (1 - step)] * count
            found = [changes(speeds, MACHINES["1% from run to run"], seed) for seed in range(histories)]
            shares.append(sum(any(abs(at - 30 + count) <= 1 for at in ats) for ats in found) / histories)
        print(f"| {name} | {' | '.join(f'{share:.0%}' for share in shares)} |")


def main() -> None:
    """Print both tables; the second, whose shares are far from 0, from a quarter as many."""
    histories = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    flat(histories)
    planted(histories // 4)


if __name__ == "__main__":
    main()
