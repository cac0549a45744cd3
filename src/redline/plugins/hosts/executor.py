"""Trials on pairs of hosts: each pair runs trials of its own, one after the other, and no two share a host."""

import itertools
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from redline.errors import RedlineError, UsageError
from redline.model import (
    Cell,
    ClockReading,
    DuetRecording,
    HostFacts,
    Interval,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Recording,
    Suite,
)
from redline.plugins.hosts.agent import Footprint
from redline.plugins.hosts.launcher import RemoteLauncher, RemoteRoute, RemoteServer
from redline.plugins.hosts.remote import (
    CALL_S,
    HostLostError,
    LoadHostsProbe,
    PartsDriver,
    RemoteHost,
    RemoteProbe,
    call,
)
from redline.ports import Placement, RunningServer
from redline.running.duet import DuetStart, DuetTools, run_start
from redline.running.record import Tools
from redline.running.trial import TrialListener, run_trial
from redline.storage.runs import RunStore

LOST_AFTER_S = 5.0
"""A host that has not answered for so long is lost."""
READ_WITHIN_NS = 1_000_000
"""Two clocks of a host are read one after the other; a host that is busy may do something else between."""

Step = PlannedTrial | PlannedDuet
Made = Recording | DuetRecording


@dataclass(frozen=True)
class Pair:
    """Hosts that one trial has for itself: one for servers, those that load them, and maybe one for proxies.

    Without one of their own, proxies run on the server's.
    """

    server: RemoteHost
    loads: tuple[RemoteHost, ...]
    proxy: RemoteHost | None = None

    @property
    def hosts(self) -> tuple[RemoteHost, ...]:
        """All of them."""
        return (self.server, *self.loads, *((self.proxy,) if self.proxy else ()))


@dataclass(frozen=True)
class PairTools:
    """What trials are made with on one pair of hosts."""

    pair: Pair
    tools: Tools
    driver: PartsDriver
    launcher: RemoteLauncher

    @classmethod
    def of(cls, pair: Pair, launcher: RemoteLauncher) -> "PairTools":
        """Those of a pair."""
        server, proxy = pair.server, pair.proxy
        driver = PartsDriver(pair.loads, server, proxy)
        engines, cores = pair.loads[0].report.environment, server.report.environment
        tools = Tools(
            launcher=launcher.on(server, proxy),
            driver=driver,
            probes=lambda: (RemoteProbe(server, proxy), LoadHostsProbe(driver)),
            placement=Placement(server_cpus=cores.server_cpus, engine_cpus=engines.engine_cpus),
            compilers_of=lambda pids: lambda: _or_none(server, "compilers_ns", pids),
        )
        own = cls(pair, tools, driver, launcher)
        return replace(own, tools=replace(tools, hosts=own.follow, processes=own.processes_of))

    def processes_of(self, server: RunningServer) -> tuple[int, ...]:
        """The processes of a server, and of its proxies if they are on its host."""
        if isinstance(server, RemoteRoute):
            server = server.server
        if not isinstance(server, RemoteServer):
            return ()
        return tuple(each for pid in server.facts.pids for each in _or_none(self.pair.server, "processes", pid) or ())

    def duet_tools(self, servers: int) -> DuetTools:
        """What duets of so many servers are made with. Their CPU time is read on one host, so proxies are on it too."""
        launcher = self.launcher.on(self.pair.server)
        return DuetTools((launcher,) * servers, self.processes_of, self.driver, self.tools.placement)

    def follow(self) -> Callable[[], tuple[HostFacts, ...]]:
        """Look at the hosts now, and when what this returns is called: their facts for what happened meanwhile."""
        before = _readings(self.pair)
        return lambda: _facts(self, before)

    def interrupt(self) -> None:
        """End the loads of these hosts early."""
        for host in self.pair.loads:
            _or_none(host, "interrupt")

    @property
    def is_lost(self) -> bool:
        """Whether one of the hosts does not answer any more."""
        try:
            for host in self.pair.hosts:
                call(host, "lacking", (), within_s=LOST_AFTER_S)
        except HostLostError:
            return True
        return False


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
        shares = Shares(dealt(steps, self.plan, len(pairs)), self.plan.suite.host_retries)
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


