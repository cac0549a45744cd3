"""Judging objectives: lateness of the client only lengthens, and excuses no more than it explains."""

import re
from dataclasses import replace

import pytest

from redline.analysis.load_result import load_result
from redline.cli import exits
from redline.cli.commands.load import exit_code
from redline.errors import WrongValueError
from redline.model import (
    Counts,
    Failure,
    Histogram,
    ObjectiveResult,
    Open,
    Outcomes,
    Request,
    RequestTraffic,
    Scenario,
)
from redline.model.recording import FailureKind
from redline.quantities import duration
from redline.report.load import load_section
from redline.schema.objectives import Selectable
from redline.stats.objectives import LoadTotals, evaluate_objective, surely_missed
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD
from tests.fakes.loads import load_of, result_of
from tests.fakes.probed import cell
from tests.fakes.recordings import simulated_recording
from tests.unit.report.test_load import loaded, shown

MS = 1e6


def measured(
    response_ms: float,
    *,
    service_ms: float = 0.5,
    late_ms: float = 0.05,
    latest_ms: float | None = None,
    count: int = 10_000,
    share: float = 0.05,
    errors: int = 0,
    completed: int | None = None,
) -> LoadTotals:
    """A load of 5 s of which `share` of the requests had these times, and all others negligible times."""

    def times(long_ms: float) -> Histogram:
        slow = round(share * count)
        return Histogram.of([1e4] * (count - slow) + [long_ms * MS] * slow)

    late = Histogram.merged([times(late_ms), Histogram.of([] if latest_ms is None else [latest_ms * MS])])
    counts = Counts(
        due=count,
        completed=count - errors if completed is None else completed,
        outcomes=Outcomes(ok=count - errors, timeout=errors),
    )
    return LoadTotals(counts, counts.completed, times(response_ms), times(service_ms), late, late.max_ns, 5.0)


def state(text: str, made: LoadTotals) -> str:
    return evaluate_objective(parse_objectives(text)[0], made).state


@pytest.mark.parametrize("metric", ["p50", "p90", "p99", "p99.9", "max"])
def test_what_is_met_is_met_however_late_the_client_was(metric: str) -> None:
    assert state(f"{metric} < 20ms", measured(0.765, service_ms=0.3, late_ms=0.6)) == "met"
    assert state(f"{metric} < 20ms", measured(19, service_ms=0.3, late_ms=18.5, share=1.0)) == "met"


@pytest.mark.parametrize("metric", ["p99", "p99.9", "max"])
def test_a_client_that_is_late_by_little_excuses_little(metric: str) -> None:
    """A pool of connections hid the queue of the server: its service times were short."""
    assert state(f"{metric} < 20ms", measured(769, service_ms=6, late_ms=2.9, latest_ms=40)) == "missed"
    assert state(f"{metric} < 20ms", measured(30, service_ms=6, late_ms=2.9, latest_ms=9)) == "missed"


@pytest.mark.parametrize("metric", ["p99", "p99.9", "max"])
def test_what_the_lateness_of_the_client_explains_is_not_known(metric: str) -> None:
    found = evaluate_objective(parse_objectives(f"{metric} < 20ms")[0], measured(30, service_ms=6, late_ms=25))
    assert found.state == "not known"
    assert found.reason.startswith("the engine was late (")
    assert state(f"{metric} < 20ms", measured(30, service_ms=21, late_ms=25)) == "missed", "the server alone missed it"
    assert state(f"{metric} < 20ms", measured(30, service_ms=6, late_ms=1)) == "missed", "too little to matter"


@pytest.mark.parametrize("metric", ["p99.9", "max"])
def test_lateness_matters_as_deep_as_the_objective(metric: str) -> None:
    """One request in 200 was late, and as slow: p99 of lateness does not show it."""
    rare = measured(30, service_ms=6, late_ms=28, share=0.005)
    assert state(f"{metric} < 20ms", rare) == "not known"


def both(late: float, slow: float, *, count: int = 10_000) -> LoadTotals:
    """This share of requests late by 50 ms, and as slow; another share slow, though neither late nor long served."""
    lates, slows = round(late * count), round(slow * count)
    calm = [1e4] * (count - lates - slows)
    made = measured(1, count=count)
    return replace(
        made,
        response=Histogram.of(calm + [50 * MS] * (lates + slows)),
        service=Histogram.of([1e4] * count),
        lateness=Histogram.of(calm + [1e4] * slows + [50 * MS] * lates),
        latest_ns=round(50 * MS) if lates else 10_000,
    )


@pytest.mark.parametrize(
    ("text", "late", "slow", "said"),
    [
        ("p99 < 20ms", 0.009, 0.002, "not known"),
        ("p99 < 20ms", 0.002, 0.009, "not known"),
        ("p99 < 20ms", 0.002, 0.02, "missed"),
        ("p99 < 20ms", 0, 0.011, "missed"),
        ("p90 < 20ms", 0.009, 0.095, "not known"),
        ("p99.9 < 20ms", 0.0009, 0.0005, "not known"),
        ("p99.9 < 20ms", 0.0005, 0.002, "missed"),
    ],
)
def test_the_shares_of_late_and_of_slow_requests_add_up(text: str, late: float, slow: float, said: str) -> None:
    """The slowness of the server alone is within the objective; with lateness it is not."""
    found = evaluate_objective(parse_objectives(text)[0], both(late, slow))
    assert found.state == said
    assert ("at most 50.0 ms" in found.reason) is (said == "not known")


