"""Waterfalls in every form: names of layers, signed texts, pictures with laws, and refusals stated once."""

import io
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from redline.cli.show import show
from redline.document.blocks import Fold
from redline.document.figures import Bar, BarChart, Panels
from redline.model import Estimate, Layer, Verdict
from redline.render import RENDERERS
from redline.render.html import ROW, WIDTH, Drawn, draw
from redline.report.layers import layer_sections, name_of, waterfall_lines, waterfall_scale
from tests.fakes import reports
from tests.fakes.layers import layered, refusing

VALUES = st.floats(1, 1e9)


@pytest.mark.parametrize(
    ("server", "against", "name"),
    [
        ("rust.axum", "rust.hyper", "rust.axum"),
        ("rust.axum+http2", "rust.axum", "+http2"),
        ("a.one+gc=Z+log=on", "a.one+gc=Z", "+log=on"),
        ("a.one+gc=Z+log=on", "a.one", "+gc=Z+log=on"),
        ("a.one", "a.one+gc=Z", "a.one"),
        ("a.one+gc=Z", "a.one+gc=G1", "+gc=Z"),
    ],
)
def test_a_layer_is_called_by_what_it_adds(server: str, against: str, name: str) -> None:
    assert name_of(Layer(server=server, against=against)) == name


def test_differences_are_shown_in_microseconds_to_two_digits_of_their_interval() -> None:
    first = layered().layers[0]
    assert [text for line in waterfall_lines(first).lines for text in line.cpu.texts] == [
        "+1.24 µs ▼ [+1.06, +1.42]",
        "+8.86 µs ▼ [+8.67, +9.05]",
        "\u22120.15 µs ≈ [\u22120.43, +0.13]",
        "+9.95 µs ▼ [+9.77, +10.13]",
    ]
    assert waterfall_lines(first).lines[0].throughput.texts[0].startswith("\u22126.7% ▼ [\u22127.7, ")
    assert waterfall_lines(first).chain == "rust.hyper → rust.axum → +log=on → +http2 → all layers".removesuffix(
        " → all layers"
    )


def test_what_is_refused_has_a_number_and_its_reason_stands_once() -> None:
    first, second, *_ = refusing().layers
    one = waterfall_lines(first)
    assert len(one.notes) == 1
    assert [line.cpu.note for line in one.lines] == [None, 1, 1, None]
    assert [line.throughput.note for line in one.lines] == [None, 1, 1, None]
    assert waterfall_lines(second).notes == ("rust.hyper was skipped: cargo is not on the PATH",)


@st.composite
def rows(draw_: st.DrawFn) -> list[Bar | None]:
    made: list[Bar | None] = []
    for start, end in draw_(st.lists(st.tuples(VALUES, VALUES), max_size=6)):
        width = draw_(st.one_of(st.none(), st.floats(0, 1e10)))
        low, high = (None, None) if width is None else (end - width, end + width)
        made.append(draw_(st.sampled_from([None, Bar(start, end, low, high, Verdict.SLOWER)])))
    return made


def chart(made: list[Bar | None]) -> BarChart:
    return BarChart("", "", waterfall_scale(made, "ns"), tuple(("", bar, "") for bar in made), joined=True)


