"""Measured values compare with what people write, and with nothing else."""

from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest

from redline.api.amounts import Amount, Unit
from redline.errors import WrongValueError

P99 = Amount("p99", 12.4e6, "ns")
RATE = Amount("throughput", 512.0, "1/s", 500.0, 520.0)
ERRORS = Amount("errors", 0.001, "share")
MEMORY = Amount("memory", 64 * 2.0**20, "B")
CHANGE = Amount("the change of p99", 0.052, "change", 0.047, 0.057)


@pytest.mark.parametrize(
    ("amount", "less", "more"),
    [
        (P99, "12ms", "20ms"),
        (P99, "12399us", "1s"),
        (RATE, "500/s", "513/s"),
        (RATE, "500", "40000/min"),
        (ERRORS, "0.05%", "1%"),
        (MEMORY, "60MB", "65MiB"),
        (CHANGE, "3%", "+6%"),
        (CHANGE, "-3%", "5.3%"),
    ],
)
def test_an_amount_compares_with_a_text_of_its_unit(amount: Amount, less: str, more: str) -> None:
    assert less < amount < more
    assert less <= amount <= more
    assert more > amount > less
    assert not amount > more
    assert amount != less


@pytest.mark.parametrize(
    ("amount", "wrong", "words"),
    [
        (P99, "20", "p99 cannot be compared: `20` has no unit"),
        (P99, "20MB", "unknown unit"),
        (RATE, "20ms", "unknown unit"),
        (MEMORY, "20ms", "unknown unit"),
        (ERRORS, "20ms", "not a share"),
        (CHANGE, "0.03", "not a change"),
    ],
)
def test_a_wrong_unit_raises_and_is_never_just_false(amount: Amount, wrong: str, words: str) -> None:
    for compare in (amount.__lt__, amount.__gt__, amount.__le__, amount.__eq__):
        with pytest.raises(WrongValueError, match=words):
            compare(wrong)


@pytest.mark.parametrize("amount", [P99, MEMORY, CHANGE])
@pytest.mark.parametrize("number", [20, 0.5, True])
def test_a_number_without_a_unit_raises(amount: Amount, number: float) -> None:
    with pytest.raises(TypeError, match="write a text such as"):
        _ = amount < number


def test_a_number_alone_is_a_rate_and_a_share() -> None:
    assert 500 < RATE < 513
    assert 0 < ERRORS < 0.01
    assert np.int64(500) < RATE < np.float32(513)
    assert Fraction(512) >= RATE
    assert Amount("errors", 0.0, "share") == 0


def test_lengths_compare_with_those_of_python() -> None:
    assert timedelta(milliseconds=12) < P99 < timedelta(milliseconds=13)
    assert timedelta(microseconds=12_400) == P99


def test_amounts_compare_with_amounts_of_their_unit() -> None:
    assert Amount("p99", 13e6, "ns") > P99
    with pytest.raises(WrongValueError, match="different units"):
        _ = P99 < RATE


def test_an_amount_reads_as_a_report_has_it() -> None:
    assert [str(amount) for amount in (P99, RATE, ERRORS, MEMORY, CHANGE)] == [
        "12.4 ms",
        "512 /s [500 /s, 520 /s]",
        "0.1%",
        "64.0 MiB",
        "+5.2% [+4.7%, +5.7%]",
    ]
    assert repr(P99) == "<p99 12.4 ms>"
    assert float(P99) == 12.4e6


def test_the_ends_of_an_interval_are_amounts() -> None:
    assert CHANGE.at_least > "4.6%"
    assert CHANGE.at_most < "5.8%"
    with pytest.raises(WrongValueError, match=r"p99 12.4 ms has no interval"):
        _ = P99.at_most


@pytest.mark.parametrize("unit", ["ns", "1/s", "B", "share", "change"])
def test_equal_amounts_have_one_hash(unit: Unit) -> None:
    assert len({Amount("one", 1.0, unit), Amount("other", 1.0, unit)}) == 1
