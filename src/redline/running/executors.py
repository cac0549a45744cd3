"""Executors: where trials run. Of pairs of hosts each runs trials of its own, one after the other."""

import itertools
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from typing import Any

from redline.errors import UsageError
from redline.model import (
    AttachedServer,
    Cell,
    Interval,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Recording,
    Suite,
)
from redline.plugins.hosts.remote import CALL_S
from redline.ports import Profiler
from redline.running.duet import DuetStart, run_start
from redline.running.host_pairs import PairTools
from redline.running.record import Tools
from redline.running.trial import Made, Step, TrialListener, run_trial
from redline.storage.runs import RunStore


@dataclass(frozen=True)
class LocalExecutor:
    """Trials and duets of one plan on this machine, with their logs in the run's directory."""

    plan: Plan
    tools: Tools
    store: RunStore
    listener: TrialListener
    log_is_kept: bool = True

    def execute(self, steps: Sequence[Step]) -> Iterator[Made]:
        """Run them in order; a recording of each."""
        for start in starts_of(steps, self.plan):
            if isinstance(start, PlannedTrial):
                yield self._trial(start)
            else:
                served = new_start(start, self.plan, self.store, self.listener, log_is_kept=self.log_is_kept)
                yield from run_start(served, self.tools)

    def _trial(self, planned: PlannedTrial) -> Recording:
        cell = self.plan.cells[planned.cell_id]
        self.listener.trial_started(planned, cell)
        logs, on_interval = self.store.log_folder(planned, cell), partial(self.listener.interval_seen, planned)
        return run_trial(planned, cell, self.tools, logs, on_interval, profiler=self._profiler(planned, cell))

    def _profiler(self, planned: PlannedTrial, cell: Cell) -> Profiler | None:
        if planned.profile is None or self.tools.profilers is None:
            return None
        return self.tools.profilers.profiler(planned, cell, self.store.profile_folder(planned, cell))


Start = PlannedTrial | tuple[PlannedDuet, ...]
"""What one start of servers serves."""


def starts_of(steps: Sequence[Step], plan: Plan) -> Iterator[Start]:
    """The steps in order; duets of a round that follow each other have one start if their servers are the same."""

    def servers(step: Step) -> tuple[object, ...]:
        if isinstance(step, PlannedTrial):
            return (step.position,)
        variants = tuple(plan.cells[cell_id].variant.slug for cell_id in step.cell_ids)
        return step.round, variants, step.places, step.build_number

    for _, members in itertools.groupby(steps, key=servers):
        duets = list[PlannedDuet]()
        for step in members:
            if isinstance(step, PlannedTrial):
                yield step
            else:
                duets.append(step)
        if duets:
            yield tuple(duets)


def new_start(
    planned: tuple[PlannedDuet, ...], plan: Plan, store: RunStore, listener: TrialListener, *, log_is_kept: bool = True
) -> DuetStart:
    """A start of these duets of a plan, with their logs in the run's directory."""

    def cells_of(duet: PlannedDuet) -> tuple[Cell, ...]:
        return tuple(plan.cells[cell_id] for cell_id in duet.cell_ids)

    return DuetStart(
        planned,
        plan.cells,
        logs=lambda duet: store.log_folder(duet, cells_of(duet)[0]),
        on_begin=lambda duet: listener.duet_started(duet, cells_of(duet)),
        on_block=listener.block_seen,
        keep_interrupted=not plan.suite.alone,
        same_answers=plan.suite.same_answers,
        log_is_kept=log_is_kept,
    )


class Shares:
    """What is left to do, by pair. With `retries`, what a lost pair leaves undone is for the others."""

    def __init__(self, shares: Sequence[Sequence[Start]], retries: int) -> None:
        self._left = [deque(share) for share in shares]
        self._retries, self._tries = retries, Counter[int]()
        self._for_all: deque[Start] = deque()
        self._alive, self._busy = set(range(len(shares))), set[int]()
        self._is_over = False
        self._changed = threading.Condition()

    def take(self, pair: int) -> Start | None:
        """The next start of a pair; None when there is none, and no other pair can leave it one any more."""
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

    def leave(self, pair: int, left: Start) -> bool | None:
        """The pair is lost in the middle of a step: others do all that it had left, and the step if it may be retried.

        `left` is that step, with what the same start was still to serve.

        Returns whether they do the step; None where there are no others, so that the pair goes on.
        """
        with self._changed:
            if self._alive == {pair} or not self._retries:
                return None
            step, rest = (left, ()) if isinstance(left, PlannedTrial) else (left[0], left[1:])
            self._tries[step.position] += 1
            again = self._tries[step.position] <= self._retries
            self._alive.discard(pair)
            self._busy.discard(pair)
            wanted = left if again else rest
            self._for_all += (*((wanted,) if wanted else ()), *self._left[pair])
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
            for start in starts_of(steps, self.plan):
                yield from self._run(pairs[0], start, self.listener)
            return
        made: queue.Queue[Made | BaseException | None] = queue.Queue()
        assigned = assigned_steps(steps, self.plan, len(pairs))
        shares = Shares([tuple(starts_of(share, self.plan)) for share in assigned], self.plan.suite.host_retries)
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
            while (start := shares.take(number)) is not None:
                steps: tuple[Step, ...] = (start,) if isinstance(start, PlannedTrial) else start
                for at, (step, found) in enumerate(zip(steps, self._run(pair, start, listener), strict=False)):
                    left = start if isinstance(start, PlannedTrial) else start[at:]
                    again = shares.leave(number, left) if found.failure is not None and pair.is_lost else None
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

    def _run(self, pair: PairTools, start: Start, listener: Any) -> Iterator[Made]:
        if isinstance(start, PlannedTrial):
            (cell,) = self._cells(start)
            listener.trial_started(start, cell)
            seen: Callable[[Interval], None] = partial(listener.interval_seen, start)
            yield run_trial(start, cell, pair.tools, self.store.log_folder(start, cell), seen)
        else:
            yield from run_start(new_start(start, self.plan, self.store, listener), pair.duet_tools)


def check_for_hosts(suite: Suite) -> None:
    """Raise UsageError for what a suite has that cannot be measured on other hosts."""
    urls = [variant.entry for variant in suite.variants if isinstance(variant.entry, AttachedServer)]
    unreachable = next((f"a URL that no other host can reach, {url.name}" for url in urls if _is_of_here(url)), "")
    for has, what, hint in (
        (
            any(variant.is_own and not variant.is_attached for variant in suite.variants),
            "servers by their commands or revisions",
            "start them yourself, and write `url: http://HOST:PORT` for each; or measure them without --on",
        ),
        (bool(unreachable), unreachable, "write the address by which the load hosts reach it"),
        (suite.builds > 1, "several builds of each server", "leave out `builds`"),
        (bool(suite.profile), "profiles", "leave out `profile`; they can be made on the server's host itself"),
        (suite.design == "parallel-duet", "parallel duets", "use `design: duet`"),
    ):
        if has:
            raise UsageError(f"{suite.name} has {what}, which cannot be had on several hosts", hint=hint)


def _is_of_here(server: AttachedServer) -> bool:
    """Whether the address means this machine alone: a loopback address, or one with a zone."""
    try:
        address = ip_address(server.host)
    except ValueError:
        return server.host.rstrip(".").endswith("localhost")
    return address.is_loopback or "%" in server.host


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
