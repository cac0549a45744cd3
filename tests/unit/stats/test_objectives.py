"""An objective is met, surely missed, or not known: on both sides of what the server, the client and chance explain."""

from dataclasses import replace
from typing import Any

import pytest

from redline.model import Counts, Histogram, Objective, Outcomes, RequestTraffic
from redline.stats.objectives import (
    CONNECTS,
    LoadTotals,
    evaluate_objective,
    late_text,
    share_beyond,
    surely_missed,
)
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SIMPLE_GET, STEADY, simulated_cell, simulated_recording

MS = 1_000_000


def objective(metric: str, limit: float, *, below: bool = True, request: str | None = None) -> Objective:
    facts = {"metric": metric, "below": below, "limit": limit, "text": "the text", "request": request}
    return Objective.model_validate(facts)


def totals(
    *times_ms: float, service_ms: float | None = None, late_ms: float = 0.0, latest_ms: float | None = None, **of: Any
) -> LoadTotals:
    """A load of ten seconds; by default 1,000 requests of 10 ms, all answered."""
    times = Histogram.of([time * MS for time in times_ms or [10.0] * 1000])
    due = times.count
    counts = of.pop("counts", Counts(due=due, completed=due, outcomes=Outcomes(ok=due)))
    service = times if service_ms is None else Histogram.of([service_ms * MS] * due)
    late = Histogram.of([late_ms * MS] * due)
    latest = int((late_ms if latest_ms is None else latest_ms) * MS)
    return LoadTotals(counts, of.pop("answered", due), times, service, late, latest, 10.0, **of)


def state(asked: Objective, measured: LoadTotals) -> str:
    return evaluate_objective(asked, measured).state


P50_BELOW = objective("p50", 20 * MS)
P99_BELOW = objective("p99", 20 * MS)


def test_a_percentile_is_met_below_its_limit() -> None:
    found = evaluate_objective(P50_BELOW, totals(*[19.9] * 100))
    assert found.state == "met"
    assert found.actual == pytest.approx(19.9 * MS, rel=0.01)
    assert found.reason == ""
    assert state(P50_BELOW, totals(*[20.1] * 100)) == "missed"
    exact = Histogram.of([20 * MS] * 100).quantile_ns(0.5)
    assert state(objective("p50", float(exact)), totals(*[20.0] * 100)) == "missed", "below is not at"


@pytest.mark.parametrize(
    ("metric", "count", "known"),
    [
        ("p50", 20, True),
        ("p50", 19, False),
        ("p90", 100, True),
        ("p90", 99, False),
        ("p99", 1000, True),
        ("p99", 999, False),
        ("max", 1, True),
    ],
)
def test_ten_requests_lie_beyond_a_percentile_that_is_judged(metric: str, count: int, *, known: bool) -> None:
    found = evaluate_objective(objective(metric, 20 * MS), totals(*[10.0] * count))
    assert (found.state == "met") is known
    assert (found.actual is not None) is known
    if not known:
        assert found.reason == f"{count} requests are too few for {metric}"


def test_nothing_is_known_without_requests() -> None:
    nothing = replace(totals(), counts=Counts(), response=Histogram())
    for metric in ("max", "errors", "achieved", "p99"):
        found = evaluate_objective(objective(metric, 0.5), nothing)
        assert (found.state, found.actual) == ("not known", None)


@pytest.mark.parametrize(("slow", "state_"), [(5, "missed"), (4, "not known")])
def test_few_requests_miss_a_percentile_if_half_of_them_are_beyond_it(slow: int, state_: str) -> None:
    found = evaluate_objective(P99_BELOW, totals(*[30.0] * slow, *[10.0] * (10 - slow)))
    assert (found.state, found.actual) == (state_, None)
    assert found.reason == ("50% of 10 requests took as long" if slow == 5 else "10 requests are too few for p99")
    assert state(objective("p50", 20 * MS), totals(*[30.0] * 9, 10.0)) == "not known", "it allows half of them"


@pytest.mark.parametrize(
    ("share", "allowed", "missed"),
    [(0.5, 0.01, True), (0.49, 0.001, False), (0.5, 0.0101, False), (1.0, 0.02, True), (1.0, 0.0201, False)],
)
def test_half_of_the_requests_and_fifty_times_what_is_allowed_is_surely_missed(
    share: float, allowed: float, *, missed: bool
) -> None:
    assert surely_missed(share, allowed) is missed


def errors(number: int, exhausted: int = 0, due: int = 1000) -> LoadTotals:
    outcomes = Outcomes(ok=due - number, connect=exhausted, reset=number - exhausted)
    counts = Counts(due=due, completed=due - number, exhausted=exhausted, outcomes=outcomes)
    return totals(counts=counts, answered=due - number)


