"""Plan -> executor -> store. Goes on where an earlier session of the same run stopped."""

from collections.abc import Callable
from itertools import groupby

from redline.model import Enough, Plan, PlannedTrial, Recording, Run
from redline.ports import Executor
from redline.running.trial import TrialListener
from redline.storage.runs import RunStore

Decide = Callable[[Run], Enough | None]
"""Whether the rounds so far are enough; asked after each."""


def run_session(plan: Plan, store: RunStore, executor: Executor, listener: TrialListener, decide: Decide) -> None:
    """Run every trial of the plan that has no recording yet, in the plan's order, keeping each as it ends.

    A suite that leaves the number of trials open gets rounds until they are enough. Whatever ends the session early
    (an interrupt, a full disk), the recordings made so far stand and a later session runs the rest.
    """
    if plan.suite.auto is None:
        done = store.positions()
        left = tuple(trial for trial in plan.trials if trial.position not in done)
        _run(left, plan, store, executor, listener)
        return
    manifest, recordings, enough = store.manifest(), list(store.recordings()), store.enough()
    for round_, planned in groupby(plan.trials, key=lambda trial: trial.round):
        trials, done = tuple(planned), frozenset(recording.position for recording in recordings)
        left = tuple(trial for trial in trials if trial.position not in done)
        # Asked before each round, since a session may have been cut off before it asked; never within a round.
        if enough is None and left == trials:
            enough = decide(Run(manifest=manifest, recordings=tuple(recordings)))
            if enough is not None:
                store.save_enough(enough)
        if enough is not None and round_ >= enough.rounds:
            return
        recordings += _run(left, plan, store, executor, listener)


def _run(
    trials: tuple[PlannedTrial, ...], plan: Plan, store: RunStore, executor: Executor, listener: TrialListener
) -> list[Recording]:
    made = []
    for recording in executor.execute(trials):
        cell = plan.cells[recording.cell_id]
        store.save(recording, cell)
        listener.trial_ended(recording, cell)
        made.append(recording)
    return made
