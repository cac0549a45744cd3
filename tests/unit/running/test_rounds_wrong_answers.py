"""When rounds are enough, and which starts of a comparison are made again after wrong answers or an end."""

from pathlib import Path
from typing import Any

import pytest

from redline.errors import DriveError
from redline.model import AutoTrials, DuetRecording, Enough, Failure, Run
from redline.running import rounds
from redline.running.rounds import decide_by, run_trials
from redline.storage.runs import RunStore
from tests.fakes.compared import Cost, compared_run
from tests.fakes.plugins import QuietListener
from tests.fakes.recordings import simulated_run
from tests.unit.running.test_rounds import ReplayExecutor, never

WRONG = Failure(stage="verify", kind="wrong_answer", message="it answered 404", hint="")
DIED = Failure(stage="load", kind="died", message="it ended", hint="")
ENOUGH = Enough(rounds=2, why="precision")


class Growing:
    """The results of rounds so far."""

    judged = 0

    def judge(self, run: Run) -> str:
        self.judged += 1
        return f"results of {len(run.recordings)}"


class Known:
    """How precise some rounds are."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds


def automatic(**changed: Any) -> Run:
    run = simulated_run(trials=2)
    auto = AutoTrials.model_validate({"at_least": 3, "precision": 0.05, **changed})
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"auto": auto})
    return run.model_copy(update={"manifest": run.manifest.with_plan(plan.model_copy(update={"suite": suite}))})


@pytest.mark.parametrize(
    ("end", "known", "told"),
    [(None, Known(3), True), (None, Known(2), False), (ENOUGH, Known(3), False), (None, None, False)],
)
def test_the_listener_is_told_how_precise_rounds_are_that_may_end(
    end: Enough | None, known: Known | None, monkeypatch: pytest.MonkeyPatch, *, told: bool
) -> None:
    growing, listener = Growing(), QuietListener()

    def enough(run: Run, judge: Any) -> Enough | None:
        assert judge(run) == f"results of {len(run.recordings)}"
        return end

    monkeypatch.setattr(rounds.precision, "enough", enough)
    monkeypatch.setattr(rounds.precision, "precision", lambda _run, _results: known)
    assert decide_by(lambda: growing, listener, automatic()) is end  # type: ignore[arg-type, return-value]
    assert [one.rounds for one in listener.judged] == ([3] if told else [])
    assert growing.judged == 1


def test_a_budget_alone_is_decided_without_results(monkeypatch: pytest.MonkeyPatch) -> None:
    growing = Growing()
    monkeypatch.setattr(rounds.precision, "enough", lambda _run: ENOUGH)
    assert decide_by(lambda: growing, QuietListener(), automatic(precision=None, budget_ns=1)) is ENOUGH  # type: ignore[arg-type, return-value]
    assert growing.judged == 0


TWO = compared_run({"home": Cost(), "cart": Cost()}, starts=3)
"""Six duets: at even positions of the scenario home, at odd ones of cart."""


def failing(failures: dict[int, Failure], run: Run = TWO, **suite: object) -> Run:
    duets = tuple(
        duet.model_copy(update={"traffic": None, "failure": failures[duet.position]})
        if duet.position in failures
        else duet
        for duet in run.duets
    )
    plan = run.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update=suite)})
    return run.model_copy(update={"duets": duets, "manifest": run.manifest.with_plan(plan)})


def executed(run: Run, folder: Path, stored: dict[int, DuetRecording] | None = None) -> tuple[list[int], str]:
    """The positions that were made, and the error that ended it."""
    store, executor = RunStore(folder), ReplayExecutor(run)
    store.create(run.manifest)
    for duet in (stored or {}).values():
        store.save(duet, run.manifest.plan.cells[duet.cell_ids[0]])
    try:
        run_trials(run.manifest.plan, store, executor, QuietListener(), never)
    except DriveError as error:
        return executor.asked, error.message
    except KeyboardInterrupt:
        return executor.asked, "interrupted"
    return executor.asked, ""


def test_a_request_that_is_answered_wrongly_from_the_first_round_on_is_given_up(tmp_path: Path) -> None:
    asked, error = executed(failing({1: WRONG, 3: WRONG, 5: WRONG}), tmp_path / "run")
    assert (asked, error) == ([0, 1, 2, 3, 4, 5], "")


def test_a_wrong_answer_in_a_later_round_ends_a_comparison(tmp_path: Path) -> None:
    asked, error = executed(failing({3: WRONG}), tmp_path / "run")
    assert asked == [0, 1, 2, 3]
    assert "it answered 404" in error


def test_a_comparison_whose_every_request_is_wrong_ends_with_the_first(tmp_path: Path) -> None:
    other = WRONG.model_copy(update={"message": "it answered 500"})
    asked, error = executed(failing({0: WRONG, 1: other}), tmp_path / "run")
    assert asked == [0, 1]
    assert "it answered 404" in error


def test_a_suite_that_asks_for_the_same_answers_gives_none_up(tmp_path: Path) -> None:
    asked, error = executed(failing({1: WRONG}, same_answers=True), tmp_path / "run")
    assert asked == [0, 1]
    assert "it answered 404" in error


def test_a_failure_that_is_no_wrong_answer_ends_a_comparison(tmp_path: Path) -> None:
    engine = Failure(stage="verify", kind="engine", message="the engine broke", hint="")
    for failure in (DIED, engine):
        asked, error = executed(failing({0: failure}), tmp_path / failure.kind)
        assert asked == [0]
        assert failure.message in error


def stored(run: Run, *positions: int, **changed: object) -> dict[int, DuetRecording]:
    return {at: run.duets[at].model_copy(update=changed) for at in positions}


def test_starts_that_failed_are_made_again_when_a_session_goes_on(tmp_path: Path) -> None:
    broken = stored(TWO, 2, traffic=None, failure=DIED)
    asked, error = executed(TWO, tmp_path / "run", stored(TWO, 0, 1) | broken)
    assert (asked, error) == ([2, 3, 4, 5], "")


def test_wrong_answers_that_were_given_up_are_not_made_again(tmp_path: Path) -> None:
    run = failing({1: WRONG, 3: WRONG, 5: WRONG})
    asked, _ = executed(run, tmp_path / "run", stored(run, 0, 1, 2, 3))
    assert asked == [4, 5]
    late = failing({3: WRONG})
    asked, _ = executed(TWO, tmp_path / "late", stored(late, 0, 1, 2, 3))
    assert asked == [3, 4, 5], "the first round of this request was right"
    other = failing({1: WRONG, 3: DIED})
    asked, _ = executed(failing({1: WRONG, 3: WRONG, 5: WRONG}), tmp_path / "other", stored(other, 0, 1, 2, 3))
    assert asked == [3, 4, 5], "it failed in another way"


def test_where_all_requests_were_wrong_all_are_made_again(tmp_path: Path) -> None:
    both = failing({0: WRONG, 1: WRONG})
    asked, _ = executed(TWO, tmp_path / "run", stored(both, 0, 1))
    assert asked == [0, 1, 2, 3, 4, 5]


def test_an_interrupted_duet_is_kept_and_made_again(tmp_path: Path) -> None:
    cut = compared_run({"home": Cost(), "cart": Cost()}, starts=3, interrupted=True)
    folder = tmp_path / "run"
    asked, error = executed(cut, folder)
    assert error == "interrupted"
    assert asked == [0, 1, 2, 3, 4]
    assert len(RunStore(folder).duets()) == 5
    executor = ReplayExecutor(TWO)
    run_trials(TWO.manifest.plan, RunStore(folder), executor, QuietListener(), never)
    assert executor.asked == [4, 5]


def test_an_aborted_start_ends_a_comparison_without_an_error(tmp_path: Path) -> None:
    first = TWO.duets[0]
    assert first.traffic is not None
    traffic = first.traffic.ended_as_asked("p99 > 1s")
    run = TWO.model_copy(update={"duets": (first.model_copy(update={"traffic": traffic}), *TWO.duets[1:])})
    assert executed(run, tmp_path / "run") == ([0], "")


def test_the_listener_of_a_comparison_hears_how_servers_compare_after_each_start(tmp_path: Path) -> None:
    plan = TWO.manifest.plan
    auto = AutoTrials(at_least=1, budget_ns=10**12)
    suite = plan.suite.model_copy(update={"auto": auto})
    manifest = TWO.manifest.with_plan(plan.model_copy(update={"suite": suite}))
    store, listener = RunStore(tmp_path / "run"), QuietListener()
    store.create(manifest)
    run_trials(manifest.plan, store, ReplayExecutor(TWO), listener, never)
    assert listener.compared_starts == [1, 2, 3, 4, 5, 6]
    again = QuietListener()
    run_trials(manifest.plan, store, ReplayExecutor(TWO), again, never)
    assert again.compared_starts == [6]
    fixed = QuietListener()
    other = RunStore(tmp_path / "fixed")
    other.create(TWO.manifest)
    run_trials(
        TWO.manifest.plan.model_copy(update={"suite": suite.model_copy(update={"auto": None})}),
        other,
        ReplayExecutor(TWO),
        fixed,
        never,
    )
    assert fixed.compared_starts == []


def test_rounds_that_were_enough_are_not_asked_about_again(tmp_path: Path) -> None:
    run, store = automatic(at_least=1), RunStore(tmp_path / "run")
    store.create(run.manifest)
    store.save_enough(Enough(rounds=1, why="precision"))
    executor = ReplayExecutor(simulated_run(trials=2))

    def asked(_run: Run) -> Enough | None:
        raise AssertionError("it was decided before")

    run_trials(run.manifest.plan, store, executor, QuietListener(), asked)
    rounds_made = {trial.round for trial in run.manifest.plan.trials if trial.position in executor.asked}
    assert rounds_made == {0}