def test_errors_are_a_share_without_what_the_client_lacked() -> None:
    found = evaluate_objective(objective("errors", 0.01), errors(30, exhausted=21))
    assert found.state == "met"
    assert found.actual == pytest.approx(0.009)
    found = evaluate_objective(objective("errors", 0.01), errors(30, exhausted=20))
    assert (found.state, found.reason) == ("missed", "")
    assert found.actual == pytest.approx(0.01)


@pytest.mark.parametrize(("metric", "limit"), [("errors", 0.01), ("achieved", 0.99)])
def test_few_requests_do_not_show_that_a_small_share_fails(metric: str, limit: float) -> None:
    asked = objective(metric, limit, below=metric == "errors")
    few = evaluate_objective(asked, errors(0, due=299))
    assert (few.state, few.reason) == ("not known", "299 requests are too few: 300 would show it")
    assert few.actual == (0.0 if metric == "errors" else 1.0)
    assert state(asked, errors(0, due=300)) == "met"
    assert state(asked, errors(3, due=100)) == "missed"


def test_what_was_achieved_is_a_share_of_what_fell_due() -> None:
    achieved = objective("achieved", 0.99, below=False)
    assert state(achieved, errors(9)) == "met"
    found = evaluate_objective(achieved, errors(10))
    assert (found.state, found.reason) == ("missed", "")
    assert found.actual == pytest.approx(0.99)
    lacked = evaluate_objective(achieved, errors(20, exhausted=11))
    assert lacked.state == "not known"
    assert lacked.reason == "no port, descriptor or memory was left on the engine's side for 11 requests"
    assert state(achieved, errors(20, exhausted=10)) == "missed"


@pytest.mark.parametrize(("failed", "state_"), [(0, "not known"), (11, "missed")])
def test_a_slow_server_may_have_more_under_way_at_the_end_than_at_the_beginning(failed: int, state_: str) -> None:
    outcomes = Outcomes(ok=1000 - failed, reset=failed)
    counts = Counts(due=1000, completed=980, outcomes=outcomes)
    slow = totals(*[800.0] * 1000, counts=counts, answered=980)
    found = evaluate_objective(objective("achieved", 0.99, below=False), slow)
    assert (found.state, found.actual) == (state_, 0.98)
    assert found.reason.startswith("" if failed else "1,000 requests are too few")
    overloaded = replace(slow, answered=900, counts=Counts(due=1000, completed=900, outcomes=outcomes))
    assert state(objective("achieved", 0.99, below=False), overloaded) == "missed"


@pytest.mark.parametrize(("latest_ms", "state_"), [(90, "missed"), (110, "not known")])
def test_a_client_that_was_late_may_have_achieved_less(latest_ms: float, state_: str) -> None:
    """981 of 1,000 were answered in ten seconds; a hundredth more time would have made it 990."""
    measured = replace(totals(answered=981), latest_ns=int(latest_ms * MS))
    found = evaluate_objective(objective("achieved", 0.99, below=False), measured)
    assert found.state == state_
    assert found.reason == ("the engine was late (at most 110 ms): pin it or free a core" if latest_ms == 110 else "")


def test_a_missed_percentile_is_the_servers_unless_the_engine_was_late() -> None:
    slow = [30.0] * 1000
    assert state(P99_BELOW, totals(*slow)) == "missed"
    assert state(P99_BELOW, totals(*slow, service_ms=5.0)) == "missed", "nothing was late"
    late = evaluate_objective(P99_BELOW, totals(*slow, service_ms=5.0, late_ms=12.0))
    assert late.state == "not known"
    assert late.actual == pytest.approx(30 * MS, rel=0.01)
    assert late.reason == "the engine was late (p99 12.0 ms): pin it or free a core"
    assert state(P99_BELOW, totals(*slow, service_ms=21.0, late_ms=12.0)) == "missed", "the service takes as long"
    assert state(P99_BELOW, totals(*slow, service_ms=5.0, late_ms=9.0)) == "missed", "30 - 9 is more than 20"


@pytest.mark.parametrize(("late_ms", "state_"), [(1.9, "missed"), (2.1, "not known")])
def test_a_tenth_of_the_limit_is_late(late_ms: float, state_: str) -> None:
    slow = totals(*[21.0] * 1000, service_ms=5.0, late_ms=late_ms)
    assert state(P99_BELOW, slow) == state_


