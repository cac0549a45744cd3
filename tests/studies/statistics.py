"""The study behind docs/concepts/statistics.md: `python -m tests.studies.statistics [SEEDS]` prints its tables.

Coverage: how often a 95% interval holds the truth, for the method in use and rejected methods. Verdicts: how
often two equal cells are called different (A/A), and how often a planted difference is detected.
"""

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

from redline.model import Metric, Verdict
from redline.stats import Sample, decide, paired
from redline.stats.estimate import estimate
from redline.stats.samples import resamples
from tests.fakes.trials import World

Interval = tuple[float, float]
THRESHOLD = 0.02
WORLDS = {
    "3% between trials": World(effect=0.03),
    "0.2% between trials": World(effect=0.002),
    "2%, one trial in ten 20% slow": World(effect=0.02, slow_share=0.1),
}


def percentile(sample: Sample, tail: float = 0.025) -> Interval:
    """The plain percentile bootstrap."""
    drawn = resamples(sample.n)
    values = sample.at(drawn.weights)
    order = np.argsort(values)
    reached = np.cumsum(drawn.probability[order])
    at = [min(int(np.searchsorted(reached, share)), len(order) - 1) for share in (tail, 1 - tail - 1e-12)]
    return float(values[order][at[0]]), float(values[order][at[1]])


def expanded(sample: Sample) -> Interval:
    """The percentile bootstrap with tails widened for few trials (Hesterberg 2015)."""
    wider = -np.sqrt(sample.n / (sample.n - 1)) * stats.t.ppf(0.975, sample.n - 1)
    return percentile(sample, float(stats.norm.cdf(wider)))


def t_of_logs(sample: Sample) -> Interval:
    """A t interval on the logs of each trial's own value: a mean of percentiles."""
    logs = np.log(sample.at(np.eye(sample.n)))
    half = stats.t.ppf(0.975, sample.n - 1) * logs.std(ddof=1) / np.sqrt(sample.n)
    return float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))


def jackknife(sample: Sample) -> Interval:
    """A t interval with the standard error of leaving out one trial at a time."""
    logs = np.log(sample.at(np.ones((sample.n, sample.n)) - np.eye(sample.n)))
    error = np.sqrt((sample.n - 1) / sample.n * ((logs - logs.mean()) ** 2).sum())
    half, value = stats.t.ppf(0.975, sample.n - 1) * error, sample.value
    return float(value * np.exp(-half)), float(value * np.exp(half))


def in_use(sample: Sample) -> Interval:
    """Redline's method."""
    made = estimate(sample, Metric.P99)
    assert made.low is not None
    assert made.high is not None
    return made.low, made.high


METHODS: dict[str, Callable[[Sample], Interval]] = {
    "in use": in_use,
    "percentile": percentile,
    "expanded": expanded,
    "t of logs": t_of_logs,
    "jackknife": jackknife,
}


def coverage(world: World, metric: Metric, q: float, seeds: int) -> dict[str, float]:
    """The share of seeds whose interval holds the truth, by method."""
    truth = world.true_quantile_ns(q)
    hits = dict.fromkeys(METHODS, 0)
    for seed in range(seeds):
        sample = world.cell(np.random.default_rng([seed, world.trials]))[metric]
        for name, method in METHODS.items():
            low, high = method(sample)
            hits[name] += low <= truth <= high
    return {name: hit / seeds for name, hit in hits.items()}


def verdicts(world: World, seeds: int, ratio: float = 1.0) -> dict[Metric, dict[Verdict, float]]:
    """The share of each verdict, by metric, on a cell against a baseline `ratio` times as fast."""
    counts: dict[Metric, dict[Verdict, float]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 77])
        cell, baseline = world.cell(rng, ratio), world.cell(rng)
        for metric in cell:
            made = paired(cell[metric], baseline[metric])
            assert made is not None
            counts.setdefault(metric, dict.fromkeys(Verdict, 0.0))[
                decide(made.ratio, THRESHOLD, higher_is_better=metric.higher_is_better).verdict
            ] += 1 / seeds
    return counts


def main() -> None:
    """Print the tables in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(f"coverage of 95% intervals, {seeds} seeds\n")
    print("| world | metric | trials |", " | ".join(METHODS), "|")
    for name, world in WORLDS.items():
        for metric, q in ((Metric.P50, 0.5), (Metric.P99, 0.99)):
            for trials in (2, 3, 5, 10):
                found = coverage(World(**{**vars(world), "trials": trials}), metric, q, seeds)
                print(f"| {name} | {metric} | {trials} |", " | ".join(f"{share:.1%}" for share in found.values()), "|")
    print(f"\nverdicts, {seeds} seeds, threshold {THRESHOLD:.0%}\n")
    print("| world | ratio | metric |", " | ".join(Verdict), "|")
    for name, world, ratio in (
        ("A/A, 3%, drift 10%, 5 trials", World(drift=0.1), 1.0),
        ("A/A, 3%, drift 10%, 3 trials", World(drift=0.1, trials=3), 1.0),
        ("A/A, one in ten slow, 5 trials", World(effect=0.02, slow_share=0.1), 1.0),
        ("A/A, 0.5%, 10 trials", World(effect=0.005, trials=10, requests=20_000), 1.0),
        ("3%, drift 10%, 5 trials", World(drift=0.1), 1.1),
        ("1%, drift 10%, 5 trials", World(effect=0.01, drift=0.1), 1.1),
        ("1%, drift 10%, 5 trials", World(effect=0.01, drift=0.1), 1.05),
    ):
        for metric, shares in verdicts(world, seeds, ratio).items():
            if metric is Metric.P50:
                continue  # it is described, and gets no verdict
            print(f"| {name} | {ratio} | {metric} |", " | ".join(f"{share:.1%}" for share in shares.values()), "|")


if __name__ == "__main__":
    main()
