"""Run -> Report: every field filled, from all trials of a cell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.analysis.cells import percentiles
from redline.model import Histogram, Load, Metric, Open, Report, Run
from redline.suite.load_text import load_text
from tests.fakes.behaviour import GOOD
from tests.fakes.published import published
from tests.fakes.recordings import POST_BYTES, SATURATE, SIMPLE_GET, STEADY, simulated_run
from tests.fakes.report_cells import cell_of
from tests.fakes.reports import marks

SLOWER = replace(GOOD, rate_per_s=16_000.0, response_ns=260_000.0)


@pytest.fixture(scope="module")
def run() -> Run:
    return simulated_run({"rust.hyper": GOOD, "rust.axum": SLOWER}, scenarios=(SIMPLE_GET, POST_BYTES))


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run)


def test_a_report_has_every_cell_in_the_plans_order_and_survives_json(run: Run, report: Report) -> None:
    assert [cell.cell_id for cell in report.cells] == list(run.manifest.plan.cells)
    assert Report.model_validate_json(report.model_dump_json()) == published(report)
    assert build_report(Run.model_validate_json(run.model_dump_json())) == report


def test_a_good_run_is_valid_and_raises_nothing(report: Report) -> None:
    assert all(cell.valid for cell in report.cells)
    found = {(finding.kind, cell.load) for cell in report.cells for finding in cell.findings}
    assert found == {("server-limited", "saturate")}
    assert not any(marks(cell) for cell in report.cells)
    assert (report.run.complete, report.run.trials_done, report.run.trials_planned) == (True, 60, 60)
    assert (report.run.seed, report.run.suite, report.run.threshold) == (1, "simulated", 0.02)


def test_estimates_are_of_the_trials_put_together(run: Run, report: Report) -> None:
    cell = cell_of(report, "rust.axum.SimpleGet.saturate")
    traffics = [r.traffic for r in run.recordings if r.cell_id == cell.cell_id and r.traffic]
    merged = Histogram.merged(traffic.response for traffic in traffics)
    completed = sum(traffic.counts.completed for traffic in traffics)
    assert set(cell.estimates) == {metric for metric in Metric if not metric.is_of_messages} - {Metric.P9999}
    assert cell.response == merged
    assert cell.counts.completed == completed
    assert cell.counts.outcomes.total == cell.counts.due == merged.count
    assert cell.estimates[Metric.THROUGHPUT].value == pytest.approx(completed / len(traffics))
    received = sum(traffic.counts.bytes_received for traffic in traffics)
    assert cell.estimates[Metric.RECEIVED].value == pytest.approx(received / len(traffics))
    assert cell.estimates[Metric.MEAN].value == pytest.approx(merged.mean_ns)
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


def test_a_build_that_changed_within_the_run_shows() -> None:
    run = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), ceiling=None)
    assert run.recordings[4].server is not None
    rebuilt = run.recordings[4].server.model_copy(update={"build": "fedcba"})
    last = run.recordings[4].model_copy(update={"server": rebuilt})
    report = build_report(run.model_copy(update={"recordings": (*run.recordings[:4], last)}))
    assert report.cells[0].build == "0123456789abcdef, fedcba"


def test_a_server_near_the_ceiling_is_reported_but_not_the_ceiling() -> None:
    report = build_report(simulated_run({"rust.hyper": replace(GOOD, rate_per_s=52_000.0)}))
    near = [cell.slug for cell in report.cells if "near-ceiling" in {f.kind for f in cell.findings}]
    assert near == ["rust.hyper.SimpleGet.saturate"]


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
