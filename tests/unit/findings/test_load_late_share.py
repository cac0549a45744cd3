"""How much of a response time is the engine's lateness, at p50 or p99, whichever is worse."""

import pytest

from redline.findings.load import late_share
from redline.findings.validity import is_late_at, left_by_all
from redline.model import Histogram

MS = 1e6


def times(p50_ms: float, p99_ms: float) -> Histogram:
    return Histogram.of([p50_ms * MS] * 97 + [p99_ms * MS] * 3)


def test_the_worse_of_two_percentiles_counts() -> None:
    share, text = late_share(times(1, 30), times(10, 40))
    assert share == pytest.approx(0.75, rel=0.01)
    assert text.startswith("At p99 the engine took up requests 30")
    share, text = late_share(times(5, 10), times(10, 40))
    assert share == pytest.approx(0.5, rel=0.01)
    assert text.startswith("At p50")
    assert late_share(times(10, 10), times(10, 10))[1].startswith("At p50"), "of equal shares the median's"
    assert late_share(Histogram(), Histogram())[0] == 0


@pytest.mark.parametrize(("late_ms", "late"), [(4.9, False), (5.1, True)])
def test_past_one_half_a_percentile_is_only_a_bound(late_ms: float, *, late: bool) -> None:
    assert is_late_at(0.5, times(late_ms, 1), times(10, 10)) is late
    assert is_late_at(None, times(late_ms, late_ms), times(10, 10)) is late


def test_nothing_is_left_by_no_finding() -> None:
    assert left_by_all([]) is None
