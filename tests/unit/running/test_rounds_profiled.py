"""Profiles are planned as further trials: after all rounds, of every subject, and no part of anything else."""

from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.cli.contracts import check_result
from redline.errors import UsageError
from redline.model import AutoTrials, Container, Enough, Load, Manifest, Open, Plan, PlannedTrial, Recording, Run
from redline.running.session import run_trials
from redline.storage.runs import RunStore
from redline.suite import (
    Capacities,
    Overrides,
    cannot_profile,
    expected_length_ns,
    make_capacity_plan,
    make_plan,
    to_search,
    with_rounds,
    without_profiles,
)
from tests.fakes.catalogues import SUITE, suite_of
from tests.fakes.plugins import QuietListener
from tests.fakes.recordings import simulated_cell, simulated_recording, simulated_run
from tests.unit.running.test_rounds import ReplayExecutor, never

TEXT = f"{SUITE}  steady: {{open: {{rate: 100}}, for: 2s}}\nceiling: top.null\nbaseline: fam.plain\ntrials: 3\n"


def plan_of(folder: Path, profile: str = "cpu", text: str = TEXT) -> Plan:
    return make_plan(suite_of(folder, f"{text}profile: {profile}\n"))


def test_each_subject_gets_one_more_trial_of_each_kind_after_all_rounds(tmp_path: Path) -> None:
    plain, plan = make_plan(suite_of(tmp_path, TEXT)), plan_of(tmp_path, "[cpu, engine]")
    assert plan.trials == plain.trials
    assert plan.steps == plain.steps
    subjects = [cell_id for cell_id, cell in plan.cells.items() if cell.role == "subject"]
    assert [(trial.cell_id, trial.profile) for trial in plan.profiled] == [
        (cell_id, profile) for cell_id in subjects for profile in ("cpu", "engine")
    ]
    positions = [step.position for step in (*plan.steps, *plan.profiled)]
    assert positions == list(range(plan.length))
    assert {trial.seed for trial in plan.profiled} == {plan.trials[0].seed}
    assert expected_length_ns(plan) > expected_length_ns(plain)


def test_one_kind_is_written_as_a_word_and_the_command_line_takes_precedence(tmp_path: Path) -> None:
    assert suite_of(tmp_path, f"{TEXT}profile: cpu\n").profile == ("cpu",)
    assert suite_of(tmp_path, f"{TEXT}profile: cpu\n", Overrides(profile=("engine", "engine"))).profile == ("engine",)
    assert suite_of(tmp_path, TEXT).profile == ()


@pytest.mark.parametrize(
    ("text", "overrides", "hint"),
    [
        ("profile: cpus\n", Overrides(), "cpu"),
        ("profile: [cpu, heap]\n", Overrides(), "choose one of"),
        ("", Overrides(profile=("aloc",)), "alloc"),
    ],
)
def test_an_unknown_kind_is_an_error_with_advice(tmp_path: Path, text: str, overrides: Overrides, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        suite_of(tmp_path, TEXT + text, overrides)
    assert hint in raised.value.hint


def test_what_a_runtime_has_no_profiler_for_is_left_out_with_the_reason(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "[cpu, alloc]")
    assert {trial.profile for trial in plan.profiled} == {"cpu"}
    assert [(one.slug, one.cause) for one in plan.unprofiled] == [
        ("fam.plain: alloc", "suite"),
        ("fam.layered: alloc", "suite"),
    ]
    assert plan.skipped == ()
    jvm = suite_of(tmp_path, TEXT.replace("fam.layered", "slow.vanilla")).variants[1]
    assert [cannot_profile(jvm, kind) for kind in ("cpu", "wall", "alloc", "lock", "engine")] == [""] * 5
    boxed = jvm.model_copy(update={"container": Container()})
    assert "image" in cannot_profile(boxed, "cpu")
    assert cannot_profile(boxed, "engine") == ""


def test_what_this_machine_cannot_profile_is_left_out_and_later_rounds_have_places_of_their_own(tmp_path: Path) -> None:
    plan = without_profiles(plan_of(tmp_path, "[cpu, engine]"), {("fam.plain", "cpu"): "no perf"})
    assert [(one.slug, one.reason, one.cause) for one in plan.unprofiled] == [("fam.plain: cpu", "no perf", "machine")]
    longer = with_rounds(plan, 5)
    assert longer.profiled == plan.profiled
    assert sorted(each.position for each in (*longer.steps, *longer.profiled)) == list(range(longer.length))


def test_capacities_and_searches_are_not_profiled(tmp_path: Path) -> None:
    text = TEXT.replace("rate: 100", "rate: 50% of saturate")
    suite = suite_of(tmp_path, f"{text}profile: cpu\n")
    assert make_capacity_plan(suite).profiled == ()
    known = Capacities({cell.slug: 1000.0 for cell in make_capacity_plan(suite).cells.values()})
    assert {trial.profile for trial in make_plan(suite, {}, known).profiled} == {"cpu"}
    assert to_search(suite_of(tmp_path, f"{TEXT}profile: cpu\n"), 2)[0].profile == ()


def test_check_says_what_is_profiled(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "[cpu, lock]")
    result = check_result(plan, expected_length_ns(plan))
    assert (result.trials, result.profiled, len(result.unprofiled)) == (len(plan.trials), 4, 2)
    assert "profiled" not in check_result(make_plan(suite_of(tmp_path)), 1).model_dump_json()


def profiled_run(tmp_path: Path) -> tuple[Manifest, RunStore, ReplayExecutor]:
    run = simulated_run(trials=2)
    plan = run.manifest.plan
    cell = next(cell for cell in plan.cells.values() if cell.role == "subject")
    trial = PlannedTrial(cell_id=cell.id, round=0, position=plan.length, seed=1, profile="cpu")
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"profiled": (trial,)})})
    recording: Recording = simulated_recording(cell, position=trial.position)
    executor = ReplayExecutor(run.model_copy(update={"recordings": (*run.recordings, recording)}))
    store = RunStore(tmp_path / "run")
    store.create(manifest)
    return manifest, store, executor


