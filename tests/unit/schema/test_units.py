"""Quantities are read exactly, and other texts are refused with a helpful message."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redline.model import Objective, Share
from redline.quantities import parse_duration, parse_rate, parse_share, parse_size
from redline.schema.types import parse_rate_or_share
from redline.suite import parse_objectives

UNITS_NS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
ONE_DAY_NS = 24 * UNITS_NS["h"]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("25s", 25_000_000_000),
        ("250ms", 250_000_000),
        ("1m30s", 90_000_000_000),
        ("1m 30s", 90_000_000_000),
        (" 1h ", 3_600_000_000_000),
        ("1.5s", 1_500_000_000),
        ("0.000000001s", 1),
        ("7us", 7_000),
        ("7µs", 7_000),
        ("9ns", 9),
        ("0s", 0),
        ("24h", ONE_DAY_NS),
    ],
)
def test_durations(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a duration"),
        ("s", "not a duration"),
        ("-1s", "not a duration"),
        ("1..5s", "not a duration"),
        ("1:30", "not a duration"),
        ("25", "no unit"),
        ("1m30", "no unit"),
        ("25 sec", "did you mean `s`"),
        ("3 minutes", "did you mean `m`"),
        ("5S", "did you mean `s`"),
        ("5parsecs", "unknown unit `parsecs`"),
        ("30s1m", "out of order"),
        ("1s1s", "out of order"),
        ("0.5ns", "whole number of nanoseconds"),
        ("25h", "longer than a day"),
        ("9" * 400 + "s", "not a duration"),
    ],
)
def test_what_is_not_a_duration(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_duration(text)


@given(st.lists(st.sampled_from(list(UNITS_NS)), unique=True, min_size=1), st.integers(0, 20))
def test_a_duration_is_the_sum_of_its_parts(units: list[str], amount: int) -> None:
    ordered = sorted(units, key=lambda unit: -UNITS_NS[unit])
    text = "".join(f"{amount}{unit}" for unit in ordered)
    assert parse_duration(text) == sum(amount * UNITS_NS[unit] for unit in units)


@given(st.integers(0, ONE_DAY_NS))
def test_every_whole_number_of_nanoseconds_can_be_written_in_any_unit(ns: int) -> None:
    assert parse_duration(f"{ns}ns") == ns
    assert parse_duration(f"{ns // 10**9}.{ns % 10**9:09d}s") == ns


def test_rates() -> None:
    assert parse_rate(5000) == 5000
    assert parse_rate("5000") == 5000
    assert parse_rate("5000/s") == 5000
    assert parse_rate("2.5 /s") == 2.5
    assert parse_rate(1e5) == 100_000
    assert parse_rate("300/min") == 5
    assert parse_rate("7200/h") == 2


@pytest.mark.parametrize(
    "text", [0, 0.0, "0/s", -1, "-5/s", "fast", "", "5/day", "5k", 1e10, float("inf"), float("nan")]
)
def test_what_is_not_a_rate(text: str | float) -> None:
    with pytest.raises(ValueError, match=r"rate|unit|nanosecond"):
        parse_rate(text)


@given(st.integers(0, 10_000))
def test_a_percentage_is_the_same_share_as_its_part_of_one(hundredths: int) -> None:
    share = parse_share(f"{hundredths // 100}.{hundredths % 100:02d}%")
    assert share == parse_share(f"{hundredths // 10_000}.{hundredths % 10_000:04d}")
    assert 0 <= share <= 1


@pytest.mark.parametrize(
    ("text", "says"), [("101%", "more than"), (2, "2%"), ("-1%", "share"), ("much", "share"), ("", "share")]
)
def test_what_is_not_a_share(text: str | float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_share(text)


def test_sizes() -> None:
    assert [parse_size(text) for text in (0, 256, "256", "2kB", "2KiB", "1.5KiB", "5MB", "1 MiB", "7B")] == [
        0,
        256,
        256,
        2_000,
        2_048,
        1_536,
        5_000_000,
        1_048_576,
        7,
    ]


@pytest.mark.parametrize(
    ("text", "says"), [("5mb", "5MB"), ("5GB", "unit"), ("0.5B", "whole"), (-1, "size"), ("big", "size")]
)
def test_what_is_not_a_size(text: str | int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_size(text)


def test_objectives() -> None:
    assert parse_objectives("p99 < 200ms, errors<0.1%,  achieved > 99%") == (
        Objective(metric="p99", below=True, limit=200_000_000, text="p99 < 200ms"),
        Objective(metric="errors", below=True, limit=0.001, text="errors < 0.1%"),
        Objective(metric="achieved", below=False, limit=0.99, text="achieved > 99%"),
    )
    assert parse_objectives("p99.9 < 1m30s")[0].limit == 90e9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a condition"),
        ("p99 < 200ms,", "not a condition"),
        ("p99 200ms", "not a condition"),
        ("p98 < 1s", "did you mean"),
        ("p99 > 200ms", "write `p99 < 200ms`"),
        ("p99 <= 200ms", "write `p99 < 200ms`"),
        ("achieved < 99%", "write `achieved > 99%`"),
        ("p99 < 200", "no unit"),
        ("errors < 5ms", "not a share"),
        ("errors < 0%", "never be met"),
        ("p50 < 0s", "never be met"),
        ("achieved > 100%", "never be met"),
        ("p99 < 1s, p99 < 2s", "more than one condition"),
    ],
)
def test_what_is_not_an_objective(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_objectives(text)


@given(st.text())
@example("1s" * 5000)
@example("\uff19s")
@example("p99 < " + "9" * 5000)
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_rate, parse_share, parse_size, parse_objectives):
        with suppress(ValueError):
            parse(text)


@given(st.from_regex(r"\A\d{1,6}(\.\d{1,4})?\s?[hmsunµ%/BkMiKb]{0,3}\Z"))
def test_text_that_is_nearly_right_is_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_rate, parse_share, parse_size):
        with suppress(ValueError):
            assert parse(text) >= 0


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5000", 5000.0),
        (300, 300.0),
        ("0", 0.0),
        ("300/min", 5.0),
        ("50% of saturate", Share(share=0.5, of="saturate")),
        (" 80%of a-b_2 ", Share(share=0.8, of="a-b_2")),
        ("12.5 %  of saturate", Share(share=0.125, of="saturate")),
        ("1000% of saturate", Share(share=10, of="saturate")),
    ],
)
def test_rates_and_shares_of_a_capacity(text: str | float, rate: float | Share) -> None:
    assert parse_rate_or_share(text) == rate


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("50%", "`50%` is not a share of a load; write a percentage of a closed load"),
        ("50 of saturate", "not a share of a load"),
        ("0.5 of saturate", "not a share of a load"),
        ("half of saturate", "not a share of a load"),
        ("50% of", "not a share of a load"),
        ("50% of one or another", "not a share of a load"),
        ("-50% of saturate", "not a share of a load"),
        ("0% of saturate", "sends nothing"),
        ("1000.1% of saturate", "more than 1000%"),
        ("fast", "not a rate"),
    ],
)
def test_what_is_not_a_share_of_a_capacity(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_rate_or_share(text)
