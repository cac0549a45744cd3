"""Findings: a good trial has none, and every doubt is raised by its cause."""

import re
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.findings import RULES, judge
from redline.findings.rules import TREND_P, Rule
from redline.findings.table import SUBJECTS
from redline.model import (
    Cell,
    Closed,
    Counts,
    Failure,
    FindingKind,
    Grade,
    Histogram,
    Load,
    Open,
    Stage,
    Tls,
)
from redline.stats.series import trend
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.profiles import profiled, profiled_start
from tests.fakes.recordings import MEASURE_NS, SATURATE, SLOW, STEADY, simulated_cell, simulated_recording

CLOSED = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
SLOW_OPEN = simulated_cell(load=SLOW)


def closed(**fields: object) -> Cell:
    shape = Closed.model_validate({"users": 64, **fields})
    return simulated_cell(load=Load(name="other", shape=shape, duration_ns=MEASURE_NS))


DEEP = closed(depth=16)
PACED = closed(pace_per_s=400)
THINKING = closed(think={"mean_ns": 1_000})
RAMPED = closed(users=32, stages=[{"to": 96, "over_ns": MEASURE_NS}])
INSECURE = CLOSED.model_copy(update={"variant": CLOSED.variant.model_copy(update={"tls": Tls(insecure=True)})})

Why = Literal["start", "not_ready", "wrong_answer", "died", "engine"]
Raised = dict[FindingKind, Grade]


def raised(cell: Cell, behaviour: Behaviour, seed: int = 1) -> Raised:
    findings = judge(cell, simulated_recording(cell, behaviour, position=7, seed=seed))
    for finding in findings:
        assert finding.position == 7
        assert finding.cell_id == cell.id
        assert finding.advice.endswith(".")
        assert re.search(r"\.$", finding.message)
    assert len({finding.kind for finding in findings}) == len(findings)
    return {finding.kind: finding.grade for finding in findings}


def failure(kind: Why, stage: Stage = "load") -> Failure:
    return Failure(stage=stage, kind=kind, message="it ended with signal 9", hint="look at the log")


@pytest.mark.parametrize("cell", [CLOSED, OPEN, SLOW_OPEN], ids=["closed", "open", "slow open"])
@pytest.mark.parametrize("seed", range(25))
def test_a_good_trial_is_left_alone(cell: Cell, seed: int) -> None:
    assert raised(cell, GOOD, seed) == {}


