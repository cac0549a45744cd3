"""Log scales have laws: in order, nothing off the axis; those of ratios are symmetric about one."""

import math

from hypothesis import given
from hypothesis import strategies as st

from redline.document.scales import Scale, rate_scale, ratio_scale
from redline.model import Comparison, Estimate, Metric, Verdict

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


def band(scale: Scale) -> tuple[float, float]:
    assert scale.band is not None
    return scale.at(scale.band[0]), scale.at(scale.band[1])


@given(comparisons(), st.floats(0.001, 0.5))
def test_every_ratio_is_on_the_axis_and_in_its_order(found: list[Comparison], threshold: float) -> None:
    scale = ratio_scale(found, threshold)
    ratios = sorted(c.ratio.value for c in found if c.ratio)
    places = [scale.at(ratio) for ratio in ratios]
    assert places == sorted(places)
    assert all(0 < place < 100 for place in places)
    assert scale.at(1.0) == 50
    assert 0 < band(scale)[0] <= 50


@given(comparisons(), RATIOS)
def test_a_ratio_and_its_inverse_mirror_each_other(found: list[Comparison], ratio: float) -> None:
    scale = ratio_scale(found, 0.02)
    assert math.isclose(scale.at(ratio) + scale.at(1 / ratio), 100, abs_tol=0.011)


@given(comparisons())
def test_an_interval_that_leaves_the_axis_is_cut_at_its_edge(found: list[Comparison]) -> None:
    scale = ratio_scale(found, 0.02)
    for comparison in found:
        ratio = comparison.ratio
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        assert 0 <= scale.at(ratio.low) <= scale.at(ratio.value) <= scale.at(ratio.high) <= 100
        if not scale.holds(ratio.low):
            assert scale.at(ratio.low) == 0
        if not scale.holds(ratio.high):
            assert scale.at(ratio.high) == 100


@given(comparisons())
def test_ticks_stand_in_order_about_one(found: list[Comparison]) -> None:
    scale = ratio_scale(found, 0.02)
    assert list(scale.ticks) == sorted(scale.ticks)
    assert (1.0, "0") in scale.ticks


def test_a_band_is_the_threshold_on_both_sides() -> None:
    scale = ratio_scale([compared(1.1, 1.05, 1.15)], 0.02)
    assert math.isclose(band(scale)[1], scale.at(1.02), abs_tol=0.011)
    assert math.isclose(band(scale)[0], scale.at(1 / 1.02), abs_tol=0.011)


@given(st.lists(st.floats(0.01, 1e9), min_size=1, max_size=20))
def test_every_rate_is_on_the_axis_in_order(found: list[float]) -> None:
    scale = rate_scale(found)
    assert scale is not None
    at = [scale.at(each) for each in sorted(found)]
    assert at == sorted(at)
    assert all(0 <= each <= 100 for each in at)
    assert all(scale.holds(value) for value, _ in scale.ticks)
    assert len(scale.ticks) <= 6