def check_for_hosts(suite: Suite) -> None:
    """Raise UsageError for what a suite has that cannot be measured on other hosts."""
    for has, what, hint in (
        (suite.builds > 1, "several builds of each server", "leave out `builds`"),
        (bool(suite.profile), "profiles", "leave out `profile`; they can be made on the server's host itself"),
        (suite.design == "parallel-duet", "parallel duets", "use `design: duet`"),
    ):
        if has:
            raise UsageError(f"{suite.name} has {what}, which cannot be had on several hosts", hint=hint)


def dealt(steps: Sequence[Step], plan: Plan, pairs: int) -> tuple[tuple[Step, ...], ...]:
    """The steps of each pair, in order. What is compared in a round stays on one pair, another one in the next round.

    So the pair cancels in a ratio of two servers, and every group of cells comes to see every pair.
    """

    def group(step: Step) -> tuple[int, str, str]:
        cell = plan.cells[step.cell_id if isinstance(step, PlannedTrial) else step.cell_ids[0]]
        return step.round, cell.scenario.name, cell.load.name

    names = dict.fromkeys((cell.scenario.name, cell.load.name) for cell in plan.cells.values())
    numbers = {name: number for number, name in enumerate(names)}  # those of the plan: a round may be done in part
    shares: list[list[Step]] = [[] for _ in range(pairs)]
    for (round_, scenario, load), together in itertools.groupby(sorted(steps, key=group), key=group):
        shares[(numbers[scenario, load] + round_) % pairs] += together
    return tuple(tuple(sorted(share, key=lambda step: step.position)) for share in shares)


@dataclass(frozen=True)
class _Reading:
    """Of a host at one moment: what its chrony says, its clock over one that nobody sets, and what connects it."""

    clock: ClockReading | None
    ahead_ns: int | None
    footprint: Footprint | None


def _readings(pair: Pair) -> list[_Reading]:
    """Of each host. What a host that is lost would say is None."""
    return [_reading(host) for host in pair.hosts]


def _reading(host: RemoteHost) -> _Reading:
    clock, ahead_ns = _or_none(host, "clock") or (None, None)
    return _Reading(clock, ahead_ns, _or_none(host, "footprint"))


def _facts(pair: PairTools, before: Sequence[_Reading]) -> tuple[HostFacts, ...]:
    """The hosts of what has just ended."""
    shares = pair.driver.seen.shares
    found = []
    for host, first, last in zip(pair.pair.hosts, before, _readings(pair.pair), strict=True):
        report = host.report
        used = (first.footprint, last.footprint) if first.footprint and last.footprint else None
        found.append(
            HostFacts(
                name=report.name,
                role=host.role,
                address=report.address,
                clock_before=first.clock,
                clock_after=last.clock,
                clock_step_ns=_step_ns(first, last),
                share=shares.get(report.name) if host.role == "load" else None,
                cluster_cpu_ns=max(0, used[1].cpu_ns - used[0].cpu_ns) if used else None,
                cluster_rss_bytes=last.footprint.rss_bytes if last.footprint else None,
            )
        )
    return tuple(found)


def _step_ns(first: _Reading, last: _Reading) -> int | None:
    """How far a clock was set between two readings; None if one is not known."""
    if first.ahead_ns is None or last.ahead_ns is None:
        return None
    moved_ns = last.ahead_ns - first.ahead_ns
    return 0 if abs(moved_ns) < READ_WITHIN_NS else moved_ns


def _or_none(host: RemoteHost, method: str, *arguments: Any) -> Any:
    """A call whose failure shows elsewhere."""
    try:
        return call(host, method, *arguments)
    except RedlineError:
        return None


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
