"""Executors: where trials run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from redline.model import Cell, DuetRecording, Plan, PlannedDuet, PlannedTrial, Recording
from redline.plugins.launchers.attached import processes_of
from redline.ports import Profiler
from redline.running.duet import DuetStart, DuetTools, run_start
from redline.running.record import Tools
from redline.running.trial import TrialListener, run_trial
from redline.storage.runs import RunStore


@dataclass(frozen=True)
class LocalExecutor:
    """Trials and duets of one plan on this machine, with their logs in the run's directory."""

    plan: Plan
    tools: Tools
    store: RunStore
    listener: TrialListener

    def execute(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> Iterator[Recording | DuetRecording]:
        """Run them in order; one recording each."""
        for planned in steps:
            if isinstance(planned, PlannedTrial):
                cell = self.plan.cells[planned.cell_id]
                self.listener.trial_started(planned, cell)
                logs, on_interval = self.store.log_folder(planned, cell), partial(self.listener.interval_seen, planned)
                yield run_trial(planned, cell, self.tools, logs, on_interval, profiler=self._profiler(planned, cell))
            else:
                cells = tuple(self.plan.cells[cell_id] for cell_id in planned.cell_ids)
                self.listener.duet_started(planned, cells)
                logs, on_block = self.store.log_folder(planned, cells[0]), partial(self.listener.block_seen, planned)
                yield run_start(DuetStart(planned, cells, logs, on_block), self._duet_tools(len(cells)))

    def _profiler(self, planned: PlannedTrial, cell: Cell) -> Profiler | None:
        if planned.profile is None or self.tools.profilers is None:
            return None
        return self.tools.profilers.profiler(planned, cell, self.store.profile_folder(planned, cell))

    def _duet_tools(self, servers: int) -> DuetTools:
        return DuetTools((self.tools.launcher,) * servers, processes_of, self.tools.driver, self.tools.placement)
