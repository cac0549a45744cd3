"""Bars have laws: in order, within the picture, starting at no change, and cut bars are marked."""

import re

from hypothesis import given
from hypothesis import strategies as st

from redline.document.figures import Bar, BarChart
from redline.document.format import change, change_bounds
from redline.document.scales import Scale, percent_of
from redline.model import Comparison, Estimate, Metric, Verdict
from redline.render.html import ROW, WIDTH, Drawn, draw

RATIOS = st.floats(0.01, 50)
SCALE = Scale(-50.0, 50.0)


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


def chart(scale: Scale, rows: list[Comparison | None]) -> Drawn:
    return draw(BarChart("", "", scale, tuple(("", bar(one), "") for one in rows)))


def bar(found: Comparison | None) -> Bar | None:
    if found is None or found.ratio is None:
        return None
    low, high = (None if end is None else percent_of(end) for end in (found.ratio.low, found.ratio.high))
    return Bar(0.0, percent_of(found.ratio.value), low, high, found.verdict)


@given(comparisons())
def test_every_bar_is_drawn_in_its_row(found: list[Comparison]) -> None:
    drawn = chart(SCALE, [None, *found])
    assert drawn.height == ROW * (len(found) + 1)
    outlines = [outline for _, path in drawn.fills for outline in re.findall(r"M(\d+) (\d+)H(\d+)v12H\d+z", path)]
    assert len(outlines) == len(found)
    assert [int(y) // ROW for _, y, _ in outlines] == list(range(1, len(found) + 1))
    zero = round(SCALE.at(0) * WIDTH / 100)
    assert all(int(x) == zero and 0 <= int(end) <= WIDTH for x, _, end in outlines)


def test_what_goes_on_past_the_edge_ends_in_an_arrow() -> None:
    usual: list[Comparison | None] = [compared(1.05, 1.04, 1.06)] * 4
    far = compared(3.0, 2.9, 3.1)
    assert "l24 5l-24 5" in chart(SCALE, [far]).whiskers
    assert "l24 5" not in chart(SCALE, usual).whiskers


def test_a_bar_without_an_interval_has_no_whisker() -> None:
    one = compared(1.1, None, None)
    assert chart(SCALE, [one]).whiskers == ""


def test_refused_comparisons_draw_nothing() -> None:
    refused = compared(1.1, 1.0, 1.2).model_copy(update={"ratio": None, "verdict": None})
    drawn = chart(SCALE, [refused])
    assert (drawn.fills, drawn.whiskers, drawn.height) == ((), "", ROW)


def test_changes_are_shown_in_percent_with_a_sign() -> None:
    def text(ratio: float) -> str:
        found = compared(ratio, ratio * 0.99, ratio * 1.01).ratio
        assert found is not None
        return f"{change(found)} {change_bounds(found)}"

    minus = "\u2212"
    assert text(1.031) == "+3.1% [+2.1, +4.1]"
    assert text(0.934) == f"{minus}6.6% [{minus}7.5, {minus}5.7]"
    assert text(2.7) == "+170% [+167, +173]"
    assert text(1.0001) == f"0.0% [{minus}1.0, +1.0]"
    none = compared(1.5, None, None).ratio
    assert none is not None
    assert (change(none), change_bounds(none), change(none, whole_from=0.1)) == ("+50.0%", "", "+50%")
    wide, too_wide = compared(15.5, 0.5, 499).ratio, compared(15.5, 0.5, 500).ratio
    assert wide is not None
    assert too_wide is not None
    assert (change_bounds(wide), change_bounds(too_wide)) == (f"[{minus}50, +49,800]", "[not known]")


def test_each_trial_has_a_dot_below_its_bar_unless_it_is_off_the_axis() -> None:
    rows = (("", Bar(0.0, 5.0, 4.0, 6.0, Verdict.FASTER, (4.0, 5.0, 70.0)), ""),)
    made = draw(BarChart("", "", Scale(-10.0, 10.0), rows))
    assert re.findall(r"M(\d+) (\d+)h0", made.dots) == [("700", "19"), ("750", "19")]
