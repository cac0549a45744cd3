"""Response times are compared only under equal loads; where users wait for answers, this is reported."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.analysis.compare import CAVEAT, SCHEDULED, off_schedule
from redline.analysis.results import judge_run
from redline.model import Closed, Comparison, Histogram, Load, Metric, Run, Think, Verdict
from redline.stats import QUANTILE_OF
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import MEASURE_NS, SATURATE, STEADY, simulated_run

BEHIND = replace(GOOD, achieved=0.97)
BACKLOG = replace(GOOD, achieved=1.04)
THINKING = Load(name="thinking", shape=Closed(users=64, think=Think(mean_ns=1)), duration_ns=MEASURE_NS)


def run_of(axum: Behaviour, load: Load, hyper: Behaviour = GOOD) -> Run:
    return simulated_run({"rust.hyper": hyper, "rust.axum": axum}, loads=(load,), ceiling=None)


def found(run: Run) -> dict[Metric, Comparison]:
    return {made.metric: made for made in build_report(run).comparisons}


@pytest.mark.parametrize(("hyper", "axum", "who"), [(GOOD, BEHIND, "the cell"), (BEHIND, GOOD, "the baseline")])
def test_a_server_that_does_not_keep_up_is_not_compared_in_latency(hyper: Behaviour, axum: Behaviour, who: str) -> None:
    made = found(run_of(axum, STEADY, hyper))
    for metric, comparison in made.items():
        if metric in QUANTILE_OF:
            assert comparison.refused.startswith(f"{who} answered 97% of what was due")
            assert (comparison.ratio, comparison.verdict, comparison.p) == (None, None, None)
        else:
            assert comparison.refused == ""
            assert (comparison.verdict is not None) == comparison.primary
    judged = {metric for metric, comparison in made.items() if comparison.verdict}
    assert judged == {Metric.THROUGHPUT, Metric.CPU_PER_REQUEST}, "the lower throughput is the finding"
    assert made[Metric.P99].primary, "so that it does not pass a gate"


@pytest.mark.parametrize("metric", [Metric.THROUGHPUT, Metric.CPU_PER_REQUEST])
@pytest.mark.parametrize("hyper", [GOOD, BEHIND], ids=["kept up", "fell behind"])
def test_a_backlog_of_warm_up_is_no_throughput_and_no_cost(hyper: Behaviour, metric: Metric) -> None:
    made = found(run_of(BACKLOG, STEADY, hyper))[metric]
    assert made.refused.startswith("the cell answered 104% of what was due")
    assert (made.ratio, made.verdict, made.p) == (None, None, None)


def test_what_is_within_a_percent_is_compared() -> None:
    made = found(run_of(replace(GOOD, achieved=0.995), STEADY))
    assert {metric: one.refused for metric, one in made.items() if one.refused} == {Metric.THROUGHPUT: SCHEDULED}
    assert {comparison.caveat for comparison in made.values()} == {""}


def test_a_few_requests_at_the_ends_of_a_short_window_forbid_nothing() -> None:
    slow = Load(name="slow", shape=STEADY.shape.model_copy(update={"rate_per_s": 100.0}), duration_ns=MEASURE_NS)
    made = found(run_of(replace(GOOD, achieved=0.985), slow))
    assert made[Metric.P50].refused == ""


def test_what_a_slow_server_has_in_flight_at_the_ends_is_no_rate_of_its_own() -> None:
    results = judge_run(run_of(GOOD, STEADY))
    trial = next(iter(results.values())).having(Metric.P99)[0]
    traffic = trial.traffic
    assert traffic is not None

    def answering(response_ms: float) -> float | None:
        times = Histogram.of([response_ms * 1e6])
        counts = traffic.counts.model_copy(update={"due": 1000, "completed": 980})
        slow = replace(traffic, counts=counts, response=times, seconds=10.0)
        return off_schedule([replace(trial, traffic=slow)])

    assert answering(200.0) is None
    assert answering(100.0) == 0.98


@pytest.mark.parametrize("load", [SATURATE, THINKING], ids=["at once", "thinking"])
def test_where_users_wait_the_ratio_of_latencies_is_reported_to_follow_from_the_rates(load: Load) -> None:
    slower, alike = (found(run_of(replace(GOOD, rate_per_s=rate), load)) for rate in (16_000.0, 20_020.0))
    for metric, comparison in slower.items():
        assert comparison.refused == ""
        assert comparison.caveat == (CAVEAT if metric in QUANTILE_OF else "")
    assert slower[load.primary_metric].verdict is Verdict.SLOWER
    assert slower[Metric.P50].verdict is None
    rates = alike[Metric.THROUGHPUT].ratio
    assert rates is not None
    assert (alike[Metric.P50].caveat == "") == (abs(rates.value - 1) < 0.01)
