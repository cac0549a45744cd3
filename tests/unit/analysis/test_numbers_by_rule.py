"""Every rule that touches a number, by every consumer of that number: what is sure is used, and nothing else is."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import get_args
from unittest.mock import patch

import pytest

from redline.analysis import build_report, trials
from redline.analysis.capacity import capacities
from redline.analysis.objectives import objective_results
from redline.analysis.results import judge_run
from redline.api.amounts import BoundedAmount
from redline.api.levels import level_of
from redline.document import format as fmt
from redline.errors import NotKnownError
from redline.extras.peers.outputs.redline import read
from redline.findings import RULES, Rule
from redline.findings.load import send_lateness
from redline.findings.machine import client_saturated
from redline.findings.over_time import RATE_CHANGED
from redline.findings.trial import judge_trial
from redline.findings.validity import CHANGES_IN_TIME
from redline.history.over_runs import see
from redline.model import (
    SHOWN,
    Cell,
    CellReport,
    Finding,
    FindingKind,
    Grade,
    Metric,
    Numbers,
    Option,
    Report,
    Run,
    Variant,
    numbers_of,
)
from redline.model.percentile import Effect
from redline.render import RENDERERS
from redline.report.answer import level
from redline.report.curves import distribution, has_curves
from redline.report.results import level_score
from redline.stats import Trial
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.loads import result_of
from tests.fakes.recordings import (
    SATURATE,
    STEADY,
    simulated_cell,
    simulated_recording,
    simulated_run,
    simulated_variant,
)

TOUCHED = "a.layer"
CHAIN = {"a.layer": "a.base", "a.top": "a.layer"}
LATE = replace(GOOD, lateness_ns=150_000.0)
TOUCHING = tuple(rule for rule in RULES.values() if rule.invalid is not None and rule.touches)


def _way(rule: Rule) -> tuple[object, ...]:
    """All that consumers ask of a rule."""
    return frozenset(rule.touches.items()), rule.blames == "server", rule.ends


KINDS: tuple[FindingKind, ...] = (*{_way(rule): rule.kind for rule in TOUCHING}.values(), RATE_CHANGED.kind)
"""A rule for each way in which rules touch numbers, and one that leaves their course."""
METRICS = tuple(SHOWN)
OBJECTIVES = parse_objectives("p99 < 1s") + parse_objectives("p99 < 1us")
Left = Mapping[Metric, Effect | None]


def _injecting(kind: FindingKind, load: str) -> Callable[[Cell, Trial], tuple[Finding, ...]]:
    """The judgement of trials, where those of the touched server under the load also have an invalid finding."""

    def judge(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
        found = [finding for finding in judge_trial(cell, trial) if finding.grade is not Grade.INVALID]
        if cell.variant.slug.startswith(TOUCHED) and cell.load.name == load:
            position = trial.recording.position
            text = f"Because of {kind}."
            advice = "Mend it."
            found.append(
                Finding(kind=kind, grade=Grade.INVALID, message=text, advice=advice, cell_id=cell.id, position=position)
            )
        return tuple(found)

    return judge


def _behaviour(kind: FindingKind) -> Behaviour:
    """Lateness touches only what it makes up."""
    return LATE if "at most" in RULES[kind].touches.values() else GOOD


@cache
def chain_run(late: bool) -> Run:
    servers = {"a.base": GOOD, TOUCHED: LATE if late else GOOD, "a.top": replace(GOOD, rate_per_s=12_000.0)}
    run = simulated_run(servers, trials=4, loads=(SATURATE, STEADY), baseline=None, ceiling=None)
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"baselines": CHAIN, "objectives": OBJECTIVES})
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    return run.model_copy(update={"manifest": manifest})


@cache
def chain_report(kind: FindingKind, load: str) -> Report:
    with patch.object(trials, "judge_trial", _injecting(kind, load)):
        return build_report(chain_run(_behaviour(kind) is LATE))


def touched_cell(kind: FindingKind, load: str) -> CellReport:
    return next(cell for cell in chain_report(kind, load).cells if (cell.server, cell.load) == (TOUCHED, load))


def left_of(rule: Rule, load: str) -> Left:
    """What the rule leaves of each metric."""
    left: dict[Metric, Effect | None] = {}
    for metric in METRICS:
        leaves = rule.touches.get(numbers_of(metric))
        left[metric] = "unknown" if leaves == "at most" and load == "saturate" else leaves
    return left


def sure(rule: Rule, load: str) -> set[Metric]:
    return {metric for metric, leaves in left_of(rule, load).items() if leaves is None}


every_rule = pytest.mark.parametrize("kind", KINDS)
both_loads = pytest.mark.parametrize("load", ["saturate", "steady"])


@every_rule
@both_loads
def test_estimates_and_bounds(kind: FindingKind, load: str) -> None:
    cell, left = touched_cell(kind, load), left_of(RULES[kind], load)
    assert not cell.valid
    for metric, leaves in left.items():
        assert (metric in cell.known) is (leaves is None), metric
        bound = cell.bounds.get(metric)
        assert (bound is not None) is (leaves is not None), metric
        if bound:
            assert bound.finding == kind
            assert (bound.at_most is not None) is (leaves == "at most"), metric
            assert bound.says_something is (leaves != "unknown"), metric
    assert cell.hides(Metric.MEMORY) is ("CPU and memory" in RULES[kind].touches)


def test_a_number_that_most_trials_leave_is_known_and_has_no_bound_though_one_touches_it() -> None:
    def judge(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
        own = sorted({one.position for one in run.recordings if one.cell_id == cell.id}).index(trial.recording.position)
        return _injecting(client_saturated.kind if own == 3 else send_lateness.kind, "steady")(cell, trial)

    run = chain_run(late=True)
    with patch.object(trials, "judge_trial", judge):
        cells = build_report(run).cells
    cell = next(cell for cell in cells if (cell.server, cell.load) == (TOUCHED, "steady"))
    assert "throughput" in client_saturated.touches
    assert not cell.valid
    assert (Metric.THROUGHPUT in cell.known, Metric.THROUGHPUT in cell.bounds) == (True, False)
    assert (Metric.P99 in cell.known, Metric.P99 in cell.bounds) == (False, True)


@every_rule
@both_loads
def test_tables_sentences_explorer_and_python(kind: FindingKind, load: str) -> None:
    cell, left = touched_cell(kind, load), left_of(RULES[kind], load)
    for metric, leaves in left.items():
        score = level_score(cell, metric)
        value, bound = cell.known.get(metric), cell.bounds.get(metric)
        if leaves is None:
            assert value is not None
            assert score.value.startswith(fmt.amount(value.value, value.unit))
            assert level_of(cell, metric).value == value.value
        elif leaves == "unknown":
            assert score.value in ("", fmt.NOT_KNOWN)
            with pytest.raises(NotKnownError, match=f"{metric.words} is not known: .*Because of {kind}"):
                level_of(cell, metric)
        else:
            assert bound is not None
            assert score.value == fmt.bound_sign(bound)
            assert isinstance(level_of(cell, metric), BoundedAmount)
            if metric in (Metric.P99, Metric.THROUGHPUT):
                assert bound.words in level(cell)
    if cell.shows_numbers:
        assert (Metric.THROUGHPUT in sure(RULES[kind], load)) is (
            "answers" in level(cell)
            and "not known" not in level(cell).split(",")[0]
            and "at least" not in level(cell).split(",")[0]
        )


@every_rule
@both_loads
def test_comparisons_layers_and_their_reasons(kind: FindingKind, load: str) -> None:
    report, rule = chain_report(kind, load), RULES[kind]
    cell = touched_cell(kind, load)
    comparable = rule.blames != "server"
    own = {c.metric: c for c in report.comparisons if c.cell_id == cell.cell_id}
    for metric, leaves in left_of(rule, load).items():
        known = leaves is None and comparable
        refused_by_the_load = not known or own[metric].refused == ""
        if own[metric].ratio is None:
            assert own[metric].refused
            assert not known or "schedule" in own[metric].refused or "too few" in own[metric].refused, own[
                metric
            ].refused
        else:
            assert known, metric
        assert refused_by_the_load or own[metric].ratio is None
    (fall,) = (fall for fall in report.layers if fall.load == load)
    cpu = comparable and "CPU and memory" not in rule.touches
    for step in fall.steps:
        assert (step.cpu_ns is not None) is cpu
        assert step.cpu is not None
        assert (step.cpu.ratio is not None) is cpu
        if load == "saturate":
            assert step.throughput is not None
            assert (step.throughput.ratio is not None) is (comparable and "throughput" not in rule.touches)
        assert cpu or kind in " ".join(step.why_not)
    assert fall.whole.cpu_ns is not None  # neither end is touched


@every_rule
@both_loads
def test_rankings(kind: FindingKind, load: str) -> None:
    report, rule, cell = chain_report(kind, load), RULES[kind], touched_cell(kind, load)
    (ranking,) = (ranking for ranking in report.rankings if ranking.load == load)
    placed = {place.cell_id: place for place in ranking.places}
    assert {cell.server for cell in report.cells if cell.cell_id in placed} >= {"a.base", "a.top"}
    leaves = left_of(rule, load)[ranking.metric]
    if leaves is None and rule.blames != "server":
        assert placed[cell.cell_id].estimate == cell.known[ranking.metric]
    elif cell.cell_id in placed:
        assert leaves in ("at most", "at least")
        assert placed[cell.cell_id].estimate is None
        assert placed[cell.cell_id].bound == cell.bounds[ranking.metric]
    else:
        assert kind in ranking.without[cell.cell_id]


def _csv(cell: CellReport, report: Report) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode(), newline=""))
    return {row["metric"]: row for row in rows if row["cell_id"] == cell.cell_id}


@every_rule
def test_csv_json_and_other_files(kind: FindingKind) -> None:
    report, cell, left = chain_report(kind, "steady"), touched_cell(kind, "steady"), left_of(RULES[kind], "steady")
    rows = _csv(cell, report)
    document = json.loads(RENDERERS["json"](report))
    (stored,) = (one for one in document["cells"] if one["cell_id"] == cell.cell_id)
    named = f"{cell.server}/{cell.scenario}/{cell.load}"
    benchmarks = {
        m for m in Metric if f'"{m.value}"' in json.dumps(json.loads(RENDERERS["bmf"](report)).get(named, {}))
    }
    for metric, leaves in left.items():
        assert (rows[metric.value]["value"] != "") is (leaves is None), metric
        assert rows[metric.value]["hidden_by"] == ("" if leaves is None else kind), metric
        assert (rows[metric.value]["at_most"] != "") is (leaves == "at most"), metric
        assert (metric.value in stored["estimates"]) is (leaves is None), metric
        if RULES[kind].blames != "server":
            assert (metric in benchmarks) is (leaves is None), metric
    taken = [one for one in read(document) if one.url == cell.slug]
    assert bool(taken) is (left[Metric.THROUGHPUT] is None or left[Metric.P99] is None)
    for one in taken:
        assert (one.rate_per_s is not None) is (left[Metric.THROUGHPUT] is None)
        assert bool(one.latencies_ns) is (left[Metric.P99] is None)


@every_rule
def test_curves_courses_and_trials(kind: FindingKind) -> None:
    cell, left = touched_cell(kind, "steady"), left_of(RULES[kind], "steady")
    timed, rated = left[Metric.P50] is None, left[Metric.THROUGHPUT] is None
    assert has_curves(cell) is timed or left[Metric.P50] == "at most"
    assert bool(cell.response_curve) is timed
    assert bool(cell.response.count) is timed
    service = RULES[kind].touches.get("service times") is None
    assert bool([point for point in cell.service_percentiles if not point.bound]) is service
    if has_curves(cell):
        assert len(distribution(0, cell)["response"]["x"]) > 0
    in_time = kind in CHANGES_IN_TIME  # what changes is drawn as it changed
    assert bool(cell.timeline) is (rated or in_time)
    assert any(moment.p50_ns for moment in cell.timeline) is ((timed and rated) or in_time)
    for trial in cell.trials:
        if RULES[kind].ends and kind == "cut-short":
            continue  # what was measured until then stays
        assert trial.partly is bool(cell.known)
        assert (trial.rate_per_s is not None) is rated
        assert (trial.p99_ns is not None) is timed
        assert (trial.cpu_per_request_ns is not None) is (left[Metric.CPU_PER_REQUEST] is None)


@every_rule
def test_capacities_and_histories(kind: FindingKind) -> None:
    rule, run = RULES[kind], chain_run(_behaviour(kind) is LATE)
    with patch.object(trials, "judge_trial", _injecting(kind, "saturate")):
        found, seen = capacities(run), see(run, "runs/a", lambda cell: True)
    known = rule.blames != "server" and left_of(rule, "saturate")[Metric.THROUGHPUT] is None
    slug = f"{TOUCHED}.SimpleGet.saturate"
    assert (slug in found.per_s) is known
    assert known or kind in found.missing[slug]
    (sight,) = (sight for sight in seen.cells.values() if sight.slug == slug)
    assert isinstance(sight.levels[Metric.THROUGHPUT], str) is not known


@every_rule
def test_objectives_of_runs_are_decided_by_bounds_alone(kind: FindingKind) -> None:
    cell, rule = touched_cell(kind, "steady"), RULES[kind]
    far, near = (result.state for result in cell.objectives)
    leaves = left_of(rule, "steady")[Metric.P99]
    if rule.blames == "server":
        assert {far, near} == {"missed"}  # by the trials that it lost
    elif leaves is None:
        assert (far, near) == ("met", "missed")
    elif leaves == "at most":
        bound = cell.bounds[Metric.P99]
        assert bound.at_most is not None
        assert bound.at_least is not None
        assert 1e3 < bound.at_least <= bound.at_most < 1e9
        assert (far, near) == ("met", "missed")
        middle = OBJECTIVES[0].model_copy(update={"limit": (bound.at_least + bound.at_most) / 2})
        run = chain_run(late=True)
        with patch.object(trials, "judge_trial", _injecting(kind, "steady")):
            (result,) = objective_results(judge_run(run)[cell.cell_id], [middle])
        assert result.state == "not known"
        assert "the engine was late" in result.reason
    else:
        assert {far, near} == {"not known"}
    for result in cell.objectives:
        assert result.state != "not known" or result.reason


@every_rule
def test_loads_python_and_objectives_agree(kind: FindingKind) -> None:
    cell, rule = simulated_cell(load=STEADY), RULES[kind]
    recording = simulated_recording(cell, _behaviour(kind))
    made = Finding(kind=kind, grade=Grade.INVALID, message=f"Because of {kind}.", advice="Mend it.", cell_id=cell.id)
    with patch.object(trials, "judge_trial", lambda _cell, _trial: (made,)):
        result = result_of(cell, recording, *OBJECTIVES)
    leaves = left_of(rule, "steady")[Metric.P99]
    states = [one.state for one in result.objectives]
    if rule.blames == "server":
        assert set(states) == {"missed"}
    elif leaves == "at most":
        assert (states[0], states[1]) == ("met", "missed")
        p99 = BoundedAmount(
            "p99", "ns", (result.bounds[Metric.P99].at_least, result.bounds[Metric.P99].at_most), ("", "")
        )
        assert p99 < "1s"
        assert not p99 < "1us"
    elif leaves is None:
        assert (states[0], states[1]) == ("met", "missed")
    else:
        assert set(states) == {"not known"}


def _variants() -> Iterable[Variant]:
    plain = simulated_variant(TOUCHED)
    options = {name: Option(values=("off", "on"), default="off") for name in ("log", "gzip")}
    entry = plain.entry.model_copy(update={"options": options})
    for log in ("off", "on"):
        for gzip in ("off", "on"):
            yield plain.model_copy(update={"entry": entry, "options": {"log": log, "gzip": gzip}})


@cache
def options_run(late: bool) -> Run:
    """Two options of a server, of which every variant has trials."""
    made = simulated_run({TOUCHED: GOOD}, loads=(SATURATE,), ceiling=None, baseline=None, trials=4)
    plan, variants = made.manifest.plan, tuple(_variants())
    some = simulated_cell(TOUCHED, load=SATURATE)
    cells = [some.model_copy(update={"variant": variant}) for variant in variants]
    steps = [
        plan.trials[0].model_copy(update={"cell_id": cell.id, "round": r, "position": 4 * r + at, "seed": 4 * r + at})
        for r in range(4)
        for at, cell in enumerate(cells)
    ]
    by_id = {cell.id: cell for cell in cells}
    recordings = tuple(
        simulated_recording(by_id[s.cell_id], LATE if late else GOOD, round_=s.round, position=s.position, seed=s.seed)
        for s in steps
    )
    suite = plan.suite.model_copy(update={"variants": variants, "trials": 4})
    whole = plan.model_copy(update={"suite": suite, "cells": by_id, "trials": tuple(steps)})
    return Run(manifest=made.manifest.model_copy(update={"plan": whole}), recordings=recordings)


@every_rule
def test_effects_and_main_effects(kind: FindingKind) -> None:
    rule = RULES[kind]
    with patch.object(trials, "judge_trial", _injecting(kind, "saturate")):
        report = build_report(options_run(_behaviour(kind) is LATE))
    left, comparable = left_of(rule, "saturate"), rule.blames != "server"
    assert {effect.comparison.metric for effect in report.effects} >= {Metric.THROUGHPUT, Metric.CPU_PER_REQUEST}
    for effect in report.effects:
        metric = effect.comparison.metric
        if metric in left and "too few" not in effect.comparison.refused:
            assert (effect.comparison.ratio is not None) is (left[metric] is None and comparable), metric
            assert effect.comparison.ratio is not None or kind in effect.comparison.refused
    for made in report.main_effects:
        assert bool(made.effects) is (left[made.metric] is None and comparable), made.metric
        assert made.effects or made.refused
        assert made.variants == (4 if made.effects else 0)


def test_every_group_of_numbers_is_touched_by_some_rule_and_left_by_another() -> None:
    for numbers in get_args(Numbers):
        assert {numbers in RULES[kind].touches for kind in KINDS} == {True, False}
