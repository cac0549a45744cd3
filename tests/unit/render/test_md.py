"""Markdown that can be pasted safely into a pull request."""

import re

import pytest

from redline.render import RENDERERS
from redline.render.markdown import safe
from tests import golden
from tests.fakes import reports, studies


def test_golden() -> None:
    golden.check("report.md", RENDERERS["md"](reports.skipping()))


def test_every_row_of_a_table_has_the_columns_of_its_head() -> None:
    for report in (reports.skipping(), reports.nasty(), reports.alone(), studies.small()):
        blocks = RENDERERS["md"](report).decode().split("\n\n")
        tables = [[line for line in block.splitlines() if line.startswith("|")] for block in blocks]
        assert any(tables)
        for rows in filter(None, tables):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_hostile_text_is_out_of_force() -> None:
    text = RENDERERS["md"](reports.nasty()).decode()
    assert "<img" not in text
    assert "<!--" not in text
    assert "</script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "@all" not in text
    assert set(re.findall(r"<[^>]*>", text)) <= {"<br>"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see `redline report DIR` (`--all` too)", "see `redline report DIR` (`--all` too)"),
        ("say `a_b*c[0]`, not a_b", "say `a_b*c[0]`, not a\\_b"),
        ("`x`", "`x`"),
        ("a lone ` here", "a lone \\` here"),
        ("from $LOW to $HIGH$", "from \\$LOW to \\$HIGH\\$"),
        ("`<!-- x`", "\\`&lt;!-- x\\`"),
        ("`a|b` `@all`", "\\`a\\|b\\` \\`@&NoBreak;all\\`"),
        ("``two`` ` x ` `a``b`", "\\`\\`two\\`\\` \\` x \\` \\`a\\`\\`b\\`"),
        ("http://a.test/`x`", "http://a.test/\\`x\\`"),
    ],
)
def test_code_stays_code_where_nothing_in_it_could_act(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_an_invalid_cell_shows_its_finding_in_place_of_its_number() -> None:
    text = RENDERERS["md"](reports.doubtful()).decode()
    assert "| **rust.axum** | ✕ invalid: Sent 14,210/s of 20,000/s (71%). |  |  |  |" in text


def test_without_a_baseline_nothing_is_reported_of_ratios() -> None:
    text = RENDERERS["md"](reports.alone()).decode()
    assert "ratio" not in text
    assert "±" not in text


def test_an_objective_missed_in_spite_of_its_number_says_why() -> None:
    report = reports.healthy()
    first = report.cells[0]
    lost = first.objectives[0].model_copy(update={"met": False, "reason": "1 of 5 trials lost to errors"})
    cell = first.model_copy(update={"objectives": (lost,)})
    text = RENDERERS["md"](report.model_copy(update={"cells": (cell,)})).decode()
    assert "✗ p99 &lt; 1.5 ms (1 of 5 trials lost to errors)" in text


def test_a_valid_cell_is_marked_with_its_gravest_doubts_and_never_as_invalid() -> None:
    text = RENDERERS["md"](reports.died()).decode()
    assert "| **rust.hyper** ! |" in text
    assert "✕" not in text
    assert "- ! warn **server-died**: 1 of 5 trials left out: Failed in stage load: it panicked." in text


def test_comparisons_and_effects_are_tables_and_ranks_stand_with_results() -> None:
    text = RENDERERS["md"](studies.small()).decode()
    assert "| interceptor=off | **http4s.tapir** vs http4s.vanilla | −10.3% ▼ \\[−15.7, −5.0\\]" in text  # noqa: RUF001
    assert "**interceptor: server-log against off**" in text
    assert "**SimpleGetMulti against SimpleGet**" in text
    assert "| **http4s.tapir** (vs http4s.vanilla)<br>rank 2= with interceptor=off" in text


def test_a_refused_comparison_says_why() -> None:
    assert "- \\[2\\] refused: this cell is invalid" in RENDERERS["md"](reports.doubtful()).decode()
    report = studies.small()
    bad = report.comparisons[0].model_copy(update={"ratio": None, "verdict": None, "refused": "the *cell* is invalid"})
    text = RENDERERS["md"](report.model_copy(update={"comparisons": (bad, *report.comparisons[1:])})).decode()
    assert "| refused \\[1\\] |" in text
    assert "- \\[1\\] refused: the \\*cell\\* is invalid" in text


def test_without_comparisons_effects_and_a_second_cell_nothing_empty_is_shown() -> None:
    text = RENDERERS["md"](reports.alone()).decode()
    assert not [word for word in ("Comparisons", "Effects", "rank") if word in text]
