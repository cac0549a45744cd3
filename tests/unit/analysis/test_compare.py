"""Comparisons in a report and of two runs: with their own baselines, paired by round, or refused with a reason."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.analysis.compare import SCHEDULED
from redline.model import (
    COMPARED,
    Failure,
    Metric,
    Report,
    Run,
    Verdict,
)
from redline.stats import QUANTILE_OF
from tests.fakes.behaviour import GOOD
from tests.fakes.compared_runs import runs_compared
from tests.fakes.recordings import POST_BYTES, SATURATE, SIMPLE_GET, STEADY, simulated_run
from tests.fakes.report_cells import cell_of

SLOWER = replace(GOOD, rate_per_s=16_000.0, response_ns=260_000.0)


SLOWER_WHERE_JUDGED = dict.fromkeys(COMPARED) | dict.fromkeys(SATURATE.primary_metrics, Verdict.SLOWER)


def verdicts(report: Report, slug: str) -> dict[Metric, Verdict | None]:
    cell = cell_of(report, slug)
    return {made.metric: made.verdict for made in report.comparisons if made.cell_id == cell.cell_id}


@pytest.fixture(scope="module")
def run() -> Run:
    return simulated_run({"rust.hyper": GOOD, "rust.axum": SLOWER}, scenarios=(SIMPLE_GET, POST_BYTES))


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return build_report(run)


def test_each_subject_is_compared_with_the_baseline_in_its_own_scenario_and_load(report: Report) -> None:
    by_id = {cell.cell_id: cell for cell in report.cells}
    assert len(report.comparisons) == 2 * 2 * len(COMPARED)
    for made in report.comparisons:
        cell, baseline = by_id[made.cell_id], by_id[made.baseline_id]
        assert (cell.server, baseline.server) == ("rust.axum", "rust.hyper")
        assert (cell.scenario, cell.load) == (baseline.scenario, baseline.load)
        assert baseline.is_baseline
        assert not cell.is_baseline
        if made.metric is Metric.THROUGHPUT and made.cell_id.startswith("rust.axum") and cell.load == "steady":
            assert made.refused == SCHEDULED
            continue
        assert made.ratio is not None
        # Percentiles by the middle of the rounds' ratios, not by that of the levels.
        assert made.ratio.value == pytest.approx(
            cell.estimates[made.metric].value / baseline.estimates[made.metric].value,
            rel=0.03 if made.metric in QUANTILE_OF else 1e-6,
        )
    closed = verdicts(report, "rust.axum.SimpleGet.saturate")
    assert closed == SLOWER_WHERE_JUDGED
    assert verdicts(report, "rust.axum.SimpleGet.steady") == dict.fromkeys(COMPARED) | {
        Metric.P99: Verdict.SLOWER,
        Metric.CPU_PER_REQUEST: Verdict.EQUIVALENT,
    }


def test_one_metric_of_each_load_and_cpu_per_request_are_judged_and_each_is_a_family(report: Report) -> None:
    judged = [made for made in report.comparisons if made.p is not None]
    assert len(judged) == 2 * 2 * 2
    assert {(made.metric, made.family_name, made.family) for made in judged} == {
        (Metric.CPU_PER_REQUEST, "CPU per request against rust.hyper", 4),
        (Metric.THROUGHPUT, "throughput against rust.hyper", 2),
        (Metric.P99, "p99 against rust.hyper", 2),
    }
    assert judged == [made for made in report.comparisons if made.primary]
    described = [made for made in report.comparisons if not made.primary]
    assert {(made.verdict, made.p_adjusted, made.p_equivalent) for made in described} == {(None, None, None)}
    assert {made.refused for made in described if made.ratio is None} == {SCHEDULED}


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_fewer_than_three_trials_have_a_ratio_and_no_verdict(trials: int) -> None:
    run = simulated_run({"rust.hyper": GOOD, "rust.axum": SLOWER}, loads=(SATURATE,), trials=trials)
    for comparisons in (build_report(run).comparisons, runs_compared(run, run).comparisons):
        made = next(one for one in comparisons if one.metric is Metric.THROUGHPUT)
        assert made.primary
        assert made.ratio is not None
        assert (made.verdict is None, made.p is None) == (trials < 3, trials < 3)


def test_drift_over_the_run_is_cancelled_by_pairing() -> None:
    drifted = simulated_run({"rust.hyper": GOOD, "rust.axum": SLOWER}, loads=(SATURATE,), drift=0.6, trial_effect=0.002)
    assert verdicts(build_report(drifted), "rust.axum.SimpleGet.saturate") == SLOWER_WHERE_JUDGED


def test_a_comparison_with_an_invalid_baseline_is_refused() -> None:
    died = replace(GOOD, failure=Failure(stage="load", kind="died", message="killed by signal 9", hint="see its log"))
    report = build_report(simulated_run({"rust.hyper": died, "rust.axum": GOOD}, loads=(SATURATE,)))
    assert all("the baseline is invalid" in made.refused for made in report.comparisons)
    assert "signal 9" in report.comparisons[0].refused


def test_without_a_baseline_nothing_is_compared() -> None:
    assert build_report(simulated_run(baseline=None, loads=(SATURATE,))).comparisons == ()


def test_two_runs_are_compared_cell_by_cell() -> None:
    base = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE, STEADY), seed=1)
    other = simulated_run({"rust.hyper": SLOWER, "rust.axum": GOOD}, loads=(SATURATE,), seed=2)
    kernel = other.manifest.environment.model_copy(update={"kernel": "6.2.0"})
    other = other.model_copy(
        update={"manifest": other.manifest.model_copy(update={"environment": kernel, "name": "B"})}
    )
    compared = runs_compared(base, other)
    hyper = {c.metric: c.verdict for c in compared.comparisons if c.cell_id.startswith("rust.hyper")}
    assert hyper == SLOWER_WHERE_JUDGED
    assert {c.cell_id for c in compared.comparisons} == {c.baseline_id for c in compared.comparisons}
    assert "only in B: rust.axum.SimpleGet.saturate" in compared.unmatched
    assert any("rust.hyper.SimpleGet.steady" in line for line in compared.unmatched)
    assert [str(one) for one in compared.environment_differs] == ["kernel: 6.1.0 -> 6.2.0"]


def test_the_ceiling_is_no_competitor_across_runs_either() -> None:
    run = simulated_run(loads=(SATURATE,))
    assert "oracle.null" in {cell.variant.slug for cell in run.manifest.plan.cells.values()}
    assert not [made for made in runs_compared(run, run).comparisons if made.cell_id.startswith("oracle.null")]


def test_a_run_against_itself_shows_no_difference() -> None:
    run = simulated_run(loads=(SATURATE,))
    compared = runs_compared(run, run)
    assert (compared.unmatched, compared.environment_differs) == ((), ())
    assert {made.ratio.value for made in compared.comparisons if made.ratio} == {1.0}
    assert not {made.verdict for made in compared.comparisons} & {Verdict.FASTER, Verdict.SLOWER}


def test_two_runs_are_judged_in_the_metric_that_the_base_names() -> None:
    base, other = (simulated_run({"rust.hyper": made}, loads=(SATURATE,)) for made in (GOOD, SLOWER))
    plan = base.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"metric": Metric.CPU_PER_REQUEST})})
    base = base.model_copy(update={"manifest": base.manifest.model_copy(update={"plan": plan})})
    judged = {made.metric for made in runs_compared(base, other).comparisons if made.verdict is not None}
    assert judged == {Metric.CPU_PER_REQUEST}
