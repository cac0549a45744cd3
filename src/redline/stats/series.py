"""Time series: trends, changes of level, autocorrelation, and two groups. Pure."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from redline.lazily import dataclass
from redline.stats.distributions import beta_below, kendall_p, pairs_of
from redline.stats.samples import Floats

FEWEST_FOR_TREND = 7
"""With six, even a perfect trend has p = 2 / 6! = 0.003 in Kendall's test, above what is wanted."""

FEWEST_FOR_AUTOCORRELATION = 10
"""The fewest numbers for which the beta distribution fits the rank von Neumann ratio (Bartels 1982)."""

FEWEST_FOR_GROUPS = 5
"""The fewest numbers in which two groups can be seen: two and three."""

SMALLEST_GROUP = 2
"""The fewest numbers of a group: a single number far from all others is an outlier."""

WINDOW = 7
"""Points of the running median: it removes a disturbance of up to three points, and keeps a step."""

FENCE = 3.0
"""Standard deviations from the running median beyond which a value is clipped: 1 in 370 of a normal series."""

LEAST_NOISE = 0.005
"""For logarithms: half a percent from point to point always counts as noise."""

STEP_PENALTY = 15.0
"""The penalty per change over log n, in squared noise, as Barrett et al. chose for similar series."""

SHORTEST_LEVEL = 3
"""Points of the shortest level: anything shorter is an outlier."""

FEW = 24
"""Points up to which a loop finds levels sooner than arrays do, and for which their windows are remembered."""

STEP_ERRORS = 6.0
"""Standard errors by which neighbouring levels differ. The place of a step is the best of all places, neighbours are
alike, and tails are long: see `tests/unit/stats/test_series.py`."""

_OF_MEDIAN = 1.2533
"""The standard error of a normal sample's median over that of its mean."""

_OF_NORMAL = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""

_MOST_CORRELATION = 0.8
"""The highest correlation of residuals: few numbers cannot show a higher correlation."""

_CRITICAL = ((5, 24.0), (6, 15.0), (7, 11.0), (8, 9.5), (9, 8.0), (10, 7.0), (12, 6.1), (15, 5.6), (20, 5.5))
"""The ratio, by count of numbers, of largest gap to spread within groups that one group exceeds once in 1,000 times.

The largest of normal, Laplace and t(3) numbers, in 100,000 simulations per entry. Exponential numbers, skewed like
trials of which a few were disturbed, exceed it up to once in 100 times. Other counts are interpolated.
"""


def trend(values: Sequence[float] | Floats, chance: float) -> float:
    """The relative change from first to last along the Theil-Sen line of the logs; 0 if it may be chance.

    A few disturbed values do not move Kendall's rank test or the median of slopes. Sources: Mann 1945, Kendall 1975;
    Theil 1950, Sen 1968.
    """
    if len(values) < FEWEST_FOR_TREND:
        return 0.0
    logs = np.log(values)
    if not kendall_p(logs) < chance:  # NaN when all values are equal
        return 0.0
    return math.expm1(slope(range(len(logs)), logs) * (len(values) - 1))


def slope(at: Sequence[float], values: Sequence[float] | Floats) -> float:
    """The slope of the Theil-Sen line: the median slope of all pairs of values (at least two) at different places."""
    places, heights = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
    rows, columns = pairs_of(len(places))
    return median((heights[columns] - heights[rows]) / (places[columns] - places[rows])) + 0.0  # no -0


def interval_excess(values: Sequence[float], chance: float) -> float:
    """The factor by which an interval over these numbers is too narrow; 1 if they may be independent.

    Neighbours with correlation r widen the variance of a mean by (1 + r) / (1 - r) (Bartlett 1946). It counts only if
    the rank version of von Neumann's ratio, which an outlier does not move, excludes chance (Bartels 1982).
    """
    n = len(values)
    if n < FEWEST_FOR_AUTOCORRELATION:
        return 1.0
    ranks = _ranks(values) - (n + 1) / 2
    squares = float((ranks**2).sum())
    if squares <= 0:
        return 1.0
    ratio = float((np.diff(ranks) ** 2).sum()) / squares
    shape = 5 * n * (n + 1) * (n - 1) ** 2 / (2 * (n - 2) * (5 * n**2 - 2 * n - 9)) - 0.5
    if not beta_below(ratio / 4, shape, shape) < chance:
        return 1.0
    correlation = min(float((ranks[1:] * ranks[:-1]).sum()) / squares, 0.95)
    return float(np.sqrt((1 + correlation) / (1 - correlation)))


def _ranks(values: Sequence[float]) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse]
    return ranks


