"""How often equal servers are called different if further starts end once a comparison is sure.

    python -m tests.studies.undecided [COMPARISONS]

Logarithms of ratios are normal. After three starts, and after each further one up to twelve, Student's t looks at them;
the last look decides by 5%.
"""

import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from redline.analysis.undecided import SURE_P

FIRST, LAST = 3, 12
STOPS: Mapping[str, float] = {"never": 0.0, f"at p <= {SURE_P}": SURE_P, "at p <= 0.05": 0.05}


def main(comparisons: int) -> None:
    """Print the share called different, and the starts that they took."""
    ratios = np.random.default_rng(1).standard_normal((comparisons, LAST))
    print("| further starts end | called different | starts |")
    print("|---|---|---|")
    for name, stop in STOPS.items():
        wrong, starts = _looked_at(ratios, stop)
        print(f"| {name} | {wrong:.1%} | {starts:.1f} |")


def _looked_at(ratios: NDArray[np.float64], stop: float) -> tuple[float, float]:
    open_ = np.ones(len(ratios), bool)
    used = np.full(len(ratios), LAST)
    for starts in range(FIRST, LAST + 1):
        seen = ratios[:, :starts]
        t = seen.mean(axis=1) / (seen.std(axis=1, ddof=1) / np.sqrt(starts))
        p = 2 * stats.t.sf(np.abs(t), starts - 1)
        found = open_ & (p <= (stop if starts < LAST else 0.05))
        used[found] = starts
        open_ &= ~found
    return float(1 - open_.mean()), float(used.mean())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
