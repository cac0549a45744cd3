"""Chains of baselines as waterfalls: every step and the whole, in percent and in CPU time per request."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.model import Closed, Layer, Report, Run, Skipped, Think, Verdict, Waterfall
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.published import published
from tests.fakes.recordings import SATURATE, STEADY, simulated_run

SPEEDS = {"a.base": 20_000.0, "a.layer": 16_000.0, "a.top": 10_000.0}
CHAIN = {"a.layer": "a.base", "a.top": "a.layer"}
BUSY = GOOD.server_busy


def run_of(
    behaviours: dict[str, Behaviour] | None = None,
    baselines: dict[str, str] | None = None,
    *,
    trials: int = 4,
    **more: object,
) -> Run:
    """A run of the chain under both loads; behaviours are in place of a good server of that speed."""
    servers = {name: replace(GOOD, rate_per_s=rate) for name, rate in SPEEDS.items()} | (behaviours or {})
    loads = more.pop("loads", (SATURATE,))
    assert isinstance(loads, tuple)
    run = simulated_run(servers, trials=trials, loads=loads, baseline=None, ceiling=None)
    return with_plan(run, baselines=CHAIN if baselines is None else baselines)


def with_plan(run: Run, *, skipped: tuple[Skipped, ...] = (), without: str = "", **suite: object) -> Run:
    plan = run.manifest.plan
    cells = {cell_id: cell for cell_id, cell in plan.cells.items() if cell.variant.slug != without}
    changed = plan.model_copy(
        update={"suite": plan.suite.model_copy(update=suite), "cells": cells, "skipped": (*plan.skipped, *skipped)}
    )
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": changed})})


def only(report: Report) -> Waterfall:
    (found,) = report.layers
    return found


def holds(layer: Layer, percent: float, cpu_ns: float) -> None:
    """Whether both of its intervals hold the planted value."""
    assert layer.why_not == ()
    ratio = layer.throughput.ratio if layer.throughput else None
    for estimate, truth in ((ratio, percent), (layer.cpu_ns, cpu_ns)):
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= truth <= estimate.high
        assert estimate.value == pytest.approx(truth, rel=0.06)


def test_every_step_and_the_whole_hold_what_was_planted() -> None:
    found = only(build_report(run_of()))
    assert (found.base, found.scenario, found.load) == ("a.base", "SimpleGet", "saturate")
    assert [(step.server, step.against) for step in found.steps] == [("a.layer", "a.base"), ("a.top", "a.layer")]
    assert (found.whole.server, found.whole.against) == ("a.top", "a.base")
    per_request = {name: BUSY * 1e9 / rate for name, rate in SPEEDS.items()}
    for layer in (*found.steps, found.whole):
        holds(
            layer, SPEEDS[layer.server] / SPEEDS[layer.against], per_request[layer.server] - per_request[layer.against]
        )
        assert layer.throughput is not None
        assert layer.throughput.verdict is Verdict.SLOWER
    assert found.base_throughput is not None
    assert found.base_throughput.value == pytest.approx(20_000, rel=0.05)
    assert found.base_cpu is not None
    assert found.base_cpu.value == pytest.approx(49_000, rel=0.05)


def test_a_step_is_the_comparison_of_the_report_and_the_whole_is_made_directly() -> None:
    report = build_report(run_of())
    found = only(report)
    for step in found.steps:
        assert step.throughput in report.comparisons
        assert step.cpu in report.comparisons
    assert found.whole.throughput not in report.comparisons
    assert found.whole.throughput is not None
    assert found.whole.throughput.ratio is not None
    assert found.whole.throughput.ratio.method.endswith("paired by round")


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(2_000, 50_000), min_size=3, max_size=5))
def test_steps_add_up_to_the_whole(speeds: list[float]) -> None:
    names = [f"a.s{place}" for place in range(len(speeds))]
    behaviours = {name: replace(GOOD, rate_per_s=rate) for name, rate in zip(names, speeds, strict=True)}
    run = simulated_run(behaviours, trials=3, loads=(SATURATE,), baseline=None, ceiling=None)
    found = only(build_report(with_plan(run, baselines={one: under for under, one in pairwise(names)})))
    differences = [step.cpu_ns.value for step in found.steps if step.cpu_ns]
    assert found.whole.cpu_ns is not None
    assert sum(differences) == pytest.approx(found.whole.cpu_ns.value, rel=1e-6, abs=1e-3)
    product = 1.0
    for step in found.steps:
        assert step.throughput is not None
        assert step.throughput.ratio is not None
        product *= step.throughput.ratio.value
    assert found.whole.throughput is not None
    assert found.whole.throughput.ratio is not None
    assert product == pytest.approx(found.whole.throughput.ratio.value, rel=1e-6)


def test_where_the_load_decides_how_many_are_answered_there_is_cpu_time_alone() -> None:
    thinking = SATURATE.model_copy(
        update={"name": "thinking", "shape": Closed(users=64, think=Think(mean_ns=1_000_000))}
    )
    report = build_report(run_of(loads=(SATURATE, STEADY, thinking)))
    assert [found.load for found in report.layers] == ["saturate", "steady", "thinking"]
    for found in report.layers[1:]:
        assert found.base_throughput is None
        assert all(layer.throughput is None for layer in (*found.steps, found.whole))
    assert all(layer.cpu_ns is not None for layer in (*report.layers[1].steps, report.layers[1].whole))


def test_the_wholes_of_a_report_are_families_by_metric() -> None:
    more = {"a.other": replace(GOOD, rate_per_s=12_000.0)}
    report = build_report(run_of(more, CHAIN | {"a.other": "a.layer"}))
    wholes = [fall.whole.throughput for fall in report.layers]
    assert [found.family for found in wholes if found] == [2, 2]
    assert {found.family_name for found in wholes if found} == {"throughput of whole chains"}


def test_a_chain_of_one_step_is_no_waterfall() -> None:
    assert build_report(run_of(baselines={"a.layer": "a.base", "a.top": "a.base"})).layers == ()
    assert build_report(run_of(baselines={})).layers == ()
    assert "layers" not in build_report(run_of(baselines={})).model_dump(mode="json")


def test_each_branch_is_a_chain_of_its_own() -> None:
    more = {"a.other": replace(GOOD, rate_per_s=12_000.0), "a.alone": GOOD}
    report = build_report(run_of(more, CHAIN | {"a.other": "a.layer", "a.alone": "a.base"}))
    assert [found.whole.server for found in report.layers] == ["a.top", "a.other"]
    assert report.layers[0].steps[0] == report.layers[1].steps[0]


def test_a_step_that_may_not_be_compared_says_why_and_the_others_stand() -> None:
    found = only(build_report(run_of({"a.layer": replace(GOOD, perturbed=True)})))
    first, second = found.steps
    assert first.why_not == ("the cell was measured with a monitor that perturbs",)
    assert second.why_not == ("the baseline was measured with a monitor that perturbs",)
    assert first.cpu_ns is None
    assert found.whole.why_not == ()
    assert found.whole.cpu_ns is not None


def test_a_step_whose_server_was_skipped_says_so() -> None:
    gone = Skipped(slug="a.layer.SimpleGet.saturate", reason="cargo is not on the PATH")
    found = only(build_report(with_plan(run_of(), without="a.layer", skipped=(gone,))))
    assert [step.why_not for step in found.steps] == [("a.layer was skipped: cargo is not on the PATH",)] * 2
    assert found.whole.cpu_ns is not None
    assert only(build_report(with_plan(run_of(), without="a.base"))).steps[0].why_not == ("a.base is not in this run",)
    assert only(build_report(with_plan(run_of(), without="a.base"))).base_cpu is None


def test_one_trial_has_values_and_no_intervals() -> None:
    found = only(build_report(run_of(trials=1)))
    assert found.whole.cpu_ns is not None
    assert found.whole.cpu_ns.low is None
    assert found.whole.throughput is not None
    assert found.whole.throughput.verdict is None


def test_it_is_read_again_as_it_was_written() -> None:
    report = build_report(run_of())
    assert Report.model_validate_json(report.model_dump_json()) == published(report)