@dataclass(frozen=True)
class Groups:
    """Two groups: their medians, and for every number, in order, whether it belongs to the upper group."""

    lower: float
    upper: float
    is_upper: tuple[bool, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """The sizes of the lower and the upper group."""
        above = sum(self.is_upper)
        return len(self.is_upper) - above, above

    @property
    def apart(self) -> float:
        """The relative distance from the lower to the upper group."""
        return self.upper / self.lower - 1.0

    @property
    def one_after_the_other(self) -> bool:
        """Whether one group comes entirely before the other, which is a change and not a lottery."""
        return sum(a != b for a, b in zip(self.is_upper, self.is_upper[1:], strict=False)) == 1


def two_groups(values: Sequence[float]) -> Groups | None:
    """The two groups of these positive numbers; None if the largest gap between them may be chance.

    The gap is that of the logs over the pooled standard deviation within both groups, of at least two numbers each. The
    split is where that ratio is largest.
    """
    n = len(values)
    if n < FEWEST_FOR_GROUPS:
        return None
    ordered = np.sort(np.asarray(values))
    logs = np.log(ordered)
    best, at = max((_gap(logs[:k], logs[k:]), k) for k in range(SMALLEST_GROUP, n - SMALLEST_GROUP + 1))
    if not best > critical_gap(n):
        return None
    is_upper = tuple(value >= float(ordered[at]) for value in values)
    return Groups(median(ordered[:at]), median(ordered[at:]), is_upper)


def critical_gap(n: int) -> float:
    """The ratio that n numbers of a single group exceed once in 1,000 times."""
    counts, ratios = zip(*_CRITICAL, strict=True)
    return float(np.interp(float(n), counts, ratios))


def _gap(lower: Floats, upper: Floats) -> float:
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in (lower, upper))
    gap = float(upper[0] - lower[-1])
    spread = math.sqrt(within / (len(lower) + len(upper) - 2))
    return gap / spread if spread > 0 else math.inf if gap > 0 else 0.0


def clipped(values: Floats) -> Floats:
    """The series without outliers, points that are far from their neighbours.

    Source: Barrett et al. 2017, who clip outliers before they look for change points.
    """
    edge = WINDOW // 2
    windows = _few_windows(len(values)) if len(values) <= FEW else _windows(len(values))
    middle = np.partition(values[windows], edge, axis=1)[:, edge]
    off = values - middle
    reach = FENCE * max(_OF_NORMAL * median(np.abs(off)), LEAST_NOISE)
    return np.asarray(middle + np.clip(off, -reach, reach), dtype=np.float64)


def _windows(n: int) -> NDArray[np.intp]:
    """The places of the `WINDOW` points around each of n; beyond the ends those of the ends."""
    around = np.arange(WINDOW) - WINDOW // 2
    places: NDArray[np.intp] = np.clip(np.arange(n)[:, np.newaxis] + around, 0, n - 1)
    return places


_few_windows = cache(_windows)


