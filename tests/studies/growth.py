"""How often a server is said to get slower as it serves: one that does not, and one that does.

    python -m tests.studies.growth [SEEDS]
    python -m tests.studies.growth pairs [SEEDS]

Of duets, the cost of a request in a block scatters by 1% on a quiet machine. On a core shared with others its logarithm
scatters by 18% from slice to slice of 10 ms with a correlation of .9, and a block is the mean of two. Of trials, the
cost in a tenth of the measurement scatters by 1%, or by 3% with neighbours alike (.7).
"""

import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from redline.findings.rules import TREND_P
from redline.stats.growth import ServedCosts, growth
from redline.stats.samples import Floats
from tests.fakes.compared import compared_starts
from tests.fakes.growing import Growing, growing_duet

BLOCK_NS = 40_000_000
REQUESTS = 100_000.0
"""What a start serves while it is measured."""


def noise(rng: np.random.Generator, n: int, sigma: float, alike: float) -> Floats:
    """Noise of n values in a row, neighbours of which are alike (AR(1))."""
    values = np.empty(n)
    last = rng.normal(0, sigma)
    for at in range(n):
        last = values[at] = alike * last + rng.normal(0, sigma * np.sqrt(1 - alike**2))
    return values


def start(rng: np.random.Generator, blocks: int, by: float, sigma: float, alike: float) -> ServedCosts:
    """A start in whose blocks the cost of a request rises by a share."""
    done = np.linspace(0, 1, blocks)
    scatter = noise(rng, 4 * blocks, sigma, alike).reshape(blocks, 4)[:, :2].mean(axis=1) if alike else None
    scatter = rng.normal(0, sigma, blocks) if scatter is None else scatter
    return ServedCosts(REQUESTS * done, (1 + by * done) * np.exp(scatter)).in_stretches(BLOCK_NS * blocks)


def trial(rng: np.random.Generator, by: float, sigma: float, alike: float) -> ServedCosts:
    """A trial in ten stretches."""
    done = np.linspace(0, 1, 10)
    return ServedCosts(REQUESTS * done, (1 + by * done) * np.exp(noise(rng, 10, sigma, alike)))


def said(starts: Sequence[ServedCosts]) -> bool:
    """Whether it is said to grow."""
    return growth(starts, TREND_P) is not None


def main(seeds: int) -> None:
    """Print a table: in what share of `seeds` measurements growth is said, by how much there is."""
    print(f"{'':44}" + "".join(f"{by:>8.0%}" for by in (0, 0.05, 0.1, 0.3)))
    kinds = [
        (f"duet, {starts} x {blocks} blocks, {name}", starts, blocks, sigma, alike)
        for starts, blocks in ((1, 250), (1, 60), (5, 60), (10, 20))
        for name, sigma, alike in (("quiet", 0.01, 0.0), ("shared core", 0.18, 0.9))
    ]
    for name, starts, blocks, sigma, alike in kinds:
        shares = []
        for by in (0, 0.05, 0.1, 0.3):
            rngs = map(np.random.default_rng, range(seeds))
            made = ([start(rng, blocks, by, sigma, alike) for _ in range(starts)] for rng in rngs)
            shares.append(sum(map(said, made)) / seeds)
        print(f"{name:44}" + "".join(f"{share:8.1%}" for share in shares), flush=True)
    for name, sigma, alike in (("1%", 0.01, 0.0), ("3%", 0.03, 0.0), ("3%, alike", 0.03, 0.7)):
        shares = []
        for by in (0, 0.05, 0.1, 0.3):
            rngs = map(np.random.default_rng, range(seeds))
            shares.append(sum(said([trial(rng, by, sigma, alike)]) for rng in rngs) / seeds)
        print(f"{'trial, ' + name:44}" + "".join(f"{share:8.1%}" for share in shares), flush=True)


def pairs(seeds: int) -> None:
    """Print the verdicts on running servers that get dearer over the requests of a start, equal ones and a dearer B."""
    for by in (0.1, 0.3, 1.0):
        for more in (0.0, 0.1):
            for balanced in (True, False):
                verdicts = Counter[str]()
                servers = Growing(1.0, by / 300_000), Growing(1.0 + more, by / 300_000)
                for seed in range(seeds):
                    found = compared_starts([growing_duet(seed, servers, balanced=balanced)], detects=True)
                    verdicts[str(found.verdict)] += 1
                print(f"{by:5.0%} {more:5.0%} {'shared' if balanced else 'twice':8} {dict(verdicts)}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pairs", *rest]:
            pairs(int(rest[0]) if rest else 20)
        case rest:
            main(int(rest[0]) if rest else 1000)
