"""The ratio of two servers of a duet, from its blocks and its fresh starts.

A block gives one log ratio: both servers had two slices in it, placed alike. Blocks of one start are correlated, and
steal by the hypervisor makes a few of them outliers, so a start's value is a trimmed mean (Tukey and McLaughlin, 1963).
Starts are independent, and how they differ is part of the answer: the interval is Student's over their values. Within
one start there is only the scatter of its blocks, in batches that are long enough to be independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redline.stats.distributions import t_quantile

Floats = NDArray[np.float64]
TRIMMED = 0.1
"""The share of blocks that is left out at each end."""
BATCHES = 10
"""A start's blocks are averaged in this many batches, whose means scatter as if they were independent."""


@dataclass(frozen=True)
class LogRatio:
    """A log ratio and its interval. `starts_sd` is how much starts differ; `blocks_se` what one start is uncertain by.

    `low` and `high` are infinite where nothing is known.
    """

    value: float
    low: float
    high: float
    starts: int
    starts_sd: float | None
    blocks_se: float | None


def trimmed_mean(values: Floats, share: float = TRIMMED) -> float:
    """The mean without this share of the values at each end."""
    cut = int(len(values) * share)
    return float(np.sort(values)[cut : len(values) - cut].mean())


def standard_error(values: Floats, share: float = TRIMMED) -> float | None:
    """The standard error of the trimmed mean of one start's blocks, in their order; None for too few.

    Values beyond the trimmed ends are replaced by these (winsorized), then averaged in batches.
    """
    cut = int(len(values) * share)
    if len(values) < 2 * BATCHES:
        return None
    ordered = np.sort(values)
    winsorized = np.clip(values, ordered[cut], ordered[len(values) - cut - 1])
    means = np.array([batch.mean() for batch in np.array_split(winsorized, BATCHES)])
    return float(means.std(ddof=1) / math.sqrt(BATCHES) / (1 - 2 * share))


def over_starts(starts: Sequence[Floats], confidence: float = 0.95) -> LogRatio:
    """The ratio over all starts, each given by the log ratios of its blocks in order. There must be one at least."""
    values = np.array([trimmed_mean(blocks) for blocks in starts])
    errors = [error for blocks in starts if (error := standard_error(blocks)) is not None]
    within = math.sqrt(float(np.mean(np.square(errors)))) if errors else None
    value, n = float(values.mean()), len(values)
    if n >= 2:
        between = float(values.std(ddof=1))
        half = t_quantile((1 + confidence) / 2, n - 1) * between / math.sqrt(n)
        return LogRatio(value, value - half, value + half, n, between, within)
    half = math.inf if within is None else t_quantile((1 + confidence) / 2, BATCHES - 1) * within
    return LogRatio(value, value - half, value + half, n, None, within)
