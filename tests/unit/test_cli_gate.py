"""`redline compare --fail-on`: which verdicts fail, and that what was not compared has not passed."""

import pytest
import typer

from redline.cli import exits
from redline.cli.contracts import CompareResult
from redline.cli.reports import gate
from redline.errors import RedlineError
from redline.model import COMPARED, Comparison, Metric, Verdict
from tests.fakes import reports

TOO_FEW = "500 requests are too few for it"


def result(*unlike: Comparison) -> CompareResult:
    """One cell, equivalent in every metric but these."""
    ratios = dict.fromkeys(COMPARED, 1.0)
    found = {
        metric: reports.comparison(metric, "b-00000001", "a-00000000", ratio, 0.001) for metric, ratio in ratios.items()
    }
    found |= {comparison.metric: comparison for comparison in unlike}
    return CompareResult(
        base="run", other="run", comparisons=tuple(found.values()), unmatched=(), environment_differs=(), findings=()
    )


def said(metric: Metric, verdict: Verdict | None) -> Comparison:
    """A comparison with this verdict, or refused."""
    told = reports.comparison(metric, "b-00000001", "a-00000000", 1.0, 0.001).model_copy(update={"verdict": verdict})
    return told if verdict else told.model_copy(update={"ratio": None, "refused": TOO_FEW})


def test_equivalent_everywhere_passes() -> None:
    gate(result(), {Verdict.SLOWER, Verdict.INCONCLUSIVE})


@pytest.mark.parametrize("metric", COMPARED)
def test_slower_in_any_metric_fails(metric: Metric) -> None:
    with pytest.raises(typer.Exit) as left:
        gate(result(said(metric, Verdict.SLOWER)), {Verdict.SLOWER})
    assert left.value.exit_code == exits.MISSED


def test_a_far_tail_with_too_few_requests_is_no_failure() -> None:
    gate(result(said(Metric.P999, None)), {Verdict.SLOWER})
    gate(result(said(Metric.P999, None)), {Verdict.SLOWER, Verdict.INCONCLUSIVE})
    gate(result(said(Metric.P999, Verdict.INCONCLUSIVE)), {Verdict.SLOWER, Verdict.INCONCLUSIVE})


def test_what_else_is_refused_or_inconclusive_does_not_pass() -> None:
    with pytest.raises(RedlineError, match=TOO_FEW):
        gate(result(said(Metric.P99, None)), {Verdict.SLOWER})
    with pytest.raises(typer.Exit):
        gate(result(said(Metric.P99, Verdict.INCONCLUSIVE)), {Verdict.INCONCLUSIVE})