@pytest.mark.parametrize(
    ("cell", "change", "expected"),
    [
        (OPEN, {"achieved": 0.985}, {"rate-missed": Grade.WARN}),
        (OPEN, {"achieved": 0.90}, {"rate-missed": Grade.INVALID}),
        (CLOSED, {"engine_busy": 0.97, "server_busy": 0.5}, {"client-saturated": Grade.INVALID}),
        (CLOSED, {"engine_busy": 0.92, "server_busy": 0.5}, {"client-saturated": Grade.WARN}),
        (CLOSED, {"engine_busy": 0.97, "server_busy": 0.97}, {"client-saturated": Grade.NOTE}),
        (CLOSED, {"engine_busy": 0.97, "server_busy": 0.90}, {"client-saturated": Grade.WARN}),
        (CLOSED, {"engine_busy": 0.5, "run_delay": 0.47, "pinned": False}, {"client-saturated": Grade.WARN}),
        (OPEN, {"engine_busy": 0.97, "server_busy": 0.5}, {"client-saturated": Grade.WARN}),
        (OPEN, {"lateness_ns": 26_000}, {"send-lateness": Grade.NOTE}),
        (OPEN, {"lateness_ns": 42_000}, {"send-lateness": Grade.WARN}),
        (OPEN, {"lateness_ns": 150_000}, {"send-lateness": Grade.INVALID}),
        (CLOSED, {"lateness_ns": 150_000}, {}),
        (PACED, {}, {}),
        (PACED, {"lateness_ns": 3_000_000}, {"send-lateness": Grade.INVALID}),
        (THINKING, {}, {}),
        (THINKING, {"lateness_ns": 3_000_000}, {"send-lateness": Grade.INVALID}),
        (CLOSED, {"outcomes": {"timeout": 1}}, {"errors": Grade.NOTE}),
        (CLOSED, {"outcomes": {"reset": 40, "connect": 3}}, {"errors": Grade.WARN}),
        (CLOSED, {"outcomes": {"closed": 400}}, {"errors": Grade.INVALID}),
        (CLOSED, {"outcomes": {"tls": 1}}, {"errors": Grade.NOTE}),
        (CLOSED, {"outcomes": {"refused": 400}}, {"errors": Grade.INVALID}),
        (CLOSED, {"outcomes": {"connect": 3}, "exhausted": 3}, {"exhausted": Grade.NOTE}),
        (CLOSED, {"outcomes": {"connect": 40}, "exhausted": 40}, {"exhausted": Grade.WARN}),
        (CLOSED, {"outcomes": {"connect": 400}, "exhausted": 400}, {"exhausted": Grade.INVALID}),
        (
            CLOSED,
            {"outcomes": {"connect": 5}, "exhausted": 3},
            {"exhausted": Grade.NOTE, "errors": Grade.NOTE},
        ),
        (DEEP, {}, {}),
        (DEEP, {"littles_law": 2.0}, {"littles-law": Grade.INVALID}),
        (INSECURE, {}, {"tls-insecure": Grade.NOTE}),
        (RAMPED, {"trend": 0.5}, {}),
        (PACED, {"littles_law": 0.5}, {}),
        (CLOSED, {"outcomes": {"unexpected_status": 10}}, {"wrong-answers": Grade.WARN}),
        (CLOSED, {"outcomes": {"unexpected_status": 400}}, {"wrong-answers": Grade.INVALID}),
        (CLOSED, {"outcomes": {"unexpected_body": 1}}, {"wrong-answers": Grade.INVALID}),
        (CLOSED, {"outcomes": {"malformed": 1}}, {"wrong-answers": Grade.INVALID}),
        (CLOSED, {"trend": 0.3}, {"unsteady": Grade.WARN}),
        (CLOSED, {"trend": -0.3}, {"slows-as-it-serves": Grade.WARN}),
        (CLOSED, {"trend": 0.8}, {"unsteady": Grade.INVALID}),
        (OPEN, {"trend": 0.8}, {"unsteady": Grade.WARN}),
        (CLOSED, {"littles_law": 0.92}, {"littles-law": Grade.WARN}),
        (CLOSED, {"littles_law": 0.7}, {"littles-law": Grade.INVALID}),
        (OPEN, {"littles_law": 0.7}, {}),
        (CLOSED, {"failure": failure("died")}, {"server-died": Grade.INVALID}),
        (CLOSED, {"failure": failure("not_ready", "launch")}, {"trial-failed": Grade.INVALID}),
        (CLOSED, {"failure": failure("wrong_answer", "verify")}, {"trial-failed": Grade.INVALID}),
        (CLOSED, {"failure": failure("engine")}, {"trial-failed": Grade.INVALID}),
        (CLOSED, {"ended": "interrupted", "measured": 0.7}, {"cut-short": Grade.WARN}),
        (CLOSED, {"ended": "interrupted", "measured": 0.3}, {"cut-short": Grade.INVALID}),
        (CLOSED, {"ended": "deadline", "measured": 0.9}, {"cut-short": Grade.INVALID}),
        (CLOSED, {"steal": 0.06}, {"cpu-steal": Grade.NOTE}),
        (CLOSED, {"steal": 0.4}, {"cpu-steal": Grade.WARN}),
        (CLOSED, {"pressure": 0.3, "others_busy": 0.4}, {"cpu-pressure": Grade.NOTE}),
        (CLOSED, {"pressure": 0.6, "others_busy": 0.4}, {"cpu-pressure": Grade.WARN}),
        (CLOSED, {"pressure": 0.6}, {}),
        (CLOSED, {"perturbed": True}, {"perturbed": Grade.WARN}),
    ],
    ids=lambda value: None if isinstance(value, Cell) else "-".join(f"{k}" for k in value),
)
def test_each_doubt_is_raised_by_its_cause_alone(cell: Cell, change: dict[str, object], expected: Raised) -> None:
    assert raised(cell, replace(GOOD, **change)) == expected  # type: ignore[arg-type]


