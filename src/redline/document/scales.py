"""Scales of figures: the position of a value on an axis, and the marked values."""

import math
from collections.abc import Callable, Iterable, Sequence

from redline.lazily import dataclass
from redline.model import Comparison
from redline.quantities import duration, rate, scale_of

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_FARTHEST_END = 1.4  # intervals are cut at this multiple of the longest bar
_MOST_RATES = 6
_PARTS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
_TIME_PARTS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
_LEAST_TICKS = 4
_RATIOS = (
    *((1 - step / 100, 1 + step / 100) for step in (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40)),
    *((0.5, 2.0), (0.25, 4.0), (0.1, 10.0), (0.05, 20.0), (0.02, 50.0), (0.01, 100.0)),
)
_RATIO_REACH = 0.9


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`, linear or `log`.

    `ticks` are values with their labels. `origin` is where nothing changes, and `band` around it the differences too
    small to matter. Strips with scales of the same `name` share its axis, which is drawn once.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    log: bool = False
    origin: float | None = None
    band: tuple[float, float] | None = None
    name: str = ""

    def at(self, value: float) -> float:
        """Return the position in percent of the axis, clamped to its ends."""
        held = min(self.high, max(self.low, value))
        if self.log:
            return round(100 * math.log(held / self.low) / math.log(self.high / self.low), 2)
        return round(100 * (held - self.low) / (self.high - self.low), 2)

    def holds(self, value: float) -> bool:
        """Whether the value is on the axis, and not cut at its end."""
        return self.low <= value <= self.high


def percent_of(ratio: float) -> float:
    """Convert a ratio to a change in percent."""
    return (ratio - 1) * 100


def ratio_scale(comparisons: Iterable[Comparison], threshold: float, name: str = "") -> Scale:
    """Scale for ratios, log and symmetric about 1, wide enough for all; intervals up to twice the farthest ratio.

    Labels are 1 and the farthest pair of round ratios that fits.
    """
    band = math.log1p(threshold)
    ratios = [c.ratio for c in comparisons if c.ratio is not None and c.ratio.value > 0]
    points = max([3 * band, *(1.2 * abs(math.log(ratio.value)) for ratio in ratios)])
    ends = [abs(math.log(end)) for ratio in ratios for end in (ratio.low, ratio.high) if end is not None and end > 0]
    reach = min(max([points, *(1.1 * end for end in ends)]), 2 * points)
    fitting = [pair for pair in _RATIOS if max(-math.log(pair[0]), math.log(pair[1])) <= _RATIO_REACH * reach]
    shown = (fitting[-1][0], 1.0, fitting[-1][1]) if fitting else (1.0,)
    ticks = tuple((ratio, _signed(round(percent_of(ratio)))) for ratio in shown)
    low, high = math.exp(-reach), math.exp(reach)
    return Scale(low, high, ticks, log=True, origin=1.0, band=(1 / (1 + threshold), 1 + threshold), name=name)


def amount_scale(values: Sequence[float], ends: Sequence[float], unit: str) -> Scale:
    """Scale from zero to the largest of these amounts, and not much farther to the ends of their intervals."""
    longest = max(values, default=0.0)
    top = max(longest, min(max(ends, default=0.0), _FARTHEST_END * longest)) or 1.0
    size, name = scale_of(top, unit)
    marks = [f"{at:g}" for at in _round_values(0.0, top / size)]
    return Scale(0.0, top, tuple((float(at) * size, f"{at} {name}" if at == marks[-1] else at) for at in marks))


def rate_scale(rates: Iterable[float], name: str = "", said: Callable[[float], str] = rate) -> Scale | None:
    """Scale for rates per second, or what `said` words, log, wide enough for all, with as many round ones as fit.

    None without any.
    """
    known = [per_s for per_s in rates if per_s > 0]
    if not known:
        return None
    room = max((max(known) / min(known)) ** 0.08, 1.1)
    low, high = min(known) / room, max(known) * room
    ticks: list[float] = []
    for parts in _PARTS:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        inside = [at for decade in decades for part in parts if low <= (at := part * 10.0**decade) <= high]
        if len(inside) > _MOST_RATES:
            break
        ticks = inside
    return Scale(low, high, tuple((tick, said(tick)) for tick in ticks), log=True, name=name)


def time_scale(times_ns: Iterable[float]) -> Scale | None:
    """Durations in nanoseconds, log, wide enough for all, with round ones marked; None for none."""
    known = [ns for ns in times_ns if ns > 0]
    if not known:
        return None
    room = max((max(known) / min(known)) ** 0.06, 1.04)
    low, high = min(known) / room, max(known) * room
    return Scale(low, high, tuple((tick, _short(duration(tick))) for tick in _log_ticks(low, high)), log=True)


def scale_from_zero(top: float, text: Callable[[float], str]) -> Scale:
    """From zero to a little more than `top`, with round values marked."""
    high = 1.06 * (top or 1.0)
    return Scale(0.0, high, tuple((at, _short(text(at))) for at in _round_values(0.0, high)))


def _short(text: str) -> str:
    """`1 ms` for `1.00 ms`."""
    number, _, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}".strip()


def _log_ticks(low: float, high: float) -> list[float]:
    """Decades where there are many, their parts where there are few, even steps within a part."""
    for parts in _TIME_PARTS:
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        ticks = [at for decade in decades for part in parts if low <= (at := part * 10.0**decade) <= high]
        if len(ticks) >= _LEAST_TICKS:
            return ticks
    return _round_values(low, high)


def _round_values(low: float, high: float) -> list[float]:
    """Return multiples of a round step, about four beside zero."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step * (1 + 1e-9)), math.floor(high / step * (1 + 1e-9))
    # An end that should be included may differ in its last digit.
    return [min(max(step * n, low), high) for n in range(first, last + 1)]


def _signed(percent: float) -> str:
    return "0" if percent == 0 else f"{'+' if percent > 0 else chr(0x2212)}{abs(percent):g}%"
