"""Trials that steal disturbed are repeated with their partner, within a quarter of the run."""

from pathlib import Path

import pytest

from redline.model import PlannedTrial, Recording, Run
from redline.running.repeats import Repeats
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_run
from tests.fakes.series import counting
from tests.fakes.stored import kept

BEHAVIOURS = {"rust.hyper": GOOD, "rust.axum": GOOD}


def run_of(rounds: int) -> Run:
    return simulated_run(BEHAVIOURS, trials=rounds)


def stolen(recording: Recording, share: float) -> Recording:
    return counting(recording, "machine", steal_ns=share * 1e9, busy_ns=(1 - share) * 1e9)


def stored(folder: Path, run: Run, disturbed: set[int], share: float = 0.5) -> RunStore:
    recordings = tuple(stolen(one, share if one.position in disturbed else 0.0) for one in run.recordings)
    return kept(folder, run.model_copy(update={"recordings": recordings}))


def of_round(run: Run, number: int = 0) -> list[PlannedTrial]:
    return [trial for trial in run.manifest.plan.trials if trial.round == number]


def repeated(repeats: Repeats, steps: list[PlannedTrial]) -> list[int]:
    return [step.position for step in repeats.of_round(steps)]


def subject(run: Run, slug: str, number: int = 0) -> PlannedTrial:
    cells = run.manifest.plan.cells
    return next(
        trial
        for trial in of_round(run, number)
        if cells[trial.cell_id].role == "subject" and cells[trial.cell_id].variant.slug == slug
    )


def partners(run: Run, number: int = 0) -> list[int]:
    """A server and its baseline, under one load."""
    cells, first = run.manifest.plan.cells, subject(run, "rust.axum", number)
    load = cells[first.cell_id].load.name
    return [
        trial.position
        for trial in of_round(run, number)
        if cells[trial.cell_id].role == "subject" and cells[trial.cell_id].load.name == load
    ]


def test_a_disturbed_trial_is_repeated_with_its_partner(tmp_path: Path) -> None:
    run = run_of(4)
    store = stored(tmp_path / "run", run, {subject(run, "rust.axum").position})
    assert repeated(Repeats(run.manifest.plan, store), of_round(run)) == partners(run)
    assert len(partners(run)) == 2
    assert set(store.positions()).isdisjoint(partners(run)), "their recordings are set aside"


@pytest.mark.parametrize(("share", "again"), [(0.09, False), (0.11, True)])
def test_a_trial_is_disturbed_where_steal_is_a_warning(tmp_path: Path, share: float, *, again: bool) -> None:
    run = run_of(4)
    store = stored(tmp_path / "run", run, {subject(run, "rust.axum").position}, share)
    assert bool(repeated(Repeats(run.manifest.plan, store), of_round(run))) is again


def test_a_quiet_round_and_a_disturbed_ceiling_repeat_nothing(tmp_path: Path) -> None:
    run = run_of(4)
    cells = run.manifest.plan.cells
    ceilings = {trial.position for trial in of_round(run) if cells[trial.cell_id].role == "ceiling"}
    assert ceilings
    store = stored(tmp_path / "run", run, ceilings)
    assert repeated(Repeats(run.manifest.plan, store), of_round(run)) == []


def test_a_quarter_of_the_trials_may_be_repeated_and_no_half_of_a_pair(tmp_path: Path) -> None:
    run = run_of(2)
    every = {trial.position for trial in run.manifest.plan.trials}
    most = -(-len(every) // 4)
    store = stored(tmp_path / "run", run, every)
    repeats = Repeats(run.manifest.plan, store)
    again = repeated(repeats, of_round(run)) + repeated(repeats, of_round(run, 1))
    assert len(again) == most - most % 2
    assert repeated(Repeats(run.manifest.plan, store), of_round(run, 1)) == [], "what was repeated before counts"
