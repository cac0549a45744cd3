"""Bars with error bars, as paths that a browser stretches to the width it has: heights are pixels, widths are not.

A picture is `WIDTH` units wide whatever its width on a screen (`preserveAspectRatio="none"`), so a hundred bars are a
few paths, one for each verdict.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redline.model import Comparison, Estimate, Verdict

WIDTH = 1000
ROW = 22
_HALF_BAR = 6
_HALF_CAP = 4
_ARROW = 24
_FARTHEST = 2.5  # a bar that is so many times as long as the usual one would make all others too short to see
_STEPS = (0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class BarTick:
    """A labelled position; `at` is in percent of the width."""

    at: float
    text: str


@dataclass(frozen=True)
class Bars:
    """One picture: for each verdict the outlines of its bars, then all error bars."""

    height: int
    fills: tuple[tuple[Verdict, str], ...]
    errors: str


@dataclass(frozen=True)
class Scale:
    """Changes in percent from `low`, at most 0, to `high`, at least 0; what lies beyond is cut, and its bar says so."""

    low: float
    high: float
    threshold: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison], threshold: float) -> "Scale":
        """Wide enough for every change that is not much farther than the usual, and half as far again for intervals."""
        ratios = [c.ratio for c in comparisons if c.ratio is not None]
        changes = sorted(abs(ratio.value - 1) * 100 for ratio in ratios)
        usual = changes[len(changes) * 3 // 4] if changes else 0.0
        most = max(_FARTHEST * usual, 5 * threshold * 100)
        ends = [_percent(end) for ratio in ratios for end in (ratio.value, ratio.low, ratio.high) if end is not None]
        reach = min(most, 1.5 * changes[-1] if changes else 0.0)
        room = 1.5 * threshold * 100
        return cls(-max(room, min(reach, -min([0.0, *ends]))), max(room, min(reach, max([0.0, *ends]))), threshold)

    def at(self, percent: float) -> int:
        """The place of a change, held to the edges."""
        held = min(self.high, max(self.low, percent))
        return round(WIDTH * (held - self.low) / (self.high - self.low))

    @property
    def zero(self) -> int:
        """Where nothing changes."""
        return self.at(0)

    @property
    def band(self) -> tuple[int, int]:
        """The left edge and the width of the changes that are too small to matter."""
        left, right = self.at(_percent(1 / (1 + self.threshold))), self.at(self.threshold * 100)
        return left, right - left

    @property
    def ticks(self) -> tuple[BarTick, ...]:
        """Round changes, four at most beside zero."""
        span = self.high - self.low
        step = next((step for step in _STEPS if span / step <= 4), 10 ** math.ceil(math.log10(span)))
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return tuple(BarTick(self.at(n * step) * 100 / WIDTH, _signed(n * step)) for n in range(first, last + 1))

    def bars(self, rows: Sequence[Comparison | None]) -> Bars:
        """One row each, in order; empty where there is nothing to draw."""
        fills: dict[Verdict, list[str]] = {}
        errors: list[str] = []
        for row, comparison in enumerate(rows):
            if comparison is None or comparison.ratio is None or comparison.verdict is None:
                continue
            middle = row * ROW + ROW // 2
            fills.setdefault(comparison.verdict, []).append(self._bar(comparison.ratio, middle))
            errors.append(self._error(comparison.ratio, middle))
        return Bars(
            len(rows) * ROW, tuple((verdict, "".join(paths)) for verdict, paths in fills.items()), "".join(errors)
        )

    def _bar(self, ratio: Estimate, middle: int) -> str:
        end = self.at(_percent(ratio.value))
        return f"M{self.zero} {middle - _HALF_BAR}H{end}v{2 * _HALF_BAR}H{self.zero}z"

    def _error(self, ratio: Estimate, middle: int) -> str:
        """From end to end with a cap on each, or an arrow where the interval, or the bar itself, goes on."""
        bounded = ratio.low is not None and ratio.high is not None
        low, high = (_percent(ratio.value if end is None else end) for end in (ratio.low, ratio.high))
        parts = [f"M{self.at(low)} {middle}H{self.at(high)}"] if bounded else []
        for end in dict.fromkeys((low, high)):
            if self.low <= end <= self.high:
                parts += [f"M{self.at(end)} {middle - _HALF_CAP}v{2 * _HALF_CAP}"] if bounded else []
            else:
                turn = _ARROW if end > self.high else -_ARROW
                parts.append(f"M{self.at(end) - turn} {middle - 5}l{turn} 5l{-turn} 5")
        return "".join(parts)


def place_bar(estimate: Estimate, largest: float) -> tuple[str, str]:
    """The outline of a bar from zero on a scale that ends at `largest`, and its error bar; for one row."""
    if largest <= 0:
        return "", ""
    middle = ROW // 2
    end, *bounds = (
        round(WIDTH * min(1.0, value / largest))
        for value in (estimate.value, estimate.low, estimate.high)
        if value is not None
    )
    fill = f"M0 {middle - _HALF_BAR}H{end}v{2 * _HALF_BAR}H0z"
    if len(bounds) < 2:
        return fill, ""
    caps = "".join(f"M{bound} {middle - _HALF_CAP}v{2 * _HALF_CAP}" for bound in bounds)
    return fill, f"M{bounds[0]} {middle}H{bounds[1]}{caps}"


def _percent(ratio: float) -> float:
    return (ratio - 1) * 100


def _signed(percent: float) -> str:
    return "0" if percent == 0 else f"{'+' if percent > 0 else chr(0x2212)}{abs(percent):g}%"
