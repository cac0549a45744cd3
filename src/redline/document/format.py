"""Format quantities for people, and the words, intervals and signs of a report.

All functions are pure. The exact values are in the JSON and CSV of a report; these texts are for people.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from redline.model import (
    AgreedTls,
    Bound,
    Comparison,
    Counts,
    Estimate,
    Grade,
    Metric,
    Objective,
    ObjectiveResult,
    ObjectiveState,
    OtherTime,
    Percentile,
    TooFew,
    Verdict,
)
from redline.model.estimate import HasVerdict
from redline.quantities import amount, duration, integer, percent, rate, ratio, scale_of, significant, size  # noqa: F401, offered beside the others


class Decided(HasVerdict, Protocol):
    """A comparison of servers, runs or limits, with its verdict and the family of it."""

    @property
    def threshold(self) -> float:
        """The smallest relative difference that matters."""

    @property
    def held_back(self) -> bool:
        """Whether the interval excludes 1, but the number of comparisons does not allow a verdict."""

    @property
    def p_adjusted(self) -> float | None:
        """The p-value with Holm's correction."""

    @property
    def family(self) -> int | None:
        """The number of comparisons in the family."""


class VerdictSign(StrEnum):
    """A verdict for display: a significant difference that does not matter has its own mark and colour."""

    FASTER = "faster"
    SLOWER = "slower"
    SLIGHTLY_FASTER = "slightly-faster"
    SLIGHTLY_SLOWER = "slightly-slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"

    @classmethod
    def of(cls, comparison: HasVerdict) -> "VerdictSign | None":
        """The sign of a comparison; None without a verdict."""
        if comparison.verdict is None:
            return None
        if comparison.matters is False:
            return cls.SLIGHTLY_FASTER if comparison.verdict is Verdict.FASTER else cls.SLIGHTLY_SLOWER
        return cls(comparison.verdict.value)

    @property
    def mark(self) -> str:
        """The sign in tables: `▲`; hollow if the difference does not matter."""
        return _SIGNS[self][0]

    @property
    def words(self) -> str:
        """The name in text: `faster`, `slightly slower`."""
        return _SIGNS[self][1]


_SIGNS = {
    VerdictSign.FASTER: ("▲", "faster"),
    VerdictSign.SLOWER: ("▼", "slower"),
    VerdictSign.SLIGHTLY_FASTER: ("△", "slightly faster"),
    VerdictSign.SLIGHTLY_SLOWER: ("▽", "slightly slower"),
    VerdictSign.EQUIVALENT: ("≈", "equivalent"),
    VerdictSign.INCONCLUSIVE: ("?", "inconclusive"),
}
GRADE_MARKS = {Grade.NOTE: "i", Grade.WARN: "!", Grade.INVALID: "✕"}
GRADE_NOUNS = {Grade.NOTE: "notes", Grade.WARN: "warnings", Grade.INVALID: "reasons against it"}
STATE_MARKS: dict[ObjectiveState, str] = {"met": "✓", "missed": "✗", "not known": "?"}

_IN_TIMES = 1.5
"""Factors from this on are written as multiples, smaller factors in percent: `1.6 times`, but 49%."""
_AMOUNTS = {
    Metric.THROUGHPUT: ("as many", "fewer", "requests"),
    Metric.CPU_PER_REQUEST: ("as much", "less", "CPU"),
    Metric.MEMORY: ("as much", "less", "memory"),
}

NOT_KNOWN = "not known"
NO_ANSWERS = "no answers"

_MOST_ENCODED = 5
_MOST_PLACES = 4
_DASH = "\u2013"
_MINUS = "\u2212"


def count(number: int, noun: str) -> str:
    """`1 cell`, `1,200 cells`."""
    return f"{integer(number)} {noun}{'' if number == 1 else 's'}"


def slug_of(cell_id: str) -> str:
    """Return the slug of a cell id, which ends in eight hex digits."""
    return cell_id.rpartition("-")[0]


