"""The study of fresh starts behind docs/guide/limits.md: `python -m tests.studies.starts [SEARCHES]` prints its table.

A server whose capacity differs from start to start, by a log-normal factor. A hit: the search's interval holds the
limit of the typical start.
"""

import sys
from math import log

import numpy as np

from redline.extras.selftest.truth import exponential
from redline.search import Limit, Search, Settings
from redline.suite import parse_objectives
from tests.fakes.queues import Queue, searched_on_starts

CAPACITY = 5000.0
TRUTH = CAPACITY - log(100) / 0.005
FIRST_SEED = 100
_MOST_STARTS = 20


def found(seed: int, sigma: float, trials: int = 3) -> Limit:
    """The answer of a search."""
    factors = np.exp(sigma * np.random.default_rng([seed, 3]).standard_normal(_MOST_STARTS))
    search = Search({"good": parse_objectives("p99 < 5ms")}, Settings(start_per_s=2500, trials=trials))

    def start(number: int) -> Queue:
        return Queue(exponential(CAPACITY * float(factors[number])), seconds=4.0)

    searched_on_starts(search, start, seed)
    (limit,) = search.limits()
    return limit


def answer(seed: int, sigma: float, trials: int = 3) -> tuple[float, bool]:
    """The half width of a search's interval, and whether it holds the truth."""
    limit = found(seed, sigma, trials)
    if limit.low_per_s is None or limit.high_per_s is None:
        return float("inf"), False
    half = (limit.high_per_s - limit.low_per_s) / (limit.high_per_s + limit.low_per_s)
    return half, limit.low_per_s <= TRUTH <= limit.high_per_s


def row(sigma: float, trials: int, searches: int) -> str:
    """How many of this many searches hold the truth, and their median half width."""
    answers = [answer(FIRST_SEED + seed, sigma, trials) for seed in range(searches)]
    held = sum(holds for _, holds in answers)
    return f"| {sigma:.0%} | {trials} | {held} of {searches} | {np.median([half for half, _ in answers]):.1%} |"


def main() -> None:
    """Print the table."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    sys.stdout.write("| starts differ by | fresh starts | holds it | half width |\n|---|---|---|---|\n")
    for sigma in (0.0, 0.02, 0.05):
        for trials in (0, 3):
            sys.stdout.write(row(sigma, trials, searches) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
