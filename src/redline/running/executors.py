"""Executors: where trials run. Of pairs of hosts each runs trials of its own, one after the other."""

import itertools
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from redline.errors import UsageError
from redline.model import Cell, DuetRecording, Interval, Plan, PlannedDuet, PlannedTrial, Recording, Suite
from redline.plugins.hosts.remote import CALL_S
from redline.plugins.launchers.watching import watch
from redline.ports import Profiler
from redline.running.duet import DuetStart, DuetTools, run_start
from redline.running.host_pairs import PairTools
from redline.running.record import Tools
from redline.running.trial import TrialListener, run_trial
from redline.storage.runs import RunStore

Step = PlannedTrial | PlannedDuet
Made = Recording | DuetRecording


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
        return DuetTools((self.tools.launcher,) * servers, watch, self.tools.driver, self.tools.placement)


class Shares:
    """What is left to do, by pair. With `retries`, what a lost pair leaves undone is for the others."""

    def __init__(self, shares: Sequence[Sequence[Step]], retries: int) -> None:
        self._left = [deque(share) for share in shares]
        self._retries, self._tries = retries, Counter[int]()
        self._for_all: deque[Step] = deque()
        self._alive, self._busy = set(range(len(shares))), set[int]()
        self._is_over = False
        self._changed = threading.Condition()

    def take(self, pair: int) -> Step | None:
        """The next step of a pair; None when there is none, and no other pair can leave it one any more."""
        with self._changed:
            self._busy.discard(pair)
            self._changed.notify_all()
            while not self._is_over:
                if left := self._left[pair] or self._for_all:
                    self._busy.add(pair)
                    return left.popleft()
                if not self._busy:
                    return None
                self._changed.wait()
            return None

    def leave(self, pair: int, step: Step) -> bool | None:
        """The pair is lost in the middle of a step: others do all that it had left, and the step if it may be retried.

        Returns whether they do the step; None where there are no others, so that the pair goes on.
        """
        with self._changed:
            if self._alive == {pair} or not self._retries:
                return None
            self._tries[step.position] += 1
            again = self._tries[step.position] <= self._retries
            self._alive.discard(pair)
            self._busy.discard(pair)
            self._for_all += (*((step,) if again else ()), *self._left[pair])
            self._left[pair].clear()
            self._changed.notify_all()
            return again

    def end(self) -> None:
        """Nothing more is to be done."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


@dataclass(frozen=True)
class HostsExecutor:
    """Trials and duets of one plan on pairs of hosts, with their logs in the run's directory."""

    plan: Plan
    pairs: tuple[PairTools, ...]
    store: RunStore
    listener: TrialListener
    lost: list[PairTools] = field(default_factory=list)
    """Pairs whose steps others do: they get no more."""

    def execute(self, steps: Sequence[Step]) -> Iterator[Made]:
        """Run them, those of one pair in order. An interrupt ends the loads; what was not over has no recording."""
        pairs = [pair for pair in self.pairs if pair not in self.lost]
        if len(pairs) == 1:
            for step in steps:
                yield self._run(pairs[0], step, self.listener)
            return
        made: queue.Queue[Made | BaseException | None] = queue.Queue()
        shares = Shares(assigned_steps(steps, self.plan, len(pairs)), self.plan.suite.host_retries)
        listener = _OneAtATime(self.listener)
        threads = [
            threading.Thread(target=self._run_share, args=(pair, number, shares, listener, made), daemon=True)
            for number, pair in enumerate(pairs)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from _until_all_ended(made, len(threads))
        finally:
            shares.end()
            if any(thread.is_alive() for thread in threads):
                for pair in pairs:
                    pair.interrupt()
            for thread in threads:
                thread.join(CALL_S)

    def _run_share(
        self,
        pair: PairTools,
        number: int,
        shares: Shares,
        listener: "_OneAtATime",
        made: "queue.Queue[Made | BaseException | None]",
    ) -> None:
        """Run the steps of the `number`-th pair, until they are over; None in the queue says that they have ended."""
        try:
            while (step := shares.take(number)) is not None:
                found = self._run(pair, step, listener)
                again = shares.leave(number, step) if found.failure is not None and pair.is_lost else None
                if again and found.failure is not None:
                    self.store.save_lost(found, self._cells(step)[0])
                    listener.moved(step, self._cells(step), found.failure)
                else:
                    made.put(found)
                if again is not None:
                    self.lost.append(pair)
                    return
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            made.put(error)
        finally:
            made.put(None)

    def _cells(self, step: Step) -> tuple[Cell, ...]:
        ids = (step.cell_id,) if isinstance(step, PlannedTrial) else step.cell_ids
        return tuple(self.plan.cells[cell_id] for cell_id in ids)

    def _run(self, pair: PairTools, step: Step, listener: Any) -> Made:
        facts, cells = pair.follow(), self._cells(step)
        made: Made
        if isinstance(step, PlannedTrial):
            listener.trial_started(step, cells[0])
            seen: Callable[[Interval], None] = partial(listener.interval_seen, step)
            made = run_trial(step, cells[0], pair.tools, self.store.log_folder(step, cells[0]), seen)
        else:
            listener.duet_started(step, cells)
            start = DuetStart(step, cells, self.store.log_folder(step, cells[0]), partial(listener.block_seen, step))
            made = run_start(start, pair.duet_tools(len(cells)))
        return made.model_copy(update={"hosts": facts()})


def check_for_hosts(suite: Suite) -> None:
    """Raise UsageError for what a suite has that cannot be measured on other hosts."""
    for has, what, hint in (
        (suite.builds > 1, "several builds of each server", "leave out `builds`"),
        (bool(suite.profile), "profiles", "leave out `profile`; they can be made on the server's host itself"),
        (suite.design == "parallel-duet", "parallel duets", "use `design: duet`"),
    ):
        if has:
            raise UsageError(f"{suite.name} has {what}, which cannot be had on several hosts", hint=hint)


def assigned_steps(steps: Sequence[Step], plan: Plan, pairs: int) -> tuple[tuple[Step, ...], ...]:
    """The steps of each pair, in order. What is compared in a round stays on one pair, another one in the next round.

    So the pair cancels in a ratio of two servers, and every group of cells comes to see every pair.
    """

    def group(step: Step) -> tuple[int, str, str]:
        cell = plan.cells[step.cell_id if isinstance(step, PlannedTrial) else step.cell_ids[0]]
        return step.round, cell.scenario.name, cell.load.name

    names = dict.fromkeys((cell.scenario.name, cell.load.name) for cell in plan.cells.values())
    numbers = {name: number for number, name in enumerate(names)}  # those of the plan: a round may be done in part
    shares: list[list[Step]] = [[] for _ in range(pairs)]
    for (round_, scenario, load), members in itertools.groupby(sorted(steps, key=group), key=group):
        shares[(numbers[scenario, load] + round_) % pairs] += members
    return tuple(tuple(sorted(share, key=lambda step: step.position)) for share in shares)


def _until_all_ended(made: "queue.Queue[Made | BaseException | None]", running: int) -> Iterator[Made]:
    """What so many threads made, as it comes; what one of them raised is raised here."""
    while running:
        found = made.get()
        if isinstance(found, BaseException):
            raise found
        if found is None:
            running -= 1
        else:
            yield found


class _OneAtATime:
    """A listener for trials that run at the same time: it hears one thing after the other."""

    def __init__(self, listener: TrialListener) -> None:
        self._listener, self._lock = listener, threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., None]:
        method = getattr(self._listener, name)

        def one(*arguments: Any) -> None:
            with self._lock:
                method(*arguments)

        return one
