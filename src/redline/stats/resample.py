"""Resampling of trials: which trials a resample holds how often, and how likely it is."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import scipy

from redline.stats.samples import Floats

ENUMERATED_UP_TO = 7
"""With n trials there are C(2n-1, n) different resamples: 1,716 for 7. Up to here all of them are taken."""

DRAWS = 9_999
SEED = 20_150_101


@dataclass(frozen=True)
class Resamples:
    """Weights of shape (rows, n), each row summing to n, and the probability of each row."""

    weights: Floats
    probability: Floats


@cache
def resamples(n: int) -> Resamples:
    """All resamples of n trials with replacement when they are few, else `DRAWS` of them from a fixed seed."""
    if n > ENUMERATED_UP_TO:
        drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), size=DRAWS)
        return Resamples(drawn.astype(np.float64), np.full(DRAWS, 1 / DRAWS))
    bars = np.array(list(combinations(range(2 * n - 1), n - 1)), dtype=np.int64).reshape(-1, n - 1)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), 2 * n - 1)])
    weights = np.diff(edges, axis=1) - 1
    return Resamples(weights.astype(np.float64), scipy.stats.multinomial.pmf(weights, n, np.full(n, 1 / n)))
