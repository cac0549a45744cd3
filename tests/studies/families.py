"""How often a report of equal servers holds a wrong verdict: `python -m tests.studies.families [SEEDS]`.

Each report has six pairs of equal servers, three under a closed load and three under an open one: twelve verdicts, in
throughput or p99 and in CPU per request. Trials differ by 16%, as on a busy virtual machine. Throughput and CPU per
request are both core speed: they correlate at -.99. The host takes CPU time in a share of the trials: these answer
half as much and have a p99 of 2 to 50 times.
"""

import sys
from itertools import product

import numpy as np

from redline.analysis.compare import with_verdicts
from redline.model import Comparison, Histogram, Metric, Verdict
from redline.stats import Quantiles, Ratios, Sample, paired, verdict
from redline.stats.samples import Floats
from tests.studies.tails import steal

SCATTER, TAIL_SCATTER, THRESHOLD = 0.16, 0.12, 0.02
CHANGED = (Verdict.FASTER, Verdict.SLOWER)


def trials(rng: np.random.Generator, n: int, share: float, *, closed: bool) -> dict[Metric, Sample]:
    """One cell in its primary metrics."""
    stolen = steal(rng, n, share)
    speed = np.exp(rng.normal(0, SCATTER, n))
    cpu = np.exp(rng.normal(0, 0.02, n)) / speed
    primary: Sample
    if closed:
        metric, primary = Metric.THROUGHPUT, Ratios(speed * np.where(stolen > 0, 0.5, 1), np.ones(n))
    else:
        metric, primary = Metric.P99, _quantiles(np.exp(rng.normal(0, TAIL_SCATTER, n) + stolen))
    return {metric: primary, Metric.CPU_PER_REQUEST: Ratios(cpu, np.ones(n))}


def _quantiles(p99s: Floats) -> Quantiles:
    return Quantiles([Histogram.of([1e6 * p99] * 1_000) for p99 in p99s], 0.99)


def report(rng: np.random.Generator, n: int, share: float) -> tuple[Comparison, ...]:
    """The comparisons of one report."""
    made = []
    for closed in (True, True, True, False, False, False):
        cell, baseline = (trials(rng, n, share, closed=closed) for _ in range(2))
        for metric in cell:
            found = paired(cell[metric], baseline[metric])
            assert found is not None
            made.append(
                Comparison(
                    metric=metric,
                    cell_id="cell",
                    baseline_id="baseline",
                    ratio=found.ratio,
                    verdict=verdict(found.ratio, metric, THRESHOLD),
                    threshold=THRESHOLD,
                    primary=True,
                    p=found.p,
                )
            )
    return tuple(made)


def main() -> None:
    """Print the table in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print("| trials stolen from | trials | any wrong, by itself | any wrong, as one family |\n|---|---|---|---|")
    for share, n in product((0.0, 1 / 9), (3, 5, 9)):
        alone = family = 0
        for seed in range(seeds):
            made = report(np.random.default_rng([seed, n]), n, share)
            alone += any(each.verdict in CHANGED for each in made)
            family += any(each.verdict in CHANGED for each in with_verdicts(made, lambda _: "all"))
        print(f"| {share:.0%} | {n} | {alone / seeds:.1%} | {family / seeds:.1%} |", flush=True)


if __name__ == "__main__":
    main()
