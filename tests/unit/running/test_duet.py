"""A suite with `design: duet`: planned, run, resumed, judged and shown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.analysis.duet import duets_of
from redline.analysis.layers import _difference
from redline.analysis.precision import enough, precision
from redline.analysis.results import judge_run
from redline.cli.experiment import exit_code
from redline.document import format as fmt
from redline.errors import UsageError
from redline.model import (
    AutoTrials,
    Cell,
    DuetBlock,
    DuetRecording,
    DuetSlice,
    DuetTraffic,
    Failure,
    FindingKind,
    Grade,
    Metric,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Recording,
    Run,
    Tls,
    Verdict,
)
from redline.model.traffic import Counts, Outcomes
from redline.ports import DuetDrive, Placement
from redline.render import RENDERERS
from redline.report.trials import precision_text
from redline.report.views import finding_groups
from redline.running.duet import DuetStart, run_start
from redline.running.executors import LocalExecutor
from redline.running.record import Tools
from redline.running.session import run_trials
from redline.storage.runs import RunStore
from redline.suite import Overrides, expected_length_ns, make_plan
from redline.suite.planning import MOST_COMPARED
from redline.suite.validate.resolve import read_suite
from tests.fakes.catalogues import small_catalogue
from tests.fakes.compared import compared_run
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FakeDriver, FakeLauncher, QuietListener
from tests.fakes.recordings import simulated_run

TEXT = """\
servers: [fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]
baseline: fam.plain
ceiling: top.null
scenarios: [Get]
design: duet
trials: 3
loads:
  saturate: {closed: {users: 64}, for: 1s}
  ramp: {closed: {users: 8, stages: [{to: 64, over: 1s}]}, for: 2s}
