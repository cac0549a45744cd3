"""Failed requests: each grade begins just above its limit, and each kind of outcome counts where it belongs."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from redline.findings import failed
from redline.findings.failed import (
    _wrong_classes,
    all_failed,
    failures_text,
    instead_of_cores,
    listed,
    never_answered,
    reconnected_share,
    telling,
)
from redline.findings.rules import Observation, Rule
from redline.model import (
    Cell,
    Closed,
    Counts,
    Grade,
    Histogram,
    Load,
    Open,
    Outcomes,
    Reach,
    Request,
    RequestTraffic,
    Scenario,
)
from redline.model.failures import FirstFailure
from redline.model.streams import Stream
from redline.model.websocket import WebSocket
from redline.stats import Trial
from tests.fakes.recordings import simulated_cell, simulated_recording
from tests.unit.findings.test_load import CLOSED, OPEN, even, interval, traffic

S = 1_000_000_000
TIMEOUT = FirstFailure(outcome="timeout", reason="no answer within 5 s", time_ns=7)
LEFT = FirstFailure(outcome="in_flight", reason="it was on its way", time_ns=9)


def ended(**outcomes: int) -> Counts:
    """10,000 requests due, of which so many ended otherwise than right."""
    exhausted, extra = outcomes.pop("exhausted", 0), {name: outcomes.pop(name, 0) for name in ("surplus", "reconnects")}
    ok = 10_000 - sum(outcomes.values())
    return Counts(due=10_000, completed=ok, exhausted=exhausted, outcomes=Outcomes(ok=ok, **outcomes), **extra)


def seen(counts: Counts, **changed: Any) -> Any:
    return traffic().model_copy(update={"counts": counts, **changed})


def observed(rule: Rule, *arguments: object) -> Observation:
    assert rule.function is not None
    found = rule.function(*arguments)
    assert isinstance(found, Observation)
    return found


def graded(rule: Rule, *arguments: object) -> Grade | None:
    found = observed(rule, *arguments)
    return (found.rule or rule).grade(found.value)


@pytest.mark.parametrize("kind", [*failed.UNANSWERED, *failed.LEFT_OVER])
@pytest.mark.parametrize(
    ("number", "grade"), [(0, None), (1, Grade.NOTE), (10, Grade.NOTE), (11, Grade.WARN), (101, Grade.INVALID)]
)
def test_requests_without_an_answer_are_errors(kind: str, number: int, grade: Grade | None) -> None:
    assert graded(failed.errors, CLOSED, seen(ended(**{kind: number}))) is grade
    cut = seen(ended(**{kind: number}), ended="interrupted")
    assert graded(failed.errors, CLOSED, cut) is (None if kind in failed.LEFT_OVER else grade)


def test_what_the_client_lacked_is_no_error_of_the_server() -> None:
    both = seen(ended(connect=50, exhausted=39))
    assert observed(failed.errors, CLOSED, both).value == pytest.approx(0.0011)
    assert observed(failed.exhausted, both).value == pytest.approx(0.0039)
    assert observed(failed.exhausted, both).message.startswith("For 39 of 10,000 requests (0.39%) the engine's side")


@pytest.mark.parametrize(
    ("number", "grade"), [(0, None), (1, Grade.NOTE), (10, Grade.NOTE), (11, Grade.WARN), (101, Grade.INVALID)]
)
def test_what_the_client_lacked_has_the_limits_of_errors(number: int, grade: Grade | None) -> None:
    assert graded(failed.exhausted, seen(ended(connect=number, exhausted=number))) is grade


@pytest.mark.parametrize(
    ("outcomes", "grade"),
    [
        ({}, None),
        ({"unexpected_status": 1}, Grade.WARN),
        ({"unexpected_status": 100}, Grade.WARN),
        ({"unexpected_status": 101}, Grade.INVALID),
        ({"unexpected_body": 1}, Grade.INVALID),
        ({"malformed": 1}, Grade.INVALID),
        ({"timeout": 500}, None),
    ],
)
def test_wrong_answers_are_graded_by_what_was_wrong(outcomes: dict[str, int], grade: Grade | None) -> None:
    assert graded(failed.wrong_answers, CLOSED, seen(ended(**outcomes))) is grade


def test_advice_about_malformed_answers_is_for_these_alone() -> None:
    def advice(**outcomes: int) -> str | None:
        return observed(failed.wrong_answers, CLOSED, seen(ended(**outcomes))).advice

    assert (advice(malformed=3) or "").startswith("Fix what writes these bytes")
    assert advice(malformed=3, unexpected_status=1) is None
    assert advice(unexpected_status=1) is None


@pytest.mark.parametrize(("number", "grade"), [(0, None), (1, Grade.NOTE), (100, Grade.NOTE), (101, Grade.WARN)])
def test_surplus_bytes_are_a_share_of_the_requests_due(number: int, grade: Grade | None) -> None:
    assert graded(failed.surplus_bytes, CLOSED, seen(ended(surplus=number))) is grade


@pytest.mark.parametrize(
    ("number", "grade"), [(1000, None), (1001, Grade.NOTE), (5000, Grade.NOTE), (5001, Grade.WARN)]
)
def test_reconnections_are_a_share_of_the_requests_due(number: int, grade: Grade | None) -> None:
    assert graded(failed.reconnecting, CLOSED, seen(ended(reconnects=number))) is grade


@pytest.mark.parametrize(("lost", "share"), [(5000, 0.9), (5001, 0.0)])
def test_where_most_requests_fail_their_connections_are_no_finding(lost: int, share: float) -> None:
    assert reconnected_share(CLOSED, ended(reset=lost, reconnects=9000)) == share


def test_connections_that_the_load_ends_are_no_finding() -> None:
    once = simulated_cell(load=Load(name="x", shape=Closed(users=4, requests_per_connection=1), duration_ns=S))
    assert reconnected_share(once, ended(reconnects=9000)) == 0


@pytest.mark.parametrize(
    ("http", "request_", "share"),
    [
        ("1.1", Request(stream=Stream(events="sse", until=3)), 0),
        ("2", Request(stream=Stream(events="sse", until=3)), 0.9),
        ("2", Request(websocket=WebSocket(answer="listen"), stream=Stream(events="messages", until=3)), 0),
    ],
)
def test_connections_that_end_with_their_conversation_are_no_finding(
    http: str, request_: Request, share: float
) -> None:
    scenario = CLOSED.scenario.model_copy(update={"request": request_})
    variant = CLOSED.variant.model_copy(update={"http": http})
    cell = CLOSED.model_copy(update={"scenario": scenario, "variant": variant})
    assert reconnected_share(cell, ended(reconnects=9000)) == share


@pytest.mark.parametrize(("reconnects", "connects"), [(5000, False), (5001, True)])
def test_an_engine_that_connects_for_most_requests_needs_no_cores(reconnects: int, *, connects: bool) -> None:
    assert (instead_of_cores(CLOSED, seen(ended(reconnects=reconnects))) is not None) is connects
    once = simulated_cell(load=Load(name="x", shape=Closed(users=4, requests_per_connection=1), duration_ns=S))
    assert instead_of_cores(once, seen(ended(reconnects=reconnects))) is None


def test_failures_are_said_without_what_was_left_over() -> None:
    assert telling([LEFT, TIMEOUT]) == [TIMEOUT]
    assert telling([LEFT]) == (LEFT,)
    assert failures_text([LEFT, TIMEOUT]) == "timeout: no answer within 5 s"
    assert failures_text([LEFT, TIMEOUT], ["reset"]) == ""
    assert failures_text([TIMEOUT], ["timeout"]) == "timeout: no answer within 5 s"
    assert failures_text([], None) == ""


def test_outcomes_are_listed_without_zeros_in_their_order() -> None:
    assert listed(Outcomes(ok=5, timeout=1200, malformed=3, in_flight=1)) == "3 malformed, 1,200 timeout, 1 in flight"
    assert listed(Outcomes(ok=5, timeout=3), ("reset",)) == ""


@pytest.mark.parametrize(
    ("before", "measured", "why"),
    [
        (Counts(due=5, outcomes=Outcomes(timeout=5)), Counts(due=4, outcomes=Outcomes(reset=4)), "4 reset, 5 timeout"),
        (Counts(due=5, completed=1, outcomes=Outcomes(ok=1, timeout=4)), Counts(outcomes=Outcomes(reset=4)), ""),
        (Counts(due=5, outcomes=Outcomes(timeout=5)), Counts(completed=1, outcomes=Outcomes(reset=4)), ""),
        (Counts(), Counts(), ""),
    ],
)
def test_every_request_failed_only_where_none_succeeded_warm_up_included(
    before: Counts, measured: Counts, why: str
) -> None:
    warm = interval(0, 0, 2 * S, "warmup").model_copy(update={"counts": before})
    own = interval(1, 2 * S, 12 * S).model_copy(update={"counts": measured})
    load = seen(measured, intervals=(warm, own))
    assert all_failed(load) == why
    if why:
        assert all_failed(load.model_copy(update={"failures": (TIMEOUT,)})) == "timeout: no answer within 5 s"
        assert all_failed(load.model_copy(update={"counts": Counts(completed=1)})) == ""


def test_who_was_never_answered_is_a_user_where_each_has_a_connection() -> None:
    reach = Reach(opened=512, asked=512, answered=16)
    assert never_answered(reach, CLOSED) == "496 of 512 users (96.9%) without any answer"
    assert never_answered(reach, OPEN) == "496 of 512 connections (96.9%) without any answer"
    assert never_answered(reach).startswith("496 of 512 connections")
    assert never_answered(Reach(opened=0, asked=0, answered=0)).startswith("0 of 0 connections (0%)")
    stuck = observed(failed.errors, CLOSED, seen(ended(timeout=496), reach=reach))
    assert stuck.message.endswith(" They left 496 of 512 users (96.9%) without any answer.")
    all_there = observed(failed.errors, CLOSED, seen(ended(timeout=496), reach=Reach(opened=9, asked=9, answered=9)))
    assert "They left" not in all_there.message


MIX = Scenario(name="mix", request=Request(name="a", path="/a"), others=(Request(name="b", path="/b"),))


@pytest.mark.parametrize(("in_a", "text"), [(0, ", all of them b: 9 timeout"), (1, " got no answer: 9 timeout")])
def test_errors_of_a_single_request_are_said_to_be_all_of_it(in_a: int, text: str) -> None:
    cell: Cell = CLOSED.model_copy(update={"scenario": MIX})
    parts = tuple(
        RequestTraffic(outcomes=Outcomes(ok=9, timeout=number), response=Histogram()) for number in (in_a, 9 - in_a)
    )
    assert text in observed(failed.errors, cell, seen(ended(timeout=9), requests=parts)).message


@pytest.mark.parametrize(
    ("right_before", "from_interval", "ns"), [(True, 3, 3 * S), (True, 0, 0), (False, 3, 0), (True, None, 0)]
)
def test_wrong_answers_that_began_on_the_way_say_when(right_before: bool, from_interval: int | None, ns: int) -> None:
    intervals = []
    for at, one in enumerate(even()):
        wrong = from_interval is not None and at >= from_interval
        ok = 50 if wrong or right_before else 0
        outcomes = Outcomes(ok=ok, unexpected_status=50 * wrong)
        intervals.append(one.model_copy(update={"counts": one.counts.model_copy(update={"outcomes": outcomes})}))
    assert failed._began_ns(seen(ended(unexpected_status=1), intervals=tuple(intervals))) == ns


@pytest.mark.parametrize(("waiting", "fault"), [(9, False), (10, True), (0, False)])
def test_users_who_think_are_all_held_where_as_many_requests_wait(waiting: int, *, fault: bool) -> None:
    thinking = simulated_cell(
        load=Load(name="x", shape=Closed.model_validate({"users": 10, "think": {"mean_ns": S}}), duration_ns=10 * S)
    )
    warm = interval(0, 0, 2 * S, "warmup", due=100 + waiting, outcomes=Outcomes(ok=100))
    idle = seen(Counts(), intervals=(warm, interval(1, 2 * S, 12 * S)))
    trial = Trial(simulated_recording(thinking).model_copy(update={"traffic": idle}))
    found = observed(failed.trial_failed, thinking, trial)
    assert (found.rule is failed.NOTHING_DUE) is not fault
    assert ("all users waited" in found.message) is fault
    opened = simulated_cell(load=Load(name="x", shape=Open(rate_per_s=1, connections=4), duration_ns=10 * S))
    assert observed(failed.trial_failed, opened, trial).rule is failed.NOTHING_DUE
    paced = simulated_cell(load=Load(name="x", shape=Closed(users=10, pace_per_s=1), duration_ns=10 * S))
    assert ("all users waited" in observed(failed.trial_failed, paced, trial).message) is fault


@pytest.mark.parametrize(
    ("outcomes", "advised"), [(Outcomes(in_flight=9), True), (Outcomes(in_flight=8, unexpected_status=1), False)]
)
def test_only_conversations_that_nothing_ends_are_to_be_followed_less_far(outcomes: Outcomes, *, advised: bool) -> None:
    request = CLOSED.scenario.request.model_copy(update={"stream": Stream(events="sse")})
    cell = CLOSED.model_copy(update={"scenario": CLOSED.scenario.model_copy(update={"request": request})})
    none = simulated_recording(CLOSED).model_copy(update={"traffic": seen(Counts(due=9, outcomes=outcomes))})
    advice = observed(failed.trial_failed, cell, Trial(none)).advice
    assert bool(advice and advice.startswith("Say how far conversations are followed")) is advised


def test_answers_after_the_end_say_how_many() -> None:
    late = seen(Counts(due=9, outcomes=Outcomes(ok=4, timeout=5)))
    trial = Trial(simulated_recording(CLOSED).model_copy(update={"traffic": late}))
    found = observed(failed.trial_failed, CLOSED, trial)
    assert found.rule is failed.ANSWERED_LATE
    assert found.message.endswith("9 requests were due. 4 were answered after it.")
    none = trial.recording.model_copy(update={"traffic": seen(Counts(due=9, outcomes=Outcomes(timeout=9)))})
    assert observed(failed.trial_failed, CLOSED, Trial(none)).rule is None
    assert failed.trial_failed.function is not None
    right = trial.recording.model_copy(update={"traffic": seen(Counts(due=9, completed=1, outcomes=Outcomes(ok=9)))})
    assert failed.trial_failed.function(CLOSED, Trial(right)) is None


@pytest.mark.parametrize(
    ("expected", "ok", "digits", "wrong"),
    [
        (404, 0, False, {"4xx"}),
        (404, 1, False, set()),
        (404, 1, True, {"4xx"}),
        (200, 1, False, {"4xx"}),
    ],
)
def test_the_class_of_a_right_status_is_wrong_where_no_answer_was_right_or_the_rest_is_known(
    expected: int, ok: int, wrong: set[str], *, digits: bool
) -> None:
    known = {"4xx": 3, "1xx": 1} | ({str(expected): ok} if digits else {})
    part = SimpleNamespace(outcomes=Outcomes(ok=ok), by_status=lambda _: known)
    requests = (SimpleNamespace(expect=SimpleNamespace(statuses=(expected,))),)
    cell: Any = SimpleNamespace(scenario=SimpleNamespace(requests=requests))
    assert _wrong_classes(cell, cast(Any, SimpleNamespace(requests=(part,)))) == wrong
