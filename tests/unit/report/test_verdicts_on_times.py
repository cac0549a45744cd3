"""Response times have verdicts where servers do not set the rate; elsewhere what the rate does not explain is said."""

from functools import cache

import numpy as np
import pytest

from redline.analysis import build_report
from redline.analysis.compare import comparisons_so_far
from redline.document.blocks import Prose
from redline.model import Closed, Comparison, Histogram, Load, Metric, Open, Report, Run, Verdict
from redline.report.answer import run_answer
from redline.report.headline import headline
from redline.suite import parse_objectives
from tests.fakes.compared import Cost, compared_run

OPEN = Load(name="steady", shape=Open(rate_per_s=500, connections=8), duration_ns=10**9)
CLOSED = Load(name="full", shape=Closed(users=8), duration_ns=10**9)
TIMES = (Metric.P50, Metric.P95, Metric.P99)
EQUAL = {"home": Cost(1.0)}


@cache
def at_equal_cpu_time(load: Load, starts: int) -> Run:
    return compared_run(EQUAL, load=load, starts=starts)


def answered(
    load: Load,
    *,
    slower: float = 1.0,
    late_share: float = 0.0,
    late_ms: float = 0.0,
    starts: int = 6,
    seed: int = 1,
    requests: int = 4_000,
) -> Run:
    """A comparison at equal CPU time whose B takes `slower` times as long, and is late with a share of its answers."""
    run, rng = at_equal_cpu_time(load, starts), np.random.default_rng(seed)
    made = []
    for recording in run.duets:
        assert recording.traffic is not None
        targets = []
        for at, target in enumerate(recording.traffic.targets):
            factor = np.exp(rng.normal(0.0, 0.02)) * (slower if at == 1 else 1.0)
            times = 1e6 * factor * np.exp(rng.normal(0.0, 0.3, requests))
            if at == 1:
                times[rng.random(requests) < late_share] += late_ms * 1e6
            counts = target.counts.model_copy(update={"due": requests, "completed": requests})
            targets.append(target.model_copy(update={"counts": counts, "response": Histogram.of(times.tolist())}))
        changed = recording.traffic.model_copy(update={"targets": tuple(targets)})
        made.append(recording.model_copy(update={"traffic": changed}))
    return run.model_copy(update={"duets": tuple(made)})


def by_metric(report: Report) -> dict[Metric, Comparison]:
    return {comparison.metric: comparison for comparison in report.comparisons}


def words(report: Report) -> str:
    (block,) = next(run_answer(report)).blocks
    assert isinstance(block, Prose)
    return "".join(span.text for span in block.lines[0])


def test_a_rate_that_the_load_sets_leaves_response_times_to_the_server() -> None:
    report = build_report(answered(OPEN))
    primary = {metric: each for metric, each in by_metric(report).items() if each.primary}
    assert set(primary) == {Metric.CPU_PER_REQUEST, *TIMES}
    assert {each.family_name for each in primary.values()} == {"CPU per request, p50, p95 and p99 against A"}


def test_users_who_wait_leave_verdicts_to_cpu_time() -> None:
    primary = [each for each in build_report(answered(CLOSED)).comparisons if each.primary]
    assert [each.metric for each in primary] == [Metric.CPU_PER_REQUEST]
    assert primary[0].family_name == "CPU per request against A"


@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=["open", "closed"])
def test_an_objective_makes_its_percentile_count(load: Load) -> None:
    run = answered(load)
    (of_another,) = (each.model_copy(update={"load": "another"}) for each in parse_objectives("p75 < 1s"))
    suite = run.manifest.plan.suite.model_copy(update={"objectives": (*parse_objectives("p99.9 < 1s"), of_another)})
    manifest = run.manifest.with_plan(run.manifest.plan.model_copy(update={"suite": suite}))
    primary = {
        each.metric for each in build_report(run.model_copy(update={"manifest": manifest})).comparisons if each.primary
    }
    assert primary == {Metric.CPU_PER_REQUEST, Metric.P999, *(TIMES if load is OPEN else ())}


def test_a_few_late_answers_at_equal_cpu_time_are_a_verdict() -> None:
    report = build_report(answered(OPEN, late_share=0.03, late_ms=200))
    assert by_metric(report)[Metric.P99].verdict is Verdict.SLOWER
    assert by_metric(report)[Metric.P50].verdict is not Verdict.SLOWER
    assert words(report).startswith("B has 100 times the p99 of A")
    assert "CPU per request is the same within 2%" in words(report)


def test_a_higher_median_is_said_beside_the_cpu_time() -> None:
    report = build_report(answered(OPEN, slower=1.5))
    assert by_metric(report)[Metric.P50].verdict is Verdict.SLOWER
    assert words(report).startswith("B has 1.5 times the p99 of A")
    assert "1.5 times the p50" in words(report)


@pytest.mark.parametrize(("seeds", "most"), [(20, 2), pytest.param(200, 16, marks=pytest.mark.long)])
def test_equal_servers_differ_in_nothing(seeds: int, most: int) -> None:
    """At 95%, some 10 of 200 comparisons may call either server slower in any of the four metrics."""
    wrong = 0
    for seed in range(seeds):
        comparisons = comparisons_so_far(answered(OPEN, seed=seed, starts=4))
        verdicts = [each.verdict for each in comparisons if each.metric in TIMES]
        assert len(verdicts) == len(TIMES)
        wrong += any(verdict in (Verdict.SLOWER, Verdict.FASTER) for verdict in verdicts)
    assert wrong <= most


def test_users_who_wait_leave_what_the_rate_does_not_explain_to_be_described() -> None:
    """The rates are equal, and B answers 3% of its requests 200 ms later."""
    said = words(build_report(answered(CLOSED, late_share=0.03, late_ms=200)))
    assert "no verdict on p99, as only CPU per request is judged: it has" in said
    assert "A against itself" in said


@pytest.mark.parametrize(("seeds", "most"), [(10, 0), pytest.param(100, 2, marks=pytest.mark.long)])
def test_equal_servers_are_hardly_described(seeds: int, most: int) -> None:
    described = sum("no verdict on p" in words(build_report(answered(CLOSED, seed=seed))) for seed in range(seeds))
    assert described <= most


def test_a_percentile_of_too_few_requests_is_not_judged() -> None:
    """So that a short load still has its verdict on CPU time, and on what it has enough requests for."""
    few = answered(OPEN, starts=3, requests=150)
    primary = {each.metric for each in build_report(few).comparisons if each.primary}
    assert primary == {Metric.CPU_PER_REQUEST, Metric.P50, Metric.P95}


def test_the_headline_names_the_metric_of_each_change() -> None:
    (block,) = next(headline(build_report(answered(OPEN, late_share=0.03, late_ms=200)))).blocks
    assert isinstance(block, Prose)
    said = "".join(span.text for span in block.lines[0])
    assert said.startswith("slower: p99 of home +10,")
    assert "p95 of home +1" in said
