"""The study behind docs/decisions/0019-tails.md: `python -m tests.studies.tails [SEEDS]` prints its tables.

How often a 95% interval of the ratio of two p99 holds the truth, and its median half width as a factor. Rounds differ
by 12%; a stolen trial, of either server, reads 2 to 50 times too much. The last table is of the levels below: response
times in histograms, merged as a report's p99 is, against the middle of the trials' own.
"""

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

from redline.model import Histogram
from redline.stats import Quantiles, paired
from redline.stats.distributions import t_quantile
from redline.stats.estimate import middle, middle_variance, over_trials
from redline.stats.samples import Floats

SCATTER, STOLEN = 0.12, 1 / 9
Interval = tuple[float, float]


def steal(rng: np.random.Generator, n: int, share: float) -> Floats:
    """The error that steal adds to the logs of n trials."""
    return np.where(rng.random(n) < share, rng.uniform(np.log(2), np.log(50), n), 0.0)


def rounds(rng: np.random.Generator, n: int, case: str) -> Floats:
    """Log ratios whose truth is 0."""
    values = rng.normal(0, SCATTER, n)
    if case == "one stolen":
        values[0] += rng.uniform(np.log(2), np.log(50))
    if case == "one trial in nine":
        values += steal(rng, n, STOLEN) - steal(rng, n, STOLEN)
    return values


def in_use(values: Floats) -> Interval:
    """Redline's method."""
    variance, freedom = middle_variance(values)
    half = t_quantile(0.975, freedom) * variance**0.5
    return middle(values) - half, middle(values) + half


def mean(values: Floats) -> Interval:
    """Student's interval of the mean."""
    half = t_quantile(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return float(values.mean() - half), float(values.mean() + half)


def trimmed(values: Floats) -> Interval | None:
    """Tukey and McLaughlin: without the lowest and the highest."""
    n, ordered = len(values), np.sort(values)
    if n < 5:
        return None
    error = np.clip(ordered, ordered[1], ordered[-2]).std(ddof=1) / ((1 - 2 / n) * n**0.5)
    half, value = t_quantile(0.975, n - 3) * error, ordered[1:-1].mean()
    return float(value - half), float(value + half)


def signed_rank(values: Floats) -> Interval | None:
    """The exact interval of the Hodges-Lehmann estimate; none below six values."""
    n, ways = len(values), np.ones(1)
    for rank in range(1, n + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    cut = int(np.searchsorted(np.cumsum(ways) / 2**n, 0.025, side="right"))
    if cut == 0:
        return None
    rows, columns = np.triu_indices(n)
    ordered = np.sort((values[rows] + values[columns]) / 2)
    return float(ordered[cut - 1]), float(ordered[-cut])


METHODS: dict[str, Callable[[Floats], Interval | None]] = {
    "in use": in_use,
    "t of the mean": mean,
    "trimmed mean": trimmed,
    "signed rank": signed_rank,
}


def coverage(n: int, case: str, seeds: int) -> str:
    """A row."""
    cells = []
    for method in METHODS.values():
        rng = np.random.default_rng([n, 29])
        found = [method(rounds(rng, n, case)) for _ in range(seeds)]
        ends = np.array([each for each in found if each is not None])
        if len(ends) == 0:
            cells.append("none")
            continue
        held = ((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean()
        cells.append(f"{held:.1%} / {np.exp(np.median(ends[:, 1] - ends[:, 0]) / 2):.2f}")
    return f"| {case} | {n} | {' | '.join(cells)} |"


def merged_against_middle(seeds: int) -> None:
    """Nine rounds of 2,000 requests each."""
    spread = np.exp(0.4 * stats.norm.ppf((np.arange(2_000) + 0.5) / 2_000))
    for case, share in (("none stolen", 0.0), ("one trial in nine", STOLEN)):
        held, widths = np.zeros(2), np.zeros((2, seeds))
        for seed in range(seeds):
            rng = np.random.default_rng([seed, 31])
            cells = [
                Quantiles([Histogram.of(1e6 * np.exp(log) * spread) for log in logs], 0.99)
                for logs in (rng.normal(0, SCATTER / 2**0.5, 9) + steal(rng, 9, share) for _ in range(2))
            ]
            made, merged = paired(*cells), over_trials(*cells)
            assert made is not None
            assert made.ratio.low is not None
            assert made.ratio.high is not None
            assert merged is not None
            off, half = abs(np.log(cells[0].value / cells[1].value)), merged.reach(0.001)
            held += made.ratio.low <= 1 <= made.ratio.high, off <= half
            widths[:, seed] = np.log(made.ratio.high / made.ratio.low) / 2, half
        shown = [
            f"{each / seeds:.1%} / {np.exp(np.median(width)):.2f}" for each, width in zip(held, widths, strict=True)
        ]
        print(f"| {case} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    """Print the tables in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print("| stolen | rounds |", " | ".join(METHODS), "|")
    print("|---" * (2 + len(METHODS)) + "|")
    for case in ("none", "one stolen", "one trial in nine"):
        for n in (3, 4, 5, 6, 9, 12):
            print(coverage(n, case, seeds), flush=True)
    print("\n| nine rounds | in use | merged p99, rounds resampled |\n|---|---|---|")
    merged_against_middle(seeds // 10)


if __name__ == "__main__":
    main()