def median(values: Floats) -> float:
    """The median of at least one number: `np.median`, which takes ten times as long for few."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    if math.isnan(ordered[-1]):
        return math.nan
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def noise(values: Floats) -> float:
    """The standard deviation from point to point, from differences of neighbours, which a step hardly affects."""
    steps = np.abs(values[1:] - values[:-1])
    return max(_OF_NORMAL * median(steps) / np.sqrt(2.0), LEAST_NOISE) if len(steps) else LEAST_NOISE


def level_ends(values: Floats, penalty: float, shortest: int = 1) -> list[int]:
    """The ends of the levels of a series, including its own end: the best segmentation into means.

    It minimises the squared distances to the means plus `penalty` per change, over segments of at least `shortest`
    points. Source: Jackson et al., An Algorithm for Optimal Partitioning of Data on an Interval, 2005.
    """
    n = len(values)
    if n < 2 * shortest:
        return [n]
    centred = values - values.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(terms))) for terms in (centred, centred**2))
    # A segment from `start` to `end` costs squares[end] - squares[start] - (sums[end] - sums[start])**2 / its length,
    # and the first of these is the same for all starts.
    if n <= FEW:
        return _ends_of_few(sums.tolist(), squares.tolist(), penalty, shortest)
    lengths = np.arange(n, 0, -1.0)
    least = np.empty(n + 1)
    least[0] = 0.0
    least[1:shortest] = np.inf
    previous = [0] * (n + 1)
    for end in range(shortest, n + 1):
        starts = end - shortest + 1
        costs = sums[end] - sums[:starts]
        costs *= costs
        costs /= lengths[n - end : n - end + starts]
        costs += squares[:starts]
        np.subtract(least[:starts], costs, out=costs)
        previous[end] = best = int(costs.argmin())
        least[end] = costs[best] + squares[end] + penalty
    return _ends(previous)


def _ends_of_few(sums: list[float], squares: list[float], penalty: float, shortest: int) -> list[int]:
    """The same for few points, number by number: calls of numpy would take longer."""
    n = len(sums) - 1
    least = [0.0] + [math.inf] * n
    previous = [0] * (n + 1)
    for end in range(shortest, n + 1):
        total, cheapest, best = sums[end], math.inf, 0
        for start in range(end - shortest + 1):
            apart = total - sums[start]
            cost = least[start] - (apart * apart / (end - start) + squares[start])
            if cost < cheapest:
                cheapest, best = cost, start
        previous[end], least[end] = best, cheapest + squares[end] + penalty
    return _ends(previous)


def _ends(previous: Sequence[int]) -> list[int]:
    """The ends of segments, from where the last one of each part begins."""
    ends = [len(previous) - 1]
    while previous[ends[0]]:
        ends.insert(0, previous[ends[0]])
    return ends


@dataclass(frozen=True)
class Plateau:
    """Points `start` to `end` (exclusive) of a series, and their level: a median or a mean."""

    start: int
    end: int
    level: float

    @property
    def n(self) -> int:
        """The number of points."""
        return self.end - self.start


def levels(values: Floats, least: float) -> list[Plateau]:
    """The levels of a series in order and without gaps, which differ by at least `least`; a single one if it is steady.

    A level keeps to its own side of the middle between it and its neighbour. Outliers, correlated neighbours and noise
    make none.
    """
    if not len(values):
        return []
    smooth = clipped(values)
    penalty = STEP_PENALTY * math.log(len(values))
    ends = [0, *level_ends(smooth / noise(smooth), penalty, SHORTEST_LEVEL)]
    while len(ends) > 2:
        parts = [Plateau(a, b, median(values[a:b])) for a, b in pairwise(ends)]
        error = _error_of_a_point(values, parts)
        weakest, at = min((_surely(values, a, b, error, least), b.start) for a, b in pairwise(parts))
        if weakest >= STEP_ERRORS:
            return parts
        ends.remove(at)
    return [Plateau(0, len(values), median(values))]


def _error_of_a_point(values: Floats, parts: Sequence[Plateau]) -> float:
    """The standard deviation of a point around its level, widened as far as neighbouring points are alike."""
    off = values - np.concatenate([np.full(part.n, part.level) for part in parts])
    n, fitted = len(values), len(parts)
    sigma = max(_OF_NORMAL * median(np.abs(off)) * math.sqrt(n / max(n - fitted, 1)), LEAST_NOISE)
    off = np.clip(off, -FENCE * sigma, FENCE * sigma)
    squares = float(off @ off)
    alike = float(off[1:] @ off[:-1]) / squares + fitted / n if squares else 0.0
    alike = min(max(alike, 0.0), _MOST_CORRELATION)
    return sigma * math.sqrt((1 + alike) / (1 - alike))


def _surely(values: Floats, before: Plateau, after: Plateau, error: float, least: float) -> float:
    """The difference of neighbouring levels in standard errors; 0 where it is too small, or where they overlap."""
    apart = abs(after.level - before.level)
    middle, rises = (before.level + after.level) / 2, after.level > before.level
    below, above = (before, after) if rises else (after, before)
    strays = sum(values[below.start : below.end] > middle), sum(values[above.start : above.end] < middle)
    if apart < least or any(stray > part.n // 10 for stray, part in zip(strays, (below, above), strict=True)):
        return 0.0
    return apart / (_OF_MEDIAN * error * math.sqrt(1 / before.n + 1 / after.n))


@dataclass(frozen=True)
class Switched:
    """The rise of numbers while a condition is on, with its standard error."""

    value: float
    error: float
    freedom: int


def switched(values: Floats, at: Floats, on: NDArray[np.bool_]) -> Switched:
    """The difference between numbers with and without `on`, by least squares with a linear trend in `at`.

    The error allows for correlated neighbours: it grows with a positive correlation of neighbouring residuals, as that
    of a mean does for an autoregressive series. Needs six numbers.
    """
    columns = np.column_stack([np.ones(len(values)), (at - at.mean()) / np.ptp(at), on])
    unscaled = np.linalg.inv(columns.T @ columns)
    fitted = unscaled @ columns.T @ values
    residuals, freedom = values - columns @ fitted, len(values) - len(fitted)
    squares = float(residuals @ residuals)
    # A fit lowers the correlation of neighbouring residuals by about this.
    estimated = float(residuals[1:] @ residuals[:-1]) / squares + len(fitted) / len(values) if squares else 0.0
    correlation = min(max(estimated, 0.0), _MOST_CORRELATION)
    variance = squares / freedom * unscaled[-1, -1] * (1 + correlation) / (1 - correlation)
    return Switched(float(fitted[-1]), math.sqrt(variance), freedom)