@given(rows())
def test_every_bar_is_drawn_in_its_row_and_within_the_picture(made: list[Bar | None]) -> None:
    drawn = draw(chart(made))
    assert drawn.height == ROW * len(made)
    outlines = [outline for _, path in drawn.fills for outline in re.findall(r"M(\d+) (\d+)H(\d+)v12H\d+z", path)]
    assert [int(y) // ROW for _, y, _ in outlines] == [row for row, bar in enumerate(made) if bar]
    assert all(0 <= int(place) <= WIDTH for x, _, end in outlines for place in (x, end))
    assert max([int(place) for x, _, end in outlines for place in (x, end)], default=WIDTH) > WIDTH * 0.7


@given(rows())
def test_the_axis_begins_at_zero_and_has_few_ticks(made: list[Bar | None]) -> None:
    scale = chart(made).scale
    assert scale.ticks[0] == (0.0, "0")
    assert 2 <= len(scale.ticks) <= 6
    places = [scale.at(value) for value, _ in scale.ticks]
    assert all(before < after <= 100.01 for before, after in pairwise(places))


def ends_of(drawn: Drawn) -> list[tuple[int, int]]:
    """The two ends of all bars in the order of rows."""
    found = [
        (int(y), int(x), int(end))
        for _, path in drawn.fills
        for x, y, end in re.findall(r"M(\d+) (\d+)H(\d+)v12H\d+z", path)
    ]
    return [(x, end) for _, x, end in sorted(found)]


def charts(load: Fold) -> list[BarChart]:
    """The waterfalls of the first chain under a load."""
    first = load.blocks[0]
    assert isinstance(first, Fold)
    panels = first.blocks[0]
    assert isinstance(panels, Panels)
    return [each for each in panels.blocks if isinstance(each, BarChart)]


def test_a_step_begins_where_the_one_below_it_ends_and_the_whole_stands_on_the_ground() -> None:
    (section,) = layer_sections(layered())
    saturate, steady = (block for block in section.blocks if isinstance(block, Fold))
    for each in charts(saturate):
        ends = ends_of(draw(each))
        assert len(ends) == len(each.rows) == 5
        assert [start for start, _ in ends[1:4]] == pytest.approx([end for _, end in ends[:3]], abs=2)
        assert ends[0][0] == ends[-1][0] == 0
        assert ends[-1][1] == pytest.approx(ends[-2][1], abs=2)
    assert [fold.title[0].text for fold in (saturate, steady)] == ["saturate", "steady"]
    assert [each.title for each in charts(steady)] == ["CPU per request"]


def test_an_interval_that_goes_on_past_the_picture_has_an_arrow() -> None:
    short = draw(chart([Bar(0, 100, 90, 110, None)])).whiskers
    far = draw(chart([Bar(0, 100, -50, 1e6, None)])).whiskers
    assert short.count("v8") == 2
    assert "l" not in short
    assert far == "M0 11H1000M24 6l-24 5l24 5M976 6l24 5l-24 5"


def test_the_page_has_a_section_only_with_chains_and_says_why_steps_are_refused() -> None:
    page = RENDERERS["html"](refusing()).decode()
    assert '<section id="layers"' in page
    assert "refused: the cell is invalid: Sent 14,210/s" in page
    assert "+8.86 µs" in page
    assert '<section id="layers"' not in RENDERERS["html"](reports.healthy()).decode()


def test_markdown_has_a_table_for_each_chain() -> None:
    text = RENDERERS["md"](refusing()).decode()
    assert text.count(" rust.hyper → rust.axum → +log=on → +http2\n") == 4
    assert "| **all layers** | \u221236.1% ▼ \\[" in text
    assert "- \\[1\\] refused: the cell is invalid" in text
    assert "### Layers" not in RENDERERS["md"](reports.healthy()).decode()


def test_the_terminal_has_them_within_80_columns() -> None:
    out = io.StringIO()
    show(layer_sections(refusing()), Console(file=out, width=80))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "+1.24 µs ▼ [+1.06, +1.42]" in text
    assert "[1] refused: the cell is invalid" in text
    empty = io.StringIO()
    show(layer_sections(reports.healthy()), Console(file=empty, width=80))
    assert empty.getvalue() == ""


def test_hostile_names_and_reasons_come_to_nothing() -> None:
    made = layered()
    hostile = {"server": reports.NASTY, "against": f"{reports.NASTY}+x", "refused": reports.NASTY}
    fall = made.layers[0]
    steps = tuple(step.model_copy(update=hostile) for step in fall.steps)
    named = {"scenario": reports.NASTY, "load": reports.NASTY, "base": reports.NASTY}
    nasty = made.model_copy(update={"layers": (fall.model_copy(update={"steps": steps, **named}),)})
    page = RENDERERS["html"](nasty).decode()
    assert "<img src=x" not in page
    text = RENDERERS["md"](nasty).decode()
    assert "<img" not in text
    assert "[a](javascript" not in text
    out = io.StringIO()
    show(layer_sections(nasty), Console(file=out, width=80))
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_one_trial_has_no_bounds() -> None:
    fall = layered().layers[0]
    alone = Estimate(value=1_240.0, low=None, high=None, unit="ns", n=1, method="none")
    step = fall.steps[0].model_copy(update={"cpu_ns": alone})
    line = waterfall_lines(fall.model_copy(update={"steps": (step, *fall.steps[1:])})).lines[0]
    assert (line.cpu.text, line.cpu.bounds) == ("+1.24 µs", "")
