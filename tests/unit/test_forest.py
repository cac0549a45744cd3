"""The forest plot's geometry has laws: one in the middle, symmetric, ordered, nothing off the axis."""

import math

from hypothesis import given
from hypothesis import strategies as st

from redline.model import Comparison, Estimate, Metric, Verdict
from redline.report.render.html.forest import Axis, bar

RATIOS = st.floats(0.001, 1000)


def compared(ratio: float, low: float, high: float) -> Comparison:
    estimate = Estimate(value=ratio, low=low, high=high, unit="ratio", n=5, method="test")
    return Comparison(
        metric=Metric.P50, cell_id="a", baseline_id="b", ratio=estimate, verdict=Verdict.INCONCLUSIVE, threshold=0.02
    )


@st.composite
def comparisons(draw: st.DrawFn) -> list[Comparison]:
    found = []
    for ratio in draw(st.lists(RATIOS, max_size=5)):
        width = draw(st.floats(1, 50))
        found.append(compared(ratio, ratio / width, ratio * width))
    return found


@given(comparisons(), st.floats(0.001, 0.5))
def test_every_ratio_is_on_the_axis_and_in_its_order(found: list[Comparison], threshold: float) -> None:
    axis = Axis.of(found, threshold)
    ratios = sorted(c.ratio.value for c in found if c.ratio)
    places = [axis.at(ratio) for ratio in ratios]
    assert places == sorted(places)
    assert all(0 < place < 100 for place in places)
    assert axis.at(1.0) == 50
    assert 0 < axis.band_start <= 50


@given(comparisons(), RATIOS)
def test_a_ratio_and_its_inverse_mirror_each_other(found: list[Comparison], ratio: float) -> None:
    axis = Axis.of(found, 0.02)
    assert math.isclose(axis.at(ratio) + axis.at(1 / ratio), 100, abs_tol=0.011)


@given(comparisons())
def test_an_interval_that_leaves_the_axis_is_cut_and_says_so(found: list[Comparison]) -> None:
    axis = Axis.of(found, 0.02)
    for comparison in found:
        assert comparison.ratio is not None
        mark = axis.mark(comparison.ratio)
        assert mark.low is not None
        assert mark.high is not None
        assert 0 <= mark.low <= mark.at <= mark.high <= 100
        assert mark.cut_low == (comparison.ratio.low is not None and comparison.ratio.low < math.exp(-axis.reach))
        if mark.cut_high:
            assert mark.high == 100


@given(comparisons())
def test_ticks_stand_in_order_about_one(found: list[Comparison]) -> None:
    ticks = Axis.of(found, 0.02).ticks
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)
    assert any(tick.text == "1" and tick.at == 50 for tick in ticks)


def test_a_band_is_the_threshold_on_both_sides() -> None:
    axis = Axis.of([compared(1.1, 1.05, 1.15)], 0.02)
    assert math.isclose(axis.band_start + axis.band_width, axis.at(1.02), abs_tol=0.011)
    assert math.isclose(axis.band_start, axis.at(1 / 1.02), abs_tol=0.011)


def test_bars_start_at_zero() -> None:
    estimate = Estimate(value=50, low=40, high=60, unit="1/s", n=5, method="test")
    mark = bar(estimate, 100)
    assert (mark.at, mark.low, mark.high) == (50, 40, 60)
    assert bar(estimate, 0).at == 0
