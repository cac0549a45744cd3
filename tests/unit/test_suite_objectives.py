"""Objectives of a suite: conditions for every cell, or sets of them with names."""

from pathlib import Path

import pytest

from tests.fakes.catalogues import SUITE, problems_of, suite_of


def test_sets_have_names_and_a_run_asks_for_all(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SUITE + "objective: {good: 'p99 < 200ms, errors < 1%', fine: [p99 < 1s, errors < 1%]}\n")
    named = {name: [each.text for each in one] for name, one in suite.objective_sets.items()}
    assert named == {"good": ["p99 < 200ms", "errors < 1%"], "fine": ["p99 < 1s", "errors < 1%"]}
    assert [each.text for each in suite.objectives] == ["p99 < 200ms", "errors < 1%", "p99 < 1s"]


def test_conditions_without_a_name_are_no_set(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SUITE + "objective: p99 < 200ms\n")
    assert suite.objective_sets == {}
    assert [each.text for each in suite.objectives] == ["p99 < 200ms"]
    assert "objective_sets" not in suite.model_dump_json()


@pytest.mark.parametrize("written", ["{}", "{good: p98 < 1s}", "{good: {p99: 1s}}", "{' ': p99 < 1s}"])
def test_what_is_no_set_is_refused(tmp_path: Path, written: str) -> None:
    (problem,) = problems_of(tmp_path, SUITE + f"objective: {written}\n")
    assert "objective" in str(problem.place)
    assert problem.hint
