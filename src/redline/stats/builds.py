"""Whether several builds of one server differ by more than its starts do.

Where compilers and linkers place code and data may change the speed by several percent (Mytkowicz et al., 2009;
Kalibera and Jones, 2013). All starts of one build share that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BUILDS_P = 0.01
"""Chance of taking the scatter of starts for a difference of builds."""
_SHUFFLES = 2_000


@dataclass(frozen=True)
class BuildScatter:
    """Standard deviations of logarithms: of builds, beyond the scatter of their starts, and of starts of one build."""

    builds: int
    between_sd: float
    within_sd: float


def differing(logs: Sequence[float], builds: Sequence[int]) -> BuildScatter | None:
    """How builds differ, by one value of each start; None if that may be chance, or each build lacks a second start.

    A permutation test of the F ratio, with the same shuffles each time.
    """
    values, numbers = (
        np.array(logs, dtype=np.float64),
        np.unique(np.array(builds, dtype=np.int64), return_inverse=True)[1],
    )
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, dtype=np.int64)
    if len(counts) < 2 or counts.min() < 2:
        return None
    shuffles = np.random.default_rng(0)
    seen, between, within = _ratio(values, numbers, counts)
    as_large = sum(_ratio(shuffles.permutation(values), numbers, counts)[0] >= seen for _ in range(_SHUFFLES))
    if (as_large + 1) / (_SHUFFLES + 1) > BUILDS_P:
        return None
    each = (len(values) - float(np.square(counts).sum()) / len(values)) / (len(counts) - 1)
    return BuildScatter(len(counts), math.sqrt(max(0.0, (between - within) / each)), math.sqrt(within))


def _ratio(
    values: NDArray[np.float64], numbers: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[float, float, float]:
    """The F ratio of a one-way analysis of variance, and its two mean squares."""
    means = np.bincount(numbers, weights=values) / counts
    within = float(np.square(values - means[numbers]).sum()) / (len(values) - len(counts))
    between = float((counts * np.square(means - values.mean())).sum()) / (len(counts) - 1)
    return between / max(within, np.finfo(float).tiny), between, within
