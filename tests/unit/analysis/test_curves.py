"""Curves of response times by percentile."""

import pytest

from redline.analysis.curves import _of_starts, grid
from redline.model import Histogram


@pytest.mark.parametrize(
    ("count", "deepest"), [(0, None), (99, 0.8), (100, 0.9), (1_000, 0.99), (10_000_000, 0.999999)]
)
def test_a_curve_is_as_deep_as_its_requests_support(count: int, deepest: float | None) -> None:
    assert max(grid(count), default=None) == deepest


def test_each_factor_of_ten_of_the_rest_has_five_shares() -> None:
    shares = grid(10_000_000)
    assert shares[9:19] == (0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.993, 0.995, 0.997, 0.998)
    assert (shares[-1], shares[-2], len(shares)) == (0.999999, 0.999998, 9 + 5 * 5 + 1)


def test_an_interval_over_starts_holds_the_value_of_all_and_takes_every_start() -> None:
    fast, slow = (Histogram.of([ns + step for step in range(200)]) for ns in (1e6, 2e6))
    points = {point.q: point for point in _of_starts([fast, fast, slow])}
    half = points[0.5]
    assert half.low_ns is not None
    assert half.high_ns is not None
    assert half.low_ns <= half.ns <= half.high_ns
    assert points[0.0].low_ns is None, "the shortest time has no interval"
    few = {point.q: point for point in _of_starts([fast, fast, Histogram.of([1e6] * 5)])}
    assert (few[0.9].low_ns, few[0.5].low_ns is None) == (None, False), "five requests have no p90"
