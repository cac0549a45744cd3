"""The study behind docs/concepts/warm-up.md: `python -m tests.studies.warming [SEEDS]` prints its tables.

When a measurement begins, for servers with known timelines and several kinds of noise: the median and the extremes, how
much of the server's speed is then still to come, and how often the entire budget is used.
"""

import sys

import numpy as np

from redline.findings.warming import last_stretch
from tests.fakes.courses import BUDGET_S, Noise, Shape, begun_s, compiled, course, flat, restless, rising, stepped

NOISES = {
    "2%": Noise(0.02),
    "3%, correlation 0.7": Noise(0.03, alike=0.7),
    "5%, correlation 0.5, 2% outliers": Noise(0.05, alike=0.5, blips=0.02),
}
SHAPES: dict[str, tuple[Shape, float]] = {
    "flat": (flat, 0.0),
    "+50% at 3 s": (stepped(3, 0.5), 3.0),
    "+20% at 8 s": (stepped(8, 0.2), 8.0),
    "-10% at 4 s": (stepped(4, -0.1), 4.0),
    "exponential, 2 s": (compiled(2), 0.0),
    "exponential, 6 s": (compiled(6), 0.0),
    "rising by 5% a second": (rising, BUDGET_S),
    "up and down by 30%, 4 s each": (restless(), BUDGET_S),
}


def beginnings(seeds: int) -> None:
    """Print when measurements begin."""
    print("| timeline | noise | begins after: least, median, most | still to come | before a change | whole budget |")
    print("|---|---|---|---|---|---|")
    for name, (shape, settled_s) in SHAPES.items():
        for noise_name, noise in NOISES.items():
            begun = [begun_s(course(shape, noise, np.random.default_rng(seed))) for seed in range(seeds)]
            starts = [BUDGET_S if at is None else at for at in begun]
            final = shape(np.array([BUDGET_S]))[0]
            missing = 1 - np.exp(np.median([shape(np.array([at]))[0] for at in starts]) - final)
            early = np.mean([at is not None and at < settled_s for at in begun])
            spent = np.mean([at is None for at in begun])
            print(
                f"| {name} | {noise_name} | {min(starts):.1f}, {np.median(starts):.1f}, {max(starts):.1f} s "
                f"| {missing:.1%} | {early:.0%} | {spent:.0%} |",
                flush=True,
            )


def kinds(seeds: int) -> None:
    """Print how often a timeline that is steady for half a minute is called never steady, or slowing down."""
    print("| timeline | noise | called never steady | called slowing down |")
    print("|---|---|---|---|")
    for name in ("flat", "+50% at 3 s", "exponential, 2 s"):
        for noise_name, noise in NOISES.items():
            whole = [course(SHAPES[name][0], noise, np.random.default_rng(seed)) for seed in range(seeds)]
            last = [last_stretch(each) for each in whole]
            late = [
                one.moves or each.start_ns(one.start) > BUDGET_S / 2 * 1e9
                for one, each in zip(last, whole, strict=True)
            ]
            slow = [one.best - one.level > one.tolerance for one in last]
            slowing = np.mean([is_slow and not is_late for is_slow, is_late in zip(slow, late, strict=True)])
            print(f"| {name} | {noise_name} | {np.mean(late):.0%} | {slowing:.0%} |", flush=True)


if __name__ == "__main__":
    SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    beginnings(SEEDS)
    kinds(SEEDS)