"""
AXUM_COSTS = 1.08


def plan_of(tmp_path: Path, text: str = TEXT) -> Plan:
    catalogue = small_catalogue(tmp_path)
    return make_plan(read_suite(text, "f.yaml", catalogue, Overrides()))


def slugs(plan: Plan, duet: PlannedDuet) -> list[str]:
    return [plan.cells[cell_id].variant.slug for cell_id in duet.cell_ids]


def test_a_round_holds_every_cell_and_every_duet_once(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert [step.position for step in plan.steps] == list(range(len(plan.trials) + len(plan.duets)))
    for round_ in range(3):
        steps = [step for step in plan.steps if step.round == round_]
        assert sorted(step.cell_id for step in steps if isinstance(step, PlannedTrial)) == sorted(plan.cells)
        duets = [step for step in steps if isinstance(step, PlannedDuet)]
        assert [slugs(plan, duet) for duet in duets] == [["fam.plain", "fam.layered", "fam.layered+log=server-log"]]


def test_a_load_that_changes_is_in_no_duet(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    loads = {plan.cells[cell_id].load.name for duet in plan.duets for cell_id in duet.cell_ids}
    assert loads == {"saturate"}


def test_trials_have_the_same_order_without_duets(tmp_path: Path) -> None:
    with_duets, without = plan_of(tmp_path), plan_of(tmp_path, TEXT.replace("design: duet", "design: interleaved"))
    assert without.duets == ()
    assert [each.cell_id for each in with_duets.trials] == [each.cell_id for each in without.trials]
    assert expected_length_ns(with_duets) > expected_length_ns(without)


def test_many_servers_of_one_baseline_are_in_several_duets(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, TEXT.replace("log: [off, server-log]", "log: [off, server-log], routes: [1, 128]"))
    first = [duet.cell_ids for duet in plan.duets if duet.round == 0]
    assert len(first) == 2
    assert len({cell_ids[0] for cell_ids in first}) == 1
    assert max(len(cell_ids) for cell_ids in first) == 1 + MOST_COMPARED


def test_a_duet_needs_a_baseline(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        plan_of(tmp_path, TEXT.replace("baseline: fam.plain\n", ""))
    assert "f.yaml:4" in str(refused.value)
    assert "a duet compares servers with a baseline" in str(refused.value)


def run_with_duets(costs: float = AXUM_COSTS, *, rounds: int = 6, auto: bool = False) -> Run:
    """hyper and axum, which needs this much more CPU time per request; trials alone would not show it."""
    run = simulated_run(trials=rounds, trial_effect=0.3)
    plan = run.manifest.plan
    pairs = [
        (cell.id, other.id)
        for cell in plan.cells.values()
        for other in plan.cells.values()
        if (cell.variant.slug, other.variant.slug) == ("rust.hyper", "rust.axum") and cell.load == other.load
    ]
    duets, recordings, at = [], [], len(plan.trials)
    for round_ in range(rounds):
        for pair in pairs:
            duets.append(PlannedDuet(cell_ids=pair, round=round_, position=at, seed=1))
            recordings.append(simulated_duet(round_, (1.0, costs), cell_ids=pair, position=at))
            at += 1
    trials = AutoTrials(precision=0.02, at_least=3) if auto else None
    suite = plan.suite.model_copy(update={"design": "duet", "auto": trials})
    plan = plan.model_copy(update={"duets": tuple(duets), "suite": suite})
    manifest = run.manifest.model_copy(update={"plan": plan})
    return run.model_copy(update={"manifest": manifest, "duets": tuple(recordings)})


def test_the_duet_decides_where_trials_alone_cannot() -> None:
    report = build_report(run_with_duets())
    assert report.run.complete
    found = {
        (each.metric, cell.load): each
        for each in report.comparisons
        for cell in report.cells
        if cell.cell_id == each.cell_id
    }
    cpu = found[Metric.CPU_PER_REQUEST, "saturate"]
    assert cpu.ratio is not None
    assert cpu.ratio.value == pytest.approx(AXUM_COSTS, rel=0.01)
    assert cpu.verdict is Verdict.SLOWER
    assert cpu.duet is not None
    assert cpu.duet.starts == 6
    assert cpu.duet.control is not None
    assert cpu.duet.control.value == pytest.approx(1, abs=0.01)
    assert cpu.duet.alone is not None
    rate = found[Metric.THROUGHPUT, "saturate"]
    assert rate.duet is not None
    assert rate.ratio is not None
    assert rate.ratio.value == pytest.approx(1 / AXUM_COSTS, rel=0.01)
    assert found[Metric.P99, "saturate"].duet is None
    assert found[Metric.THROUGHPUT, "steady"].duet is None


def test_two_starts_are_too_few_for_a_verdict() -> None:
    found = [each for each in build_report(run_with_duets(rounds=2)).comparisons if each.duet]
    assert found
    assert all(each.ratio is not None and each.verdict is None and each.p is None for each in found)


@pytest.mark.parametrize(("costs", "order"), [(1.48, ["hyper", "axum"]), (1 / 1.48, ["axum", "hyper"])])
def test_the_ranking_is_that_of_the_duet(costs: float, order: list[str]) -> None:
    report = build_report(run_with_duets(costs))
    (ranking,) = (one for one in report.rankings if one.metric is Metric.THROUGHPUT)
    assert [(place.rank, place.cell_id.split(".")[1]) for place in ranking.places] == list(enumerate(order, start=1))
    said = next(one for one in report.comparisons if one.metric is Metric.THROUGHPUT and one.duet)
    assert [place.ratio for place in ranking.places if place.cell_id == said.cell_id] == [said.ratio]
    assert said.ratio is not None
    for form in ("md", "html"):
        shown = RENDERERS[form](report).decode().partition('<script type="application/json"')[0].replace("\\", "")
        assert shown.count(fmt.change_bounds(said.ratio)) == 1


def test_what_a_layer_adds_in_microseconds_is_what_its_duet_says() -> None:
    run = run_with_duets()
    plan = run.manifest.plan
    (hyper,) = {cell_id for cell_id in plan.cells if cell_id.startswith("rust.hyper.SimpleGet.saturate")}
    ours = next(each for each in run.duets if each.cell_ids[0] == hyper).cell_ids[1]
    report = build_report(run)
    cpu = next(one for one in report.comparisons if one.cell_id == ours and one.metric is Metric.CPU_PER_REQUEST)
    judged = judge_run(run)
    found = _difference(judged[ours], judged[hyper], cpu)
    assert found is not None
    level = judged[hyper].estimate(Metric.CPU_PER_REQUEST).value
    assert found.value == pytest.approx(level * (AXUM_COSTS - 1), rel=0.1)
    assert found.low is not None
    assert found.low > 0  # trials alone would not show it
    alone = _difference(judged[ours], judged[hyper], cpu.model_copy(update={"duet": None}))
    assert alone is not None
    assert alone.low is not None
    assert alone.high is not None
    assert alone.low < 0 < alone.high


def test_a_duet_compares_what_trials_alone_cannot() -> None:
    run = run_with_duets()
    gone = tuple(each.model_copy(update={"traffic": None}) for each in run.recordings)
    report = build_report(run.model_copy(update={"recordings": gone}))
    found = [each for each in report.comparisons if each.metric is Metric.CPU_PER_REQUEST]
    assert [each.verdict for each in found] == [Verdict.SLOWER, Verdict.SLOWER]
    assert [each.refused for each in found] == ["", ""]
    assert not any(cell.valid for cell in report.cells)
    for render in RENDERERS.values():
        assert render(report)


def test_a_server_that_fails_its_requests_is_not_compared() -> None:
    run = run_with_duets()
    wrong = Counts(outcomes=Outcomes(ok=50, unexpected_status=50))
    broken = []
    for each in run.duets:
        assert each.traffic is not None
        base, other, control = each.traffic.targets
        targets = (base, other.model_copy(update={"counts": wrong}), control)
        broken.append(each.model_copy(update={"traffic": each.traffic.model_copy(update={"targets": targets})}))
    report = build_report(run.model_copy(update={"duets": tuple(broken)}))
    found = next(each for each in report.comparisons if each.metric is Metric.CPU_PER_REQUEST)
    assert found.ratio is None
    assert found.refused == "300 of 600 requests to rust.axum failed: unexpected status 300"


def test_a_failed_start_is_left_out_and_said() -> None:
    run = run_with_duets()
    failure = Failure(stage="launch", kind="died", message="it ended", hint="look")
    broken = run.duets[0].model_copy(update={"failure": failure, "traffic": None})
    report = build_report(run.model_copy(update={"duets": (broken, *run.duets[1:])}))
    first = next(each.duet for each in report.comparisons if each.duet and each.cell_id == run.duets[0].cell_ids[1])
    assert first.starts == 5
    assert [each.message for each in first.findings if each.kind == "failed-starts"] == [
        "1 of 6 starts failed: it ended."
    ]


def test_rounds_end_when_the_duets_are_narrow_enough() -> None:
    closed = run_with_duets(auto=True, rounds=3)
    keep = {cell_id for cell_id, cell in closed.manifest.plan.cells.items() if cell.load.saturates}
    plan = closed.manifest.plan
    cells = {cell_id: cell for cell_id, cell in plan.cells.items() if cell_id in keep}
    plan = plan.model_copy(
        update={
            "cells": cells,
            "trials": tuple(each for each in plan.trials if each.cell_id in keep),
            "duets": tuple(each for each in plan.duets if each.cell_ids[0] in keep),
        }
    )
    recordings = tuple(each for each in closed.recordings if each.cell_id in keep)
    duets = tuple(each for each in closed.duets if each.cell_ids[0] in keep)
    manifest = closed.manifest.model_copy(update={"plan": plan})
    run = closed.model_copy(update={"manifest": manifest, "recordings": recordings, "duets": duets})
    found = enough(run)
    assert found is not None
    assert found.why == "precision"
    assert enough(run.model_copy(update={"duets": ()})) is None


def test_a_forecast_says_whether_more_rounds_help() -> None:
    run = run_with_duets(auto=True, rounds=6)
    auto = AutoTrials(precision=0.0001, at_least=3)
    plan = run.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"auto": auto})})
    run = run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})
    assert enough(run) is None
    found = precision(run, judge_run(run))
    assert found is not None
    assert found.forecast is not None
    assert found.forecast > found.rounds
    assert found.scatter == "starts"  # by .3%, and 20 blocks leave less to one of them
    assert precision_text(found).endswith("are allowed: starts differ, so only more of them help")


@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_a_report_shows_duets(form: str) -> None:
    shown = RENDERERS[form](build_report(run_with_duets())).decode()
    assert "of **duets**" in shown or "of <b>duets</b>" in shown or '"duet"' in shown
    assert "rust.axum" in shown


def small(run: Run, tmp_path: Path) -> tuple[RunStore, LocalExecutor, FakeDriver, FakeLauncher]:
    store, driver = RunStore(tmp_path / "run"), FakeDriver([])
    launcher = FakeLauncher([])
    store.create(run.manifest)
    tools = Tools(launcher, driver, lambda _server: (), Placement())
    return store, LocalExecutor(run.manifest.plan, tools, store, QuietListener()), driver, launcher


def test_an_interrupted_run_is_resumed_with_its_duets(tmp_path: Path) -> None:
    run = run_with_duets(rounds=1)
    store, executor, driver, _ = small(run, tmp_path)
    driver.error = KeyboardInterrupt()
    duet_alone = tuple(run.manifest.plan.duets)
    with pytest.raises(KeyboardInterrupt):
        list(executor.execute(duet_alone))
    assert store.positions() == frozenset()
    driver.error = None
    run_trials(run.manifest.plan, store, executor, QuietListener(), lambda _run: None)
    assert store.run().complete
    assert len(store.duets()) == len(duet_alone)
    assert [len(each.other_servers) for each in driver.duets[1:]] == [2] * len(duet_alone)


def test_each_server_has_the_time_of_a_trial(tmp_path: Path) -> None:
    run = run_with_duets(rounds=1)
    _, executor, driver, _ = small(run, tmp_path)
    list(executor.execute(run.manifest.plan.duets[:1]))
    cell: Cell = run.manifest.plan.cells[run.manifest.plan.duets[0].cell_ids[0]]
    servers = 3
    assert driver.duets[0].drive.cell.load.duration_ns == servers * cell.load.duration_ns
    assert driver.duets[0].drive.cell.warmup_ns == servers * cell.warmup_ns


def kinds_of(run: Run) -> dict[FindingKind, Grade]:
    """The findings about the first duet of a run."""
    report = build_report(run)
    first = next(each.duet for each in report.comparisons if each.duet and each.cell_id == run.duets[0].cell_ids[1])
    return {each.kind: each.grade for each in first.findings}


def with_traffic(run: Run, change: Callable[[DuetTraffic], DuetTraffic]) -> Run:
    """The same run, whose starts have this traffic."""
    duets = [each.model_copy(update={"traffic": each.traffic and change(each.traffic)}) for each in run.duets]
    return run.model_copy(update={"duets": tuple(duets)})


def test_steal_is_a_note_of_duets_and_starts_that_were_cut_short_are_a_warning() -> None:
    def stolen(traffic: DuetTraffic, share: float) -> DuetTraffic:
        blocks = [
            block.model_copy(
                update={
                    "slices": tuple(
                        each.model_copy(update={"steal_ns": int(share * (sum(map(int, filter(None, each.cpu_ns)))))})
                        for each in block.slices
                    )
                }
            )
            for block in traffic.blocks
        ]
        return traffic.model_copy(update={"blocks": tuple(blocks)})

    run = run_with_duets()
    assert {"cpu-steal", "cut-short"} & set(kinds_of(run)) == set()
    assert kinds_of(with_traffic(run, lambda one: stolen(one, 0.01))).get("cpu-steal") is None
    assert kinds_of(with_traffic(run, lambda one: stolen(one, 0.5)))["cpu-steal"] is Grade.NOTE
    cut = with_traffic(run, lambda one: one.model_copy(update={"ended": "interrupted"}))
    assert kinds_of(cut)["cut-short"] is Grade.WARN


def test_an_unchecked_certificate_is_a_finding_of_duets_too() -> None:
    run = run_with_duets()
    assert "tls-insecure" not in kinds_of(run)
    plan = run.manifest.plan
    cells = {
        cell_id: cell.model_copy(update={"variant": cell.variant.model_copy(update={"tls": Tls(insecure=True)})})
        for cell_id, cell in plan.cells.items()
    }
    changed = run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": cells})})
    for duet in duets_of(run.model_copy(update={"manifest": changed})).values():
        assert "tls-insecure" in {each.kind for each in duet.findings}


def test_findings_of_duets_stand_with_the_others_in_a_report() -> None:
    cut = with_traffic(run_with_duets(), lambda one: one.model_copy(update={"ended": "interrupted"}))
    groups = {each.kind: each for each in finding_groups(build_report(cut))}
    assert groups["cut-short"].grade is Grade.WARN


class DisturbedOnce:
    """Returns simulated recordings. Steal takes this share of the CPU time from the first start of a duet."""

    def __init__(self, run: Run, position: int, share: float) -> None:
        self._made = {recording.position: recording for recording in (*run.recordings, *run.duets)}
        self._position, self._share = position, share
        self.asked: list[int] = []

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        for step in steps:
            recording, is_first = self._made[step.position], step.position not in self.asked
            self.asked.append(step.position)
            if is_first and step.position == self._position and isinstance(recording, DuetRecording):
                yield disturbed(recording, self._share)
            else:
                yield recording


def disturbed(recording: DuetRecording, share: float) -> DuetRecording:
    """The same start, but steal took this share of the CPU time that each slice needed."""

    def stolen_from(slice_: DuetSlice) -> DuetSlice:
        needed_ns = slice_.engine_cpu_ns + sum(filter(None, slice_.cpu_ns))
        return slice_.model_copy(update={"steal_ns": int(needed_ns * share / (1 - share))})

    assert recording.traffic is not None
    blocks = tuple(
        DuetBlock(index=block.index, phase=block.phase, slices=tuple(map(stolen_from, block.slices)))
        for block in recording.traffic.blocks
    )
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"blocks": blocks})})


@pytest.mark.parametrize(("share", "is_repeated"), [(0.15, True), (0.05, False)])
def test_a_duet_that_steal_disturbed_is_repeated_at_the_end_of_its_round(
    tmp_path: Path, share: float, is_repeated: bool
) -> None:
    run, store, listener = run_with_duets(rounds=2), RunStore(tmp_path / "run"), QuietListener()
    plan, again = run.manifest.plan, [run.duets[0].position] * is_repeated
    store.create(run.manifest)
    executor = DisturbedOnce(run, run.duets[0].position, share)
    run_trials(plan, store, executor, listener, lambda _run: None)
    first = [step.position for step in plan.steps if isinstance(step, PlannedTrial) or step.round == 0]
    assert executor.asked == [*first, *again, *(duet.position for duet in plan.duets if duet.round == 1)]
    assert listener.again == again
    assert store.run().repeated == tuple(again)
    assert (store.duets() == run.duets) is is_repeated
    assert build_report(store.run()).run.trials_repeated == len(again)


def test_a_comparison_within_a_budget_repeats_no_start(tmp_path: Path) -> None:
    run, store, listener = compared_run(starts=3), RunStore(tmp_path / "run"), QuietListener()
    store.create(run.manifest)
    executor = DisturbedOnce(run, run.duets[0].position, 0.5)
    run_trials(run.manifest.plan, store, executor, listener, lambda _run: None)
    assert listener.again == []
    assert executor.asked == [duet.position for duet in run.duets]
    assert len(store.duets()) == len(run.duets)


def test_an_aborted_start_ends_a_comparison_and_is_no_interrupt(tmp_path: Path) -> None:
    run, store = compared_run(starts=3), RunStore(tmp_path / "run")
    store.create(run.manifest)
    second = run.duets[1]
    assert second.traffic is not None
    why = "errors > 5% for 3s: 9% of 900 requests to B failed in 3 s"
    aborted = second.model_copy(update={"traffic": second.traffic.ended_as_asked(why)})
    run = run.model_copy(update={"duets": (run.duets[0], aborted, run.duets[2])})
    executor = DisturbedOnce(run, -1, 0.0)
    run_trials(run.manifest.plan, store, executor, QuietListener(), lambda _run: None)
    assert executor.asked == [duet.position for duet in run.duets[:2]]
    report = build_report(store.run())
    assert (report.run.aborted_by, report.run.interrupted) == (why, False)
    assert exit_code([report]) == 3
    assert "! Aborted by errors &gt; 5% for 3s: 9% of 900 requests to B" in RENDERERS["md"](report).decode()


@dataclass
class WarmingDriver(FakeDriver):
    """Duets have 20 blocks of warm-up; in the first `cold` of them, servers that are not loaded work."""

    cold: int = 0

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        idle = 0.2 if len(self.duets) < self.cold else 0.0
        super().duet(drive)
        traffic = simulated_duet(0, (1.0,) * len(drive.other_servers), idle=idle, warmup=20).traffic
        assert traffic is not None
        return traffic


@pytest.mark.parametrize(("cold", "after_mix"), [(0, {"a", "b"}), (1, set())])
def test_requests_after_a_warm_mix_are_known(cold: int, after_mix: set[str], tmp_path: Path) -> None:
    """Not those that it does not hold."""
    requests = "{name: a, get: /a}, {name: b, get: /b}, {name: other, get: /c}"
    scenarios = f"scenarios: [{requests}, {{name: mix, requests: [{{get: /a, weight: 2}}, {{get: /b}}]}}]"
    text = TEXT.partition("  ramp")[0].replace("scenarios: [Get]", scenarios)
    plan = plan_of(tmp_path, text + "warmup: {detect: {at_most: 60s}}\n")
    duets = tuple(duet for duet in plan.duets if duet.round == 0)
    tools = Tools(FakeLauncher([]), WarmingDriver([], cold=cold), lambda _server: (), Placement())
    made = run_start(DuetStart(duets, plan.cells, logs=lambda _duet: tmp_path), tools)
    assert {plan.cells[start.cell_ids[0]].scenario.name for start in made if start.after_mix} == after_mix


@pytest.mark.parametrize(
    ("stream", "guard", "fewest", "longest"), [("", True, 0, 0), (", stream: openai", False, 6, 40)]
)
def test_conversations_have_no_guard_and_time_for_whole_blocks(
    stream: str, *, guard: bool, fewest: int, longest: int, tmp_path: Path
) -> None:
    text = TEXT.partition("  ramp")[0].replace("scenarios: [Get]", f"scenarios: [{{name: a, get: /a{stream}}}]")
    plan = plan_of(tmp_path, text)
    driver = FakeDriver([])
    tools = Tools(FakeLauncher([]), driver, lambda _server: (), Placement())
    start = DuetStart(plan.duets[:1], plan.cells, logs=lambda _duet: tmp_path, longest_ns=40_000_000_000)
    assert [made.failure for made in run_start(start, tools)] == [None]
    (given,) = driver.duets
    assert (given.guard_ns > 0, given.fewest_blocks, given.longest_ns) == (guard, fewest, longest * 10**9)
    assert given.drive.overrun_ns == given.longest_ns