def test_lateness_of_few_requests_excuses_as_many_slow_ones() -> None:
    """Five of 1,000 were late: what is left of 14 slow requests is a hundredth or less, of 16 it is more."""
    late = Histogram.of([15 * MS] * 5 + [0] * 995)
    for slow, state_ in ((14, "not known"), (16, "missed")):
        times = [25.0] * slow + [10.0] * (1000 - slow)
        measured = replace(totals(*times, service_ms=5.0), lateness=late)
        found = evaluate_objective(P99_BELOW, measured)
        assert found.state == state_
        if state_ == "not known":
            assert found.reason.startswith("the engine was late (at most 15.0 ms)")


def test_how_often_the_engine_was_late_is_said_by_the_deeper_percentile() -> None:
    slow = [30.0] * 10_000
    assert "(p99 12.0 ms)" in evaluate_objective(P50_BELOW, totals(*slow, service_ms=5.0, late_ms=12.0)).reason
    deep = objective("p99.9", 20 * MS)
    assert "(p99.9 12.0 ms)" in evaluate_objective(deep, totals(*slow, service_ms=5.0, late_ms=12.0)).reason
    most = objective("max", 20 * MS)
    assert "(at most 12.0 ms)" in evaluate_objective(most, totals(*slow, service_ms=5.0, late_ms=12.0)).reason


def test_an_engine_that_connects_is_told_what_keeps_it() -> None:
    counts = Counts(due=10, reconnects=0)
    assert late_text(1.0 * MS, "p99", counts) == "the engine was late (p99 1.00 ms): pin it or free a core"
    often = counts.model_copy(update={"reconnects": 10})
    assert late_text(1.0 * MS, "p99", often) == f"the engine was late (p99 1.00 ms): {CONNECTS}"


def test_times_at_the_limit_are_beyond_it() -> None:
    times = Histogram.of([10 * MS] * 3 + [20 * MS])
    (low, high), _ = times.buckets()
    assert share_beyond(times, float(high)) == 0.25
    assert share_beyond(times, float(high) + 1) == 0
    assert share_beyond(times, float(low)) == 1
    assert share_beyond(Histogram(), 1.0) == 0


def by_request(**changed: Any) -> LoadTotals:
    """Two requests of a mix: quick ones, and slow ones, of which a fifth failed."""
    quick = RequestTraffic(completed=900, outcomes=Outcomes(ok=900), response=Histogram.of([1 * MS] * 900))
    slow = RequestTraffic(completed=80, outcomes=Outcomes(ok=80, reset=20), response=Histogram.of([50 * MS] * 100))
    return replace(totals(), requests={"quick": quick, "slow": slow}, **changed)


def test_an_objective_of_a_request_is_about_its_own_times() -> None:
    assert state(objective("p50", 20 * MS, request="quick"), by_request()) == "met"
    assert state(objective("p50", 20 * MS, request="slow"), by_request()) == "missed"
    found = evaluate_objective(objective("errors", 0.1, request="slow"), by_request())
    assert (found.state, found.actual) == ("missed", 0.2)
    assert evaluate_objective(objective("achieved", 0.7, below=False, request="slow"), by_request()).actual == 0.8
    absent = evaluate_objective(objective("p50", 20 * MS, request="other"), by_request())
    assert (absent.state, absent.reason) == ("not known", "the load was not counted by request")


def test_errors_of_a_request_may_be_what_the_client_lacked() -> None:
    lacking = by_request(counts=Counts(due=1000, exhausted=7, outcomes=Outcomes(ok=980, connect=7, reset=13)))
    found = evaluate_objective(objective("errors", 0.1, request="slow"), lacking)
    assert (found.state, found.actual) == ("not known", 0.2)
    assert "for 7 requests" in found.reason
    assert state(objective("errors", 0.3, request="slow"), lacking) == "met"
    assert state(objective("p50", 20 * MS, request="slow"), lacking) == "missed"


def test_the_totals_of_a_load_are_those_of_its_traffic() -> None:
    traffic = simulated_recording(simulated_cell(load=STEADY), GOOD).traffic
    assert traffic is not None
    measured = LoadTotals.of_load(traffic, SIMPLE_GET)
    assert (measured.counts, measured.answered, measured.seconds) == (traffic.counts, traffic.answered, 1.0)
    assert measured.latest_ns == traffic.lateness.max_ns
    assert measured.requests == {}
    mix = SIMPLE_GET.model_copy(update={"others": (SIMPLE_GET.request.model_copy(update={"path": "/b"}),)})
    parts = tuple(by_request().requests.values())
    labelled = measured.with_requests(mix, parts)
    assert [*labelled.requests.values()] == [*parts]
    assert [*labelled.requests] == [*mix.several_labels]
    assert measured.with_requests(mix, parts[:1]).requests == {}
    own = labelled.of_request(mix.several_labels[1])
    assert own is not None
    assert (own.counts.due, own.answered, own.requests) == (100, 80, {})
