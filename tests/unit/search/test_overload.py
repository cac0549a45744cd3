"""Overload tests: the proposed load, and the report about servers with known behaviour."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import Histogram, Open
from redline.model.limits import Beyond
from redline.search import ProbeSlice
from redline.search.overload import OverloadPlan, _SeenOverload, judge_overload, overload_plan
from tests.fakes.overload import Server

MU = 1000.0
PLAN = overload_plan([(0.9 * MU, 0.95 * MU)], MU, 4.0)


def overloaded(server: Server, seed: int = 1, plan: OverloadPlan = PLAN) -> Beyond:
    return judge_overload(plan, server.slices(plan, np.random.default_rng(seed)))


def test_the_load_is_calm_then_too_much_then_calm() -> None:
    assert [PLAN.calm_per_s, PLAN.overload_per_s] == pytest.approx([720, 1300])
    assert [PLAN.before_s, PLAN.overload_s] == pytest.approx([4, 6.08])
    # 6.08 s at 300/s too much leave 1,824, which drain at 280/s; half as long again, and a probe's time to look.
    assert PLAN.after_s == pytest.approx(1.5 * 6.08 * 300 / 280 + 4, abs=PLAN.slice_s)
    shape = PLAN.shape(Open(rate_per_s=1, connections=64))
    assert (shape.rate_per_s, shape.connections) == (PLAN.calm_per_s, 64)
    assert [(stage.to, stage.over_ns) for stage in shape.stages] == [
        (PLAN.calm_per_s, 4_000_000_000),
        (PLAN.overload_per_s, 0),
        (PLAN.overload_per_s, 6_080_000_000),
        (PLAN.calm_per_s, 0),
    ]


def test_without_a_rate_that_passed_half_of_what_was_answered_is_calm() -> None:
    plan = overload_plan([(None, 400.0)], 800.0, 5.0)
    assert [plan.calm_per_s, plan.overload_per_s] == pytest.approx([400, 1040])


rates = st.floats(1, 1e6)


@given(st.lists(st.tuples(st.none() | rates, st.none() | rates), max_size=3), rates, st.floats(1, 60))
def test_every_plan_is_bounded_and_of_whole_slices(
    ends: list[tuple[float | None, float | None]], answered_per_s: float, probe_s: float
) -> None:
    plan = overload_plan(ends, answered_per_s, probe_s)
    assert 0 < plan.calm_per_s < plan.overload_per_s
    for seconds in (plan.before_s, plan.overload_s, plan.after_s):
        assert seconds / plan.slice_s == pytest.approx(round(seconds / plan.slice_s))


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_is_only_busy_holds_and_is_back_when_its_queue_is_gone(seed: int) -> None:
    result = overloaded(Server(MU), seed)
    assert (result.goodput, result.recovery, result.reason) == ("holds", "recovers", "")
    assert result.goodput_share == pytest.approx(1, abs=0.05)
    assert result.collapsed_after_s is None
    backlog = (PLAN.overload_per_s - MU) * PLAN.overload_s
    assert result.backlog_at_most == pytest.approx(backlog, rel=0.15)
    # A backlog b drains at mu - lambda. With those, it is a random walk whose end is known to about a tenth here.
    drained_s = result.backlog_at_most / (MU - PLAN.calm_per_s)
    assert result.backlog_gone_s == pytest.approx(drained_s, rel=0.25)
    assert result.back_s is not None
    assert result.backlog_gone_s is not None
    assert result.backlog_gone_s <= result.back_s <= result.backlog_gone_s + 0.5
    assert (result.errors_overload, result.errors_after) == (0, 0)


def test_one_that_works_more_the_more_wait_collapses_and_does_not_come_back() -> None:
    """At 500 waiting a request takes six times as long: below the calm rate, so the queue only grows."""
    result = overloaded(Server(MU, slower=lambda waiting: 1 + waiting / 100))
    assert (result.goodput, result.recovery) == ("collapses", "does not come back")
    assert result.goodput_share is not None
    assert result.goodput_share < 0.5
    # dq/dt = 1300 - 1000 / (1 + q / 100): below half of the capacity from q = 100 on, a tenth of a second later.
    assert result.collapsed_after_s == pytest.approx(0.18, abs=0.4)
    assert result.backlog_gone_s is None
    assert result.back_s is None


def test_the_moment_of_a_fall_is_found() -> None:
    """1,000/s until 600 wait, then a tenth of that: 300/s too much take two seconds."""
    result = overloaded(Server(MU, slower=lambda waiting: 10 if waiting > 600 else 1))
    assert result.goodput == "collapses"
    assert result.collapsed_after_s == pytest.approx(600 / 300, rel=0.3)


def test_one_that_slows_down_a_little_sags_and_comes_back() -> None:
    plan = overload_plan([(0.5 * MU, 0.95 * MU)], MU, 4.0)
    result = overloaded(Server(MU, slower=lambda waiting: 1.18 if waiting > 100 else 1), plan=plan)
    assert (result.goodput, result.recovery, result.reason) == ("sags", "recovers", "")
    assert result.goodput_share == pytest.approx(1 / 1.18, abs=0.05)


def test_one_that_drains_slower_than_it_can_does_not_come_back_in_time() -> None:
    result = overloaded(Server(MU, slower=lambda waiting: 1.25 if waiting > 100 else 1))
    assert (result.goodput, result.recovery) == ("sags", "does not come back")
    assert "requests still waited" in result.reason
    assert "/s fewer as time went by" in result.reason


def test_one_that_sheds_holds_without_a_backlog() -> None:
    result = overloaded(Server(MU, most=30))
    assert (result.goodput, result.recovery) == ("holds", "recovers")
    assert result.backlog_at_most < 60
    assert result.errors_overload == pytest.approx(300 * PLAN.overload_s, rel=0.15)
    assert result.back_s is not None
    assert result.back_s < 1


def test_work_for_clients_that_gave_up_is_a_collapse() -> None:
    """After two seconds of overload everybody has waited half a second: all that is served is late."""
    result = overloaded(Server(MU, timeout_s=0.5))
    assert result.goodput == "collapses"
    assert result.collapsed_after_s == pytest.approx(0.5 * MU / 300, rel=0.35)
    assert result.errors_overload > 0


def test_one_that_stays_slow_after_it_has_hysteresis() -> None:
    tired = [False]

    def slower(waiting: int) -> float:
        tired[0] = tired[0] or waiting > 500
        return 1.45 if tired[0] and waiting < 100 else 1

    result = overloaded(Server(MU, slower=slower), plan=overload_plan([(0.75 * MU, 0.95 * MU)], MU, 4.0))
    assert result.recovery == "stays slow"
    assert result.p99_before_ns is not None
    assert result.p99_after_ns is not None
    assert result.p99_after_ns > 2 * result.p99_before_ns


@pytest.mark.parametrize("per_s", [100.0, 1000.0])
def test_chance_is_no_hysteresis(per_s: float) -> None:
    plan = overload_plan([(0.9 * per_s, 0.95 * per_s)], per_s, 5.0)
    results = [overloaded(Server(per_s), seed, plan) for seed in range(20 if per_s < 500 else 5)]
    assert {each.goodput for each in results} == {"holds"}
    assert sum(each.recovery in ("stays slow", "does not come back") for each in results) <= 1


def test_what_it_bore_was_no_overload() -> None:
    result = overloaded(Server(2 * MU))
    assert (result.goodput, result.recovery) == ("not known", "recovers")
    assert result.reason == "it sustained even 1.30 k/s: this was no overload"


def test_a_short_time_after_is_not_held_against_it() -> None:
    short = overload_plan([(0.98 * MU, MU)], MU, 4.0)
    plan = OverloadPlan(0.95 * MU, 1.3 * MU, MU, short.before_s, short.overload_s, short.before_s, short.slice_s)
    result = overloaded(Server(MU), plan=plan)
    assert result.recovery == "not known"
    assert result.reason.startswith("it answered as much as it can until the load ended, and ")


def test_death_an_end_before_its_time_and_a_client_at_its_limit() -> None:
    slices = Server(MU, dies_at_s=6).slices(PLAN, np.random.default_rng(1))
    dead = judge_overload(PLAN, slices, died="the server died: killed by signal 9")
    assert (dead.recovery, dead.reason) == ("does not come back", "the server died: killed by signal 9")
    stopped = judge_overload(PLAN, slices, stopped="interrupted")
    assert (stopped.recovery, stopped.reason) == ("not known", "interrupted")
    client = judge_overload(PLAN, slices, client="the engine was busy 99% of the time: give -t more")
    assert (client.goodput, client.recovery) == ("not known", "not known")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_it_judges_whatever_it_gets(counts: list[tuple[int, int, int]]) -> None:
    plan = overload_plan([(100.0, 120.0)], 110.0, 1.0)
    slices = [ProbeSlice(plan.slice_s, due, right, wrong, Histogram.of([1e6] * right)) for due, right, wrong in counts]
    result = judge_overload(plan, slices)
    assert len(result.course) == len(slices)
    assert Beyond.model_validate_json(result.model_dump_json()) == result


BY_HAND = OverloadPlan(
    calm_per_s=80, overload_per_s=130, before_s=3, overload_s=6, after_s=9, slice_s=1, capacity_per_s=100
)


def part(due: int, answered: int, *, errors: int = 0, ms: float = 1.0) -> ProbeSlice:
    return ProbeSlice(1.0, due, answered, errors, Histogram.of([ms * 1e6] * (answered + errors)))


def by_hand(overload: list[ProbeSlice], after: list[ProbeSlice], before: list[ProbeSlice] | None = None) -> Beyond:
    return judge_overload(BY_HAND, tuple((before or [part(80, 80)] * 3) + overload + after))


HELD = [part(130, 100)] * 6
BACK = [part(80, 100)] * 9


def test_a_course_has_rates_by_second_and_stages_by_time() -> None:
    made = by_hand(HELD, BACK, [part(80, 80), part(80, 70, errors=10), part(80, 80)])
    assert [moment.stage for moment in made.course] == ["before"] * 3 + ["overload"] * 6 + ["after"] * 9
    assert [(one.asked_per_s, one.answered_per_s, one.errors_per_s) for one in made.course[1:4]] == [
        (80, 70, 10),
        (80, 80, 0),
        (130, 100, 0),
    ]
    assert [one.backlog for one in made.course[2:10]] == [0, 30, 60, 90, 120, 150, 180, 160]


@pytest.mark.parametrize(("late", "recovery"), [(80, "recovers"), (30, "does not come back")])
def test_late_after_the_overload_most_of_what_is_due_is_answered(late: int, recovery: str) -> None:
    plan = replace(BY_HAND, after_s=30)
    after = [part(80, 260), *[part(80, 80)] * 19, *[part(80, late, errors=80 - late)] * 10]
    assert judge_overload(plan, (*[part(80, 80)] * 3, *HELD, *after)).recovery == recovery


def test_a_backlog_is_gone_where_it_is_back_at_its_level_from_before() -> None:
    made = by_hand(HELD, BACK)
    # 180 are left, of which 20 a second go: after 9 s.
    assert made.backlog_gone_s == pytest.approx(9)
    assert made.backlog_at_most == 180
    quick = by_hand(HELD, [part(80, 170), part(80, 170), *[part(80, 80)] * 7])
    assert quick.backlog_gone_s == pytest.approx(2)
    assert quick.back_s == pytest.approx(2)


def test_a_server_is_back_once_its_times_are_too() -> None:
    slow = [part(80, 170), part(80, 170, ms=500), part(80, 80, ms=500), part(80, 80, ms=500), *[part(80, 80)] * 5]
    assert by_hand(HELD, slow).back_s == pytest.approx(5)


def seen(*slices: ProbeSlice, plan: OverloadPlan = BY_HAND) -> _SeenOverload:
    return _SeenOverload(plan, slices)


def test_stages_are_told_by_the_middles_of_slices() -> None:
    """Three seconds before, six of overload, and nine after."""
    made = seen(*[part(80, 80)] * 3, *HELD, *BACK)
    assert made.before.tolist() == [True] * 3 + [False] * 15
    assert made.overload.tolist() == [False] * 3 + [True] * 6 + [False] * 9
    assert made.after.tolist() == [False] * 9 + [True] * 9
    assert made.share_under_overload() == 1.0
    assert seen(*[part(80, 80)] * 3).share_under_overload() is None
    halves = seen(*[replace(part(40, 40), seconds=0.5)] * 37)
    assert halves.after.tolist() == [False] * 18 + [True] * 19


def test_a_fall_is_in_the_middle_of_the_first_window_below_half() -> None:
    falls = [part(130, 100), part(130, 100), *[part(130, 49)] * 4]
    assert seen(*[part(80, 80)] * 3, *falls).collapsed_after_s() == 2.5
    assert seen(*[part(80, 80)] * 3, *[part(130, 49)] * 6).collapsed_after_s() == 0.0
    assert seen(*[part(80, 80)] * 3, *[part(130, 49)] * 5, part(130, 50)).collapsed_after_s() is None
    assert seen(*[part(80, 80)] * 3).collapsed_after_s() is None


def test_what_waits_in_the_end_is_said_with_how_it_changed() -> None:
    falling = seen(*[part(80, 80)] * 3, *HELD, *[part(80, 85)] * 9)
    assert falling.behind() == "135 requests still waited, 5 /s fewer as time went by"
    growing = seen(*[part(80, 80)] * 3, *HELD, *[part(80, 75)] * 9)
    assert growing.behind() == "225 requests still waited, no fewer as time went by"
    assert seen(*[part(80, 80)] * 3).behind() == "0 requests still waited, no fewer as time went by"


def test_times_that_stay_high_in_half_of_the_late_time_are_slow() -> None:
    def late(*ms: float) -> bool:
        after = [part(80, 260), *[part(80, 80)] * 2, *[part(80, 80, ms=one) for one in ms]]
        return seen(*[part(80, 80)] * 3, *HELD, *after, plan=replace(BY_HAND, after_s=9.0)).slow()

    assert late(1, 1, 1, 90, 90, 90)
    assert not late(1, 1, 1, 90, 1, 1)


def test_percentiles_are_those_before_and_late_after() -> None:
    """One request in fifty takes a hundred times as long."""
    mixed = ProbeSlice(1.0, 100, 100, 0, Histogram.of([1e6] * 98 + [100e6] * 2))
    late = ProbeSlice(1.0, 100, 100, 0, Histogram.of([2e6] * 98 + [200e6] * 2))
    empty = ProbeSlice(0.0, 0, 7, 0, Histogram.of([9e9] * 7))
    made = judge_overload(BY_HAND, (*[mixed] * 3, *HELD, *[late] * 9, empty))
    assert made.p50_before_ns == pytest.approx(1e6, rel=0.01)
    assert made.p99_before_ns == pytest.approx(100e6, rel=0.01)
    assert made.p50_after_ns == pytest.approx(2e6, rel=0.01)
    assert made.p99_after_ns == pytest.approx(200e6, rel=0.01)
    assert len(made.course) == 18, "a slice without length is none of it"
    with_errors = by_hand([part(130, 90, errors=10)] * 6, [part(80, 78, errors=2)] * 9)
    assert (with_errors.errors_overload, with_errors.errors_after) == (60, 18)


@pytest.mark.parametrize(("left_out", "known"), [(0, True), (2, True), (3, False)])
def test_a_load_that_ends_two_slices_early_is_still_judged(left_out: int, *, known: bool) -> None:
    after = [part(80, 170), part(80, 170), *[part(80, 80)] * 7][: 9 - left_out]
    made = by_hand(HELD, after)
    assert (made.reason != "the load ended before its time") is known


@pytest.mark.parametrize(("late", "reason"), [(95, "it answered as much as it can"), (50, "requests still waited")])
def test_a_backlog_that_stays_is_held_against_a_server_that_could_answer_more(late: int, reason: str) -> None:
    made = by_hand(HELD, [part(80, late if at >= 6 else 60) for at in range(9)])
    assert made.backlog_gone_s is None
    assert reason in made.reason
    assert made.recovery == ("not known" if late == 95 else "does not come back")


@pytest.mark.parametrize(("answered", "goodput"), [(100, "holds"), (82, "holds"), (79, "sags"), (49, "collapses")])
def test_goodput_is_graded_by_its_share_of_the_capacity(answered: int, goodput: str) -> None:
    assert by_hand([part(130, answered)] * 6, BACK).goodput == goodput


def test_a_server_that_answered_all_was_not_overloaded() -> None:
    made = by_hand([part(130, 130)] * 6, BACK)
    assert made.goodput == "not known"
    assert "this was no overload" in made.reason
