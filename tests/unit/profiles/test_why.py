"""The account of a difference, from sampled starts to the report's sentence."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from redline.analysis import build_report
from redline.model import (
    DuetRecording,
    Failure,
    Library,
    ProfileFacts,
    ProfileFile,
    Run,
    Skipped,
    Slice,
    Stack,
    Stacks,
    TouchedFunction,
)
from redline.model.run import StoredProfiles
from redline.profiles.libraries import Libraries
from redline.render.csvfile import rows
from redline.render.renderers import as_markdown
from redline.suite.planning import make_plan
from tests.fakes.compared import compared_run
from tests.fakes.duets import simulated_duet
from tests.unit.report.test_metrics_of_duets import with_suite

COSTS = {"A": {"often": 0.7, "seldom": 0.3}, "B": {"often": 0.7, "seldom": 0.35}}
"""Costs of functions, or of a path of callers: B needs 5% more, all of it in `seldom`."""
SAMPLES, SECOND = 2_000, 10**9


def sampled_run(costs: Mapping[str, Mapping[str, float]] = COSTS, *, problem: str = "") -> Run:
    """A comparison whose servers were sampled in eight further starts."""
    run, stacks = with_suite(compared_run(), why=True), dict[str, Stacks]()
    suite = run.manifest.plan.suite
    planned = make_plan(suite.model_copy(update={"trials": len(run.duets)}))
    plan = run.manifest.plan.sampling(planned.sampled, ())
    total, sampled = sum(costs["B"].values()), list[DuetRecording]()
    for duet in plan.sampled:
        made = simulated_duet(100 + duet.round, (1.0, total), cell_ids=duet.cell_ids, position=duet.position)
        profiles = []
        for target, name in enumerate("ABA"):
            file = f"profiles/{duet.position}.{target}"
            stacks[file] = drawn(np.random.default_rng((duet.round, target)), costs[name])
            profiles.append(facts(made, file, problem))
        sampled.append(made.model_copy(update={"round": duet.round, "profiles": tuple(profiles)}))
    return run.model_copy(
        update={
            "manifest": run.manifest.with_plan(plan),
            "sampled": tuple(sampled),
            "profiles": StoredProfiles(stacks.__getitem__, tuple),
        }
    )


def drawn(rng: np.random.Generator, costs: Mapping[str, float]) -> Stacks:
    shares = np.array([*costs.values()]) / sum(costs.values())
    weights = Counter[Stack]()
    for name, weight in zip(costs, rng.multinomial(SAMPLES, shares), strict=True):
        weights[Stack(("serve", *name.split(";")))] += int(weight)
    return Stacks(weights)


def facts(made: DuetRecording, file: str, problem: str) -> ProfileFacts:
    assert made.traffic is not None
    epoch = made.traffic.epoch_unix_ns
    return ProfileFacts(
        kind="cpu",
        subject="server",
        profiler="perf 6.1",
        event="cpu-clock",
        interval=1_003_009,
        samples=SAMPLES,
        started=Slice(epoch + 3 * SECOND // 2, epoch + 8 * SECOND // 5),
        stopped=Slice(epoch + 29 * SECOND // 5, epoch + 6 * SECOND),
        files=() if problem else (ProfileFile(name=file, form="stacks"),),
        problem=problem,
    )


def test_the_function_with_the_planted_cost_is_named_with_its_size() -> None:
    report = build_report(sampled_run())
    (why,) = report.why
    assert [cost.name for cost in why.functions] == ["seldom"]
    difference, whole = why.functions[0].difference_ns, why.whole_ns
    assert whole is not None
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low < 0.05 * 20_000 < difference.high
    assert why.others_ns is not None
    assert why.rest_ns is not None
    assert difference.value + why.others_ns.value + why.rest_ns.value == pytest.approx(whole.value)
    assert (why.starts, why.samples, why.overhead is None) == (8, 8 * 3 * SAMPLES, False)
    text = as_markdown(report).decode()
    assert "B needs 5" in text
    assert "in seldom" in text
    assert "not accounted for" in text
    parts = [row["value"] for row in rows(report) if str(row.get("metric", "")).startswith("cpu-difference:")]
    assert sum(float(str(part)) for part in parts) == pytest.approx(whole.value)


def of_range(run: Run, *names: str) -> Run:
    """The run as one of two revisions that differ in these functions."""
    touched = tuple(TouchedFunction(name=name, file="serve.c") for name in names)
    return run.model_copy(update={"manifest": run.manifest.of_range(touched)})


def test_a_function_that_the_range_touches_is_marked_in_every_format() -> None:
    report = build_report(of_range(sampled_run(), "seldom", "nowhere"))
    (why,) = report.why
    assert ([cost.touched for cost in why.functions], why.touched_tested) == ([True], 1)
    text = as_markdown(report).decode()
    assert "in seldom (touched in this range)" in text
    assert "| touched |" in text
    assert "the range touches 2 functions: seldom (serve.c), nowhere (serve.c); " in text
    assert "1 were sampled and tested first, and 1 surely differs" in text
    (row,) = [row for row in rows(report) if row.get("metric") == "cpu-difference:seldom"]
    assert row["family_name"] == "functions touched in this range"
    assert (row["value"], row["baseline_id"]) == (why.functions[0].difference_ns.value, why.baseline_id)


def test_a_function_that_differs_and_was_not_touched_is_marked() -> None:
    report = build_report(of_range(sampled_run(), "often"))
    (why,) = report.why
    assert [(cost.name, cost.touched) for cost in why.functions] == [("seldom", False)]
    text = as_markdown(report).decode()
    assert "| not touched |" in text
    assert "and 0 surely differ; of the others, 1 surely differs" in text


def test_a_function_that_a_touched_one_calls_is_said_to_be_below_it() -> None:
    report = build_report(of_range(sampled_run(), "serve"))
    (why,) = report.why
    assert [(cost.touched, cost.below) for cost in why.functions] == [(False, "serve")]
    assert "| not touched, below serve |" in as_markdown(report).decode()


def test_the_same_functions_are_touched_and_named_as_callers() -> None:
    """A has no frame of the touched class, where another of that name would be taken for it."""
    often, path = {"often": 0.7}, "java.util.HashMap.get;seldom"
    run = sampled_run({"A": {**often, path: 0.3}, "B": {**often, path: 0.35, "Api.get": 0.02}})
    touched = (TouchedFunction(name="get", within="Api", file="src/Api.java"),)
    (why,) = build_report(run.model_copy(update={"manifest": run.manifest.of_range(touched)})).why
    assert [(cost.name, cost.touched, cost.below) for cost in why.functions] == [
        *(("seldom", False, ""), ("Api.get", True, ""))
    ]


def test_without_a_range_nothing_is_marked() -> None:
    report = build_report(sampled_run())
    (why,) = report.why
    assert (why.touched, [cost.touched for cost in why.functions]) == (None, [None])
    assert "touched" not in as_markdown(report).decode()
    assert [row["family_name"] for row in rows(report) if row.get("metric") == "cpu-difference:seldom"] == [
        "all functions"
    ]


def test_a_range_without_functions_is_said_to_be_that() -> None:
    text = as_markdown(build_report(of_range(sampled_run()))).decode()
    assert "the range touches no function that is known by its source" in text


def test_functions_of_two_copies_of_a_script_are_the_same_functions() -> None:
    """Node names them by file, line and column; a revision lies in a folder of its own, and lines move."""
    copies = {
        "A": {"JS:often /srv/a/serve.js:8:15": 0.7, "JS:seldom file:///srv/a/serve.js:14:16": 0.3},
        "B": {"JS:often /srv/b/serve.js:9:15": 0.7, "JS:seldom file:///srv/b/serve.js:17:16": 0.35},
    }
    (why,) = build_report(sampled_run(copies)).why
    assert [cost.name for cost in why.functions] == ["JS:seldom serve.js"]


def test_of_equal_functions_none_is_named() -> None:
    report = build_report(sampled_run({"A": COSTS["A"], "B": COSTS["A"]}))
    (why,) = report.why
    assert why.functions == ()
    text = as_markdown(report).decode()
    assert "no function surely differs" in text


def test_a_difference_that_is_not_sure_is_said_to_be_that() -> None:
    report = build_report(sampled_run())
    unsure = tuple(
        comparison.model_copy(update={"ratio": comparison.ratio.model_copy(update={"low": 0.9, "high": 1.2})})
        for comparison in report.comparisons
        if comparison.ratio
    )
    text = as_markdown(report.model_copy(update={"comparisons": unsure})).decode()
    assert "whether B needs more CPU per request is not sure" in text
    assert "B needs 5" not in text


def test_what_a_profiler_lacks_is_said_once_and_the_verdict_stands() -> None:
    report = build_report(sampled_run(problem="perf is not permitted"))
    (why,) = report.why
    assert (why.problem, why.starts) == ("perf is not permitted", 0)
    assert as_markdown(report).decode().count("perf is not permitted") == 1
    assert any(comparison.verdict is not None for comparison in report.comparisons)


def test_servers_that_cannot_be_sampled_have_the_reason() -> None:
    run = sampled_run()
    missing = (Skipped(slug="A: cpu", reason="perf is not installed: try `apt install linux-perf`", cause="machine"),)
    plan = run.manifest.plan.sampling((), missing)
    report = build_report(run.model_copy(update={"manifest": run.manifest.with_plan(plan), "sampled": ()}))
    (why,) = report.why
    assert "A cannot be sampled: perf is not installed" in why.problem
    assert as_markdown(report).decode().count("perf is not installed") == 1


def test_starts_that_failed_are_left_out() -> None:
    run = sampled_run()
    failure = Failure(stage="launch", kind="died", message="it exited", hint="")
    failed = run.sampled[0].model_copy(update={"failure": failure, "traffic": None, "profiles": ()})
    report = build_report(run.model_copy(update={"sampled": (failed, *run.sampled[1:])}))
    (why,) = report.why
    assert (why.starts, why.problem, why.lost, why.lost_because) == (7, "", 1, "it exited")
    assert "Left out: 1 sampled start, since it exited." in as_markdown(report).decode()


def test_each_server_has_the_libraries_of_its_own_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A is sampled by perf and B by async-profiler: of B alone the functions are of a package of the JVM."""
    of_jvms = {name.replace("often", "shop.Often"): cost for name, cost in COSTS["B"].items()}
    run = sampled_run({"A": COSTS["A"], "B": of_jvms})
    sampled = []
    for duet in run.sampled:
        profiles = list(duet.profiles)
        profiles[1] = profiles[1].model_copy(update={"profiler": "async-profiler 4.2"})
        sampled.append(duet.model_copy(update={"profiles": tuple(profiles)}))
    library = Library(name="the shop", packages=("shop",), runtime="jvm")
    monkeypatch.setattr(Libraries, "of_stack", lambda self, _stack: "JVM" if library in self.table else "native")
    run = run.model_copy(
        update={
            "sampled": tuple(sampled),
            "profiles": StoredProfiles(run.profiles.stacks, lambda: (library,)) if run.profiles else None,
        }
    )
    (why,) = build_report(run).why
    assert why.profiler == "perf 6.1 and async-profiler 4.2"
    assert {cost.name for cost in why.libraries} == {"JVM", "native"}


def test_sampled_starts_come_after_all_others_and_only_if_asked_for() -> None:
    plan = sampled_run().manifest.plan
    assert [duet.round for duet in plan.sampled] == list(range(8))
    assert min(duet.position for duet in plan.sampled) > max(step.position for step in plan.steps)
    assert make_plan(plan.suite.model_copy(update={"why": False})).sampled == ()