def label(metric: Metric) -> str:
    """Return the metric's name in running text: `throughput`, `p99`, `CPU per request`."""
    return metric.words


def interval(estimate: Estimate) -> str:
    """Format the interval in the value's unit, to two digits of its own half width; empty if there is none.

    `not known` if it says nothing: digits would look like knowledge. All texts of intervals do so.
    """
    if estimate.low is None or estimate.high is None:
        return ""
    if estimate.says_nothing:
        return NOT_KNOWN
    if estimate.unit == "ratio":
        return f"{ratio(estimate.low)}{_DASH}{ratio(estimate.high)}"
    scale, name = scale_of(estimate.value, estimate.unit)
    half = (estimate.high - estimate.low) / 2 / scale
    places = min(4, max(0, 1 - math.floor(math.log10(half)))) if half > 0 else 2
    return f"{estimate.low / scale:.{places}f}{_DASH}{estimate.high / scale:.{places}f} {name}"


def change(ratio_estimate: Estimate, *, whole_from: float = 1.0) -> str:
    """Format a ratio as a change, such as `+3.1%`; no decimal from `whole_from` (1 is 100%) on unless its ends have."""
    return f"{signed((ratio_estimate.value - 1) * 100, _change_places(ratio_estimate, whole_from))}%"


def change_bounds(ratio_estimate: Estimate, *, whole_from: float = 1.0) -> str:
    """Format the interval of a change: `[+1.2, +5.0]`, in percent; empty if there is none."""
    if ratio_estimate.low is None or ratio_estimate.high is None:
        return ""
    if ratio_estimate.says_nothing:
        return f"[{NOT_KNOWN}]"
    places = _change_places(ratio_estimate, whole_from)
    return f"[{', '.join(change_ends(ratio_estimate.low, ratio_estimate.high, places))}]"


def _change_places(ratio_estimate: Estimate, whole_from: float) -> int:
    """The decimals of a change and of the ends of its interval: a value is no coarser than its ends."""
    places = int(abs(ratio_estimate.value - 1) < whole_from)
    known = ratio_estimate.interval
    return places if known is None or ratio_estimate.says_nothing else end_places(*known, places)


def change_ends(low: float, high: float, places: int) -> tuple[str, str]:
    """The ends of a ratio's interval as changes in percent; with more decimals where one would read as no change."""
    places = end_places(low, high, places)
    return signed((low - 1) * 100, places), signed((high - 1) * 100, places)


def end_places(low: float, high: float, places: int) -> int:
    """The fewest decimals, from `places` on, with which no end of an interval without 1 reads as no change."""
    nearest = 100 * min(abs(low - 1), abs(high - 1))
    while (low > 1 or high < 1) and places < _MOST_PLACES and not round(nearest, places):
        places += 1
    return places


def with_bounds(ratio_estimate: Estimate) -> str:
    """`+3.1% [+1.2, +5.0]`: a change and its interval."""
    return f"{change(ratio_estimate)} {change_bounds(ratio_estimate)}".rstrip()


def unsigned_bounds(ratio_estimate: Estimate) -> str:
    """`3.1% [1.2, 5.0]`: the same without plus signs, for a sentence."""
    return with_bounds(ratio_estimate).replace("+", "")


def share_with_bounds(share: Estimate) -> str:
    """`61% [55, 67]`: a share and its interval, in percent; with a decimal below 10%."""
    places = int(share.value < 0.1)
    ends = ", ".join(f"{end * 100:.{places}f}" for end in share.interval or ())
    return f"{share.value * 100:.{places}f}%{f' [{ends}]' if ends else ''}"


def factor_in_times(ratio: float) -> float | None:
    """The factor of a ratio, above 1, if it is large enough to be written as a multiple; None if percent is clearer.

    Sentences and tables ask this function, so that they write a difference in the same way.
    """
    factor = max(ratio, 1 / ratio) if ratio > 0 else 1.0
    return factor if factor >= _IN_TIMES else None