def test_right_answers_after_the_measurement_say_no_rate() -> None:
    found = raised(CLOSED, replace(GOOD, achieved=0.0))
    assert found["answered-late"] is Grade.INVALID
    assert "trial-failed" not in found


def test_the_ceiling_may_be_the_clients_own() -> None:
    ceiling = simulated_cell("oracle.null", ceiling=True)
    behaviour = replace(GOOD, engine_busy=0.99, server_busy=0.6)
    assert raised(ceiling, behaviour) == {}


def test_a_server_on_its_way_to_in_flight_requests_is_only_blamed_when_it_had_its_time() -> None:
    cut = replace(GOOD, ended="interrupted", measured=0.8, outcomes={"in_flight": 64})
    assert raised(CLOSED, cut) == {"cut-short": Grade.WARN}
    assert raised(CLOSED, replace(GOOD, outcomes={"in_flight": 64})) == {"errors": Grade.WARN}


def test_users_who_wait_for_what_was_due_before_are_reported_and_break_no_law() -> None:
    """Their requests are in no histogram: of 64 users, 16 are on hold for most of the measurement."""
    recording = simulated_recording(CLOSED, replace(GOOD, littles_law=0.8))
    assert [each.kind for each in judge(CLOSED, recording)] == ["littles-law"]
    traffic = recording.traffic
    assert traffic is not None
    *before, last, drain = traffic.intervals
    completed = last.counts.completed + 16
    last = last.model_copy(update={"counts": last.counts.model_copy(update={"completed": completed})})
    held = traffic.model_copy(update={"intervals": (*before, last, drain)})
    (finding,) = judge(CLOSED, recording.model_copy(update={"traffic": held}))
    assert (finding.kind, finding.grade) == ("carried-over", Grade.WARN)
    assert finding.message.startswith("16 requests that were due before")
    assert "900 ms" in finding.message


def test_a_stall_over_the_windows_beginning_does_not_break_littles_law() -> None:
    stalled = simulated_recording(CLOSED, GOOD)
    assert stalled.traffic is not None
    first = next(i for i in stalled.traffic.intervals if i.phase == "measure")
    intervals = tuple(
        i.model_copy(update={"counts": Counts(), "response": Histogram()}) if i is first else i
        for i in stalled.traffic.intervals
    )
    lost = first.counts.due
    left = Histogram.merged(i.response for i in intervals if i.phase == "measure")
    counts = stalled.traffic.counts.model_copy(update={"due": stalled.traffic.counts.due - lost})
    traffic = stalled.traffic.model_copy(update={"intervals": intervals, "response": left, "counts": counts})
    found = judge(CLOSED, stalled.model_copy(update={"traffic": traffic}))
    assert [finding.kind for finding in found] == ["stalled"]
    assert [
        f.kind
        for f in judge(
            CLOSED,
            stalled.model_copy(update={"traffic": traffic.model_copy(update={"intervals": stalled.traffic.intervals})}),
        )
    ] == ["littles-law"]


def test_messages_carry_the_numbers() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, outcomes={"timeout": 30, "reset": 2}))
    (finding,) = judge(CLOSED, recording)
    assert "32 of " in finding.message
    assert "30 timeout" in finding.message
    assert "2 reset" in finding.message
    assert recording.traffic is not None
    assert f"{recording.traffic.counts.due:,} requests" in finding.message


def test_messages_write_durations_as_the_tables_do() -> None:
    (late,) = judge(OPEN, simulated_recording(OPEN, replace(GOOD, lateness_ns=42_000)))
    assert re.search(r"took up requests [0-9.]+ µs after they were due", late.message)


def test_noise_is_seldom_called_a_trend() -> None:
    rng = np.random.default_rng(1)
    alarms = sum(trend(list(np.exp(rng.normal(0, 0.1, 10))), TREND_P) != 0 for _ in range(3_000))
    assert alarms <= stats.binom.ppf(1 - 1e-4, 3_000, 0.001)


