"""`trials: {auto: …}` of a suite: as many as it takes."""

from pathlib import Path

import pytest

from redline.model import AutoTrials
from redline.suite import Overrides, make_plan
from tests.fakes.catalogues import SUITE, problems_of, suite_of


@pytest.mark.parametrize(
    ("written", "meant", "most"),
    [
        ("{auto: {precision: 2%}}", AutoTrials(precision=0.02, at_least=5), 30),
        ("{auto: {precision: 0.5%, at_least: 3, at_most: 15}}", AutoTrials(precision=0.005, at_least=3), 15),
        (
            "{auto: {precision: 1%, at_most: 5, budget: 30m}}",
            AutoTrials(precision=0.01, at_least=5, budget_ns=1_800_000_000_000),
            5,
        ),
    ],
)
def test_as_many_as_it_takes(tmp_path: Path, written: str, meant: AutoTrials, most: int) -> None:
    suite = suite_of(tmp_path, SUITE + f"trials: {written}\n")
    assert (suite.auto, suite.trials) == (meant, most)
    assert {trial.round for trial in make_plan(suite).trials} == set(range(most))


def test_a_number_goes_before_it(tmp_path: Path) -> None:
    text = SUITE + "trials: {auto: {precision: 2%}}\nquick: {trials: 2}\n"
    assert suite_of(tmp_path, text, Overrides(trials=3)).auto is None
    assert suite_of(tmp_path, text, Overrides(trials=3)).trials == 3
    quick = suite_of(tmp_path, text, Overrides(quick=True))
    assert (quick.auto, quick.trials) == (None, 2)


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("{auto: {precision: 0%}}", "more than 0%", "2%"),
        ("{auto: {}}", "`precision` is missing", "2%"),
        ("{auto: {precision: 2%, at_least: 9, at_most: 8}}", "at least 9 rounds and at most 8", "raise `at_most`"),
        ("{auto: {precision: 2%, at_least: 1}}", "at least 2", "rounds"),
        ("{auto: {precision: 2%, budget: 30}}", "`30` has no unit", "`25s`"),
        ("{auto: {precision: 2%, rounds: 3}}", "unknown key `rounds`", "precision"),
        ("{atuo: {precision: 2%}}", "unknown key `atuo`", "did you mean `auto`?"),
        ("many", "must be a whole number, not `many`", "how often"),
    ],
)
def test_what_cannot_be(tmp_path: Path, written: str, message: str, hint: str) -> None:
    problems = problems_of(tmp_path, SUITE + f"trials: {written}\n")
    assert any(message in problem.message and hint in (problem.hint or "") for problem in problems), problems
    assert all(problem.place for problem in problems)