def times(comparison: Comparison, *, named: bool = False) -> str:
    """`1.6 times fewer`, `2.1 times as many`; with `named` also the noun: `1.6 times fewer requests`.

    Empty where percent is clearer, and if the interval contains 1.
    """
    value = comparison.ratio.value if comparison.ratio and comparison.differs else 0.0
    factor = factor_in_times(value)
    if factor is None:
        return ""
    more, less, noun = _AMOUNTS.get(comparison.metric, ("as high", "lower", label(comparison.metric)))
    text = f"{significant(factor, 2)} times {more if value > 1 else less}"
    if not named:
        return text
    return f"{text} {noun}" if comparison.metric in _AMOUNTS else f"{noun} {text}"


def signed(value: float, places: int) -> str:
    """`+1.2`, `-1,200` with a true minus sign; no sign if it rounds to zero."""
    text = f"{abs(value):,.{places}f}"
    if not text.strip("0."):
        return text
    return ("+" if value > 0 else _MINUS) + text


PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 1.0)
"""The percentiles of tables, as far as there are enough requests for them."""


def quantile_name(q: float) -> str:
    """`p50`, `p99.9`; `max` for 1."""
    return "max" if q >= 1 else f"p{q * 100:.6g}"


def spread(estimate: Estimate) -> str:
    """Half of the interval's width relative to the value: `±0.7%`, `±12%`; empty if there is no interval.

    Beyond ±100% the interval's ends, in the value's unit: `0.56\u201312` for 2.63 ms.
    """
    half = estimate.relative_half_width
    if half is None or estimate.low is None or estimate.high is None:
        return ""
    if half > 1:
        scale, _ = scale_of(estimate.value, estimate.unit)
        ends = _DASH.join(significant(end / scale, 2) for end in (estimate.low, estimate.high))
        return NOT_KNOWN if estimate.says_nothing else ends
    if 0 < half < 0.0005:
        return "±<0.1%"
    return f"±{half * 100:.1f}%" if half < 0.0995 else f"±{half * 100:.0f}%"


def with_spread(estimate: Estimate) -> str:
    """`91.0 k/s ±0.7%`."""
    return f"{amount(estimate.value, estimate.unit)} {spread(estimate)}".rstrip()


def bound_sign(bound: Bound) -> str:
    """`≤ 12.0 ms`, `≥ 3.20 s` or `not known`: what is known in place of a number."""
    if bound.at_most is not None:
        return f"≤ {amount(bound.at_most, bound.unit)}"
    return NOT_KNOWN if bound.at_least is None else f"≥ {amount(bound.at_least, bound.unit)}"


def point_words(point: Percentile) -> str:
    """`12.0 ms`, or `at most 12.0 ms (at least 3.10 ms)` where it is a bound."""
    if not point.bound:
        return duration(point.ns)
    least = f" (at least {duration(point.at_least_ns)})" if point.at_least_ns else ""
    return f"{point.bound} {duration(point.ns)}{least}"


def point_sign(point: Percentile) -> str:
    """`12.0 ms`, or `≤ 12.0 ms` where it is a bound."""
    return {"": "", "at most": "≤ ", "at least": "≥ "}[point.bound] + duration(point.ns)


def chances(comparison: Comparison) -> str:
    """`p 0.012, 0.048 adjusted for 4 comparisons`: how likely equal cells differ that much; empty if unknown."""
    if comparison.p is None:
        return ""
    text = f"p {_chance(comparison.p)}"
    if comparison.p_adjusted is None or (comparison.family or 1) < 2:
        return text
    return f"{text}, {_chance(comparison.p_adjusted)} adjusted for {integer(comparison.family or 1)} comparisons"


