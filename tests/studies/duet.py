"""How often the interval of a duet holds the truth, and how wide it is, with the contamination that was measured.

    python -m tests.studies.duet [SEEDS]

Blocks have a scatter of 1.4% (CPU per request) that is correlated from block to block, starts differ by 0.6%, and the
hypervisor takes time in a share of the blocks: those read 3 to 15% away, in either direction.
"""

import sys

import numpy as np

from redline.stats.duets import over_starts

SCATTER, CORRELATION, BETWEEN = 0.014, 0.3, 0.006


def blocks(rng: np.random.Generator, n: int, truth: float, stolen: float) -> np.ndarray:
    """The log ratios of one start's blocks."""
    noise = np.empty(n)
    noise[0] = rng.normal(0, SCATTER)
    for i in range(1, n):
        noise[i] = CORRELATION * noise[i - 1] + rng.normal(0, SCATTER * (1 - CORRELATION**2) ** 0.5)
    hit = rng.random(n) < stolen
    noise[hit] += rng.choice([-1, 1], hit.sum()) * rng.uniform(0.03, 0.15, hit.sum())
    return truth + rng.normal(0, BETWEEN) + noise


def main(seeds: int) -> None:
    print(f"{'truth':>6} {'steal':>6} {'starts':>7} {'blocks':>7} {'holds':>7} {'half width':>11} {'found':>7}")
    for stolen in (0.0, 0.1, 0.3):
        for truth in (0.0, 0.02, 0.05):
            for starts, each in ((6, 33), (12, 16), (24, 8)):
                holds = found = 0
                widths = []
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    ratio = over_starts([blocks(rng, each, truth, stolen) for _ in range(starts)])
                    low, high = ratio.interval
                    holds += low <= truth <= high
                    found += not low <= 0 <= high
                    widths.append((high - low) / 2)
                shown = f"{holds / seeds:7.1%} {np.median(widths):11.2%} {found / seeds:7.1%}"
                print(f"{truth:6.0%} {stolen:6.0%} {starts:7} {each:7} {shown}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
