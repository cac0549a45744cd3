"""A session runs what has no recording yet, keeps every recording as it ends, and continues where it stopped."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.cli import exits
from redline.cli.experiment import exit_code
from redline.errors import DriveError, UsageError
from redline.model import AutoTrials, DuetRecording, Enough, Failure, PlannedDuet, PlannedTrial, Recording, Run
from redline.running.rounds import _Kept, run_trials
from redline.running.session import extend
from redline.storage.runs import RunStore
from tests.fakes.compared import compared_run, with_a_further_duet
from tests.fakes.plugins import QuietListener
from tests.fakes.recordings import simulated_run
from tests.unit.profiles.test_why import sampled_run

RUN = simulated_run(trials=2)
PLAN = RUN.manifest.plan


def never(_run: Run) -> None:
    """No number of rounds is enough."""


class ReplayExecutor:
    """Returns the simulated recordings, and stops where the test says."""

    def __init__(self, run: Run, stop_at: int | None = None) -> None:
        self._recordings = {each.position: each for each in (*run.recordings, *run.duets)}
        self._stop_at = stop_at
        self.asked: list[int] = []

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        for step in steps:
            self.asked.append(step.position)
            if step.position == self._stop_at:
                raise KeyboardInterrupt
            yield self._recordings[step.position]


def test_every_trial_is_run_in_order_and_kept(tmp_path: Path) -> None:
    store, listener = RunStore(tmp_path / "run"), QuietListener()
    store.create(RUN.manifest)
    executor = ReplayExecutor(RUN)
    run_trials(PLAN, store, executor, listener, never)
    assert executor.asked == [trial.position for trial in PLAN.trials]
    assert listener.ended == executor.asked
    assert store.run() == RUN


def test_an_interrupted_session_is_resumed(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.create(RUN.manifest)
    stop_at = PLAN.trials[3].position
    with pytest.raises(KeyboardInterrupt):
        run_trials(PLAN, store, ReplayExecutor(RUN, stop_at), QuietListener(), never)
    assert len(store.recordings()) == 3
    again = ReplayExecutor(RUN)
    run_trials(PLAN, store, again, QuietListener(), never)
    assert again.asked == [trial.position for trial in PLAN.trials[3:]]
    assert store.run() == RUN


def deciding(rounds: int) -> Run:
    """A run of this many rounds whose suite leaves their number open."""
    run = simulated_run(trials=rounds)
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"auto": AutoTrials(precision=0.02, at_least=2)})
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    return run.model_copy(update={"manifest": manifest})


def test_rounds_end_when_they_are_enough(tmp_path: Path) -> None:
    run, store, seen = deciding(5), RunStore(tmp_path / "run"), []
    store.create(run.manifest)

    def decide(so_far: Run) -> Enough | None:
        seen.append(len(so_far.recordings))
        return Enough(rounds=3, why="precision") if len(so_far.recordings) == 3 * cells else None

    cells = len(run.manifest.plan.cells)
    run_trials(run.manifest.plan, store, ReplayExecutor(run), QuietListener(), decide)
    assert seen == [0, cells, 2 * cells, 3 * cells]
    assert store.run().enough == Enough(rounds=3, why="precision")
    assert store.run().complete
    assert len(store.recordings()) == 3 * cells
    again = ReplayExecutor(run)
    run_trials(run.manifest.plan, store, again, QuietListener(), never)
    assert again.asked == []


def test_a_session_cut_off_within_a_round_finishes_it_before_it_decides(tmp_path: Path) -> None:
    run, store = deciding(3), RunStore(tmp_path / "run")
    store.create(run.manifest)
    cells = len(run.manifest.plan.cells)
    with pytest.raises(KeyboardInterrupt):
        run_trials(run.manifest.plan, store, ReplayExecutor(run, cells + 1), QuietListener(), never)
    assert not store.run().complete

    def decide(so_far: Run) -> Enough | None:
        return Enough(rounds=2, why="budget") if len(so_far.recordings) == 2 * cells else None

    run_trials(run.manifest.plan, store, ReplayExecutor(run), QuietListener(), decide)
    assert len(store.recordings()) == 2 * cells


def test_nothing_is_decided_within_a_round(tmp_path: Path) -> None:
    """A judgement in the middle of a round would be another look at the data, and the round would never be complete."""
    run, store = deciding(3), RunStore(tmp_path / "run")
    store.create(run.manifest)
    cells, asked = len(run.manifest.plan.cells), []
    with pytest.raises(KeyboardInterrupt):
        run_trials(run.manifest.plan, store, ReplayExecutor(run, cells + 1), QuietListener(), never)

    def decide(so_far: Run) -> Enough | None:
        asked.append(len(so_far.recordings))
        return Enough(rounds=len(so_far.recordings) // cells, why="budget")

    run_trials(run.manifest.plan, store, ReplayExecutor(run), QuietListener(), decide)
    assert asked == [2 * cells]
    assert store.run().complete
    assert len(store.recordings()) == 2 * cells


def test_a_recording_that_was_moved_away_is_made_again_though_rounds_are_enough(tmp_path: Path) -> None:
    run, store = deciding(3), RunStore(tmp_path / "run")
    store.create(run.manifest)
    cells = len(run.manifest.plan.cells)

    def decide(so_far: Run) -> Enough | None:
        return Enough(rounds=2, why="precision") if len(so_far.recordings) == 2 * cells else None

    run_trials(run.manifest.plan, store, ReplayExecutor(run), QuietListener(), decide)
    next((store.folder / "recordings").glob("0001-*")).unlink()
    again = ReplayExecutor(run)
    run_trials(run.manifest.plan, store, again, QuietListener(), never)
    assert again.asked == [1]
    assert store.run().complete


def test_without_any_decision_all_rounds_are_made(tmp_path: Path) -> None:
    run, store = deciding(3), RunStore(tmp_path / "run")
    store.create(run.manifest)
    run_trials(run.manifest.plan, store, ReplayExecutor(run), QuietListener(), never)
    assert store.run() == run


def test_a_run_that_is_done_gets_further_rounds(tmp_path: Path) -> None:
    more, store, listener = simulated_run(trials=4), RunStore(tmp_path / "run"), QuietListener()
    store.create(RUN.manifest)
    run_trials(PLAN, store, ReplayExecutor(RUN), listener, never)
    extend(store, 4)
    plan = store.manifest().plan
    assert plan.trials[: len(PLAN.trials)] == PLAN.trials
    again = ReplayExecutor(more)
    run_trials(plan, store, again, QuietListener(), never)
    assert again.asked == list(range(len(PLAN.trials), len(more.manifest.plan.trials)))
    assert store.run().complete


@pytest.mark.parametrize(("trials", "says"), [(2, "--trials 2 adds nothing"), (1, "that many or more for every")])
def test_fewer_trials_than_a_run_has_are_refused(tmp_path: Path, trials: int, says: str) -> None:
    store = RunStore(tmp_path / "run")
    store.create(RUN.manifest)
    with pytest.raises(UsageError, match=says):
        extend(store, trials)
    assert store.manifest().plan == PLAN


def test_a_run_that_ends_by_itself_or_has_only_its_capacity_gets_no_rounds(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.create(deciding(2).manifest)
    with pytest.raises(UsageError, match="ends by itself"):
        extend(store, 4)
    with pytest.raises(UsageError, match="no further than its capacity"):
        extend(RunStore(tmp_path / "other"), 4)


class Stealing(ReplayExecutor):
    """The host takes half of the CPU time from trials at these positions, however often they are made."""

    def __init__(self, run: Run, *stolen: int) -> None:
        super().__init__(run)
        self._cells = run.manifest.plan.cells
        self._stolen = list(stolen)

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        for recording in super().execute(steps):
            if recording.position in self._stolen and isinstance(recording, Recording):
                self._stolen.remove(recording.position)
                yield disturbed(recording)
            else:
                yield recording


def disturbed(recording: Recording) -> Recording:
    """The same, of which the host took half of the CPU time."""
    busy = recording.find("busy_ns", "machine")
    assert busy is not None
    others = tuple(each for each in recording.series if each.name != "steal_ns")
    return recording.model_copy(update={"series": (*others, busy.model_copy(update={"name": "steal_ns"}))})


def of_cell(name: str, round_: int = 0) -> int:
    """The position of a cell's trial."""
    return next(each.position for each in PLAN.trials if each.round == round_ and each.cell_id.startswith(name))