def test_profiled_trials_come_last_are_kept_apart_and_change_no_result(tmp_path: Path) -> None:
    manifest, store, executor = profiled_run(tmp_path)
    run_trials(manifest.plan, store, executor, QuietListener(), never)
    assert executor.asked == list(range(manifest.plan.length))
    run = store.run()
    assert run.complete
    assert [recording.position for recording in run.profiled] == [manifest.plan.profiled[0].position]
    plain = simulated_run(trials=2)
    assert run.recordings == plain.recordings
    assert build_report(run).cells == build_report(plain).cells


def test_a_run_without_its_profiles_is_not_complete_and_resuming_makes_them_alone(tmp_path: Path) -> None:
    manifest, store, _ = profiled_run(tmp_path)
    last = manifest.plan.profiled[0].position
    _, _, executor = manifest, store, profiled_run(tmp_path / "other")[2]
    stopping = ReplayExecutor(simulated_run(trials=2), stop_at=last)
    with pytest.raises(KeyboardInterrupt):
        run_trials(manifest.plan, store, stopping, QuietListener(), never)
    assert not store.run().complete
    run_trials(manifest.plan, store, executor, QuietListener(), never)
    assert executor.asked == [last]
    assert store.run().complete
    assert store.profile_folder(manifest.plan.profiled[0], next(iter(manifest.plan.cells.values()))).is_dir()


def test_profiles_are_made_when_rounds_were_enough(tmp_path: Path) -> None:
    manifest, _, executor = profiled_run(tmp_path)
    plan = manifest.plan
    suite = plan.suite.model_copy(update={"auto": AutoTrials(precision=0.02, at_least=2)})
    manifest = manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    store, last = RunStore(tmp_path / "auto"), plan.profiled[0].position
    store.create(manifest)

    def decide(so_far: Run) -> Enough | None:
        assert last not in {recording.position for recording in so_far.recordings}
        return Enough(rounds=1, why="precision") if len(so_far.recordings) == len(plan.cells) else None

    run_trials(manifest.plan, store, executor, QuietListener(), decide)
    assert executor.asked == [*range(len(plan.cells)), last]
    assert store.run().complete
    again = ReplayExecutor(simulated_run(trials=2))
    run_trials(manifest.plan, store, again, QuietListener(), never)
    assert again.asked == []


def test_a_profile_that_is_made_again_has_another_folder(tmp_path: Path) -> None:
    manifest, store, _ = profiled_run(tmp_path)
    trial = manifest.plan.profiled[0]
    cell = manifest.plan.cells[trial.cell_id]
    first, second = (store.profile_folder(trial, cell) for _ in range(2))
    assert second.name == f"{first.name}.2"


def test_a_recording_is_profiled_as_a_whole() -> None:
    """Twice its length would be idle from its end on."""
    replay = Open(arrivals="replayed", replayed_ns=(0, 1_000_000_000), connections=1)
    cell = simulated_cell()
    replayed = cell.under(Load(name="day", shape=replay, duration_ns=2_000_000_000))
    assert replayed.under_profiler == replayed
    assert replayed.unprofiled_ns == 0
    assert cell.under_profiler.load.duration_ns == 2 * cell.load.duration_ns
