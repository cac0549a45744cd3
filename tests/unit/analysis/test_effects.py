"""Effects: one step on an axis of a server, all else being equal; and baselines of their own in the report."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.model import (
    COMPARED,
    Container,
    Effect,
    Metric,
    Option,
    OptionValue,
    Plan,
    PlannedTrial,
    Report,
    Run,
    Scenario,
    Variant,
    Verdict,
)
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.published import published
from tests.fakes.recordings import (
    SATURATE,
    SIMPLE_GET,
    SIMPLE_GET_MULTI,
    simulated_recording,
    simulated_run,
    simulated_variant,
)

MULTI = SIMPLE_GET_MULTI.model_copy(update={"against": "SimpleGet"})
TRIALS = 4


def variant_of(server: str, **options: OptionValue) -> Variant:
    variant = simulated_variant(server)
    known = {name: Option(values=(1, 128, True, False, "x"), default="x") for name in options}
    return variant.model_copy(update={"entry": variant.entry.model_copy(update={"options": known}), "options": options})


def run_of(
    behaviours: dict[tuple[str, str], Behaviour],
    variants: list[Variant],
    scenarios: tuple[Scenario, ...] = (SIMPLE_GET,),
    baselines: dict[str, str] | None = None,
) -> Run:
    """A run of these variants; variants that are not named by slug and scenario behave well."""
    made = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), scenarios=scenarios, ceiling=None)
    some = next(iter(made.manifest.plan.cells.values()))
    cells = [some.model_copy(update={"variant": v, "scenario": s}) for v in variants for s in scenarios]
    order = [(round_, cell) for round_ in range(TRIALS) for cell in cells]
    recordings = tuple(
        simulated_recording(
            cell,
            behaviours.get((cell.variant.slug, cell.scenario.name), GOOD),
            round_=round_,
            position=position,
            seed=position,
        )
        for position, (round_, cell) in enumerate(order)
    )
    suite = made.manifest.plan.suite.model_copy(
        update={
            "variants": tuple(variants),
            "scenarios": scenarios,
            "baseline": None,
            "baselines": baselines or {},
            "trials": TRIALS,
        }
    )
    trials = tuple(
        PlannedTrial(cell_id=cell.id, round=round_, position=position, seed=position)
        for position, (round_, cell) in enumerate(order)
    )
    plan = Plan(suite=suite, cells={cell.id: cell for cell in cells}, trials=trials)
    return Run(manifest=made.manifest.model_copy(update={"plan": plan}), recordings=recordings)


def steps(report: Report) -> list[tuple[str, str, str, str]]:
    """Every effect once: its cell, axis, value and reference."""
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    effects = [(slugs[made.comparison.cell_id], made.axis, made.value, made.reference) for made in report.effects]
    assert len(effects) == len(COMPARED) * len(set(effects))
    return list(dict.fromkeys(effects))


SLOW = replace(GOOD, rate_per_s=10_000.0)


def test_each_value_is_compared_with_the_first_of_the_suite() -> None:
    variants = [variant_of("a.one", routes=routes, log=log) for routes in (128, 1) for log in (False, True)]
    report = build_report(run_of({(variants[1].slug, "SimpleGet"): SLOW}, variants))
    assert steps(report) == [
        ("a.one+log=on+routes=128.SimpleGet.saturate", "log", "on", "off"),
        ("a.one+log=off+routes=1.SimpleGet.saturate", "routes", "1", "128"),
        ("a.one+log=on+routes=1.SimpleGet.saturate", "routes", "1", "128"),
        ("a.one+log=on+routes=1.SimpleGet.saturate", "log", "on", "off"),
    ]
    first = report.effects[0].comparison
    assert first.ratio is not None
    assert first.ratio.value == pytest.approx(0.5, rel=0.05)
    assert first.ratio.method.endswith("paired by round")
    assert first.verdict is Verdict.SLOWER
    assert first.baseline_id.startswith("a.one+log=off+routes=128")


def test_only_where_all_else_is_equal() -> None:
    apart = [variant_of("a.one", routes=1, log=False), variant_of("a.one", routes=128, log=True)]
    assert build_report(run_of({}, apart)).effects == ()
    servers = [variant_of("a.one", routes=1), variant_of("a.two", routes=128)]
    assert build_report(run_of({}, servers)).effects == ()
    spoken = [variant_of("a.one", routes=1), variant_of("a.one", routes=128).model_copy(update={"http": "2"})]
    assert build_report(run_of({}, spoken)).effects == ()


def test_a_place_is_an_axis_too_and_no_step_of_an_option_crosses_it() -> None:
    here = [variant_of("a.one", routes=routes) for routes in (1, 128)]
    boxed = [each.model_copy(update={"container": Container(cpus=0.5)}) for each in here]
    assert steps(build_report(run_of({}, [here[0], *boxed]))) == [
        ("a.one+routes=1+container-cpus=0.5.SimpleGet.saturate", "in", "container-cpus=0.5", "process"),
        ("a.one+routes=128+container-cpus=0.5.SimpleGet.saturate", "routes", "128", "1"),
    ]


def test_a_value_that_is_skipped_is_no_reference() -> None:
    run = run_of({}, [variant_of("a.one", routes=routes) for routes in (1, 128, "y")])
    plan = run.manifest.plan
    cells = {cell_id: cell for cell_id, cell in plan.cells.items() if cell.variant.options != {"routes": 1}}
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": cells})})
    left = run.model_copy(update={"manifest": manifest})
    assert steps(build_report(left)) == [("a.one+routes=y.SimpleGet.saturate", "routes", "y", "128")]


def test_a_scenario_against_another_on_the_same_server() -> None:
    variants = [variant_of("a.one"), variant_of("a.two")]
    report = build_report(run_of({("a.two", "SimpleGetMulti"): SLOW}, variants, (MULTI, SIMPLE_GET)))
    assert steps(report) == [
        ("a.one.SimpleGetMulti.saturate", "scenario", "SimpleGetMulti", "SimpleGet"),
        ("a.two.SimpleGetMulti.saturate", "scenario", "SimpleGetMulti", "SimpleGet"),
    ]
    verdicts = [made.comparison.verdict for made in report.effects if made.comparison.metric == "throughput"]
    assert verdicts[1] is Verdict.SLOWER
    assert verdicts[0] is not Verdict.SLOWER
    assert build_report(run_of({}, variants, (MULTI,))).effects == ()


def test_an_effect_is_refused_as_a_comparison_is() -> None:
    variants = [variant_of("a.one", log=False), variant_of("a.one", log=True)]
    report = build_report(run_of({("a.one+log=off", "SimpleGet"): replace(GOOD, perturbed=True)}, variants))
    assert {made.comparison.refused for made in report.effects} == {
        "the baseline was measured with a monitor that perturbs"
    }


def test_an_effect_that_is_a_comparison_too_says_the_same() -> None:
    variants = [variant_of("a.one", routes=1, log=log) for log in (False, True, "x")]
    first, second, third = (variant.slug for variant in variants)
    report = build_report(run_of({}, variants, baselines={second: first}))
    compared = {(one.cell_id, one.baseline_id, one.metric): one for one in report.comparisons}
    effects = {
        (one.comparison.cell_id, one.comparison.baseline_id, one.comparison.metric): one for one in report.effects
    }
    assert compared.items() <= {key: one.comparison for key, one in effects.items()}.items()
    rest = [one.comparison for key, one in effects.items() if key not in compared]
    assert {one.cell_id.split(".SimpleGet")[0] for one in rest} == {third}
    assert {(one.family_name, one.family) for one in rest if one.primary} == {
        ("throughput by log", 1),
        ("CPU per request by log", 1),
    }


def test_without_axes_there_is_no_effect_and_the_ceiling_has_none() -> None:
    assert build_report(simulated_run()).effects == ()
    survives = build_report(simulated_run(scenarios=(SIMPLE_GET, MULTI)))
    assert not [made for made in survives.effects if made.comparison.cell_id.startswith("oracle.null")]
    assert Report.model_validate_json(survives.model_dump_json()) == published(survives)
    assert isinstance(survives.effects[0], Effect)


def test_each_server_is_compared_with_its_own_baseline() -> None:
    variants = [variant_of(name) for name in ("a.plain", "a.tapir", "b.plain", "b.tapir", "c.alone")]
    pairs = {"a.tapir": "a.plain", "b.tapir": "b.plain"}
    report = build_report(run_of({("b.tapir", "SimpleGet"): SLOW}, variants, baselines=pairs))
    servers = {cell.cell_id: cell.server for cell in report.cells}
    assert {servers[one.cell_id]: servers[one.baseline_id] for one in report.comparisons} == pairs
    assert len(report.comparisons) == 2 * len(COMPARED)
    assert [cell.server for cell in report.cells if cell.is_baseline] == ["a.plain", "b.plain"]
    verdicts = {servers[one.cell_id]: one.verdict for one in report.comparisons if one.metric == "throughput"}
    assert verdicts["b.tapir"] is Verdict.SLOWER
    assert verdicts["a.tapir"] is not Verdict.SLOWER


def test_an_effect_is_judged_in_the_metric_that_the_suite_names() -> None:
    variants = [variant_of("a.one", routes=routes, log=False) for routes in (128, 1)]
    run = run_of({(variants[1].slug, "SimpleGet"): SLOW}, variants)
    plan = run.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"metric": Metric.CPU_PER_REQUEST})})
    run = run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})
    judged = {made.comparison.metric for made in build_report(run).effects if made.comparison.verdict is not None}
    assert judged == {Metric.CPU_PER_REQUEST}
