"""Numbers for readers: units that fit, significant digits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.document import format as fmt
from redline.model import Estimate, Metric
from redline.quantities import significant
from redline.visible import printable

SECOND = 1_000_000_000


def an_estimate(value: float, low: float | None, high: float | None, unit: str = "1/s") -> Estimate:
    return Estimate(value=value, low=low, high=high, unit=unit, n=5, method="test")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (7.25, "7.25 ns"),
        (312, "312 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (1_234, "1.23 µs"),
        (12_345_678, "12.3 ms"),
        (999_949_999, "1.00 s"),
        (59.9 * SECOND, "59.9 s"),
        (59.96 * SECOND, "1 min"),
        (125 * SECOND, "2 min 5 s"),
        (3_720 * SECOND, "1 h 2 min"),
        (7_200 * SECOND, "2 h"),
    ],
)
def test_durations(ns: float, text: str) -> None:
    assert fmt.duration(ns) == text


@pytest.mark.parametrize(
    ("per_s", "text"), [(0, "0 /s"), (0.5, "0.500 /s"), (987, "987 /s"), (999.9, "1.00 k/s"), (182_432, "182 k/s")]
)
def test_rates(per_s: float, text: str) -> None:
    assert fmt.rate(per_s) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(512, "512 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1023 * 1024, "1023 KiB"), (12.3 * 2**20, "12.3 MiB")],
)
def test_sizes(count: float, text: str) -> None:
    assert fmt.size(count) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.00012, "0.012%"), (0.0123, "1.2%"), (0.5, "50%"), (0.9996, "99.96%"), (1, "100%"), (1.5, "150%")],
)
def test_percents(share: float, text: str) -> None:
    assert fmt.percent(share) == text


@given(st.floats(1e-9, 1 - 1e-9))
def test_a_percentage_is_never_rounded_to_none_or_all(share: float) -> None:
    assert fmt.percent(share) not in {"0%", "100%"}


@given(st.floats(1.0, 59e9))
def test_a_duration_reads_back_within_half_a_percent(ns: float) -> None:
    number, unit = fmt.duration(ns).split()
    scale = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert float(number) * scale == pytest.approx(ns, rel=0.005 + 1e-9)
    assert float(number) < 1000


@given(st.floats(1e-6, 1e12))
def test_significant_never_uses_an_exponent(value: float) -> None:
    assert re.fullmatch(r"[0-9]+(\.[0-9]+)?", significant(value))
    assert float(significant(value)) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.000"), (0.9651, "0.965"), (9.9994, "9.999"), (12.345, "12.3"), (0.01234, "0.0123")]
)
def test_ratios(value: float, text: str) -> None:
    assert fmt.ratio(value) == text


def test_an_interval_has_the_unit_of_its_value_and_two_digits_of_its_width() -> None:
    assert fmt.interval(an_estimate(182_200, 181_000, 183_400)) == "181.0\u2013183.4 k/s"
    assert fmt.interval(an_estimate(999_900, 990_000, 1_010_000)) == "0.990\u20131.010 M/s"
    assert fmt.interval(an_estimate(1.03, 1.012, 1.049, unit="ratio")) == "1.012\u20131.049"
    assert fmt.interval(an_estimate(100, 100, 100)) == "100.00\u2013100.00 /s"


def test_without_an_interval_there_is_no_spread() -> None:
    alone = an_estimate(182_200, None, None)
    assert fmt.interval(alone) == ""
    assert fmt.spread(alone) == ""


@pytest.mark.parametrize(
    ("half", "text"), [(0.0, "±0.0%"), (0.0004, "±<0.1%"), (0.0072, "±0.7%"), (0.0996, "±10%"), (0.12, "±12%")]
)
def test_spreads(half: float, text: str) -> None:
    assert fmt.spread(an_estimate(1.0, 1 - half, 1 + half)) == text


@pytest.mark.parametrize(
    ("ends", "unit", "text"),
    [
        ((1.24e6, 7.8e6), "ns", "1.2\u20137.8"),
        ((557e3, 12.4e6), "ns", "0.56\u201312"),
        ((0.39, 5.6), "ratio", "0.39\u20135.6"),
        ((8_000, 90_000), "1/s", "8.0\u201390"),
    ],
)
def test_beyond_100_percent_an_interval_is_its_ends(ends: tuple[float, float], unit: str, text: str) -> None:
    assert fmt.spread(an_estimate((ends[0] * ends[1]) ** 0.5, *ends, unit=unit)) == text


def test_an_interval_of_many_times_the_value_is_not_put_into_digits() -> None:
    assert fmt.spread(an_estimate(1.0, 1e-9, 1.04e9)) == "not known"
    wild = an_estimate(2.523, 3.75e-6, 1.7e6, unit="ratio")
    assert fmt.interval(wild) == fmt.spread(wild) == "not known"
    assert fmt.change_bounds(wild) == "[not known]"
    assert fmt.interval(an_estimate(0.0, 0.0, 0.0)) == "0.00\u20130.00 /s"


def test_every_metric_has_a_name_and_its_unit_a_scale() -> None:
    assert [fmt.label(metric) for metric in Metric] == [
        *("throughput", "transfer rate", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99"),
        *("first-message p50", "first-message p95", "gap p50", "gap p99", "per-message p50", "push p50", "push p99"),
        "jitter p99",
        *("CPU per request", "memory"),
    ]
    assert [fmt.amount(1500, unit) for unit in dict.fromkeys(metric.unit for metric in Metric)] == [
        "1.50 k/s",
        "1.46 KiB/s",
        "1.50 µs",
        "1.46 KiB",
    ]


def test_instants_are_utc() -> None:
    assert fmt.instant(1_795_224_126_999_999_999) == "2026-11-21 01:22:06 UTC"


def test_foreign_text_cannot_command_a_terminal() -> None:
    assert printable("a\x1b[31mb\x07\r\nc\u202ed é ▲") == "a\\u001b[31mb\\u0007  c\\u202ed é ▲"


@given(st.text())
def test_one_line_is_printable(text: str) -> None:
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.0003, 1.002, "[+0.03, +0.20]"),
        (0.9, 0.99996, "[\N{MINUS SIGN}10.000, \N{MINUS SIGN}0.004]"),
        (0.9997, 1.002, "[0.0, +0.2]"),
        (1.012, 1.05, "[+1.2, +5.0]"),
        (1.000_000_01, 1.05, "[0.0000, +5.0000]"),
    ],
)
def test_an_interval_without_0_is_not_printed_with_it(low: float, high: float, shown: str) -> None:
    assert fmt.change_bounds(Estimate(value=1.01, low=low, high=high, unit="ratio", n=3, method="t")) == shown


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (1.0004, 1.0002, 1.0006, "+0.04% [+0.02, +0.06]"),
        (2.204, 1.003, 4.4, "+120.4% [+0.3, +340.0]"),
        (2.204, 1.9, 2.5, "+120% [+90, +150]"),
        (1.0004, 0.9, 1.2, "0.0% [\N{MINUS SIGN}10.0, +20.0]"),
        (1.3, 1.000_01, 1.0e4, "+30.0% [not known]"),
    ],
)
def test_a_change_is_no_coarser_than_its_ends(value: float, low: float, high: float, shown: str) -> None:
    assert fmt.with_bounds(Estimate(value=value, low=low, high=high, unit="ratio", n=3, method="t")) == shown


def test_a_change_without_decimals_has_ends_without_them() -> None:
    ratio = Estimate(value=1.24, low=1.231, high=1.249, unit="ratio", n=3, method="t")
    assert (fmt.change(ratio, whole_from=0.1), fmt.change_bounds(ratio, whole_from=0.1)) == ("+24%", "[+23, +25]")


def test_ends_have_decimals_where_one_alone_would_be_0() -> None:
    assert fmt.change_ends(1.003, 1.48, 0) == ("+0.3", "+48.0")
