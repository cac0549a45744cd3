"""A trial that was cut short hides the numbers of no other: those of whole trials stay, and it keeps its own."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.api.levels import level_of
from redline.api.results import RunResult
from redline.model import CellReport, Failure, Grade, Load, Metric, Objective, Report
from redline.render import RENDERERS
from redline.report.outcomes import outcomes
from redline.report.views import has_result
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, STEADY, simulated_run, with_trials

CUT = replace(GOOD, ended="interrupted", measured=0.3)
DIED = replace(GOOD, failure=Failure(stage="load", kind="died", message="the server exited with code 3", hint=""))
ENDINGS = {
    "interrupted": CUT,
    "deadline": replace(GOOD, ended="deadline", measured=0.4),
    "died": DIED,
    "never started": replace(GOOD, failure=Failure(stage="launch", kind="start", message="exit code 1", hint="")),
    "engine": replace(GOOD, failure=Failure(stage="load", kind="engine", message="the engine ended", hint="")),
    "unread": replace(GOOD, failure=Failure(stage="load", kind="unread", message="cut short", hint="")),
}
P99 = Objective(metric="p99", below=True, limit=1e9, text="p99 < 1s")


def report_of(behaviour: Behaviour, trials: int = 2, ended: int = 1, load: Load = SATURATE) -> Report:
    """A report of two servers; the last of the first one's trials ended early."""
    run = simulated_run(
        {"rust.hyper": GOOD, "rust.axum": GOOD}, trials=trials, loads=(load,), ceiling=None, objectives=(P99,)
    )
    hyper = next(cell.id for cell in run.manifest.plan.cells.values() if cell.variant.slug == "rust.hyper")
    places = [recording.position for recording in run.recordings if recording.cell_id == hyper]
    return build_report(with_trials(run, dict.fromkeys(places[trials - ended :], behaviour)))


def cell_of(report: Report) -> CellReport:
    return next(cell for cell in report.cells if cell.server == "rust.hyper")


def test_a_trial_that_a_condition_ended_fails_in_every_medium() -> None:
    report = report_of(GOOD, trials=3)
    cell = cell_of(report)
    aborted = cell.trials[-1].model_copy(update={"aborted_by": "p99 > 1s for 10s"})
    cut = cell.model_copy(update={"trials": (*cell.trials[:-1], aborted)})
    report = report.model_copy(update={"cells": tuple(cut if one is cell else one for one in report.cells)})
    said = [one for one in outcomes(report) if one.name == "abort_when"]
    assert [(one.state, one.text) for one in said] == [("failed", "a trial was aborted by p99 > 1s for 10s")]
    assert not RunResult(report, None).met
    assert RunResult(report_of(GOOD, trials=3), None).met


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_numbers_of_whole_trials_stay_with_their_number(ending: str) -> None:
    report = report_of(ENDINGS[ending])
    cell = cell_of(report)
    (other,) = (cell for cell in report.cells if cell.server == "rust.axum")
    assert not cell.valid
    assert set(cell.known) == set(other.known)
    assert {estimate.n for estimate in cell.known.values()} == {1}
    assert cell.response_percentiles
    assert cell.timeline
    assert [trial.ended_early for trial in cell.trials] == [False, True]
    assert [trial.used for trial in cell.trials] == [True, False]
    assert level_of(cell, Metric.P99).value == cell.known[Metric.P99].value
    why = next(f.message for f in cell.findings if f.position == cell.trials[1].position and f.grade is Grade.INVALID)
    texts = (str(RunResult(report, None)), *(RENDERERS[name](report).decode() for name in ("md", "html")))
    for text in (" ".join(text.split()) for text in texts):
        assert "rust.hyper: its numbers rest on 1 of 2 trials; the others failed, or were cut short." in text
        assert "has no valid result" not in text
    assert f"trial 2: {why}" in " ".join(texts[0].split())


def test_a_trial_that_was_cut_keeps_its_own_numbers() -> None:
    cell = cell_of(report_of(CUT))
    trial = cell.trials[1]
    assert trial.rate_per_s == pytest.approx(cell.known[Metric.THROUGHPUT].value, rel=0.1)
    assert trial.p99_ns
    assert trial.outcomes
    assert trial.seconds == pytest.approx(0.3, rel=0.2)
    text = " ".join(str(RunResult(report_of(CUT), None)).split())
    assert f"It measured {trial.outcomes.ok:,} ok in " in text


def test_a_server_that_died_has_counts_and_no_speed_of_that_trial() -> None:
    trial = cell_of(report_of(DIED)).trials[1]
    assert (trial.rate_per_s, trial.p99_ns, trial.cpu_per_request_ns) == (None, None, None)
    assert trial.outcomes


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_the_server_lost_is_not_compared_and_what_we_cut_is(ending: str) -> None:
    report = report_of(ENDINGS[ending], trials=4, ended=3)
    cell = cell_of(report)
    servers = ending in ("died", "never started")
    assert has_result(cell) is (not servers and ending != "engine")
    (throughput,) = (made for made in report.comparisons if made.metric is Metric.THROUGHPUT)
    assert (throughput.ratio is None) is servers
    assert throughput.verdict is None
    states = {outcome.state for outcome in outcomes(report) if outcome.subject.startswith("rust.hyper.")}
    assert ("failed" in states or "unknown" in states) is (servers or ending == "engine")
    (objective,) = cell.objectives
    assert objective.state == ("missed" if servers else "not known" if ending == "engine" else "met")


def test_a_cell_whose_trials_all_ended_early_has_no_number() -> None:
    for ending in ENDINGS.values():
        cell = cell_of(report_of(ending, ended=2))
        assert (cell.known, cell.shows_numbers, cell.response_percentiles) == ({}, False, ())


def test_late_trials_beside_a_cut_one_leave_their_bounds() -> None:
    late = replace(GOOD, lateness_ns=150_000.0)
    run = simulated_run({"rust.hyper": late}, trials=3, loads=(STEADY,), ceiling=None)
    (cell,) = build_report(with_trials(run, {2: CUT})).cells
    assert {metric for metric in cell.bounds if cell.bounds[metric].at_most is not None} >= {Metric.P50, Metric.P99}
    assert cell.known[Metric.THROUGHPUT].n == 2
    assert [trial.partly for trial in cell.trials] == [True, True, False]
