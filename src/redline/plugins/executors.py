"""Executors: where trials run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from redline.model import Plan, PlannedTrial, Recording
from redline.running.record import Tools
from redline.running.trial import TrialListener, run_trial
from redline.storage.runs import RunStore


@dataclass(frozen=True)
class LocalExecutor:
    """Trials of one plan on this machine, with their logs in the run's directory."""

    plan: Plan
    tools: Tools
    store: RunStore
    listener: TrialListener

    def execute(self, trials: tuple[PlannedTrial, ...]) -> Iterator[Recording]:
        """Run the trials in order; one recording each."""
        for planned in trials:
            cell = self.plan.cells[planned.cell_id]
            self.listener.trial_started(planned, cell)
            logs, on_interval = self.store.log_folder(planned, cell), partial(self.listener.interval_seen, planned)
            yield run_trial(planned, cell, self.tools, logs, on_interval)
