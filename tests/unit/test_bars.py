"""Bars have laws: in order, within the picture, the zero line where nothing changes, and what is cut says so."""

import re

from hypothesis import given
from hypothesis import strategies as st

from redline.model import Comparison, Estimate, Metric, Verdict
from redline.report.format import change, change_bounds
from redline.report.render.html.bars import ROW, WIDTH, Scale, place_bar

RATIOS = st.floats(0.01, 50)


def compared(ratio: float, low: float | None, high: float | None) -> Comparison:
    estimate = Estimate(value=ratio, low=low, high=high, unit="ratio", n=5, method="test")
    return Comparison(
        metric=Metric.P50, cell_id="a", baseline_id="b", ratio=estimate, verdict=Verdict.SLOWER, threshold=0.02
    )


@st.composite
def comparisons(draw: st.DrawFn) -> list[Comparison]:
    found = []
    for ratio in draw(st.lists(RATIOS, max_size=6)):
        width = draw(st.one_of(st.none(), st.floats(1, 20)))
        found.append(compared(ratio, ratio / width if width else None, ratio * width if width else None))
    return found


@given(comparisons(), st.floats(0.001, 0.5))
def test_changes_stand_in_their_order_about_zero(found: list[Comparison], threshold: float) -> None:
    scale = Scale.of(found, threshold)
    places = [scale.at(percent) for percent in (-1e9, -10, 0, 10, 1e9)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, WIDTH)
    assert scale.low < 0 < scale.high
    left, width = scale.band
    assert 0 <= left <= scale.zero <= left + width <= WIDTH


@given(comparisons(), st.floats(0.001, 0.5))
def test_ticks_are_few_and_in_the_picture_and_hold_zero(found: list[Comparison], threshold: float) -> None:
    ticks = Scale.of(found, threshold).ticks
    assert 1 <= len(ticks) <= 6
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert [tick.text for tick in ticks].count("0") == 1
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


@given(comparisons())
def test_every_bar_is_drawn_in_its_row(found: list[Comparison]) -> None:
    scale = Scale.of(found, 0.02)
    bars = scale.bars([None, *found])
    assert bars.height == ROW * (len(found) + 1)
    outlines = [outline for _, path in bars.fills for outline in re.findall(r"M(\d+) (\d+)H(\d+)v12H\d+z", path)]
    assert len(outlines) == len(found)
    assert [int(y) // ROW for _, y, _ in outlines] == list(range(1, len(found) + 1))
    assert all(int(x) == scale.zero and 0 <= int(end) <= WIDTH for x, _, end in outlines)


def test_what_goes_on_past_the_edge_ends_in_an_arrow() -> None:
    usual = [compared(1.05, 1.04, 1.06)] * 4
    far = compared(3.0, 2.9, 3.1)
    scale = Scale.of([*usual, far], 0.02)
    assert scale.high < 200
    assert "l24 5l-24 5" in scale.bars([far]).errors
    assert "l24 5" not in scale.bars(usual).errors


def test_a_bar_without_an_interval_has_no_whisker() -> None:
    one = compared(1.1, None, None)
    assert Scale.of([one], 0.02).bars([one]).errors == ""


def test_refused_comparisons_draw_nothing() -> None:
    refused = compared(1.1, 1.0, 1.2).model_copy(update={"ratio": None, "verdict": None})
    bars = Scale.of([refused], 0.02).bars([refused])
    assert (bars.fills, bars.errors, bars.height) == ((), "", ROW)


def test_places_are_bars_from_zero() -> None:
    estimate = Estimate(value=50, low=40, high=60, unit="1/s", n=5, method="test")
    fill, error = place_bar(estimate, 100)
    assert fill.startswith("M0 5H500v12")
    assert error.startswith("M400 11H600")
    assert place_bar(estimate.model_copy(update={"low": None, "high": None}), 100)[1] == ""
    assert place_bar(estimate, 0) == ("", "")


def test_changes_are_told_in_percent_with_a_sign() -> None:
    def told(ratio: float) -> str:
        found = compared(ratio, ratio * 0.99, ratio * 1.01).ratio
        assert found is not None
        return f"{change(found)} {change_bounds(found)}"

    minus = "\u2212"
    assert told(1.031) == "+3.1% [+2.1, +4.1]"
    assert told(0.934) == f"{minus}6.6% [{minus}7.5, {minus}5.7]"
    assert told(2.7) == "+170% [+167, +173]"
    assert told(1.0001) == f"0.0% [{minus}1.0, +1.0]"
    none = compared(1.5, None, None).ratio
    assert none is not None
    assert (change(none), change_bounds(none), change(none, whole_from=0.1)) == ("+50.0%", "", "+50%")
