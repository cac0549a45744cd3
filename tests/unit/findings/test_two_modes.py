"""Percentiles in a gap between quick and slow requests, by hand."""

from types import SimpleNamespace
from typing import Any

import pytest

from redline.findings.two_modes import gap_text, gaps_of, unstable_percentile
from redline.model import Histogram, Metric
from redline.stats import QUANTILE_OF
from redline.stats.gaps import gaps_at


def two_modes(slow: int, ratio: float = 10.0) -> Histogram:
    """A thousand requests, of which so many took `ratio` times as long as the others."""
    return Histogram.of([1e6] * (1000 - slow) + [1e6 * ratio] * slow)


def test_a_percentile_on_an_edge_is_said_with_both_sides() -> None:
    times = two_modes(100)
    judged: Any = unstable_percentile.function
    (found,) = judged(SimpleNamespace(gaps=gaps_at(times, [*QUANTILE_OF.values()])))
    assert found.value == pytest.approx(10, rel=0.01)
    (gap,) = gaps_of(times).values()
    assert list(gaps_of(times)) == [Metric.P90]
    assert found.message == gap_text(Metric.P90, gap)
    assert found.message.startswith("No stable p90: 10% of the requests took 10.0 ms or longer, the others at most 1")


@pytest.mark.parametrize(("slow", "ratio"), [(300, 10.0), (100, 1.5)])
def test_a_percentile_far_from_the_edge_or_a_small_gap_is_stable(slow: int, ratio: float) -> None:
    assert gaps_of(two_modes(slow, ratio)) == {}