def verdict(comparison: Decided) -> str:
    """`▼ slower`, `▽ slower, within the 2% that do not matter`, `? inconclusive (p 0.12 among 20)`; may be empty."""
    sign = VerdictSign.of(comparison)
    if sign is None or comparison.verdict is None:
        return ""
    return f"{sign.mark} {comparison.verdict}{immaterial(comparison)} {held_back(comparison)}".rstrip()


def immaterial(comparison: Decided) -> str:
    """`, within the 2% that do not matter` for a significant difference of that size; else empty."""
    return f", within the {percent(comparison.threshold)} that do not matter" if comparison.matters is False else ""


def family(comparison: Comparison) -> str:
    """`CPU per request against rust.hyper, 12 comparisons`: the family of a verdict; empty without a verdict."""
    if comparison.family is None:
        return ""
    return f"{comparison.family_name}, {count(comparison.family, 'comparison')}"


def held_back(comparison: Decided) -> str:
    """`(p 0.12 among 20)` for a verdict that the interval alone would not give; else empty."""
    if not comparison.held_back or comparison.p_adjusted is None:
        return ""
    return f"(p {_chance(comparison.p_adjusted)} among {integer(comparison.family or 1)})"


def _chance(p: float) -> str:
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def actual(result: ObjectiveResult) -> str:
    """The measured value of an objective: `435 µs`, `0.1%`, `at most 435 µs`, or `no number`."""
    if result.actual is None:
        return "no number"
    number = (
        percent(result.actual)
        if result.objective.metric in ("errors", "achieved", "goodput")
        else duration(result.actual)
    )
    return f"at most {number}" if result.at_most else number


def bound(objective: Objective) -> str:
    """The bound of an objective: `< 50 ms`."""
    return re.sub(r"(?<=\d)(?=[a-zµ])", " ", objective.text.removeprefix(objective.metric).strip())


def too_few(missing: TooFew) -> str:
    """`p99.99 needs 100,000 requests, 38,112 more`."""
    return f"{label(missing.metric)} needs {integer(missing.needs)} requests, {integer(missing.missing)} more"


def instant(unix_ns: int) -> str:
    """`2026-11-21 01:22:06 UTC`."""
    return datetime.fromtimestamp(unix_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def other_time(time: OtherTime) -> str:
    """`handshake: p50 1.24 ms, p99 3.10 ms, max 4.20 ms (1,024 of them)`; one-way times also with their resolution."""
    p99 = "" if time.p99_ns is None else f", p99 {duration(time.p99_ns)}"
    text = f"{time.name}: p50 {duration(time.p50_ns)}{p99}, max {duration(time.max_ns)} ({integer(time.count)} of them"
    if time.resolution_ns is None:
        return f"{text})"
    apart = f", the two up to {duration(time.clock_bound_ns)} apart" if time.clock_bound_ns else ""
    return f"{text}, by two clocks, the server's with a resolution of {duration(time.resolution_ns)}{apart})"


def compression(counts: Counts) -> list[str]:
    """`compression: messages of 1.2 MB in 340 kB, 28%`; empty where no message was compressed."""
    if not counts.plain_bytes:
        return []
    share = percent(counts.packed_bytes / counts.plain_bytes)
    return [f"compression: messages of {size(counts.plain_bytes)} in {size(counts.packed_bytes)}, {share}"]


def by_status(answers: Mapping[str, int]) -> str:
    """`200 480,000, 5xx 12`; empty without answers."""
    return ", ".join(f"{status} {integer(number)}" for status, number in answers.items())


def encodings(lines: tuple[str, ...]) -> list[str]:
    """How the answers came that may be encoded, the first few of them."""
    more = len(lines) - _MOST_ENCODED
    return [*lines[:_MOST_ENCODED], *([f"and {more} more"] if more > 0 else [])]


def agreed(tls: AgreedTls) -> str:
    """`TLS 1.3, TLS13_AES_128_GCM_SHA256, h2`."""
    parts = [f"TLS {tls.version}", tls.cipher, tls.alpn, "certificate not checked" if tls.insecure else ""]
    return ", ".join(part for part in parts if part)
