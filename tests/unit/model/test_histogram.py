"""Histograms: compared with the reference library `hdrhistogram`, and with the laws of counting."""

import base64
import re
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from redline.model import Histogram
from redline.model.histogram import DIGITS, HIGHEST_NS, LOWEST_NS

durations = st.lists(
    st.one_of(
        st.integers(LOWEST_NS, HIGHEST_NS), st.integers(1, 5000), st.sampled_from([2**n - 1 for n in range(1, 42)])
    ),
    max_size=60,
)
adapter = TypeAdapter(Histogram)


def reference(values: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value in values:
        histogram.record_value(value)
    return histogram


@given(durations)
def test_reads_what_the_reference_library_writes(values: list[int]) -> None:
    assert Histogram.decode(reference(values).encode().decode()) == Histogram.of(values)


@settings(max_examples=25)  # the reference library walks all its slots in Python
@given(durations)
def test_the_reference_library_reads_what_is_written(values: list[int]) -> None:
    ours = Histogram.of(values)
    theirs = HdrHistogram.decode(ours.encode())
    listed = [(item.value_iterated_to, item.count_at_value_iterated_to) for item in theirs.get_recorded_iterator()]
    assert listed == list(zip(*(part.tolist() for part in ours.buckets()), strict=True))
    assert theirs.get_total_count() == ours.count == len(values)


@given(durations.filter(bool), st.integers(0, 1000))
def test_a_quantile_is_a_recorded_value_to_three_digits(values: list[int], mille: int) -> None:
    q = mille / 1000
    rank = max(-(-mille * len(values) // 1000), 1)
    exact = sorted(values)[rank - 1]
    found = Histogram.of(values).quantile_ns(q)
    assert exact <= found <= exact * (1 + 1 / 1024)


@given(durations.filter(bool))
def test_mean_and_maximum_are_right_to_three_digits(values: list[int]) -> None:
    histogram = Histogram.of(values)
    assert histogram.mean_ns == pytest.approx(np.mean(values), rel=1 / 1024)
    assert max(values) <= histogram.max_ns <= max(values) * (1 + 1 / 1024)


@given(durations, durations, durations)
def test_merging_adds_counts_in_any_order(a: list[int], b: list[int], c: list[int]) -> None:
    first, second, third = Histogram.of(a), Histogram.of(b), Histogram.of(c)
    merged = Histogram.merged([first, second, third])
    assert merged == Histogram.of(a + b + c)
    assert merged == Histogram.merged([Histogram.merged([third, first]), second])
    assert hash(merged) == hash(Histogram.of(c + b + a))


def test_durations_past_the_range_are_counted_at_its_ends() -> None:
    histogram = Histogram.of([0.0, -5.0, 1e15])
    assert histogram.count == 3
    assert histogram.quantile_ns(0) == 1
    assert histogram.max_ns >= HIGHEST_NS


def test_an_empty_histogram_has_no_numbers_but_zero() -> None:
    empty = Histogram()
    assert (empty.count, empty.max_ns, empty.mean_ns, empty.quantile_ns(0.5)) == (0, 0, 0.0, 0)
    assert Histogram.decode(empty.encode()) == empty


@given(durations)
def test_json_goes_round_and_keeps_the_text_that_came_in(values: list[int]) -> None:
    text = reference(values).encode().decode()
    parsed = adapter.validate_json(f'"{text}"')
    assert adapter.dump_json(parsed).decode() == f'"{text}"'
    assert parsed == Histogram.of(values)


@pytest.mark.parametrize("junk", ["", "junk", "HISTFAAA", "HISTFAAAAAB42gMAAAAAAQ==", "ä", "A" * 400])
def test_junk_is_refused_when_parsed(junk: str) -> None:
    with pytest.raises(ValidationError, match="HdrHistogram"):
        adapter.validate_python(junk)
    with pytest.raises(ValueError, match="HdrHistogram"):
        Histogram.decode(junk)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=8))
@example(35, b"\x86")
def test_damage_is_never_taken_for_a_measurement(at: int, damage: bytes) -> None:
    """It is refused, or it did no harm: some bits of a deflated stream can be either."""
    whole = Histogram.of(range(1, 5000, 7))
    raw = bytearray(base64.b64decode(whole.encode()))
    raw[at : at + len(damage)] = damage
    try:
        decoded = Histogram.decode(base64.b64encode(raw).decode())
    except ValueError as error:
        message = str(error)
    else:
        message = "HdrHistogram" if decoded == whole else "another one"
    assert re.search(r"HdrHistogram|another range", message)


@given(st.binary(max_size=40))
def test_any_counts_are_read_or_refused(body: bytes) -> None:
    inner = struct.pack(">IIIIQQd", 0x1C849313, len(body), 0, DIGITS, LOWEST_NS, HIGHEST_NS, 1.0) + body
    payload = zlib.compress(inner)
    text = base64.b64encode(struct.pack(">II", 0x1C849314, len(payload)) + payload).decode()
    try:
        histogram = Histogram.decode(text)
    except ValueError:
        return
    assert Histogram.decode(histogram.encode()) == histogram


def test_a_histogram_of_another_range_is_refused() -> None:
    other = HdrHistogram(1, HIGHEST_NS, 2)
    other.record_value(5)
    with pytest.raises(ValueError, match="another range"):
        Histogram.decode(other.encode().decode())


@given(st.lists(st.integers(1_000, 10**10), min_size=1, max_size=60))
def test_the_standard_deviation_is_that_of_the_durations_to_three_digits(values: list[int]) -> None:
    histogram = Histogram.of(values)
    assert histogram.stdev_ns == pytest.approx(np.std(values), rel=2e-3, abs=2e-3 * max(values))


def test_the_share_within_a_standard_deviation_is_that_of_the_durations() -> None:
    drawn = np.random.default_rng(5).lognormal(14, 1, 100_000)
    histogram = Histogram.of(drawn)
    within = float((abs(drawn - drawn.mean()) <= drawn.std()).mean())
    assert histogram.stdev_ns == pytest.approx(drawn.std(), rel=1e-4)
    assert histogram.share_within(1) == pytest.approx(within, abs=2e-3)
    assert histogram.share_within(1000) == 1


def test_a_normal_distribution_has_68_percent_within_a_standard_deviation() -> None:
    histogram = Histogram.of(np.random.default_rng(6).normal(1e6, 1e5, 200_000))
    assert histogram.stdev_ns == pytest.approx(1e5, rel=0.01)
    assert histogram.share_within(1) == pytest.approx(0.6827, abs=0.005)


def test_without_durations_nothing_deviates() -> None:
    assert (Histogram().stdev_ns, Histogram().share_within(1)) == (0, 0)