def test_errors_have_no_lateness() -> None:
    late = measured(30, late_ms=25, errors=200)
    assert state("errors < 1%", late) == "missed"
    assert state("errors < 3%", late) == "met"


def test_what_was_not_achieved_may_be_what_the_client_sent_too_late() -> None:
    assert state("achieved > 99%", measured(1, completed=9_800)) == "missed"
    assert state("achieved > 99%", measured(1, completed=9_800, latest_ms=200)) == "not known"
    assert state("achieved > 99%", measured(1, completed=5_000, latest_ms=200)) == "missed"
    assert state("achieved > 99%", measured(1, completed=9_950, latest_ms=200)) == "met"


def test_most_of_few_requests_beyond_the_limit_miss_it() -> None:
    assert state("p99 < 20ms", measured(30, count=100, share=0.5)) == "missed"
    assert state("p99 < 20ms", measured(30, count=100, share=0.4)) == "not known"
    assert state("p99 < 20ms", measured(10, count=100)) == "not known"
    assert state("p99.9 < 20ms", measured(30, count=100, share=0.5)) == "missed"


@pytest.mark.parametrize(("text", "share"), [("p90 < 20ms", 1.0), ("p90 < 20ms", 0.5)])
def test_few_requests_beyond_a_limit_that_allows_many_prove_nothing(text: str, share: float) -> None:
    assert state(text, measured(30, count=10, share=share)) == "not known"
    assert state(text, measured(30, count=1000, share=share)) == "missed", "enough requests"


def test_a_single_request_is_no_median() -> None:
    assert state("p50 < 1ms", measured(1.1, count=1, share=1.0)) == "not known"
    assert state("p50 < 1ms", measured(0.9, count=1, share=1.0)) == "not known"
    assert state("p50 < 1ms", measured(1.1, count=20, share=1.0)) == "missed"
    assert state("p50 < 1ms", measured(0.9, count=20, share=1.0)) == "met"


@pytest.mark.parametrize(
    ("share", "allowed", "surely"),
    [
        (0.5, 1 - 0.99, True),
        (0.49, 1 - 0.99, False),
        (0.5, 0.001, True),
        (1.0, 0.02, True),
        (0.9, 0.02, False),
        (1.0, 0.1, False),
        (1.0, 0.5, False),
    ],
)
def test_a_chance_of_one_in_fifty_is_what_no_count_has_to_back(share: float, allowed: float, surely: bool) -> None:
    assert surely_missed(share, allowed) is surely


def test_a_load_that_is_invalid_by_lateness_alone_shows_what_it_met() -> None:
    loaded_late = cell().model_copy(
        update={"load": cell().load.model_copy(update={"shape": Open(rate_per_s=1000, connections=8)})}
    )
    recording = simulated_recording(loaded_late, replace(GOOD, lateness_ns=150_000.0))
    judged = load_of(loaded_late, recording, *parse_objectives("p99 < 20ms, p50 < 1us, errors < 1%"))
    assert not judged.valid
    assert [one.state for one in judged.objectives] == ["met", "missed", "met"]
    assert f"✓ p99 at most {duration(int(judged.objectives[0].actual or 0))} < 20 ms" in shown(load_section(judged))


@pytest.mark.parametrize(("kind", "state"), [("engine", "not known"), ("died", "missed")])
def test_a_load_that_the_engine_ended_is_no_miss_of_the_server(kind: FailureKind, state: str) -> None:
    failure = Failure(stage="load", kind=kind, message="it was killed", hint="see its log")
    recording = simulated_recording(cell(), GOOD).model_copy(update={"failure": failure})
    result = result_of(cell(), recording, *parse_objectives("p99 < 20ms, errors < 1%"))
    assert [one.state for one in result.objectives] == [state] * 2


@pytest.mark.parametrize(
    ("valid", "states", "code"),
    [
        (True, [], exits.DONE),
        (True, ["met"], exits.DONE),
        (True, ["met", "missed"], exits.MISSED),
        (True, ["met", "not known"], exits.MISSED),
        (False, [], exits.COULD_NOT_RUN),
        (False, ["met"], exits.DONE),
        (False, ["not known", "missed"], exits.MISSED),
        (False, ["met", "not known"], exits.COULD_NOT_RUN),
    ],
)
def test_what_is_not_known_is_no_pass(valid: bool, states: list[str], code: int) -> None:
    objective = parse_objectives("p99 < 1ms")[0]
    results = [
        ObjectiveResult(objective=objective, actual=None, met=one == "met", known=one != "not known") for one in states
    ]
    assert exit_code(load_result(loaded(valid=valid).model_copy(update={"objectives": tuple(results)}))) == code


