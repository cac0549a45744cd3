"""Execute trials on this machine."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from redline.model import Cell, Plan, PlannedDuet, PlannedTrial
from redline.ports import Profiler
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools
from redline.running.trial import AnyRecording, Step, TrialListener, TrialOptions, run_trial
from redline.running.views_ahead import OF_DUETS, OF_VIEWS
from redline.storage.runs import RunStore
from redline.suite.budget import longest_of_conversations_ns


@dataclass(frozen=True)
class LocalExecutor:
    """Runs trials and duets of a plan on this machine, with their logs in the run's directory.

    It calls `before` each start of servers.
    """

    plan: Plan
    tools: Tools
    store: RunStore
    listener: TrialListener
    log_is_kept: bool = True
    before: Callable[[], None] = lambda: None

    def execute(self, steps: Sequence[Step]) -> Iterator[AnyRecording]:
        """Run steps in order. Yields their recordings."""
        for start in starts_of(steps, self.plan):
            yield from self.run(start)

    def run(self, start: "Start") -> Iterator[AnyRecording]:
        """Run a trial, or the duets of a start of servers."""
        trial = start[0]
        if trial.position > 0:
            time.sleep(self.plan.suite.rest_ns / 1e9)
        self.before()
        if isinstance(trial, PlannedDuet):
            duets = tuple(step for step in start if isinstance(step, PlannedDuet))
            yield from run_start(self._duets(duets), self.tools)
            return
        (cell,) = cells_of(self.plan, trial)
        self.listener.trial_started(trial, cell)
        stopped = Event()
        options = TrialOptions(
            partial(self.listener.interval_seen, trial),
            self._profiler(trial, cell),
            log_is_kept=self.log_is_kept,
            later=OF_VIEWS,
            on_stopped=stopped.set,
        )
        yield run_trial(trial, cell, self.tools, self.store.log_folder(trial, cell), options)
        if stopped.is_set():  # after its load, which is stored now
            raise KeyboardInterrupt

    def _duets(self, planned: tuple[PlannedDuet, ...]) -> DuetStart:
        plan = self.plan
        budget_ns = (plan.suite.auto.budget_ns if plan.suite.auto else None) or 0
        duets = sum(duet.round == planned[0].round for duet in plan.duets)
        return DuetStart(
            planned,
            plan.cells,
            logs=lambda duet: self.store.log_folder(duet, cells_of(plan, duet)[0]),
            on_begin=lambda duet: self.listener.duet_started(duet, cells_of(plan, duet)),
            on_block=self.listener.block_seen,
            keep_interrupted=not plan.suite.alone,
            longest_ns=longest_of_conversations_ns(budget_ns, duets, once=False),
            same_answers=plan.suite.same_answers,
            log_is_kept=self.log_is_kept,
            profilers=self._samplers,
            later=OF_DUETS,
        )

    def _samplers(self, planned: PlannedDuet) -> tuple[Profiler, ...]:
        """The profilers of the servers of a duet, the control's last; none unless it is sampled."""
        if planned.profile is None or self.tools.profilers is None:
            return ()
        cells = cells_of(self.plan, planned)
        folders = [(cell, self.store.profile_folder(planned, cell)) for cell in (*cells, cells[0])]
        return tuple(self.tools.profilers.profiler(planned, cell, folder) for cell, folder in folders)

    def _profiler(self, planned: PlannedTrial, cell: Cell) -> Profiler | None:
        if planned.profile is None or self.tools.profilers is None:
            return None
        return self.tools.profilers.profiler(planned, cell, self.store.profile_folder(planned, cell))


def cells_of(plan: Plan, step: Step) -> tuple[Cell, ...]:
    """Return the cell of a trial, or the cells of a duet, the baseline's first."""
    ids = (step.cell_id,) if isinstance(step, PlannedTrial) else step.cell_ids
    return tuple(plan.cells[cell_id] for cell_id in ids)


Start = tuple[Step, ...]
"""A single trial, or the duets that a start of servers serves."""


def starts_of(steps: Sequence[Step], plan: Plan) -> Iterator[Start]:
    """Group the steps in order: consecutive duets of a round share a start if their servers are the same."""

    def servers(step: Step) -> tuple[object, ...]:
        if isinstance(step, PlannedTrial):
            return (step.position,)
        variants = tuple(cell.variant.slug for cell in cells_of(plan, step))
        return step.round, variants, step.places, step.build_number

    return (tuple(members) for _, members in itertools.groupby(steps, key=servers))
