"""Whether numbers fall into two groups with nothing between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 5
"""Numbers that two groups can be seen in: two and three."""

SMALLEST_GROUP = 2
"""A single number that is far from all others is an outlier, and no group."""

_CRITICAL = ((5, 24.0), (6, 15.0), (7, 11.0), (8, 9.5), (9, 8.0), (10, 7.0), (12, 6.1), (15, 5.6), (20, 5.5))
"""By how many numbers: the largest gap over the spread within the groups that one group shows once in 1,000 times.

Simulated, 100,000 times each, and the largest for normal, Laplace and t(3) numbers; exponential ones, which are skewed
as trials with a disturbed few are, are above it up to once in 100 times. Between these it is interpolated.
"""


@dataclass(frozen=True)
class Split:
    """Two groups: the median of each, and of each number, in its order, whether it belongs to the upper one."""

    lower: float
    upper: float
    is_upper: tuple[bool, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """How many are in the lower and in the upper group."""
        above = sum(self.is_upper)
        return len(self.is_upper) - above, above

    @property
    def apart(self) -> float:
        """How far the upper group is above the lower, relatively."""
        return self.upper / self.lower - 1.0

    @property
    def in_turn(self) -> bool:
        """Whether all of one group come before all of the other: that is a change, and no lottery."""
        return sum(a != b for a, b in zip(self.is_upper, self.is_upper[1:], strict=False)) == 1


def two_groups(values: Sequence[float]) -> Split | None:
    """The two groups of these positive numbers when the largest gap between them is no chance, else None.

    The gap is of the logs, over the standard deviation within both groups taken together, where each group has two
    or more; the split is where that ratio is largest.
    """
    n = len(values)
    if n < FEWEST:
        return None
    logs = np.sort(np.log(values))
    best, at = max((_ratio(logs[:k], logs[k:]), k) for k in range(SMALLEST_GROUP, n - SMALLEST_GROUP + 1))
    if not best > critical(n):
        return None
    least_upper = math.exp((logs[at - 1] + logs[at]) / 2)
    is_upper = tuple(value > least_upper for value in values)
    return Split(float(np.exp(np.median(logs[:at]))), float(np.exp(np.median(logs[at:]))), is_upper)


def critical(n: int) -> float:
    """The ratio that n numbers of one group exceed once in 1,000 times."""
    counts, ratios = zip(*_CRITICAL, strict=True)
    return float(np.interp(float(n), counts, ratios))


def _ratio(lower: Floats, upper: Floats) -> float:
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in (lower, upper))
    gap = float(upper[0] - lower[-1])
    spread = math.sqrt(within / (len(lower) + len(upper) - 2))
    return gap / spread if spread > 0 else math.inf if gap > 0 else 0.0