MIX = Scenario(
    name="mix", request=Request(name="items", path="/items"), others=(Request(path="/a?b=1"), Request(path="/a?b=1"))
)
NAMES = Selectable.of(("steady",), (MIX, Scenario(name="alone", request=Request(path="/alone"))))


@pytest.mark.parametrize(
    ("text", "request_", "scenario"),
    [
        ("items: p99 < 20ms", "items", None),
        ("GET /a?b=1: p99 < 20ms", "GET /a?b=1", None),
        ("GET /a?b=1 #2: errors < 1%", "GET /a?b=1 #2", None),
        ("mix/items: p99 < 20ms", "items", "mix"),
        ("mix/GET /a?b=1: p99 < 20ms", "GET /a?b=1", "mix"),
        ("mix: p99 < 20ms", None, "mix"),
    ],
)
def test_an_objective_names_a_request(text: str, request_: str | None, scenario: str | None) -> None:
    (objective,) = parse_objectives(text, NAMES)
    assert (objective.request, objective.scenario, objective.text) == (request_, scenario, text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("GET /nothing: p99 < 20ms", "there is no request `GET /nothing`"),
        ("GET /alone: p99 < 20ms", "there is no request `GET /alone`"),
        ("itms: p99 < 20ms", "there is no scenario, load or request `itms`"),
        ("items: achieved > 99%", "the rate of a whole load"),
        ("items: p99 < 20ms, p99 < 30ms", "more than one condition"),
    ],
)
def test_a_request_that_is_not_there_is_refused(text: str, says: str) -> None:
    with pytest.raises(WrongValueError, match=re.escape(says)):
        parse_objectives(text, NAMES)


SENT = Selectable(
    ("full",),
    ("shop", "api"),
    {"shop": ("checkout", "items", "again"), "api": ("items", "GET /b")},
    {"shop": ("POST /checkout", "GET /items", "GET /b"), "api": ("GET /v2/items", "GET /b")},
)


@pytest.mark.parametrize(
    ("text", "request_", "scenario"),
    [
        ("POST /checkout: p99 < 20ms", "checkout", None),
        ("GET /v2/items: p99 < 20ms", "items", "api"),  # not those of the other scenario
        ("shop/GET /b: p99 < 20ms", "again", "shop"),
        ("GET /b: p99 < 20ms", "GET /b", None),  # a label comes first
    ],
)
def test_a_request_with_a_name_may_be_written_as_it_is_sent(text: str, request_: str, scenario: str | None) -> None:
    (objective,) = parse_objectives(text, SENT)
    assert (objective.request, objective.scenario, objective.text) == (request_, scenario, text)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("shop/chekout: errors < 1%", "there is no request `chekout` of `shop`", "did you mean `checkout`?"),
        ("shop/GET /x: errors < 1%", "there is no request `GET /x` of `shop`", "there is: checkout, items, again"),
        ("full/nothing: errors < 1%", "there is no scenario `nothing`", "there is: shop, api"),
    ],
)
def test_a_misspelt_request_of_a_scenario_is_named(text: str, says: str, hint: str) -> None:
    with pytest.raises(WrongValueError, match=re.escape(says)) as raised:
        parse_objectives(text, SENT)
    assert raised.value.hint == hint


def test_several_requests_that_are_sent_alike_need_their_names() -> None:
    names = Selectable((), ("a",), {"a": ("one", "two")}, {"a": ("GET /", "GET /")})
    with pytest.raises(WrongValueError, match="several requests are sent as `GET /`") as raised:
        parse_objectives("GET /: p99 < 1s", names)
    assert raised.value.hint == "name it: one, two"


def test_a_request_is_judged_by_its_own_numbers() -> None:
    quick = RequestTraffic(outcomes=Outcomes(ok=2000), response=Histogram.of([1e6] * 2000))
    slow = RequestTraffic(outcomes=Outcomes(ok=1990, timeout=10), response=Histogram.of([50e6] * 2000))
    made = measured(10).with_requests(MIX, (quick, slow, quick))

    def state_of(text: str) -> str:
        return evaluate_objective(parse_objectives(text, NAMES)[0], made).state

    assert state_of("items: p99 < 20ms") == "met"
    assert state_of("GET /a?b=1: p99 < 20ms") == "missed"
    assert state_of("items: errors < 0.2%") == "met"
    assert state_of("GET /a?b=1: errors < 0.2%") == "missed"
    lacking = replace(made, counts=made.counts.model_copy(update={"exhausted": 3}))
    assert evaluate_objective(parse_objectives("GET /a?b=1: errors < 0.2%", NAMES)[0], lacking).state == "not known"
    unknown = evaluate_objective(parse_objectives("items: p99 < 20ms", NAMES)[0], measured(10))
    assert (unknown.state, unknown.reason) == ("not known", "the load was not counted by request")


def test_a_late_engine_excuses_a_request_too() -> None:
    slow = RequestTraffic(outcomes=Outcomes(ok=2000), response=Histogram.of([30e6] * 2000))
    made = measured(30, service_ms=6, late_ms=25).with_requests(MIX, (slow, slow, slow))
    assert evaluate_objective(parse_objectives("items: p99 < 20ms", NAMES)[0], made).state == "not known"
