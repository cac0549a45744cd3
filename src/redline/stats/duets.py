"""The ratio of two servers of a duet, from its blocks and its fresh starts.

A block gives one log ratio: both servers had two slices in it, placed alike. Blocks of one start are correlated, and
steal by the hypervisor makes a few of them outliers, so a start's value is a trimmed mean (Tukey and McLaughlin, 1963).
Starts are independent, and how they differ is part of the answer: the interval is Student's over their values. The
scatter of the blocks, in batches that are long enough to be independent, is a floor to it, since few starts may agree
by luck. Of one start there is nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redline.stats.estimate import Contrast, Spread, contrast_of

Floats = NDArray[np.float64]
TRIMMED = 0.1
"""The share of blocks that is left out at each end."""
BATCHES = 10
"""A start's blocks are averaged in this many batches, whose means scatter as if they were independent."""


METHOD_STARTS = "t interval over fresh starts, each the trimmed mean of its blocks' log ratios"
METHOD_BLOCKS = "t interval with the standard error of blocks within starts, wider than over starts"


@dataclass(frozen=True)
class LogRatio:
    """A log ratio over `starts` fresh starts.

    `starts_sd` is the standard deviation of the starts' values, None for one; `blocks_se` is how uncertain the value of
    one start is, because its blocks scatter, None where there are too few.
    """

    value: float
    starts: int
    starts_sd: float | None
    blocks_se: float | None

    @property
    def contrast(self) -> Contrast:
        """The ratio with its interval, and what tests of it rest on."""
        spreads = {}
        if self.starts_sd is not None:
            spreads[METHOD_STARTS] = Spread(self.starts_sd**2 / self.starts, self.starts - 1)
        if self.blocks_se is not None:
            spreads[METHOD_BLOCKS] = Spread(self.blocks_se**2 / self.starts, self.starts * (BATCHES - 1))
        return contrast_of(math.exp(self.value), spreads, self.starts)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95% interval of the logarithm; infinite where nothing is known."""
        ratio = self.contrast.ratio
        if ratio.low is None or ratio.high is None:
            return -math.inf, math.inf
        return math.log(ratio.low), math.log(ratio.high)

    @property
    def between_sd(self) -> float | None:
        """By how much starts differ beyond what the scatter of their blocks explains; 0 where that explains it all.

        None for one start, and where too few blocks are known: then nobody can say which of both it is.
        """
        if self.starts_sd is None or self.blocks_se is None:
            return None
        return math.sqrt(max(0.0, self.starts_sd**2 - self.blocks_se**2))


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


def over_starts(starts: Sequence[Floats]) -> LogRatio:
    """The ratio over all starts, each given by the log ratios of its blocks in order. There must be one at least."""
    values = np.array([trimmed_mean(blocks) for blocks in starts])
    errors = [error for blocks in starts if (error := standard_error(blocks)) is not None]
    within = math.sqrt(float(np.mean(np.square(errors)))) if errors else None
    between = float(values.std(ddof=1)) if len(values) >= 2 else None
    return LogRatio(float(values.mean()), len(values), between, within)
