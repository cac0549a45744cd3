"""Which trials count for a cell, and the findings about few trials, few requests, or a ceiling that is near."""

from dataclasses import replace

import pytest

from redline.findings import RULES, is_valid, judge, judge_cell, usable
from redline.model import Cell, Failure, Finding, Grade, Recording
from redline.stats import Trial
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, SLOW, STEADY, simulated_cell, simulated_recording

CLOSED = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
SLOW_OPEN = simulated_cell(load=SLOW)
NOT_STARTED = Failure(stage="launch", kind="start", message="it ended with signal 9", hint="look at the log")


def doubts_about(
    cell: Cell, used: list[Recording], planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The doubts about a cell, without notes of what is good to know."""
    found = judge_cell(cell, wrapped(used), planned=planned, ceiling_per_s=ceiling_per_s)
    return tuple(finding for finding in found if not RULES[finding.kind].reassures)


def wrapped(recordings: list[Recording]) -> list[Trial]:
    return [Trial(one) for one in recordings]


def trials(*behaviours: Behaviour, cell: Cell = CLOSED) -> list[Recording]:
    return [simulated_recording(cell, behaviour, position=i, seed=i) for i, behaviour in enumerate(behaviours)]


def test_an_invalid_trial_is_not_usable() -> None:
    good, bad = trials(GOOD, replace(GOOD, outcomes={"malformed": 1}))
    assert usable(good, judge(CLOSED, good))
    assert not usable(bad, judge(CLOSED, bad))
    (failed,) = trials(replace(GOOD, failure=NOT_STARTED))
    assert not usable(failed, ())


@pytest.mark.parametrize(
    ("made", "used", "valid"),
    [
        (0, 0, False),
        (1, 1, True),
        (1, 0, False),
        (2, 1, False),
        (3, 2, True),
        (4, 2, True),
        (5, 2, False),
        (5, 3, True),
    ],
)
def test_a_cell_is_valid_when_half_of_its_trials_and_two_are_usable(made: int, used: int, valid: bool) -> None:
    assert is_valid(made, used) is valid


@pytest.mark.parametrize(
    ("used", "grade"),
    [(0, Grade.INVALID), (1, Grade.WARN), (2, Grade.WARN), (3, Grade.NOTE), (4, Grade.NOTE), (5, None), (9, None)],
)
def test_few_trials_are_reported(used: int, grade: Grade | None) -> None:
    found = doubts_about(CLOSED, trials(*[GOOD] * used), planned=9)
    assert {f.kind: f.grade for f in found} == ({"too-few-trials": grade} if grade else {})
    assert all(f.position is None and "9 planned" in f.message for f in found)


def test_more_trials_are_no_advice_where_none_is_usable() -> None:
    (found,) = doubts_about(CLOSED, [], planned=1)
    assert found.advice == "Find out first why none is usable: more trials help only then."


@pytest.mark.parametrize(("planned", "says"), [(4, "--trials 5"), (5, "left out"), (9, "left out")])
def test_nobody_is_advised_to_ask_for_trials_that_were_asked_for(planned: int, says: str) -> None:
    (found,) = doubts_about(CLOSED, trials(*[GOOD] * 4), planned=planned)
    assert says in found.advice
    assert ("--trials" in found.advice) is (planned < 5)


def test_few_requests_are_reported() -> None:
    found = judge_cell(SLOW_OPEN, wrapped(trials(*[GOOD] * 5, cell=SLOW_OPEN)), planned=5)
    assert {f.kind: f.grade for f in found} == {"too-few-samples": Grade.NOTE}
    assert "1,000 requests" in found[0].message
    found = judge_cell(SLOW_OPEN, wrapped(trials(*[replace(GOOD, measured=0.5)] * 5, cell=SLOW_OPEN)), planned=5)
    assert {f.kind: f.grade for f in found} == {"too-few-samples": Grade.WARN}


@pytest.mark.parametrize(("ceiling", "grade"), [(60_000, None), (24_000, Grade.NOTE), (20_500, Grade.WARN)])
def test_a_throughput_near_the_ceiling_is_reported(ceiling: float, grade: Grade | None) -> None:
    found = doubts_about(CLOSED, trials(*[GOOD] * 5), planned=5, ceiling_per_s=ceiling)
    assert {f.kind: f.grade for f in found} == ({"near-ceiling": grade} if grade else {})


def test_neither_the_ceiling_itself_nor_an_open_load_is_near_it() -> None:
    own = simulated_cell("oracle.null", ceiling=True)
    assert judge_cell(own, wrapped(trials(*[GOOD] * 5, cell=own)), planned=5, ceiling_per_s=20_000) == ()
    assert judge_cell(OPEN, wrapped(trials(*[GOOD] * 5, cell=OPEN)), planned=5, ceiling_per_s=5_000) == ()
