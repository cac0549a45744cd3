"""docs/reference/beside-other-tools.md: its tables have all cells, and its notes are those that the cells name."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "beside-other-tools.md").read_text(encoding="utf-8")
TABLES = [block.splitlines() for block in PAGE.split("\n\n") if block.startswith("|")]


def test_every_row_has_a_cell_for_each_tool() -> None:
    assert len(TABLES) == 5
    for table in TABLES:
        assert {row.count("|") for row in table} == {table[0].count("|")}, table[0]


def test_every_note_is_named_once_or_more_and_every_name_has_a_note() -> None:
    named = {int(number) for table in TABLES for row in table for number in re.findall(r" \((\d+)\)", row)}
    notes = [int(number) for number in re.findall(r"^(\d+)\. ", PAGE, re.MULTILINE)]
    assert notes == sorted(named) == list(range(1, len(notes) + 1))
