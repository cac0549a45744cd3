"""The histogram of response times on a terminal: every time is in one bin, and bins are as they are labelled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import Histogram
from redline.quantities import duration
from redline.report.bars import sparkline
from redline.report.histogram import histogram_table, time_bins


@given(st.lists(st.integers(1, 3_600_000_000_000), min_size=1, max_size=200))
def test_every_time_is_in_one_bin(times: list[int]) -> None:
    made = Histogram.of(times)
    bins = time_bins(made)
    edges = [edge for edge, _ in bins]
    assert sum(number for _, number in bins) == len(times)
    assert edges == sorted(set(edges))
    assert edges[-1] == made.max_ns
    assert len(bins) <= 10
    assert bins[0][1] > 0
    texts = [duration(edge) for edge in edges]
    assert len(set(texts)) == len(texts)


def test_bins_hold_what_their_labels_say() -> None:
    times = np.random.default_rng(1).lognormal(14, 0.5, 10_000)
    upto = 0
    for edge, number in time_bins(Histogram.of(times)):
        upto += number
        assert upto == pytest.approx((times <= edge).sum(), abs=30)  # to the precision of the histogram


def test_a_table_has_the_share_and_a_bar_of_each_bin() -> None:
    table = histogram_table(Histogram.of([1e6] * 90 + [2e6] * 10))
    assert [row[:3] for row in (table.rows[0], table.rows[-1])] == [("1.00 ms", "90", "90%"), ("2.00 ms", "10", "10%")]
    assert table.rows[0][3] == "█" * 24
    assert table.rows[-1][3] == "██▋"
    assert histogram_table(Histogram()).rows == ()


def test_a_sparkline_begins_at_zero() -> None:
    assert sparkline([0, 1, 4, 8]) == "·▁▄█"
    assert sparkline([5.0, 5.0]) == "██"
    assert sparkline([0.0]) == "·"
    assert sparkline([]) == ""
