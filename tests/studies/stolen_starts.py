"""The value of a start of a duet that steal disturbed: kept, repeated, left out, or kept with another start.

    python -m tests.studies.stolen_starts [SEEDS]

Noise is that of `tests.studies.duet`. In one start of each comparison, steal hits a share of the slices: they read up
to 30% more CPU time, and take up to 4.5 times as long.
"""

import sys

import numpy as np

from redline.stats.duets import over_starts
from tests.studies.duet import CONTRAST, start

TRUTH = 0.02
MOST = {"CPU per request": 0.3, "throughput": 1.5}


def main(seeds: int) -> None:
    """Print the median half width of the interval, and how often it holds the truth."""
    print("| metric | starts | slices hit | kept | repeated | left out | kept, and one more |")
    print("|---|---|---|---|---|---|---|")
    for metric, most in MOST.items():
        for starts, blocks in ((3, 110), (5, 66)):
            for stolen in (0.1, 0.3, 0.6):
                intervals = [_intervals(seed, starts, blocks, stolen, most) for seed in range(seeds)]
                shown = [_text([row[way] for row in intervals]) for way in range(4)]
                print(f"| {metric} | {starts} | {stolen:.0%} | {' | '.join(shown)} |", flush=True)


def _intervals(seed: int, starts: int, blocks: int, stolen: float, most: float) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    good = [start(rng, blocks, TRUTH, 0.0).ratio(CONTRAST) for _ in range(starts)]
    hit = start(rng, blocks, TRUTH, stolen, most).ratio(CONTRAST)
    return [
        over_starts([ratio for ratio in ratios if ratio]).interval
        for ratios in ([*good[:-1], hit], good, good[:-1], [*good, hit])
    ]


def _text(intervals: list[tuple[float, float]]) -> str:
    holds = np.mean([low <= TRUTH <= high for low, high in intervals])
    return f"{np.median([(high - low) / 2 for low, high in intervals]):.1%} ({holds:.0%})"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
