"""The data of a page as short JSON, and the tables that a page's script makes of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.document.blocks import (
    Column,
    Figures,
    Fold,
    Head,
    InvalidCell,
    Page,
    Section,
    ServerCell,
    Table,
    TextCell,
    line,
    words,
)
from redline.render.html.later import LaterTables
from redline.render.html.packing import packed
from tests.fakes.pages import unpacked

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
KEYS = st.text().filter(lambda key: key != "e")
DATA = st.recursive(
    LEAVES | st.lists(st.none() | st.integers(0, 90).map(lambda number: number * 1000), min_size=5, max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | inner.map(lambda value: [value, [value, value]]),
)


@given(DATA)
def test_packed_data_is_read_back_as_it_was(data: object) -> None:
    assert json.dumps(unpacked(packed(data))) == json.dumps(data)


def test_what_occurs_twice_is_written_once() -> None:
    edges = [0.25, 0.5, 0.75, 1.25]
    text = packed({"a": {"x": edges, "name": "answered requests"}, "b": {"x": edges, "name": "answered requests"}})
    assert text.count("0.25,0.5,0.75,1.25") == text.count("answered requests") == 1


def test_zeros_that_all_numbers_end_in_are_written_once() -> None:
    numbers = [1_000, 22_000, 303_000, 0, 5_000, 61_000]
    assert "[1,22,303,0,5,61]" in packed(numbers)
    assert "303000" in packed([*numbers, 7])


@pytest.mark.parametrize("text", ["#", "#0", "##1", "#a much longer text"])
def test_a_text_may_begin_with_the_sign_of_what_is_shared(text: str) -> None:
    assert unpacked(packed([text, text])) == [text, text]


def test_a_table_of_texts_is_made_later_with_all_that_it_shows() -> None:
    server = ServerCell("rust.axum", series=3)
    bounded = TextCell((line("20.2 k/s", (" 19.9 to 20.4 k/s", "dim")),))
    table = Table(
        (Column("server", merged=True), Column("rate", "right"), Column("about")),
        ((server, bounded, ""), (server, "12 ms", "x"), (ServerCell("null", "ceiling"), InvalidCell("no answers"))),
        line(("Estimates", "strong")),
        muted=frozenset({1}),
        later=True,
    )
    later = LaterTables(_page(table))
    assert later.place(table) == 0
    assert later.data == [
        {
            "title": "Estimates",
            "heads": ["server", "rate", "about"],
            "left": [0, 2],
            "rows": [
                [[3, "rust.axum", 2], ["20.2 k/s", "19.9 to 20.4 k/s"]],
                [None, "12 ms", "x"],
                [[-1, "null", 1], {"why": "no answers"}],
            ],
            "unused": [1],
        }
    ]


@pytest.mark.parametrize(
    "cell", [words("a", "b"), TextCell((line("a"),), output="log"), TextCell((line(("a", "met")),))]
)
def test_a_table_with_more_than_texts_is_made_at_once(cell: TextCell) -> None:
    table = Table((Column("a"),), ((cell,),), later=True)
    later = LaterTables(_page(table))
    assert later.place(table) is None
    assert later.data == []


def _page(table: Table) -> Page:
    fold = Fold(line("evidence"), (table,), open=False)
    return Page(Head("a page"), (Section("Results", (fold,), anchor="results"),), Figures())
