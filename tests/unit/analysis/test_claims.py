"""What measurements say to published claims."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.analysis.claims import claim_results
from redline.analysis.results import judge_run
from redline.model import Comparison, Estimate, Metric, Report, Run, Skipped
from redline.model.claim import Claim, ClaimResult
from redline.model.estimate import DuetComparison
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, SIMPLE_GET, SIMPLE_GET_MULTI, simulated_run

HALF = replace(GOOD, rate_per_s=GOOD.rate_per_s / 2)
FAST, SLOW, OTHER = (f"{server}.SimpleGet.saturate" for server in ("rust.hyper", "rust.axum", "a.b"))
MULTI = "rust.axum.SimpleGetMulti.saturate"


def run_with(*claims: Claim, trials: int = 4, more: dict[str, Behaviour] | None = None) -> Run:
    behaviours = {"rust.hyper": GOOD, "rust.axum": HALF} | (more or {})
    run = simulated_run(
        behaviours, trials=trials, loads=(SATURATE,), scenarios=(SIMPLE_GET, SIMPLE_GET_MULTI), ceiling=None
    )
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"claims": claims})
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    return run.model_copy(update={"manifest": manifest})


def ratio(of: str, to: str, low: float, high: float | None, metric: Metric = Metric.THROUGHPUT) -> Claim:
    return Claim(text="so", metric=metric, of=of, to=to, expected="so", low=low, high=high)


def only(report: Report) -> ClaimResult:
    (result,) = report.claims
    return result


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (0.3, 0.7, "agrees"),
        (0.0, 1.0, "agrees"),
        (0.3, None, "agrees"),
        (0.8, None, "differs"),
        (0.0, 0.3, "differs"),
        (0.5, None, "not known"),
        (0.0, 0.5, "not known"),
    ],
)
def test_the_whole_interval_decides(low: float, high: float | None, state: str) -> None:
    result = only(build_report(run_with(ratio(SLOW, FAST, low, high))))
    assert (result.state, result.reason) == (state, "")
    assert result.measured is not None
    assert result.measured.value == pytest.approx(0.5, rel=0.05)


def test_the_ends_count_as_published() -> None:
    measured = only(build_report(run_with(ratio(SLOW, FAST, 0.3, 0.7)))).measured
    assert measured is not None
    assert measured.low is not None
    assert measured.high is not None
    for low, high, state in (
        (measured.low, measured.high, "agrees"),
        (measured.low * 1.0001, measured.high, "not known"),
        (measured.low, measured.high * 0.9999, "not known"),
        (measured.high * 1.0001, None, "differs"),
        (0.0, measured.low * 0.9999, "differs"),
    ):
        assert only(build_report(run_with(ratio(SLOW, FAST, low, high)))).state == state


def test_a_ratio_against_the_direction_of_the_comparison_is_its_inverse() -> None:
    there, back = build_report(run_with(ratio(SLOW, FAST, 0.0, 1.0), ratio(FAST, SLOW, 1.0, None))).claims
    assert there.measured is not None
    assert back.measured is not None
    assert (there.state, back.state) == ("agrees", "agrees")
    assert back.measured.value == pytest.approx(1 / there.measured.value)
    assert back.measured.interval == pytest.approx((1 / (there.measured.high or 0), 1 / (there.measured.low or 0)))


def test_cells_without_a_comparison_are_compared_by_their_trials() -> None:
    result = only(build_report(run_with(ratio(MULTI, FAST, 0.3, 0.7))))
    assert result.state == "agrees"
    assert result.measured is not None
    assert result.measured.method.endswith("paired by round")


@pytest.mark.parametrize("metric", [Metric.MEAN, Metric.RECEIVED, Metric.CPU_PER_REQUEST, Metric.P99])
def test_metrics_beyond_the_columns_of_reports(metric: Metric) -> None:
    level = Claim(text="so", metric=metric, of=FAST, expected="> 0", low=0.0)
    first, second = build_report(run_with(ratio(SLOW, FAST, 0.0, None, metric), level)).claims
    assert (first.state, second.state) == ("agrees", "agrees")


def test_levels() -> None:
    level = Claim(text="so", metric=Metric.P50, of=FAST, expected="< 1s", low=0.0, high=1e9)
    slow = Claim(text="so", metric=Metric.P50, of=FAST, expected="> 1s", low=1e9)
    first, second = build_report(run_with(level, slow)).claims
    assert (first.state, second.state) == ("agrees", "differs")
    assert first.measured is not None
    assert first.measured.unit == "ns"


def test_a_level_that_nobody_measured_is_not_known() -> None:
    claim = Claim(text="so", metric=Metric.GAP_P99, of=FAST, expected="< 1ms", low=0.0, high=1e6)
    result = only(build_report(run_with(claim)))
    assert (result.state, result.measured) == ("not known", None)
    assert result.reason == "gap p99 was not measured, or of too few answers"


def test_two_trials_decide_nothing() -> None:
    result = only(build_report(run_with(ratio(SLOW, FAST, 0.0, 1.0), trials=2)))
    assert (result.state, result.reason) == ("not known", "measured 2 of 3 times")


def test_what_is_not_measured_says_why() -> None:
    missing = Claim(text="so", missing="it takes two machines")
    run = run_with(ratio(OTHER, FAST, 0.0, 1.0), missing)
    first, second = build_report(run).claims
    assert (first.state, first.reason) == ("not measured", f"{OTHER}: not in this run")
    assert (second.state, second.reason) == ("not measured", "it takes two machines")
    plan = run.manifest.plan.model_copy(update={"skipped": (Skipped(slug=OTHER, reason="no JDK", cause="machine"),)})
    assert claim_results(plan, {}, (), ())[0].reason == f"{OTHER}: no JDK"


def test_a_run_that_goes_on_says_what_it_has_not_come_to() -> None:
    run = run_with(ratio(SLOW, FAST, 0.0, 1.0))
    (result,) = build_report(run.model_copy(update={"recordings": ()})).claims
    assert (result.state, result.reason) == ("not measured", f"{SLOW}: not measured so far")


def duet(of: str, base: str, low: float, high: float, starts: int = 5) -> Comparison:
    ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, unit="ratio", n=starts, method="duets")
    made = DuetComparison(starts=starts, between_sd=None, blocks_se=None, control=None, alone=None, findings=())
    return Comparison(
        metric=Metric.THROUGHPUT, cell_id=of, baseline_id=base, ratio=ratio, verdict=None, threshold=0.02, duet=made
    )


def test_in_duets_alone_two_ratios_to_one_baseline_give_the_third() -> None:
    run = run_with(ratio(SLOW, OTHER, 0.0, None), more={"a.b": GOOD})
    plan = run.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"alone": False})})
    results, cells = judge_run(run), [cell.model_copy(update={"trials": ()}) for cell in build_report(run).cells]
    base, slow, other = (next(at for at in results if at.startswith(slug)) for slug in (FAST, SLOW, OTHER))
    first, second = duet(slow, base, 0.45, 0.55), duet(other, base, 0.9, 1.2)
    (result,) = claim_results(plan, results, cells, (first, second))
    assert result.measured is not None
    assert result.measured.interval == pytest.approx((0.45 / 1.2, 0.55 / 0.9))
    assert result.state == "agrees"
    (alone,) = claim_results(plan, results, cells, (first,))
    assert (alone.state, alone.measured) == ("not known", None)
    assert "no duet has both" in alone.reason
