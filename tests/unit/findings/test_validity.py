"""What invalid findings leave of a load's numbers: all, bounds, or nothing."""

from itertools import product
from typing import get_args

import pytest

from redline.findings.table import RULES
from redline.findings.validity import (
    CHANGES_IN_TIME,
    Touch,
    at_each_time,
    ends_early,
    is_late_at,
    left_by_all,
    touched_by,
    until_cut,
)
from redline.model import Cell, Closed, Finding, FindingKind, Grade, Histogram, Load, Numbers, Open
from redline.model.percentile import Effect
from tests.fakes.recordings import simulated_cell


def shaped(shape: Open | Closed) -> Cell:
    return simulated_cell(load=Load(name="x", shape=shape, duration_ns=10**9))


OPEN = shaped(Open(rate_per_s=100, connections=4))
PACED = shaped(Closed(users=4, pace_per_s=10))
CLOSED = shaped(Closed(users=4))


def finding(kind: FindingKind, grade: Grade = Grade.INVALID) -> Finding:
    return Finding(kind=kind, grade=grade, message="m", advice="a", cell_id="c", position=None)


def left(cell: Cell, *kinds: FindingKind) -> dict[Numbers, str]:
    return {numbers: touch.leaves for numbers, touch in touched_by(cell, [finding(kind) for kind in kinds]).items()}


def test_only_invalid_findings_touch_numbers() -> None:
    assert touched_by(OPEN, [finding("errors", Grade.WARN), finding("rate-missed", Grade.NOTE)]) == {}
    assert touched_by(OPEN, []) == {}


def test_a_finding_touches_what_its_rule_says() -> None:
    assert left(CLOSED, "errors") == RULES["errors"].touches
    assert left(OPEN, "trial-failed") == dict.fromkeys(get_args(Numbers), "unknown")
    assert "counts" not in left(OPEN, "wrong-answers")


@pytest.mark.parametrize(("cell", "leaves"), [(OPEN, "at most"), (PACED, "at most"), (CLOSED, "unknown")])
def test_a_late_client_bounds_the_times_of_a_schedule_alone(cell: Cell, leaves: str) -> None:
    assert left(cell, "send-lateness") == {"response times": leaves}


def test_a_rate_that_the_client_missed_says_nothing_of_the_server() -> None:
    assert left(OPEN, "rate-missed") == {
        "response times": "at least",
        "service times": "at least",
        "message times": "at least",
    }
    assert left(OPEN, "rate-missed", "send-lateness") == {"response times": "at most"}
    assert left(OPEN, "errors", "rate-missed")["service times"] == "unknown"


@pytest.mark.parametrize(
    ("effects", "leaves", "which"),
    [
        (("at least",), "at least", 0),
        (("at least", "at least"), "at least", 0),
        (("at least", "at most"), "unknown", 0),
        (("at least", "unknown"), "unknown", 1),
        (("unknown", "at least"), "unknown", 0),
        (("unknown", "unknown"), "unknown", 0),
    ],
)
def test_bounds_from_both_sides_leave_nothing(effects: tuple[Effect, ...], leaves: str, which: int) -> None:
    touches = [Touch(effect, finding("errors").advising(str(at))) for at, effect in enumerate(effects)]
    assert left_by_all(touches) == Touch(leaves, touches[which].finding)  # type: ignore[arg-type]


@pytest.mark.parametrize(("grade", "kind"), list(product(Grade, ("cut-short", "errors", "server-died"))))
def test_a_trial_ends_early_by_an_invalid_finding_that_says_so(grade: Grade, kind: FindingKind) -> None:
    assert ends_early([finding("errors"), finding(kind, grade)]) is (grade is Grade.INVALID and kind != "errors")
    assert ends_early([]) is False


def test_findings_about_the_end_or_about_time_are_left_out() -> None:
    assert len(CHANGES_IN_TIME) == 4
    found = [finding("cut-short"), finding("errors"), *map(finding, sorted(CHANGES_IN_TIME))]
    assert until_cut(found) == (*found[1:],)
    assert at_each_time(found) == (*found[:2],)


@pytest.mark.parametrize(("late", "is_late"), [(49, False), (51, True)])
@pytest.mark.parametrize("q", [None, 0.5, 0.99])
def test_past_half_of_it_a_percentile_is_the_engines(q: float | None, late: int, *, is_late: bool) -> None:
    assert is_late_at(q, Histogram.of([late * 1e6] * 9), Histogram.of([100e6] * 9)) is is_late
