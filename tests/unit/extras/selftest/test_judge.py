"""Ok, off, or too noisy to judge: the rules, with invented machines."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.selftest.judge import (
    Machine,
    Truth,
    UniformFit,
    check_answers,
    check_fit,
    check_late,
    goal_ns,
    judge,
    worst,
)
from redline.extras.selftest.results import Judgement, Point

US = 1_000.0
MS = 1_000_000.0
QUIET = Machine()
TRUTH = Truth(q=0.99, truth_ns=5 * MS, low_ns=4.9 * MS, high_ns=5.1 * MS, allowance_ns=10 * US, goal_ns=50 * US)


def judged(answer_ns: float, machine: Machine = QUIET, truth: Truth = TRUTH) -> Point:
    return judge(truth, answer_ns, machine)


def test_goals() -> None:
    assert goal_ns(0.5, 100 * MS) == 20 * US
    assert goal_ns(0.99, 1 * MS) == 20 * US
    assert goal_ns(0.99, 100 * MS) == 1 * MS


@pytest.mark.parametrize(
    ("answer_ns", "judgement"),
    [
        (5 * MS, "ok"),
        (4.9 * MS - 50 * US, "ok"),
        (4.9 * MS - 51 * US, "off"),
        (5.1 * MS + 60 * US, "ok"),
        (5.1 * MS + 61 * US, "off"),
    ],
)
def test_a_quiet_machine_excuses_nothing(answer_ns: float, judgement: Judgement) -> None:
    point = judged(answer_ns)
    assert point.judgement == judgement
    assert point.error_ns == answer_ns - TRUTH.truth_ns
    assert bool(point.reason) == (judgement != "ok")


@given(
    lost=st.floats(0, 1),
    way=st.floats(0, 1e9),
    late=st.floats(0, 1e9),
    sleeper=st.floats(0, 1e9),
    spread=st.floats(0, 1e9),
)
def test_what_is_too_fast_is_never_noise(lost: float, way: float, late: float, sleeper: float, spread: float) -> None:
    machine = Machine(lost, way, late, sleeper, spread, drift_ns=0)
    assert judged(4.8 * MS, machine).judgement == "off"


def test_a_round_trip_that_moved_may_make_it_too_fast() -> None:
    assert judged(4.8 * MS, Machine(drift_ns=60 * US)).judgement == "too noisy to say"
    assert judged(4.8 * MS, Machine(drift_ns=40 * US)).judgement == "off"


def test_each_thing_that_explains_a_slow_answer() -> None:
    slow = 5.3 * MS  # 140 us past the goal
    assert judged(slow).judgement == "off"
    for machine in (
        Machine(way_ns=140 * US),
        Machine(spread_ns=140 * US),
        Machine(late_ns=200 * US, sleeper_ns=140 * US),
        Machine(lost_share=0.0051),
        Machine(way_ns=70 * US, spread_ns=70 * US),
    ):
        assert judged(slow, machine).judgement == "too noisy to say", machine
    for machine in (
        Machine(way_ns=139 * US),
        Machine(late_ns=500 * US, sleeper_ns=20 * US),  # late where a sleeper is not: that is the engine's own doing
        Machine(late_ns=20 * US, sleeper_ns=500 * US),  # it was not late
        Machine(lost_share=0.004),
    ):
        assert judged(slow, machine).judgement == "off", machine


def test_noise_does_not_take_back_what_is_right() -> None:
    assert judged(5 * MS, Machine(0.9, MS, MS, MS, MS)).judgement == "ok"


def test_where_nothing_is_known_nothing_is_reported() -> None:
    wide = replace(TRUTH, low_ns=1 * MS, high_ns=9 * MS)
    assert judged(5 * MS, truth=wide).judgement == "too noisy to say"
    assert judged(0.5 * MS, truth=wide).judgement == "off"  # but so fast cannot be
    edge = Truth(q=0.95, truth_ns=10 * US, low_ns=10 * US, high_ns=8 * MS, allowance_ns=0, goal_ns=20 * US)
    assert judged(1 * MS, truth=edge).judgement == "too noisy to say"
    assert judged(1 * MS, truth=replace(edge, scale_ns=1000 * MS)).judgement == "ok"
    assert judged(9 * MS, truth=replace(edge, scale_ns=1000 * MS)).judgement == "off"
    late_server = replace(TRUTH, allowance_ns=3 * MS)
    assert judged(5 * MS, truth=late_server).judgement == "too noisy to say"


def test_the_largest_is_one_request() -> None:
    largest = replace(TRUTH, q=1.0)
    assert judged(50 * MS, truth=largest).judgement == "too noisy to say"
    assert judged(1 * MS, truth=largest).judgement == "off"
    assert judged(5 * MS, truth=largest).judgement == "ok"


def test_lateness_is_held_to_what_a_sleeper_is_late_by() -> None:
    assert check_late("late", 0.99, 50 * US, 50 * US, QUIET).judgement == "ok"
    assert check_late("late", 0.99, 51 * US, 50 * US, QUIET).judgement == "off"
    assert check_late("late", 0.99, 90 * US, 50 * US, Machine(sleeper_ns=40 * US)).judgement == "too noisy to say"
    assert check_late("late", 0.99, 91 * US, 50 * US, Machine(sleeper_ns=40 * US)).judgement == "off"
    assert check_late("late", 0.99, 5 * MS, 50 * US, Machine(lost_share=0.01)).judgement == "too noisy to say"


def test_a_distance_is_held_to_chance_and_to_late_wake_ups() -> None:
    assert check_fit("fit", UniformFit(0.04, 0.04), 2 * MS, QUIET).judgement == "ok"
    assert check_fit("fit", UniformFit(0.05, 0.04), 2 * MS, QUIET).judgement == "off"
    assert check_fit("fit", UniformFit(0.05, 0.04), 2 * MS, Machine(sleeper_ns=20 * US)).judgement == "too noisy to say"
    assert check_fit("fit", UniformFit(0.06, 0.04), 2 * MS, Machine(sleeper_ns=20 * US)).judgement == "off"


def test_wrong_answers_are_off_on_any_machine() -> None:
    assert check_answers(0, 0, QUIET).judgement == "ok"
    assert check_answers(1, 0, Machine(late_ns=9e9)).judgement == "off"
    assert check_answers(1, 5, Machine(late_ns=9e9)).judgement == "off"


def test_overdue_answers_are_off_unless_the_machine_stood_still() -> None:
    assert check_answers(0, 3, QUIET).judgement == "off"
    assert check_answers(0, 3, QUIET).value == 3
    for machine in (Machine(late_ns=2e9), Machine(sleeper_ns=2e9), Machine(way_ns=2e9)):
        assert check_answers(0, 3, machine).judgement == "too noisy to say"


def test_what_the_law_holds_is_not_what_the_machine_spoils() -> None:
    """The law accounts for half of the tenth beyond p90, so the machine needs to explain only half of the rest."""
    assert Machine(lost_share=0.03, held_share=0.05).spoils(0.9)
    assert not Machine(lost_share=0.03).spoils(0.9)
    assert Machine(lost_share=0.0001, held_share=0.05).spoils(0.95)
    assert not Machine(lost_share=0.0049, held_share=0.05).spoils(0.99)


def test_a_busy_machine_is_reported_by_its_pressure() -> None:
    assert judged(9 * MS, Machine(pressure_share=0.2)).judgement == "too noisy to say"
    assert judged(9 * MS, Machine(pressure_share=0.19)).judgement == "off"
    assert judged(1 * MS, Machine(pressure_share=1.0)).judgement == "off"
    assert check_late("late", 0.99, 5 * MS, 50 * US, Machine(pressure_share=0.2)).judgement == "too noisy to say"


def test_the_worst_counts() -> None:
    assert worst([]) == "ok"
    assert worst(["ok", "ok"]) == "ok"
    assert worst(["ok", "too noisy to say"]) == "too noisy to say"
    assert worst(["too noisy to say", "off", "ok"]) == "off"
