"""Run -> Report: every field filled, incomplete runs told as they are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.model import (
    COMPARED,
    CellReport,
    Failure,
    FindingKind,
    Grade,
    Histogram,
    Load,
    Metric,
    Open,
    Report,
    Run,
    Series,
    Verdict,
)
from redline.report import build_report
from redline.report.load_words import load_text
from redline.report.renderers.views import marks
from redline.report.views import percentiles
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import (
    MEASURE_NS,
    POST_BYTES,
    SATURATE,
    SIMPLE_GET,
    STEADY,
    simulated_recording,
    simulated_run,
)

SLOWER = replace(GOOD, rate_per_s=16_000.0, response_ns=260_000.0)


def cell_of(report: Report, slug: str) -> CellReport:
    return next(cell for cell in report.cells if cell.slug == slug)


@pytest.fixture(scope="module")
def run() -> Run:
    return simulated_run({"rust.hyper": GOOD, "rust.axum": SLOWER}, scenarios=(SIMPLE_GET, POST_BYTES))


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run)


def test_a_report_has_every_cell_in_the_plans_order_and_survives_json(run: Run, report: Report) -> None:
    assert [cell.cell_id for cell in report.cells] == list(run.manifest.plan.cells)
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert build_report(Run.model_validate_json(run.model_dump_json())) == report


def test_a_good_run_is_valid_and_raises_nothing(report: Report) -> None:
    assert all(cell.valid for cell in report.cells)
    found = {(finding.kind, cell.load) for cell in report.cells for finding in cell.findings}
    assert found == {(FindingKind.SERVER_LIMITED, "saturate")}
    assert not any(marks(cell) for cell in report.cells)
    assert (report.run.complete, report.run.trials_done, report.run.trials_planned) == (True, 60, 60)
    assert (report.run.seed, report.run.suite, report.run.threshold) == (1, "simulated", 0.02)


def test_estimates_are_of_the_trials_put_together(run: Run, report: Report) -> None:
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    traffics = [r.traffic for r in run.recordings if r.cell_id == cell.cell_id and r.traffic]
    merged = Histogram.merged(traffic.response for traffic in traffics)
    completed = sum(traffic.counts.completed for traffic in traffics)
    assert set(cell.estimates) == set(Metric) - {Metric.P9999}
    assert cell.response == merged
    assert cell.counts.completed == completed
    assert cell.counts.outcomes.total == cell.counts.due == merged.count
    assert cell.estimates[Metric.THROUGHPUT].value == pytest.approx(completed / len(traffics))
    for metric, q in ((Metric.P50, 0.5), (Metric.P90, 0.9), (Metric.P99, 0.99), (Metric.P999, 0.999)):
        assert cell.estimates[metric].value == merged.quantile_ns(q)
    for made in cell.estimates.values():
        assert made.n == 5
        assert made.low is not None
        assert made.high is not None
        assert made.low <= made.value <= made.high
    cpu = cell.estimates[Metric.CPU_PER_REQUEST]
    assert cpu.value == pytest.approx(GOOD.server_busy * 5e9 / completed, rel=1e-6)
    assert cell.estimates[Metric.MEMORY].value == pytest.approx(GOOD.rss_bytes, rel=0.01)


def test_percentiles_go_as_deep_as_the_requests_allow_and_end_with_the_maximum(report: Report) -> None:
    points = cell_of(report, "rust.hyper.SimpleGet.saturate").response_percentiles
    shares = [point.q for point in points]
    assert shares[:9] == [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]
    assert shares[9:] == [0.9995, 0.9999, 1.0]
    assert [point.ns for point in points] == sorted(point.ns for point in points)


@given(st.integers(1, 200_000))
@settings(max_examples=30)
def test_no_percentile_rests_on_fewer_than_ten_requests_beyond_it(count: int) -> None:
    histogram = Histogram.of(np.linspace(1e3, 1e6, count))
    points = percentiles(histogram)
    assert points[-1].q == 1.0
    assert points[-1].ns == histogram.max_ns
    assert all(point.q <= 0.5 or count * (1 - point.q) > 9.999 for point in points[:-1])
    assert percentiles(Histogram()) == ()


def test_the_timeline_has_every_interval_in_which_something_happened(run: Run, report: Report) -> None:
    cell = cell_of(report, "rust.hyper.SimpleGet.saturate")
    intervals = [i for r in run.recordings if r.cell_id == cell.cell_id and r.traffic for i in r.traffic.intervals]
    assert len(cell.timeline) == sum(1 for i in intervals if i.counts.due)
    first = cell.timeline[0]
    assert (first.phase, first.at_s) == ("warmup", 0.05)
    assert first.rate_per_s == pytest.approx(20_000, rel=0.1)
    assert 0 < first.p50_ns < first.p99_ns


def test_the_timeline_has_no_trial_that_is_left_out() -> None:
    run = simulated_run({"rust.hyper": GOOD}, loads=(STEADY,), ceiling=None)
    cell = build_report(_with(run, {0: replace(GOOD, outcomes={"reset": 400})})).cells[0]
    assert [trial.position for trial in cell.trials if not trial.used] == [0]
    assert {moment.position for moment in cell.timeline} == {1, 2, 3, 4}


def test_a_broken_trial_is_left_out_and_told() -> None:
    run = simulated_run(loads=(SATURATE,), ceiling=None)
    broken = _with(run, {3: replace(GOOD, outcomes={"malformed": 5}, rate_per_s=90_000.0)})
    cell = next(c for c in build_report(broken).cells if c.cell_id == run.recordings[3].cell_id)
    assert [trial.used for trial in cell.trials].count(False) == 1
    assert cell.valid
    assert cell.estimates[Metric.THROUGHPUT].n == 4
    assert cell.estimates[Metric.THROUGHPUT].value < 25_000
    assert {(f.kind, f.position) for f in cell.findings} == {
        (FindingKind.TOO_FEW_TRIALS, None),
        (FindingKind.WRONG_ANSWERS, 3),
        (FindingKind.SERVER_LIMITED, None),
    }


def test_an_invalid_cell_says_why_and_is_compared_with_nothing() -> None:
    saturated = replace(GOOD, engine_busy=0.99, server_busy=0.4)
    report = build_report(simulated_run({"rust.hyper": GOOD, "rust.axum": saturated}, loads=(SATURATE,)))
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    assert not cell.valid
    assert any(finding.grade is Grade.INVALID for finding in cell.findings)
    refused = [made for made in report.comparisons if made.cell_id == cell.cell_id]
    assert [made.metric for made in refused] == list(COMPARED)
    assert all(made.verdict is None and made.ratio is None for made in refused)
    assert all("the cell is invalid" in made.refused for made in refused)


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
    assert {made.verdict for made in report.comparisons if not made.refused} == {Verdict.INCONCLUSIVE}
    assert {made.metric for made in report.comparisons if made.refused} == {Metric.P999}


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
    run = _with(run, {0: replace(GOOD, failure=died)})
    for cell in build_report(run).cells:
        assert (cell.build, cell.runtime_version) == ("0123456789abcdef", "simulated 1.0")
        tails = {trial.position: trial.log_tail for trial in cell.trials if trial.log_tail}
        assert tails == ({0: "out of memory"} if cell.cell_id == run.recordings[0].cell_id else {})


def test_a_build_that_changed_within_the_run_shows() -> None:
    run = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), ceiling=None)
    assert run.recordings[4].server is not None
    rebuilt = run.recordings[4].server.model_copy(update={"build": "fedcba"})
    last = run.recordings[4].model_copy(update={"server": rebuilt})
    report = build_report(run.model_copy(update={"recordings": (*run.recordings[:4], last)}))
    assert report.cells[0].build == "0123456789abcdef, fedcba"


def test_a_server_near_the_ceiling_is_told_but_not_the_ceiling() -> None:
    report = build_report(simulated_run({"rust.hyper": replace(GOOD, rate_per_s=52_000.0)}))
    near = [cell.slug for cell in report.cells if FindingKind.NEAR_CEILING in {f.kind for f in cell.findings}]
    assert near == ["rust.hyper.SimpleGet.saturate"]


def test_percentiles_without_enough_requests_are_not_estimated() -> None:
    slow = Load(name="slow", shape=Open(rate_per_s=100, connections=8, arrivals="uniform"), duration_ns=MEASURE_NS)
    report = build_report(simulated_run(loads=(slow,)))
    cell = cell_of(report, "rust.axum.SimpleGet.slow")
    assert set(cell.estimates) >= {Metric.P50, Metric.P90, Metric.THROUGHPUT}
    assert not set(cell.estimates) & {Metric.P99, Metric.P999}
    assert FindingKind.TOO_FEW_SAMPLES in {finding.kind for finding in cell.findings}
    refused = {made.metric: made.refused for made in report.comparisons}
    assert "too few for p99" in refused[Metric.P99]
    assert "too few for p99.9" in refused[Metric.P999]
    assert refused[Metric.P50] == ""


def test_without_probes_there_is_no_cpu_and_the_rest_stands() -> None:
    run = simulated_run(loads=(SATURATE,))
    blind = run.model_copy(update={"recordings": tuple(r.model_copy(update={"series": ()}) for r in run.recordings)})
    report = build_report(blind)
    assert set(report.cells[0].estimates) == set(Metric) - {Metric.P9999, Metric.CPU_PER_REQUEST, Metric.MEMORY}
    assert {made.metric: made.refused for made in report.comparisons}[Metric.CPU_PER_REQUEST].startswith("no trials")


def test_a_trial_in_a_line(run: Run, report: Report) -> None:
    cell = cell_of(report, "rust.hyper.SimpleGet.saturate")
    line = cell.trials[2]
    assert (line.round, line.used, line.failure, line.log_tail) == (2, True, "", "")
    assert run.manifest.plan.trials[line.position].cell_id == cell.cell_id
    assert line.rate_per_s == pytest.approx(20_000, rel=0.1)
    assert line.cpu_per_request_ns == pytest.approx(49_000, rel=0.1)
    assert line.p50_ns is not None
    assert line.p99_ns is not None
    assert line.p50_ns < line.p99_ns


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (SATURATE, "closed, 64 users, 1s"),
        (STEADY, "open, 5,000/s uniform, 64 connections, 1s"),
        (
            Load(name="x", shape=Open(rate_per_s=2.5, arrivals="uniform", connections=1), duration_ns=250_000_000),
            "open, 2.5/s uniform, 1 connections, 0.25s",
        ),
    ],
    ids=lambda value: "",
)
def test_a_load_in_words(load: Load, text: str) -> None:
    assert load_text(load) == text


def test_cpu_is_counted_over_the_window_alone() -> None:
    times = tuple(range(0, 1_000, 100))
    series = Series(
        name="cpu_ns",
        unit="ns",
        subject="server",
        kind="counter",
        times_unix_ns=times,
        values=tuple(t * 0.5 for t in times),
    )
    assert series.increase(250, 750) == pytest.approx(250)
    assert series.increase(500, 1_000) == pytest.approx(250)  # its last sample is at 900: the rate up to there stands
    assert series.increase(850, 1_050) is None
    assert series.increase(2_000, 3_000) is None


def test_cpu_of_a_server_that_is_idle_after_the_window_is_not_diluted() -> None:
    """Busy all the time until the load ends at 1000, then idle, and sampled at other moments than that."""
    times = (-70, 30, 130, 330, 530, 730, 930, 1_030, 1_130)
    busy = tuple(float(min(t, 1_000) + 70) for t in times)
    counter = Series(name="cpu_ns", unit="ns", subject="server", kind="counter", times_unix_ns=times, values=busy)
    assert counter.increase(0, 1_000) == pytest.approx(1_000)


def _with(run: Run, changed: dict[int, Behaviour]) -> Run:
    """The run with the trials at these positions behaving otherwise."""
    cells = run.manifest.plan.cells
    recordings = tuple(
        simulated_recording(cells[r.cell_id], changed[r.position], round_=r.round, position=r.position, seed=r.seed)
        if r.position in changed
        else r
        for r in run.recordings
    )
    return run.model_copy(update={"recordings": recordings})
