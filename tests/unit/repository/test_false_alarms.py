"""The tables of false alarms are those of the stored answers."""

import json
from typing import Any

from bench.false_alarms import PAGE, RESULTS, page, widths


def test_the_page_has_the_tables_of_the_stored_answers() -> None:
    """`python -m bench.false_alarms --table` writes it."""
    text = PAGE.read_text()
    assert page(text, RESULTS.read_text().splitlines()) == text


def test_only_a_narrow_interval_counts_as_one_that_could_have_raised_an_alarm() -> None:
    found: list[dict[str, Any]] = [
        {"language": "Go", "said": "nothing", "low": 0.98, "high": 1.02},
        {"language": "Go", "said": "nothing", "low": 0.9, "high": 1.02},
        {"language": "Go", "said": "nothing", "low": 0.25, "high": 4.0},
        {"language": "Go", "said": "same build"},
    ]
    assert widths(found).splitlines()[2:] == ["| Go | 3 | 1 | ±6.5% | a factor of 4.0 |"]


def test_the_page_says_of_how_many_none_was_a_false_alarm() -> None:
    found = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    cells = [line.split(" | ") for line in widths(found).splitlines()[2:]]
    measured, narrow = (sum(int(row[column]) for row in cells) for column in (1, 2))
    assert not [one for one in found if one["said"] == "differs"]
    assert f"**None of {narrow}**" in PAGE.read_text()
    assert f"nor of the {measured - narrow} that" in PAGE.read_text()
    assert f"at most {1 - 0.05 ** (1 / narrow):.0%} (95%)" in PAGE.read_text()