HYPER, AXUM, NULL = (of_cell(f"{name}.SimpleGet.saturate") for name in ("rust.hyper", "rust.axum", "oracle.null"))


def test_a_trial_that_was_stolen_from_is_made_again_with_its_partner(tmp_path: Path) -> None:
    store, listener = RunStore(tmp_path / "run"), QuietListener()
    store.create(RUN.manifest)
    executor = Stealing(RUN, AXUM, NULL)
    run_trials(PLAN, store, executor, listener, never)
    first = [trial.position for trial in PLAN.trials if trial.round == 0]
    again = sorted((HYPER, AXUM))
    assert listener.again == again, "not the ceiling's, with which nothing is compared"
    assert executor.asked == [*first, *again, *(trial.position for trial in PLAN.trials if trial.round == 1)]
    run = store.run()
    assert tuple(run.recordings)[AXUM] == tuple(RUN.recordings)[AXUM]
    assert run.repeated == tuple(again)
    aside = sorted(file.name for file in (store.folder / "repeated").iterdir())
    assert aside == [f"{at:04d}-{PLAN.cells[cell].slug}.1.json" for at, cell in cells_at(*again)]
    assert build_report(run).run.trials_repeated == 2


def cells_at(*positions: int) -> list[tuple[int, str]]:
    return [(trial.position, trial.cell_id) for trial in PLAN.trials if trial.position in positions]


