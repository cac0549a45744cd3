"""How often intervals hold the truth when trials are made until they are narrow: `python -m tests.studies.auto_trials`.

Stopping at the first narrow interval stops at lucky intervals (Chow and Robbins, 1965): this simulates how much of the
95% that costs. Trials are normal on the log scale, as `redline.stats` takes them; the truth is a ratio of 1.
"""

import math
import sys

import numpy as np
import scipy

RUNS = 20_000
PRECISION = 0.02
AT_LEAST, AT_MOST = 5, 30
SPREADS = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05)


def stopped(spread: float, at_least: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, the mean number of rounds, and the share that were narrow enough."""
    logs = rng.normal(0.0, spread, size=(RUNS, AT_MOST))
    held, rounds, narrow = np.zeros(RUNS, bool), np.zeros(RUNS), np.zeros(RUNS, bool)
    going = np.ones(RUNS, bool)
    for n in range(at_least, AT_MOST + 1):
        means, half = logs[:, :n].mean(axis=1), logs[:, :n].std(axis=1, ddof=1) / math.sqrt(n)
        half = half * scipy.stats.t.ppf(0.975, n - 1)
        enough = np.sinh(half) <= PRECISION  # half the width of [e^-h, e^h], relative
        now = going & (enough | (n == AT_MOST))
        held[now], rounds[now], narrow[now] = (np.abs(means) <= half)[now], n, enough[now]
        going &= ~now
    return float(held.mean()), float(rounds.mean()), float(narrow.mean())


def main() -> None:
    """Print the table of docs/concepts/statistics.md."""
    rng = np.random.default_rng(1)
    lines = ["| spread of a ratio | at least | holds the truth | rounds | narrow enough |", "|---|---|---|---|---|"]
    for at_least in (3, 5):
        for spread in SPREADS:
            held, rounds, narrow = stopped(spread, at_least, rng)
            lines.append(f"| {spread:.1%} | {at_least} | {held:.1%} | {rounds:.1f} | {narrow:.0%} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
