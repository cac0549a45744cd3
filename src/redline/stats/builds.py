"""Whether builds of a server differ by more than its starts do.

Layouts of code and data may differ by several percent in speed (Mytkowicz et al., 2009; Kalibera and Jones, 2013).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redline.lazily import dataclass
from redline.stats.samples import Floats

BUILDS_P = 0.01
"""The chance of mistaking the scatter of starts for a difference between builds."""
_SHUFFLES = 2_000


@dataclass(frozen=True)
class BuildScatter:
    """Standard deviations of logarithms: of builds, beyond the scatter of their starts, and of a build's starts."""

    builds: int
    between_sd: float
    within_sd: float


def differing(logs: Sequence[float], builds: Sequence[int]) -> BuildScatter | None:
    """How builds differ, from a value per start; None if that may be chance, or a build has no second start.

    A permutation test of the F ratio, always with the same shuffles.
    """
    values = np.array(logs, dtype=np.float64)
    numbers = np.unique(np.array(builds, dtype=np.int64), return_inverse=True)[1]
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, dtype=np.int64)
    if len(counts) < 2 or counts.min() < 2:
        return None
    shuffled = np.random.default_rng(0).permuted(np.tile(values, (_SHUFFLES, 1)), axis=1)
    ratios, between, within = _ratios(np.vstack((values, shuffled)), numbers, counts)
    if np.mean(ratios >= ratios[0]) > BUILDS_P:
        return None
    per_build = (len(values) - float(np.square(counts).sum()) / len(values)) / (len(counts) - 1)
    between_sd = math.sqrt(max(0.0, float(between[0] - within[0]) / per_build))
    return BuildScatter(len(counts), between_sd, math.sqrt(max(0.0, float(within[0]))))


def _ratios(rows: Floats, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """The F ratio of a one-way analysis of variance for every row, and its two mean squares."""
    n, groups = rows.shape[1], len(counts)
    means = rows @ (numbers[:, np.newaxis] == np.arange(groups)) / counts
    centre = rows.mean(axis=1, keepdims=True)
    of_groups = np.square(means - centre) @ counts
    within = (np.square(rows - centre).sum(axis=1) - of_groups) / (n - groups)
    between = of_groups / (groups - 1)
    return between / np.maximum(within, np.finfo(float).tiny), between, within
