"""Runs trials on this machine, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass

from redline.model import Interval, Plan, PlannedTrial, Recording
from redline.running.record import Tools
from redline.running.trial import TrialExecution, TrialListener
from redline.storage.runs import RunStore


@dataclass(frozen=True)
class LocalExecutor:
    """Trials of one plan, with their logs in the run's directory."""

    plan: Plan
    tools: Tools
    store: RunStore
    listener: TrialListener

    def execute(self, trials: tuple[PlannedTrial, ...]) -> Iterator[Recording]:
        """Run the trials in order; one recording each."""
        for planned in trials:
            cell = self.plan.cells[planned.cell_id]
            self.listener.trial_started(planned, cell)

            def on_interval(interval: Interval, planned: PlannedTrial = planned) -> None:
                self.listener.interval_seen(planned, interval)

            yield TrialExecution(planned, cell, self.tools, self.store.log_folder(planned, cell), on_interval).run()
