"""The capacity of a group is the throughput of its weakest cell, and no cell gets a value that was not measured."""

from dataclasses import replace

import pytest

from redline.analysis import build_report, capacities
from redline.model import Failure, Load, Metric, Open, Run, Share, Skipped, Suite
from redline.suite import make_capacity_plan, make_plan
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import MEASURE_NS, SATURATE, SIMPLE_GET, SIMPLE_GET_MULTI, STEADY, simulated_run

HALF = Load(name="half", shape=Open(connections=64, share=Share(share=0.5, of="saturate")), duration_ns=MEASURE_NS)
FAILURE = Failure(stage="launch", kind="died", message="it does not start", hint="see its log")
DEAD = replace(GOOD, failure=FAILURE)
SPEEDS = {"a.one": 20_000.0, "a.two": 9_000.0, "b.one": 30_000.0, "b.two": 40_000.0, "c.alone": 5_000.0}
BASELINES = {"a.two": "a.one", "b.two": "b.one"}


def capacity_run(*, dead: str = "", scenarios: int = 1) -> Run:
    """The result of the first part of a suite with `half`: two pairs and a server that stands alone."""
    behaviours = {name: DEAD if name == dead else replace(GOOD, rate_per_s=rate) for name, rate in SPEEDS.items()}
    run = simulated_run(
        behaviours,
        trials=3,
        loads=(SATURATE,),
        scenarios=(SIMPLE_GET, SIMPLE_GET_MULTI)[:scenarios],
        baseline=None,
        done=None,
    )
    return with_suite(run, {"loads": (SATURATE, HALF), "baselines": BASELINES})


def with_suite(run: Run, update: dict[str, object]) -> Run:
    plan = run.manifest.plan.model_copy(update={"suite": run.manifest.plan.suite.model_copy(update=update)})
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})


def suite_of(run: Run) -> Suite:
    return run.manifest.plan.suite


def throughput(run: Run, slug: str) -> float:
    (cell,) = (cell for cell in build_report(run).cells if cell.slug == slug)
    return cell.estimates[Metric.THROUGHPUT].value


def test_a_group_has_the_capacity_of_its_weakest() -> None:
    run = capacity_run()
    found = capacities(run)
    assert not found.missing
    assert set(found.per_s) == {f"{name}.SimpleGet.saturate" for name in SPEEDS}
    weakest = {"a.one": "a.two", "a.two": "a.two", "b.one": "b.one", "b.two": "b.one", "c.alone": "c.alone"}
    for name, weaker in weakest.items():
        assert found.per_s[f"{name}.SimpleGet.saturate"] == throughput(run, f"{weaker}.SimpleGet.saturate")


def test_a_chain_is_one_group_from_end_to_end() -> None:
    run = with_suite(capacity_run(), {"baselines": {"a.two": "a.one", "b.one": "a.two", "b.two": "a.two"}})
    found = capacities(run)
    slowest = throughput(run, "a.two.SimpleGet.saturate")
    assert {found.per_s[f"{name}.SimpleGet.saturate"] for name in ("a.one", "a.two", "b.one", "b.two")} == {slowest}
    assert found.per_s["c.alone.SimpleGet.saturate"] < slowest


def test_both_of_a_pair_get_the_same_rate_and_the_same_arrivals() -> None:
    run = capacity_run(scenarios=2)
    found = capacities(run)
    plan = make_plan(suite_of(run), capacities=found)
    rates = {cell.slug: cell.load.shape.rate_per_s for cell in plan.cells.values() if isinstance(cell.load.shape, Open)}
    for scenario in ("SimpleGet", "SimpleGetMulti"):
        weaker = throughput(run, f"a.two.{scenario}.saturate")
        assert rates[f"a.one.{scenario}.half"] == rates[f"a.two.{scenario}.half"] == float(f"{weaker / 2:.3g}")
    assert len(set(rates.values())) == 6
    seeds = {(trial.round, trial.seed) for trial in plan.trials}
    assert len(seeds) == suite_of(run).trials


@pytest.mark.parametrize("dead", ["a.one", "a.two"])
def test_a_cell_that_was_not_measured_validly_leaves_its_group_without_a_rate(dead: str) -> None:
    run = capacity_run(dead=dead)
    found = capacities(run)
    assert set(found.missing) == {"a.one.SimpleGet.saturate", "a.two.SimpleGet.saturate"}
    plan = make_plan(suite_of(run), capacities=found)
    assert {skipped.slug for skipped in plan.skipped} == {"a.one.SimpleGet.half", "a.two.SimpleGet.half"}
    for skipped in plan.skipped:
        assert skipped.reason.startswith(f"without a capacity: {dead}.SimpleGet.saturate: ")
        assert "it does not start" in skipped.reason
    assert {cell.variant.slug for cell in plan.cells.values()} == {"b.one", "b.two", "c.alone"}


def test_the_ceiling_is_of_no_group() -> None:
    run = capacity_run()
    assert "oracle.null.SimpleGet.saturate" in {cell.slug for cell in run.manifest.plan.cells.values()}
    assert "oracle.null.SimpleGet.saturate" not in capacities(run).per_s


def test_what_was_skipped_has_no_capacity_and_keeps_none_from_the_others() -> None:
    run = capacity_run()
    plan = run.manifest.plan
    cells = {cell_id: cell for cell_id, cell in plan.cells.items() if cell.variant.slug != "a.two"}
    less = plan.model_copy(
        update={
            "cells": cells,
            "trials": tuple(trial for trial in plan.trials if trial.cell_id in cells),
            "skipped": (Skipped(slug="a.two.SimpleGet.saturate", reason="no compiler"),),
        }
    )
    found = capacities(run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": less})}))
    assert found.missing == {"a.two.SimpleGet.saturate": "without a capacity: no compiler"}
    assert found.per_s["a.one.SimpleGet.saturate"] == throughput(run, "a.one.SimpleGet.saturate")


def test_a_baseline_of_all_makes_one_group() -> None:
    run = with_suite(capacity_run(), {"baselines": {}, "baseline": "a.one"})
    assert len(set(capacities(run).per_s.values())) == 1


def test_a_capacity_run_is_planned_as_its_suite_says() -> None:
    run = capacity_run()
    assert set(make_capacity_plan(suite_of(run)).cells) == set(run.manifest.plan.cells)


def test_a_report_says_which_of_two_runs_it_is_of() -> None:
    run = capacity_run()
    assert build_report(run).run.about == (
        "a suite that nobody ran; this is the capacity under saturate, of which rates of the run around it are shares"
    )
    plan = make_plan(suite_of(run), capacities=capacities(run))
    manifest = run.manifest.model_copy(update={"plan": plan})
    after = build_report(Run(manifest=manifest, recordings=()))
    assert after.run.about == (
        "a suite that nobody ran; rates are shares of the capacity under saturate, the least of each group, "
        "as the run in capacity/ found it"
    )
    assert all("(50% of saturate)" in cell.load_text for cell in after.cells)
    assert build_report(simulated_run(loads=(SATURATE, STEADY), trials=1)).run.about == "a suite that nobody ran"
