"""Rounds are made until the main comparisons are known well enough, and the report tells how that went."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis import build_report, trials
from redline.analysis.precision import enough, whole_rounds
from redline.analysis.precision import precision as precision_of
from redline.analysis.results import GrowingRun, judge_run
from redline.findings import judge_trial
from redline.model import AutoTrials, Cell, Enough, Failure, Finding, Metric, Precision, Run
from redline.render import RENDERERS
from redline.report.trials import precision_text
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, STEADY, simulated_run

REFUSED = Failure(stage="launch", kind="not_ready", message="it never answered", hint="read its output")


def precision(run: Run) -> Precision | None:
    return precision_of(run, judge_run(run))


def deciding(run: Run, auto: AutoTrials) -> Run:
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"auto": auto})
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    return run.model_copy(update={"manifest": manifest})


def test_a_quiet_machine_needs_no_more_than_the_least() -> None:
    run = deciding(
        simulated_run(trials=6, loads=(SATURATE,), trial_effect=0.002), AutoTrials(precision=0.02, at_least=5)
    )
    assert enough(run) == Enough(rounds=6, why="precision")
    cut = run.model_copy(update={"recordings": run.recordings[: 4 * 3]})
    assert whole_rounds(cut) == 4
    assert enough(cut) is None


def test_a_run_that_grows_is_judged_alike_and_each_trial_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = deciding(simulated_run(trials=5, loads=(SATURATE,)), AutoTrials(precision=0.02, at_least=2))
    growing = GrowingRun()
    seen: list[int] = []

    def counted(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
        seen.append(trial.recording.position)
        return judge_trial(cell, trial)

    for rounds in range(1, 6):
        cut = run.model_copy(update={"recordings": run.recordings[: rounds * 3]})
        with monkeypatch.context() as patched:
            patched.setattr(trials, "judge_trial", counted)
            cells = growing.judge(cut)
        for cell_id, expected in judge_run(cut).items():
            assert cells[cell_id].valid == expected.valid
            assert cells[cell_id].estimate(Metric.THROUGHPUT) == expected.estimate(Metric.THROUGHPUT)
        assert enough(cut, growing.judge) == enough(cut)
    assert sorted(seen) == [recording.position for recording in run.recordings]


@pytest.mark.parametrize(("rounds", "said"), [(6, "6 rounds: "), (8, "8 rounds, the most that were allowed: ")])
def test_the_rounds_that_are_planned_are_not_those_that_are_allowed(rounds: int, said: str) -> None:
    auto = AutoTrials(precision=0.01, at_least=3)
    run = deciding(simulated_run(trials=rounds, loads=(SATURATE,), trial_effect=0.05), auto)
    plan = run.manifest.plan
    found = precision(run.model_copy(update={"manifest": run.manifest.with_plan(plan.of_suite(plan.suite.lasting(8)))}))
    assert found is not None
    assert found.at_most == 8
    assert precision_text(found).startswith(said)


def test_a_noisy_machine_goes_on_and_says_how_far_it_came() -> None:
    run = deciding(
        simulated_run(trials=6, loads=(SATURATE,), trial_effect=0.05), AutoTrials(precision=0.01, at_least=3)
    )
    assert enough(run) is None
    found = precision(run)
    assert found is not None
    assert found.ended == "at most"
    assert found.half_width is not None
    assert found.half_width > 0.01
    assert found.cell_id is not None
    assert found.cell_id.startswith("rust.axum.SimpleGet.saturate")
    assert precision_text(found).startswith(
        "6 rounds, the most that were allowed: not all main comparisons are within ±1%"
    )
    assert found.forecast is not None
    assert found.forecast > 6
    assert precision_text(found).endswith(f"; ±1% would take about {found.forecast} rounds, and 6 are allowed")


def test_the_budget_ends_it_whatever_is_known() -> None:
    auto = AutoTrials(precision=0.001, at_least=2, budget_ns=10_000_000_000)
    run = deciding(simulated_run(trials=3, loads=(SATURATE,), trial_effect=0.05), auto)
    slow = tuple(one.model_copy(update={"stages_ns": {"load": 2_000_000_000}}) for one in run.recordings)
    assert enough(run.model_copy(update={"recordings": slow})) == Enough(rounds=3, why="budget")
    fast = tuple(one.model_copy(update={"stages_ns": {"load": 1_000_000_000}}) for one in run.recordings)
    assert enough(run.model_copy(update={"recordings": fast})) is None


def test_without_a_baseline_each_server_counts_for_itself() -> None:
    run = deciding(
        simulated_run(trials=5, loads=(SATURATE,), baseline=None, trial_effect=0.002),
        AutoTrials(precision=0.02, at_least=5),
    )
    assert enough(run) == Enough(rounds=5, why="precision")


def test_what_has_no_interval_keeps_nobody_waiting_but_is_reported() -> None:
    broken = {"rust.hyper": GOOD, "rust.axum": GOOD, "rust.broken": replace(GOOD, failure=REFUSED)}
    made = simulated_run(broken, trials=5, loads=(SATURATE,), trial_effect=0.002)
    found = precision(deciding(made, AutoTrials(precision=0.02, at_least=5)))
    assert found is not None
    assert [cell_id.rpartition("-")[0] for cell_id in found.without] == ["rust.broken.SimpleGet.saturate"]


def test_two_that_share_a_single_usable_round_want_more_rounds() -> None:
    """A pair is of one round: if the sides lost different rounds, there is no interval yet; more rounds give it."""
    servers = dict.fromkeys(("rust.hyper", "rust.axum", "rust.other"), GOOD)
    made = simulated_run(servers, trials=5, loads=(SATURATE,), ceiling=None, trial_effect=0.002)
    lost = {"rust.hyper": (0, 1), "rust.axum": (2, 3)}
    recordings = tuple(
        one.model_copy(update={"traffic": None})
        if one.round in lost.get(made.manifest.plan.cells[one.cell_id].variant.slug, ())
        else one
        for one in made.recordings
    )
    auto = AutoTrials(precision=0.9, at_least=5)
    assert enough(deciding(made, auto)) == Enough(rounds=5, why="precision")
    left = deciding(made.model_copy(update={"recordings": recordings}), auto)
    assert enough(left) is None
    found = precision(left)
    assert found is not None
    assert [cell_id.rpartition("-")[0] for cell_id in found.without] == ["rust.axum.SimpleGet.saturate"]


def without(run: Run, server: str, rounds: range) -> Run:
    """The trials of a server in these rounds gave no traffic."""
    cells = run.manifest.plan.cells
    lost = tuple(
        one.model_copy(update={"traffic": None})
        if cells[one.cell_id].variant.slug == server and one.round in rounds
        else one
        for one in run.recordings
    )
    return run.model_copy(update={"recordings": lost})


@pytest.mark.parametrize("server", ["rust.hyper", "rust.axum"])
@pytest.mark.parametrize("baseline", ["rust.hyper", None])
def test_where_no_comparison_can_be_made_any_more_it_ends(server: str, baseline: str | None) -> None:
    """Without a baseline the other server counts by itself, and may still become narrower."""
    made = simulated_run(trials=5, loads=(SATURATE,), baseline=baseline, trial_effect=0.1)
    run = without(deciding(made, AutoTrials(precision=0.001, at_least=4)), server, range(5))
    assert enough(run) == (Enough(rounds=5, why="no valid trial") if baseline else None)
    found = precision(run.model_copy(update={"enough": enough(run)}))
    assert found is not None
    assert [cell_id.rpartition("-")[0] for cell_id in found.lost] == [f"{server}.SimpleGet.saturate"]
    if baseline:
        assert precision_text(found) == (
            f"5 rounds: no valid trial of {server}.SimpleGet.saturate, so more rounds would not help; "
            "the goal was ±0.1%"
        )


def test_one_valid_trial_is_a_reason_to_go_on() -> None:
    made = simulated_run(trials=5, loads=(SATURATE,), trial_effect=0.002)
    run = deciding(made, AutoTrials(precision=0.02, at_least=5))
    assert enough(without(run, "rust.axum", range(4))) is None
    assert enough(without(run, "rust.axum", range(5))) == Enough(rounds=5, why="no valid trial")
    early = deciding(made, AutoTrials(precision=0.02, at_least=6))
    assert enough(without(early, "rust.axum", range(5))) is None


def test_a_suite_with_a_number_of_trials_decides_nothing() -> None:
    run = simulated_run(trials=5, loads=(SATURATE,))
    assert enough(run) is None
    assert precision(run) is None


@given(st.integers(0, 18))
def test_a_round_is_whole_when_all_of_it_is_there(done: int) -> None:
    run = simulated_run(trials=6, loads=(SATURATE,), done=done)
    assert whole_rounds(run) == done // 3


def test_a_closed_load_is_judged_by_throughput_and_a_schedule_by_p99() -> None:
    assert SATURATE.primary_metric is Metric.THROUGHPUT
    assert STEADY.primary_metric is Metric.P99


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_say_that_nothing_was_valid(form: str) -> None:
    made = simulated_run(trials=4, loads=(SATURATE,))
    run = without(deciding(made, AutoTrials(precision=0.02, at_least=4)), "rust.axum", range(4))
    report = build_report(run.model_copy(update={"enough": enough(run)}))
    text = RENDERERS[form](report).decode()
    assert "4 rounds: no valid trial of rust.axum.SimpleGet.saturate" in text.replace("\\", "")


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_say_why_it_stopped(form: str) -> None:
    run = deciding(
        simulated_run(trials=6, loads=(SATURATE,), trial_effect=0.002), AutoTrials(precision=0.02, at_least=5)
    )
    stopped = run.model_copy(
        update={"recordings": run.recordings[: 5 * 3], "enough": Enough(rounds=5, why="precision")}
    )
    report = build_report(stopped)
    assert report.run.complete
    assert report.run.trials_planned == 15
    text = RENDERERS[form](report).decode()
    assert "5 rounds: all main comparisons are within ±2%" in text
    assert "not complete" not in text
