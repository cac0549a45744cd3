"""Objectives in a report: judged where they apply, and also by lost requests."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.document.format import actual
from redline.model import (
    CellReport,
    Closed,
    Failure,
    Load,
    Metric,
    Objective,
    Open,
    Think,
)
from redline.stats.objectives import DEPTHS
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import MEASURE_NS, STEADY, simulated_run, with_trials
from tests.fakes.report_cells import cell_of


def objective(metric: str, limit: float, *, below: bool = True) -> Objective:
    text = f"{metric} {'<' if below else '>'} {limit}"
    return Objective.model_validate({"metric": metric, "below": below, "limit": limit, "text": text})


def test_objectives_are_judged_where_they_apply() -> None:
    objectives = (
        objective("p99", 1e6),
        objective("p50", 1e3),
        objective("max", 1e9),
        objective("errors", 0.001),
        objective("achieved", 0.99, below=False),
    )
    report = build_report(simulated_run({"rust.hyper": GOOD, "rust.axum": GOOD}, objectives=objectives))
    steady = cell_of(report, "rust.axum.SimpleGet.steady")
    assert [(r.objective.metric, r.met) for r in steady.objectives] == [
        ("p99", True), ("p50", False), ("max", True), ("errors", True), ("achieved", True)
    ]  # fmt: skip
    assert steady.objectives[0].actual == steady.estimates[Metric.P99].value
    assert steady.objectives[4].actual == 1.0
    closed = cell_of(report, "rust.axum.SimpleGet.saturate")
    assert [r.objective.metric for r in closed.objectives] == ["p99", "p50", "max", "errors"]
    assert cell_of(report, "oracle.null.SimpleGet.steady").objectives == ()


def test_an_objective_that_was_not_measured_is_not_met() -> None:
    report = build_report(simulated_run(objectives=(objective("p99", 1e9),), done=0))
    results = [result for cell in report.cells for result in cell.objectives]
    assert results
    assert all(result.actual is None and not result.met for result in results)
    assert {(result.state, result.reason) for result in results} == {("not known", "the cell is invalid")}


RESET = replace(GOOD, outcomes={"reset": 400})


DIED = replace(GOOD, failure=Failure(stage="load", kind="died", message="killed by signal 9", hint="see its log"))


GONE = replace(GOOD, failure=Failure(stage="launch", kind="start", message="exit code 1", hint="see its log"))


def objectives_when(*lost: Behaviour, load: Load = STEADY) -> CellReport:
    """The cell of five trials, the first with this behaviour, judged by p99, errors and achieved."""
    objectives = (objective("p99", 1e9), objective("errors", 0.001), objective("achieved", 0.999, below=False))
    run = simulated_run({"rust.hyper": GOOD}, loads=(load,), ceiling=None, objectives=objectives)
    return build_report(with_trials(run, dict(enumerate(lost)))).cells[0]


def test_failing_trials_do_not_vanish_from_the_objectives() -> None:
    cell = objectives_when(RESET, RESET)
    assert cell.valid
    assert [trial.used for trial in cell.trials] == [False, False, True, True, True]
    p99, errors, achieved = cell.objectives
    assert not any(result.met for result in cell.objectives)
    assert errors.actual == pytest.approx(2 * 400 / (5 * 5000))
    assert achieved.actual == pytest.approx(1 - 2 * 400 / (5 * 5000))
    assert p99.actual == cell.estimates[Metric.P99].value
    assert p99.reason == "2 of 5 trials lost to errors, rate-missed"
    assert cell.counts.outcomes.reset == 0


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (replace(GOOD, outcomes={"malformed": 1}), "wrong-answers"),
        (replace(GOOD, achieved=0.9), "rate-missed"),
        (DIED, "server-died"),
        (GONE, "trial-failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trial_that_the_server_lost_meets_no_objective(lost: Behaviour, why: str) -> None:
    cell = objectives_when(lost)
    assert cell.valid
    said = ("missed", f"1 of 5 trials lost to {why}")
    assert [(result.state, result.reason) for result in cell.objectives] == [said] * 3


def test_a_trial_that_the_client_lost_is_not_held_against_the_server() -> None:
    cell = objectives_when(replace(GOOD, lateness_ns=150_000.0))
    assert [trial.used for trial in cell.trials].count(False) == 1
    assert [(result.met, result.reason) for result in cell.objectives] == [(True, "")] * 3


ENGINE = replace(GOOD, failure=Failure(stage="load", kind="engine", message="it was killed", hint="see its log"))


def test_a_trial_that_the_engine_lost_is_not_known_and_no_miss() -> None:
    objectives = (objective("p99", 1e9), objective("p99", 1.0))
    run = simulated_run({"rust.hyper": GOOD}, loads=(STEADY,), ceiling=None, objectives=objectives)
    for lost in ({0: ENGINE}, {0: ENGINE, 1: ENGINE}):
        cell = build_report(with_trials(run, dict(lost))).cells[0]
        assert cell.valid
        said = f"{len(lost)} of 5 trials failed on the engine's side"
        assert [(result.state, result.reason) for result in cell.objectives] == [("not known", said), ("missed", "")]
    assert {result.state for result in objectives_when(*[ENGINE] * 4).objectives} == {"not known"}


@pytest.mark.parametrize("late_ns", [600e6, 1000.0])
def test_how_late_the_engine_was_in_all_trials_excuses_what_was_not_achieved_in_all(late_ns: float) -> None:
    _, errors, achieved = objectives_when(replace(GOOD, lateness_ns=late_ns, achieved=0.9)).objectives
    late = late_ns > 1e6
    assert achieved.state == ("not known" if late else "missed")
    assert errors.state == ("met" if late else "missed")
    assert achieved.reason.startswith("the engine was late" if late else "1 of 5 trials lost to rate-missed")


def test_what_the_engine_could_not_connect_is_no_error_of_the_server() -> None:
    p99, errors, achieved = objectives_when(replace(GOOD, outcomes={"connect": 400}, exhausted=400)).objectives
    assert (p99.state, errors.state, errors.actual) == ("met", "met", 0)
    assert achieved.state == "not known"
    assert achieved.reason == "no port, descriptor or memory was left on the engine's side for 400 requests"
    half = replace(GOOD, outcomes={"connect": 400}, exhausted=200)
    _, errors, _ = objectives_when(half).objectives
    assert errors.actual == pytest.approx(200 / (5 * 5000))


LATE = replace(GOOD, lateness_ns=150_000.0)


def test_what_a_late_client_only_lengthened_is_met_all_the_same() -> None:
    cell = objectives_when(*[LATE] * 4)
    assert not cell.valid
    assert [(result.state, result.at_most) for result in cell.objectives] == [
        ("met", True), ("met", False), ("met", False)
    ]  # fmt: skip


@pytest.mark.parametrize("metric", ["p50", "p75", "p90", "p95", "p99", "p99.9"])
def test_what_is_met_is_a_bound_only_where_the_percentile_itself_is_one(metric: str) -> None:
    """The client's lateness is more than half of p99, and less than half of p50, which is known."""
    late = replace(GOOD, lateness_ns=60_000.0)
    run = simulated_run({"rust.hyper": GOOD}, loads=(STEADY,), ceiling=None, objectives=(objective(metric, 1e9),))
    (cell,) = build_report(with_trials(run, dict.fromkeys(range(5), late))).cells
    assert not cell.valid
    (result,) = cell.objectives
    points = {point.q: point for point in cell.response_percentiles}
    assert result.at_most == (points[DEPTHS[metric]].bound == "at most")
    assert result.at_most == (metric in ("p99", "p99.9"))
    assert actual(result).startswith("at most ") == result.at_most


