"""The figures of the ratio in docs/concepts/limit.md: `python -m tests.studies.limit_ratio [PAIRS]` prints them.

Pairs of M/M/1 queues of 2,000/s and 2,100/s, both searched for p99 < 20 ms: the true limits differ by 5.6%. The
searches are independent, as the interval of their ratio assumes.
"""

import sys
from math import log

import numpy as np

from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer
from redline.limits.doubts import Seen
from redline.limits.ratios import limit_comparisons
from redline.model import Verdict
from redline.model.limits import LimitAnswer
from redline.search import Search, Settings
from redline.suite import parse_objectives
from tests.fakes.limits import rivals
from tests.fakes.queues import Queue, searched

CAPACITIES, OBJECTIVE, WITHIN_S = (2000, 2100), "p99 < 20ms", 0.020
TRUTH = (CAPACITIES[1] - log(100) / WITHIN_S) / (CAPACITIES[0] - log(100) / WITHIN_S)


def one_search(capacity: int, seed: int) -> tuple[LimitAnswer, ...]:
    """The answer of a search on a queue."""
    search = Search({OBJECTIVE: parse_objectives(OBJECTIVE)}, Settings())
    end = searched(search, Queue(exponential(capacity)), 1000 * capacity + seed)
    return tuple(answer(each, search, Seen(())) for each in end.limits)


def main() -> None:
    """Search, and print how often the interval held the truth, and what the verdicts were."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    answers = [tuple(one_search(capacity, seed) for capacity in CAPACITIES) for seed in range(pairs)]
    found = [
        one
        for suite, cells, ends in (rivals(*pair) for pair in answers)
        for one in limit_comparisons(cells, ends, suite)
    ]
    ratios = [(each.ratio.low or 0, each.ratio.high or 0) for each in found if each.ratio and each.confidence]
    held = sum(low <= TRUTH <= high for low, high in ratios)
    half = np.median([log(high / low) / 2 for low, high in ratios])
    verdicts = {kind: sum(each.verdict is kind for each in found) for kind in (Verdict.FASTER, Verdict.SLOWER)}
    print(f"{held} of {len(ratios)} intervals hold {TRUTH:.4f}; median half width {half:.1%}")
    print(f"{pairs} pairs: {verdicts[Verdict.FASTER]} faster, {verdicts[Verdict.SLOWER]} slower")


if __name__ == "__main__":
    main()
