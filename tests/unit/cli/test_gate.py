"""`redline compare --fail-on`: which verdicts fail, and that a missing comparison has not passed."""

from typing import Literal

import pytest
import typer

from redline.analysis.compare import not_run
from redline.cli import exits
from redline.cli.commands.compare import gate
from redline.errors import RedlineError
from redline.model import COMPARED, Comparison, Metric, Plan, Skipped, Suite, Verdict
from redline.model.compared import CompareResult
from tests.fakes import report_cells
from tests.fakes.recordings import SATURATE, STEADY, simulated_run

TOO_FEW = "500 requests are too few for it"


def result(*unlike: Comparison) -> CompareResult:
    """A cell of a closed load, equivalent in the judged metric, but with these other metrics."""
    found = {
        metric: report_cells.comparison(
            metric, "b-00000001", "a-00000000", 1.0, 0.001, primary=metric in SATURATE.primary_metrics
        )
        for metric in COMPARED
    }
    found |= {comparison.metric: comparison for comparison in unlike}
    return CompareResult(
        base="run", other="run", comparisons=tuple(found.values()), unmatched=(), environment_differs=(), findings=()
    )


def said(metric: Metric, verdict: Verdict | None) -> Comparison:
    """A comparison with this verdict, or refused."""
    comparison = report_cells.comparison(metric, "b-00000001", "a-00000000", 1.0, 0.001).model_copy(
        update={"verdict": verdict}
    )
    return comparison if verdict else comparison.model_copy(update={"ratio": None, "refused": TOO_FEW})


def test_equivalent_everywhere_passes() -> None:
    gate(result(), {Verdict.SLOWER, Verdict.INCONCLUSIVE})


@pytest.mark.parametrize("metric", [*SATURATE.primary_metrics, *STEADY.primary_metrics])
def test_slower_fails(metric: Metric) -> None:
    with pytest.raises(typer.Exit) as left:
        gate(result(said(metric, Verdict.SLOWER)), {Verdict.SLOWER})
    assert left.value.exit_code == exits.MISSED


@pytest.mark.parametrize("ratio", [1.0, 2.0, None])
def test_what_is_described_fails_nothing(ratio: float | None) -> None:
    found = report_cells.comparison(Metric.P999, "b-00000001", "a-00000000", ratio or 1.0, 0.001, primary=False)
    if ratio is None:
        found = found.model_copy(update={"ratio": None, "refused": TOO_FEW})
    gate(result(found), {Verdict.SLOWER, Verdict.INCONCLUSIVE})


def test_what_else_is_refused_or_inconclusive_does_not_pass() -> None:
    with pytest.raises(RedlineError, match=TOO_FEW):
        gate(result(said(Metric.P99, None)), {Verdict.SLOWER})
    with pytest.raises(typer.Exit):
        gate(result(said(Metric.P99, Verdict.INCONCLUSIVE)), {Verdict.INCONCLUSIVE})


def test_nothing_to_compare_is_no_pass() -> None:
    with pytest.raises(RedlineError, match="nothing could be compared"):
        gate(result().model_copy(update={"comparisons": ()}), {Verdict.SLOWER})


@pytest.mark.parametrize("trials", [1, 2])
def test_trials_that_are_too_few_for_a_verdict_are_no_pass(trials: int) -> None:
    one = said(Metric.THROUGHPUT, Verdict.INCONCLUSIVE)
    assert one.ratio is not None
    few = one.model_copy(update={"ratio": one.ratio.model_copy(update={"n": trials}), "verdict": None})
    with pytest.raises(RedlineError, match=f"b: {trials} of the 3 trials that a verdict needs"):
        gate(result(few), {Verdict.SLOWER})


def lacking(server: str, reason: str, cause: Literal["suite", "machine"] | None = "machine", **suite: object) -> Plan:
    """A plan from which the cell of a server was skipped."""
    plan = simulated_run(trials=1, loads=(SATURATE,)).manifest.plan
    return plan.model_copy(
        update={
            "suite": plan.suite.model_copy(update=suite),
            "cells": {cell_id: cell for cell_id, cell in plan.cells.items() if cell.variant.slug != server},
            "skipped": (Skipped(slug=f"{server}.SimpleGet.saturate", reason=reason, cause=cause),),
        }
    )


@pytest.mark.parametrize("server", ["rust.axum", "rust.hyper"])
def test_what_could_not_be_built_is_no_pass(server: str) -> None:
    assert not_run(lacking(server, "cargo failed")) == (f"not run: {server}.SimpleGet.saturate: cargo failed",)


def test_what_is_in_no_comparison_or_ruled_out_by_the_suite_itself_is_not_missed() -> None:
    assert not_run(lacking("oracle.null", "cargo failed")) == ()
    assert not_run(lacking("rust.axum", "cargo failed", baseline=None)) == ()
    suite: Suite = simulated_run().manifest.plan.suite
    needs = suite.scenarios[0].model_copy(update={"requires": {"routes": 128}})
    axum = suite.variants[1].model_copy(update={"options": {"routes": 1}})
    ruled = {"scenarios": (needs,), "variants": (suite.variants[0], axum), "baseline": "rust.hyper"}
    assert not_run(lacking(axum.slug, "it needs routes: 128", "suite", **ruled)) == ()


def test_a_reason_that_repeats_is_said_once() -> None:
    cells = [f"{name}-00000001" for name in "bcd"]
    refused = [said(Metric.THROUGHPUT, None).model_copy(update={"cell_id": cell}) for cell in cells]
    many = result().model_copy(update={"comparisons": tuple(refused)})
    with pytest.raises(RedlineError) as raised:
        gate(many, {Verdict.SLOWER})
    assert str(raised.value).count(TOO_FEW) == 1
    assert f"b, c, d: {TOO_FEW}" in str(raised.value)


def test_a_difference_that_does_not_matter_passes() -> None:
    gate(result(said(Metric.THROUGHPUT, Verdict.SLOWER).with_verdict(Verdict.SLOWER, matters=False)), {Verdict.SLOWER})
