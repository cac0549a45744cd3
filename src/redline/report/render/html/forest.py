"""Where things stand in a forest plot: ratios on a log axis that is symmetric about one. Positions are percentages."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from redline.model import Comparison, Estimate

_TICKS = (
    *((1 - step / 100, 1 + step / 100) for step in (1, 2, 3, 4, 5, 7, 10, 15, 20)),
    (0.75, 1.33),
    (0.67, 1.5),
    (0.5, 2.0),
    (0.33, 3.0),
    (0.2, 5.0),
    (0.1, 10.0),
    (0.05, 20.0),
    (0.02, 50.0),
    (0.01, 100.0),
)
_TICK_REACH = 0.9


@dataclass(frozen=True)
class RatioTick:
    """A labelled position on the axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A ratio and its interval; an end that lies past the axis is cut at its edge, and says so."""

    at: float
    low: float | None
    high: float | None
    cut_low: bool = False
    cut_high: bool = False


@dataclass(frozen=True)
class Axis:
    """`reach` is the log ratio at the right edge, `band` half the width of the equivalence band, in log ratio."""

    reach: float
    band: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison], threshold: float) -> "Axis":
        """Wide enough for every ratio and the band; for intervals up to twice as far as the farthest ratio."""
        band = math.log1p(threshold)
        ratios = [c.ratio for c in comparisons if c.ratio is not None and c.ratio.value > 0]
        points = max([3 * band, *(1.2 * abs(math.log(ratio.value)) for ratio in ratios)])
        ends = [
            abs(math.log(end)) for ratio in ratios for end in (ratio.low, ratio.high) if end is not None and end > 0
        ]
        return cls(min(max([points, *(1.1 * end for end in ends)]), 2 * points), band)

    def at(self, ratio: float) -> float:
        """Percent of the axis, 50 for a ratio of one; held to the edges."""
        if ratio <= 0:
            return 0.0
        return _percent(50 + 50 * math.log(ratio) / self.reach)

    @property
    def band_start(self) -> float:
        """Left edge of the equivalence band, in percent."""
        return _percent(50 - 50 * self.band / self.reach)

    @property
    def band_width(self) -> float:
        """Width of the equivalence band, in percent."""
        return _percent(100 * self.band / self.reach)

    @property
    def ticks(self) -> tuple[RatioTick, ...]:
        """One, and the farthest pair of round ratios that fits."""
        fitting = [pair for pair in _TICKS if max(-math.log(pair[0]), math.log(pair[1])) <= _TICK_REACH * self.reach]
        shown = (fitting[-1][0], 1.0, fitting[-1][1]) if fitting else (1.0,)
        return tuple(RatioTick(self.at(ratio), f"{ratio:g}") for ratio in shown)

    def mark(self, ratio: Estimate) -> Mark:
        """The ratio's place and its interval's."""
        if ratio.low is None or ratio.high is None:
            return Mark(self.at(ratio.value), None, None)
        edge_low, edge_high = math.exp(-self.reach), math.exp(self.reach)
        return Mark(
            self.at(ratio.value),
            self.at(ratio.low),
            self.at(ratio.high),
            cut_low=ratio.low < edge_low,
            cut_high=ratio.high > edge_high,
        )


def bar(estimate: Estimate, largest: float) -> Mark:
    """A value from zero on an axis that ends at `largest`: for cells that are compared with nothing."""
    if largest <= 0:
        return Mark(0.0, None, None)
    low, high = (None if end is None else _percent(100 * end / largest) for end in (estimate.low, estimate.high))
    return Mark(_percent(100 * estimate.value / largest), low, high)


def _percent(value: float) -> float:
    return round(min(100.0, max(0.0, value)), 2)
