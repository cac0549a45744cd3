"""Plan -> executor -> store. Goes on where an earlier session of the same run stopped."""

from redline.model import Plan
from redline.ports import Executor
from redline.store import RunStore
from redline.trial import Watcher


def run_session(plan: Plan, store: RunStore, executor: Executor, watcher: Watcher) -> None:
    """Run every trial of the plan that has no recording yet, in the plan's order, keeping each as it ends.

    Whatever ends the session early (an interrupt, a full disk), the recordings made so far stand and a later session
    runs the rest.
    """
    done = store.positions()
    remaining = tuple(trial for trial in plan.trials if trial.position not in done)
    for recording in executor.execute(remaining):
        cell = plan.cells[recording.cell_id]
        store.save(recording, cell)
        watcher.trial_ended(recording, cell)