def test_repetitions_have_a_budget_that_a_resumed_session_keeps(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.create(RUN.manifest)
    budget = math.ceil(len(PLAN.trials) / 4)
    always = [trial.position for trial in PLAN.trials] * 9
    listener = QuietListener()
    run_trials(PLAN, store, Stealing(RUN, *always), listener, never)
    assert budget - 2 < len(listener.again) <= budget
    assert len(store.repeated()) == len(listener.again)
    assert store.run().complete
    file = next((store.folder / "recordings").glob(f"{PLAN.trials[-1].position:04d}-*"))
    file.unlink()
    more = QuietListener()
    run_trials(PLAN, store, Stealing(RUN, *always), more, never)
    assert len(store.repeated()) == len(listener.again) + len(more.again) <= budget


@pytest.mark.parametrize("lacks", [1, 0])
def test_a_session_cut_off_before_it_repeats_does_so_when_it_is_resumed(tmp_path: Path, lacks: int) -> None:
    """Also if its round was whole, and it was about to ask what to repeat."""
    first = [trial for trial in PLAN.trials if trial.round == 0]
    stolen = next(trial.position for trial in first if PLAN.cells[trial.cell_id].role == "subject")
    store, executor = RunStore(tmp_path / "run"), Stealing(RUN, stolen)
    store.create(RUN.manifest)
    for recording in executor.execute(first[: len(first) - lacks]):
        assert isinstance(recording, Recording)
        store.save(recording, PLAN.cells[recording.cell_id])
    listener = QuietListener()
    run_trials(PLAN, store, ReplayExecutor(RUN), listener, never)
    assert stolen in listener.again


def test_a_sampled_start_that_was_interrupted_is_made_again(tmp_path: Path) -> None:
    run = sampled_run()
    plan, store = run.manifest.plan, RunStore(tmp_path / "run")
    store.create(run.manifest)
    cut = run.sampled[1]
    assert cut.traffic is not None
    traffic = cut.traffic.model_copy(update={"ended": "interrupted"})
    interrupted = cut.model_copy(update={"traffic": traffic})
    made = (*run.duets, run.sampled[0], interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_trials(plan, store, ReplayExecutor(run.model_copy(update={"duets": made})), QuietListener(), never)
    assert build_report(store.run()).run.interrupted
    executor = ReplayExecutor(run.model_copy(update={"duets": run.sampled}))
    run_trials(plan, store, executor, QuietListener(), never)
    assert executor.asked == [duet.position for duet in plan.sampled[1:]]
    assert not build_report(store.run()).run.interrupted


def compared_with_two(*failing: str) -> Run:
    """A compared with B and with C, in duets of their own; these servers end under every load."""
    run = with_a_further_duet(compared_run(starts=3))
    ended = {"traffic": None, "failure": Failure(stage="load", kind="died", message="it exited with code 3", hint="")}
    slugs = {cell.id: cell.variant.slug for cell in run.manifest.plan.cells.values()}
    duets = tuple(
        duet.model_copy(update=ended) if {slugs[cell_id] for cell_id in duet.cell_ids} & {*failing} else duet
        for duet in run.duets
    )
    plan = run.manifest.plan
    servers = {cell.variant.slug: cell.variant for cell in plan.cells.values()}
    suite = plan.suite.model_copy(update={"variants": tuple(servers.values())})
    return run.model_copy(
        update={"duets": duets, "manifest": run.manifest.with_plan(plan.model_copy(update={"suite": suite}))}
    )


def test_a_server_that_fails_keeps_no_duet_of_other_servers_from_being_made(tmp_path: Path) -> None:
    run, store = compared_with_two("C"), RunStore(tmp_path / "run")
    store.create(run.manifest)
    executor = ReplayExecutor(run)
    run_trials(run.manifest.plan, store, executor, QuietListener(), never)
    assert len(executor.asked) == 6
    report = build_report(store.run())
    servers = {cell.cell_id: cell.server for cell in report.cells}
    assert {servers[made.cell_id] for made in report.comparisons if made.ratio} == {"B"}
    assert all("it exited with code 3" in made.refused for made in report.comparisons if servers[made.cell_id] == "C")
    (lost,) = report.lost_starts
    assert (lost.lost, lost.made) == (3, 3)
    assert exit_code([report]) == exits.COULD_NOT_RUN


def test_a_comparison_ends_with_the_failure_when_no_other_servers_are_left(tmp_path: Path) -> None:
    run, store = compared_with_two("B", "C"), RunStore(tmp_path / "run")
    store.create(run.manifest)
    executor = ReplayExecutor(run)
    with pytest.raises(DriveError, match="it exited with code 3"):
        run_trials(run.manifest.plan, store, executor, QuietListener(), never)
    assert executor.asked == [0, 1, 2, 3]  # those with B, then the first with C


@pytest.mark.parametrize(
    ("decides", "alone", "ahead"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_cells_are_judged_ahead_where_trials_are_fixed_and_stand_alone(
    tmp_path: Path, *, decides: bool, alone: bool, ahead: bool
) -> None:
    run = deciding(2) if decides else RUN if alone else compared_run(starts=1)
    store = RunStore(tmp_path / "run")
    plan = run.manifest.plan
    if not alone:
        plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"auto": None})})
    store.create(run.manifest.model_copy(update={"plan": plan}))
    assert (_Kept(plan, store, QuietListener())._ahead is not None) is ahead