def test_a_rate_that_a_late_client_missed_is_not_lost_by_the_server() -> None:
    cell = objectives_when(*[replace(LATE, achieved=0.9)] * 4)
    p99, errors, achieved = cell.objectives
    assert (p99.state, p99.at_most) == ("met", True)
    assert "lost" not in errors.reason + achieved.reason


def test_errors_are_the_servers_however_late_the_client_was() -> None:
    cell = objectives_when(*[replace(LATE, outcomes={"reset": 400})] * 4)
    assert {result.state for result in cell.objectives} == {"missed"}
    assert {result.reason for result in cell.objectives} == {"4 of 5 trials lost to errors"}


def test_users_who_think_bound_nothing_where_the_client_is_late() -> None:
    """They arrive later then, and load the server less."""
    thinking = Load(name="think", shape=Closed(users=8, think=Think(mean_ns=1_000_000)), duration_ns=MEASURE_NS)
    cell = objectives_when(*[LATE] * 4, load=thinking)
    assert not cell.valid
    assert (cell.objectives[0].state, cell.objectives[0].reason) == ("not known", "hidden by send-lateness")


def test_an_objective_is_not_judged_by_a_percentile_that_may_not_be_shown() -> None:
    slow = Load(name="slow", shape=Open(rate_per_s=100, connections=8, arrivals="uniform"), duration_ns=MEASURE_NS)
    objectives = (objective("p90", 1e9), objective("p99", 1e9), objective("max", 1e9))
    cell = build_report(simulated_run(loads=(slow,), objectives=objectives)).cells[0]
    assert cell.response.count == 500
    p90, p99, longest = cell.objectives
    assert (p90.met, longest.met) == (True, True)
    assert (p99.actual, p99.state, p99.reason) == (None, "not known", "500 requests are too few for p99")
    assert "too-few-samples" in {finding.kind for finding in cell.findings}
