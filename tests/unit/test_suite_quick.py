"""`quick:` keeps every cell and measures it in less time."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.suite import Overrides, make_plan
from tests.fakes.catalogues import SUITE, problems_of, suite_of

QUICK = Overrides(quick=True)
LONG = SUITE.replace("for: 1s}", "for: 25s}\n  short: {closed: {users: 1}, for: 100ms}") + "warmup: 10s\ntrials: 4\n"


@pytest.mark.parametrize(
    ("quick", "warmup_s", "lengths_s", "trials"),
    [
        ("{warmup: 2s, for: 3s, trials: 2}", 2, [3, 0.1], 2),
        ("{for: 3s}", 10, [3, 0.1], 4),
        ("{trials: 9, warmup: 1m}", 10, [25, 0.1], 4),
    ],
)
def test_quick_shortens_what_is_longer(
    tmp_path: Path, quick: str, warmup_s: float, lengths_s: list[float], trials: int
) -> None:
    text = LONG + f"quick: {quick}\n"
    whole, short = suite_of(tmp_path, text), suite_of(tmp_path, text, QUICK)
    assert whole == suite_of(tmp_path, LONG)
    assert (short.warmup_ns / 1e9, [load.duration_ns / 1e9 for load in short.loads]) == (warmup_s, lengths_s)
    assert short.trials == trials
    assert [cell.slug for cell in make_plan(short).cells.values()] == [
        cell.slug for cell in make_plan(whole).cells.values()
    ]


def test_other_flags_go_before_quick(tmp_path: Path) -> None:
    text = LONG + "quick: {warmup: 2s, for: 3s, trials: 2}\n"
    suite = suite_of(tmp_path, text, Overrides(quick=True, duration_ns=5_000_000_000, trials=3, users=64))
    assert (suite.trials, [load.duration_ns for load in suite.loads]) == (3, [5_000_000_000])


def test_a_suite_that_does_not_say_what_is_quick(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        suite_of(tmp_path, LONG, QUICK)
    (problem,) = caught.value.problems
    assert problem.message == "the suite some does not say what is quick"
    assert "quick: {warmup: 1s" in problem.hint


STAGED = SUITE.replace("{users: 64}, for: 1s", "{users: 0, ramp: {to: 64, over: 10s}}, for: 25s")


@pytest.mark.parametrize(
    ("text", "says", "hint", "field"),
    [
        (SUITE + "quick: {}\n", "`quick` makes nothing shorter", "at least one of", "quick"),
        (SUITE + "quick: {for: 0s}\n", "must be at least 1ms", "a shorter load", "quick.for"),
        (SUITE + "quick: {trails: 2}\n", "unknown key `trails`", "did you mean `trials`?", "quick.trails"),
        (SUITE + "quick: {trials: 0}\n", "must be at least 1", "how often", "quick.trials"),
        (
            STAGED + "quick: {for: 2s}\n",
            "the stages of the load `saturate` take 10s, longer than that",
            "or leave it out",
            "quick.for",
        ),
    ],
)
def test_what_is_wrong_with_quick(tmp_path: Path, text: str, says: str, hint: str, field: str) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert says in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.field == field


def test_a_load_in_stages_may_have_less_of_the_rest(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, STAGED + "quick: {trials: 1}\n", QUICK)
    assert (suite.trials, suite.loads[0].duration_ns) == (1, 25_000_000_000)