@pytest.mark.parametrize(("share", "expected"), [(0.6, {"steadiness-unknown": Grade.NOTE}), (0.7, {})])
def test_a_trial_with_too_few_intervals_says_that_nobody_looked(share: float, expected: Raised) -> None:
    short = simulated_cell(load=SATURATE.model_copy(update={"duration_ns": int(MEASURE_NS * share)}))
    assert raised(short, GOOD) == expected


def test_intervals_of_an_open_load_with_too_few_requests_do_not_count() -> None:
    sparse = simulated_cell(load=SLOW_OPEN.load.model_copy(update={"shape": Open(rate_per_s=100, connections=16)}))
    assert raised(sparse, GOOD) == {"steadiness-unknown": Grade.NOTE}


def test_a_trial_cut_short_is_not_called_short() -> None:
    assert raised(CLOSED, replace(GOOD, ended="interrupted", measured=0.6)) == {"cut-short": Grade.WARN}


def test_long_measurements_are_said_in_hours() -> None:
    hours = simulated_cell(load=SATURATE.model_copy(update={"duration_ns": 5_400_000_000_000}))
    found = judge(hours, simulated_recording(hours, replace(GOOD, ended="interrupted", measured=0.0002)))
    assert [finding.message for finding in found if finding.kind == "cut-short"] == [
        "The measurement was interrupted: 1.08 s of the planned 1 h 30 min were measured."
    ]


def test_one_disturbed_interval_is_no_trend() -> None:
    assert trend([100, 101, 99, 100, 102, 98, 100, 101, 99, 40], TREND_P) == 0


def test_the_size_of_a_trend_is_from_first_to_last() -> None:
    assert trend([100 * 1.05**i for i in range(10)], TREND_P) == pytest.approx(1.05**9 - 1)


@given(st.lists(st.floats(1, 1e6), max_size=6))
def test_too_few_intervals_show_no_trend(values: list[float]) -> None:
    assert trend(values, TREND_P) == 0


@given(st.sampled_from(list(RULES)), st.floats(0, 10), st.floats(0, 10))
def test_more_of_what_is_measured_is_never_graded_milder(kind: FindingKind, a: float, b: float) -> None:
    weights = [-1 if grade is None else grade.weight for grade in map(RULES[kind].grade, sorted((a, b)))]
    assert weights == sorted(weights)


def test_every_kind_has_one_rule() -> None:
    rules = {rule for module in SUBJECTS.values() for rule in vars(module).values() if isinstance(rule, Rule)}
    assert len(rules) == len(RULES)
    assert {judged.kind for judged in RULES.values()} == set(RULES)


def test_a_finding_of_another_version_has_a_rule_that_says_nothing() -> None:
    assert RULES["of-a-later-version"].grade(1e9) is None
    assert not RULES["of-a-later-version"].biases
    assert "of-a-later-version" not in RULES


def test_intervals_in_which_nothing_ended_say_nothing_of_the_response_time() -> None:
    recording = simulated_recording(OPEN, replace(GOOD, trend=0.8))
    assert recording.traffic is not None
    intervals = list(recording.traffic.intervals)
    measured = [place for place, interval in enumerate(intervals) if interval.phase == "measure"]
    for place in measured[:3]:  # as many requests fell due as before, and none was answered
        counts = intervals[place].counts
        none = counts.outcomes.model_copy(update=dict.fromkeys(type(counts.outcomes).model_fields, 0))
        update = {"counts": counts.model_copy(update={"outcomes": none}), "response": Histogram.merged(())}
        intervals[place] = intervals[place].model_copy(update=update)
    traffic = recording.traffic.model_copy(update={"intervals": tuple(intervals)})
    found = judge(OPEN, recording.model_copy(update={"traffic": traffic}))
    (unsteady,) = [finding for finding in found if finding.kind == "unsteady"]
    assert "rose by" in unsteady.message


def test_a_profiler_in_the_middle_of_the_measurement_makes_no_trend() -> None:
    started = profiled_start(CLOSED, replace(GOOD, trend=0.8))
    assert "unsteady" not in {finding.kind for finding in judge(CLOSED, started)}
    whole = profiled(simulated_recording(CLOSED, replace(GOOD, trend=0.8)))
    assert "unsteady" in {finding.kind for finding in judge(CLOSED, whole)}
