"""How often verdicts are right: `python -m tests.studies.power [SEEDS]` prints the table of the statistics page.

A world is a matrix of cells against a baseline, compared in throughput as a report does it: paired by round, every
comparison by itself, and by Holm for all of the matrix. Trials differ by a share of their rate, and within them batches
of time differ so that a trial's mean differs by a fifth of that. A planted difference is in one of the comparisons.
"""

import sys
from itertools import product

import numpy as np

from redline.analysis.compare import Question, with_verdicts
from redline.model import Comparison, Metric, Verdict
from redline.stats import Ratios, paired
from redline.stats.samples import BATCHES

THRESHOLD = 0.02
FAMILY = 20
DIFFERENCES = (0.0, 0.03, 0.05, 0.10)
VARIATIONS = (0.01, 0.03, 0.05)
TRIALS = (3, 5, 10)
CHANGED = (Verdict.FASTER, Verdict.SLOWER)


def cell(rng: np.random.Generator, trials: int, variation: float, rate: float = 1.0) -> Ratios:
    """Requests and seconds of this many trials; `variation` is the standard deviation of a trial's rate, relative."""
    between, within = variation * np.array([np.sqrt(1 - 0.2**2), 0.2])
    noise = rng.normal(0, between, (trials, 1)) + rng.normal(0, within * np.sqrt(BATCHES), (trials, BATCHES))
    over = rate * (1 + noise) / BATCHES
    return Ratios(over.sum(axis=1), np.ones(trials), batches=(over, np.full((trials, BATCHES), 1 / BATCHES)))


def compared(ours: Ratios, baseline: Ratios) -> Comparison:
    """Compares two cells of a run as a report does."""
    found = paired(ours, baseline)
    assert found is not None
    return Comparison(
        metric=Metric.THROUGHPUT,
        cell_id="cell",
        baseline_id="baseline",
        ratio=found.ratio,
        verdict=None,
        threshold=THRESHOLD,
        primary=True,
        p=found.p,
    )


def shares(seeds: int, trials: int, variation: float, difference: float) -> tuple[float, float, float]:
    """Shares: the planted cell called slower alone, the same among `FAMILY`, families with any equal cell called so.

    Without a difference the first two are of being called different at all, either way.
    """
    alone = among = wrong = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, trials, round(variation * 1000)])
        baseline = cell(rng, trials, variation)
        others = [compared(cell(rng, trials, variation), baseline) for _ in range(FAMILY - 1)]
        planted = compared(cell(rng, trials, variation, 1 - difference), baseline)
        family = with_verdicts([planted, *others], lambda _: Question("all", "all"))
        right = (Verdict.SLOWER,) if difference else CHANGED
        alone += with_verdicts([planted], lambda _: Question("alone", "all"))[0].verdict in right
        among += family[0].verdict in right
        wrong += any(each.verdict in CHANGED for each in (family[1:] if difference else family))
    return alone / seeds, among / seeds, wrong / seeds


def main() -> None:
    """Print the table in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(f"{seeds} seeds; called different by itself / among {FAMILY} by Holm; last, families with any false one\n")
    heads = ["equal", *(f"{difference:.0%} slower" for difference in DIFFERENCES[1:]), "false among equal ones"]
    print("| trials differ by | trials |", " | ".join(heads), "|")
    print("|---" * (2 + len(heads)) + "|")
    for variation, trials in product(VARIATIONS, TRIALS):
        found = [shares(seeds, trials, variation, difference) for difference in DIFFERENCES]
        cells = [f"{alone:.1%} / {among:.1%}" for alone, among, _ in found]
        print(f"| {variation:.0%} | {trials} |", " | ".join(cells), f"| {found[0][2]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
