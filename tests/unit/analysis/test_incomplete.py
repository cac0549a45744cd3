"""Run -> Report where something is missing: trials left out, runs cut short, silent servers and monitors."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.model import COMPARED, Failure, Grade, Load, Metric, Open, Report
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import MEASURE_NS, SATURATE, STEADY, simulated_run, with_trials
from tests.fakes.report_cells import cell_of


def test_the_timeline_has_no_trial_that_is_left_out() -> None:
    run = simulated_run({"rust.hyper": GOOD}, loads=(STEADY,), ceiling=None)
    cell = build_report(with_trials(run, {0: replace(GOOD, outcomes={"reset": 400})})).cells[0]
    assert [trial.position for trial in cell.trials if not trial.used] == [0]
    assert {moment.position for moment in cell.timeline} == {1, 2, 3, 4}


def test_a_broken_trial_is_left_out_and_reported() -> None:
    run = simulated_run(loads=(SATURATE,), ceiling=None)
    broken = with_trials(run, {3: replace(GOOD, outcomes={"malformed": 5}, rate_per_s=90_000.0)})
    cell = next(c for c in build_report(broken).cells if c.cell_id == run.recordings[3].cell_id)
    assert [trial.used for trial in cell.trials].count(False) == 1
    assert cell.valid
    assert cell.estimates[Metric.THROUGHPUT].n == 4
    assert cell.estimates[Metric.THROUGHPUT].value < 25_000
    assert {(f.kind, f.position) for f in cell.findings} == {
        ("too-few-trials", None),
        ("wrong-answers", 3),
        ("server-limited", None),
    }


def test_an_invalid_cell_says_why_and_compares_what_its_findings_leave() -> None:
    saturated = replace(GOOD, engine_busy=0.99, server_busy=0.4)
    report = build_report(simulated_run({"rust.hyper": GOOD, "rust.axum": saturated}, loads=(SATURATE,)))
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    assert not cell.valid
    assert any(finding.grade is Grade.INVALID for finding in cell.findings)
    refused = [made for made in report.comparisons if made.cell_id == cell.cell_id]
    assert [made.metric for made in refused] == list(COMPARED)
    unknown = [made for made in refused if made.metric not in {Metric.CPU_PER_REQUEST, Metric.MEMORY}]
    assert all(made.verdict is None and made.ratio is None for made in unknown)
    assert all(made.refused for made in unknown)
    assert any(made.verdict is not None for made in refused if made.metric is Metric.CPU_PER_REQUEST)


def test_a_perturbed_cell_is_shown_but_not_compared() -> None:
    report = build_report(
        simulated_run({"rust.hyper": GOOD, "rust.axum": replace(GOOD, perturbed=True)}, loads=(SATURATE,))
    )
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    assert cell.valid
    assert Metric.THROUGHPUT in cell.estimates
    assert all("perturbs" in made.refused for made in report.comparisons)


@pytest.mark.parametrize("done", [0, 1, 5, 13])
def test_a_run_cut_short_gives_a_report_of_what_there_is(done: int) -> None:
    run = simulated_run(done=done)
    report = build_report(run)
    assert (report.run.complete, report.run.trials_done, report.run.trials_planned) == (False, done, 30)
    assert len(report.cells) == 6
    for cell in report.cells:
        made = sum(1 for recording in run.recordings if recording.cell_id == cell.cell_id)
        assert len(cell.trials) == made
        assert cell.trials_planned == 5
        assert cell.valid is (made > 0)
        assert bool(cell.estimates) is (made > 0)
        assert cell.valid or any(finding.grade is Grade.INVALID for finding in cell.findings)
    Report.model_validate_json(report.model_dump_json())


def test_with_one_trial_there_are_values_without_intervals_and_no_verdict() -> None:
    report = build_report(simulated_run(trials=1))
    for cell in report.cells:
        assert cell.valid
        assert all(made.low is None and made.n == 1 for made in cell.estimates.values())
    assert {made.verdict for made in report.comparisons} == {None}
    assert {made.metric for made in report.comparisons if made.refused} == {Metric.P999, Metric.THROUGHPUT}


def test_a_server_that_never_started_leaves_a_cell_without_numbers() -> None:
    gone = replace(GOOD, failure=Failure(stage="launch", kind="start", message="exit code 1", hint="see its log"))
    report = build_report(simulated_run({"rust.hyper": GOOD, "rust.axum": gone}))
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    assert not cell.valid
    assert cell.estimates == {}
    assert cell.response_percentiles == ()
    assert cell.timeline == ()
    assert all(trial.failure == "launch: exit code 1" and trial.rate_per_s is None for trial in cell.trials)


def test_what_it_takes_to_repeat_and_to_mend_a_trial_is_in_the_report() -> None:
    died = Failure(stage="load", kind="died", message="signal 9", hint="see its log", log_tail="out of memory")
    run = simulated_run(loads=(SATURATE,), ceiling=None)
    run = with_trials(run, {0: replace(GOOD, failure=died)})
    for cell in build_report(run).cells:
        assert (cell.build, cell.runtime_version) == ("0123456789abcdef", "simulated 1.0")
        tails = {trial.position: trial.log_tail for trial in cell.trials if trial.log_tail}
        assert tails == ({0: "out of memory"} if cell.cell_id == run.recordings[0].cell_id else {})


def test_percentiles_without_enough_requests_are_not_estimated() -> None:
    slow = Load(name="slow", shape=Open(rate_per_s=100, connections=8, arrivals="uniform"), duration_ns=MEASURE_NS)
    report = build_report(simulated_run(loads=(slow,)))
    cell = cell_of(report, "rust.axum.SimpleGet.slow")
    assert set(cell.estimates) >= {Metric.P50, Metric.P90, Metric.THROUGHPUT}
    assert not set(cell.estimates) & {Metric.P99, Metric.P999}
    assert "too-few-samples" in {finding.kind for finding in cell.findings}
    refused = {made.metric: made.refused for made in report.comparisons}
    assert "too few for p99" in refused[Metric.P99]
    assert "too few for p99.9" in refused[Metric.P999]
    assert refused[Metric.P50] == ""


def test_without_monitors_there_is_no_cpu_and_the_rest_stands() -> None:
    run = simulated_run(loads=(SATURATE,))
    blind = run.model_copy(update={"recordings": tuple(r.model_copy(update={"series": ()}) for r in run.recordings)})
    report = build_report(blind)
    of_requests = {metric for metric in Metric if not metric.is_of_messages}
    assert set(report.cells[0].estimates) == of_requests - {Metric.P9999, Metric.CPU_PER_REQUEST, Metric.MEMORY}
    assert {made.metric: made.refused for made in report.comparisons}[Metric.CPU_PER_REQUEST].startswith("no trials")
