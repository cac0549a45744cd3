"""How often main effects call an axis mattering that does not: `python -m tests.studies.screens [SEEDS]`.

Four axes of 4, 4, 2 and 2 values, a quarter of their 64 variants; four axes of two values, half of their 16; and all 12
variants of two axes, which one round is enough for.
Trials scatter by 5%, rounds by 10%. The first axis may matter: its first value has 10% more. In `stolen` one trial of
nine has up to twice its value, as a p99 where the host took CPU time.
"""

import sys
from collections.abc import Sequence
from itertools import product

import numpy as np

from redline.stats import ALPHA, holm_adjust
from redline.stats.factorial import coded, main_effects
from redline.stats.samples import Floats
from redline.suite.screening import fraction

SCATTER, ROUNDS_DIFFER, PLANTED = 0.05, 0.1, 0.1
SCREENED = 3
CASES = ("none", "first", "stolen")
SHAPES = (((4, 4, 2, 2), (2, 5)), ((2, 2, 2, 2), (2, 5)), ((3, 4), (1, 3)))
"""Values of the axes, and rounds."""


def screen(levels: Sequence[int]) -> list[tuple[int, ...]]:
    """The runs of a fraction of all combinations; all of them if they are too few for a fraction."""
    runs = list(product(*map(range, levels)))
    if len(levels) < SCREENED:
        return runs
    taken = fraction(levels, runs, seed=1)
    assert taken is not None
    return [runs[at] for at in taken]


def p_values(
    rng: np.random.Generator, runs: list[tuple[int, ...]], factors: list[Floats], rounds: int, case: str
) -> list[float]:
    """Holm's p-values of the axes."""
    values = []
    for _ in range(rounds):
        level = rng.normal(0, ROUNDS_DIFFER)
        for run in runs:
            stolen = rng.uniform(0, 0.7) if case == "stolen" and rng.random() < 1 / 9 else 0.0
            planted = PLANTED if case != "none" and run[0] == 0 else 0.0
            values.append(level + planted + rng.normal(0, SCATTER) + stolen)
    blocks = [block for block in range(rounds) for _ in runs]
    found = main_effects(values, blocks, [np.tile(factor, (rounds, 1)) for factor in factors])
    assert found is not None
    return list(holm_adjust([effect.p for effect in found if effect]))


def main() -> None:
    """Print the table in Markdown."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print("| axes | what matters | rounds | found | any other called mattering |\n|---|---|---|---|---|")
    shapes = ((levels, case, rounds) for levels, several in SHAPES for case in CASES for rounds in several)
    for levels, case, rounds in shapes:
        runs = screen(levels)
        factors = coded(runs, levels)
        rng = np.random.default_rng(rounds)
        found = [p_values(rng, runs, factors, rounds, case) for _ in range(seeds)]
        hit = sum(ps[0] < ALPHA for ps in found) / seeds
        wrong = sum(min(ps[0 if case == "none" else 1 :]) < ALPHA for ps in found) / seeds
        text = "" if case == "none" else f"{hit:.0%}"
        print(f"| {', '.join(map(str, levels))} | {case} | {rounds} | {text} | {wrong:.1%} |")


if __name__ == "__main__":
    main()
