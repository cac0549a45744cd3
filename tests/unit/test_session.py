"""A session runs what has no recording yet, keeps each as it ends, and goes on where it stopped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.model import PlannedTrial, Recording, Run
from redline.session import run_session
from redline.store import RunStore
from tests.fakes.plugins import QuietWatcher
from tests.fakes.recordings import simulated_run

RUN = simulated_run(trials=2)
PLAN = RUN.manifest.plan


class ReplayExecutor:
    """Gives the simulated recordings, and stops where the test says."""

    def __init__(self, run: Run, stop_at: int | None = None) -> None:
        self._recordings = {recording.position: recording for recording in run.recordings}
        self._stop_at = stop_at
        self.asked: list[int] = []

    def execute(self, trials: tuple[PlannedTrial, ...]) -> Iterator[Recording]:
        for trial in trials:
            self.asked.append(trial.position)
            if trial.position == self._stop_at:
                raise KeyboardInterrupt
            yield self._recordings[trial.position]


def test_every_trial_is_run_in_order_and_kept(tmp_path: Path) -> None:
    store, watcher = RunStore(tmp_path / "run"), QuietWatcher()
    store.create(RUN.manifest)
    executor = ReplayExecutor(RUN)
    run_session(PLAN, store, executor, watcher)
    assert executor.asked == [trial.position for trial in PLAN.trials]
    assert watcher.ended == executor.asked
    assert store.run() == RUN


def test_an_interrupted_session_is_gone_on_with(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.create(RUN.manifest)
    stop_at = PLAN.trials[3].position
    with pytest.raises(KeyboardInterrupt):
        run_session(PLAN, store, ReplayExecutor(RUN, stop_at), QuietWatcher())
    assert len(store.recordings()) == 3
    again = ReplayExecutor(RUN)
    run_session(PLAN, store, again, QuietWatcher())
    assert again.asked == [trial.position for trial in PLAN.trials[3:]]
    assert store.run() == RUN
