"""Plan -> executor -> store. Goes on where an earlier session of the same run stopped."""

from collections.abc import Callable
from itertools import groupby

from redline.model import Enough, Plan, PlannedTrial, Recording, Run
from redline.ports import Executor
from redline.store import RunStore
from redline.trial import Watcher

Decide = Callable[[Run], Enough | None]
"""Whether the rounds so far are enough; asked after each."""


def run_session(plan: Plan, store: RunStore, executor: Executor, watcher: Watcher, decide: Decide) -> None:
    """Run every trial of the plan that has no recording yet, in the plan's order, keeping each as it ends.

    A suite that leaves the number of trials open gets rounds until they are enough. Whatever ends the session early
    (an interrupt, a full disk), the recordings made so far stand and a later session runs the rest.
    """
    if plan.suite.auto is None:
        done = store.positions()
        left = tuple(trial for trial in plan.trials if trial.position not in done)
        _run(left, plan, store, executor, watcher)
        return
    manifest, recordings = store.manifest(), list(store.recordings())
    for _, trials in groupby(plan.trials, key=lambda planned: planned.round):
        # Asked before each round too: the session before may have been cut off between a round and the question.
        enough = store.enough() or decide(Run(manifest=manifest, recordings=tuple(recordings)))
        if enough is not None:
            store.save_enough(enough)
            return
        done = frozenset(recording.position for recording in recordings)
        left = tuple(trial for trial in trials if trial.position not in done)
        recordings += _run(left, plan, store, executor, watcher)


def _run(
    trials: tuple[PlannedTrial, ...], plan: Plan, store: RunStore, executor: Executor, watcher: Watcher
) -> list[Recording]:
    made = []
    for recording in executor.execute(trials):
        cell = plan.cells[recording.cell_id]
        store.save(recording, cell)
        watcher.trial_ended(recording, cell)
        made.append(recording)
    return made
