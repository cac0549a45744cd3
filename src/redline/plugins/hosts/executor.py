"""Trials on pairs of hosts: each pair runs trials of its own, one after the other, and no two share a host."""

import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from redline.plugins.hosts.remote import (
    CALL_S,
    Host,
    LoadHostsProbe,
    PartsDriver,
    RemoteLauncher,
    RemoteProbe,
    RemoteServer,
    call,
)
from redline.ports import Placement, RunningServer
from redline.running.duet import DuetStart, DuetTools, run_start
from redline.running.record import Tools
from redline.running.trial import TrialListener, run_trial
from redline.storage.runs import RunStore

Step = PlannedTrial | PlannedDuet
Made = Recording | DuetRecording


@dataclass(frozen=True)
class Pair:
    """Hosts that one trial has for itself: one for servers, and those that load them."""

    server: Host
    loads: tuple[Host, ...]

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All of them."""
        return (self.server, *self.loads)


@dataclass(frozen=True)
class PairTools:
    """What trials are made with on one pair of hosts."""

    pair: Pair
    tools: Tools
    driver: PartsDriver

    @classmethod
    def of(cls, pair: Pair, launcher: RemoteLauncher) -> "PairTools":
        """Those of a pair."""
        server = pair.server
        driver = PartsDriver(pair.loads, server)
        engines, cores = pair.loads[0].report.environment, server.report.environment
        tools = Tools(
            launcher=launcher.on(server),
            driver=driver,
            probes=lambda: (RemoteProbe(server), LoadHostsProbe(driver)),
            placement=Placement(server_cpus=cores.server_cpus, engine_cpus=engines.engine_cpus),
            processes=lambda pid: _or_none(server, "processes", pid) or (),
            compilers_of=lambda pids: lambda: _or_none(server, "compilers_ns", pids),
        )
        return cls(pair, tools, driver)

    def processes_of(self, server: RunningServer) -> tuple[int, ...]:
        """The processes of a server and its proxies."""
        if not isinstance(server, RemoteServer):
            return ()
        return tuple(each for pid in server.facts.pids for each in self.tools.processes(pid))


@dataclass(frozen=True)
class HostsExecutor:
    """Trials and duets of one plan on pairs of hosts, with their logs in the run's directory."""

    plan: Plan
    pairs: tuple[PairTools, ...]
    store: RunStore
    listener: TrialListener

    def execute(self, steps: Sequence[Step]) -> Iterator[Made]:
        """Run them, those of one pair in order. An interrupt ends the loads; what was not over has no recording."""
        if len(self.pairs) == 1:
            for step in steps:
                yield self._run(self.pairs[0], step, self.listener)
            return
        made: queue.Queue[Made | BaseException | None] = queue.Queue()
        over, listener = threading.Event(), _OneAtATime(self.listener)
        threads = [
            threading.Thread(target=self._run_share, args=(pair, share, listener, made, over), daemon=True)
            for pair, share in zip(self.pairs, dealt(steps, self.plan, len(self.pairs)), strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from _until_all_ended(made, len(threads))
        finally:
            over.set()
            if any(thread.is_alive() for thread in threads):
                self._interrupt()
            for thread in threads:
                thread.join(CALL_S)

    def _run_share(
        self,
        pair: PairTools,
        share: Sequence[Step],
        listener: "_OneAtATime",
        made: "queue.Queue[Made | BaseException | None]",
        over: threading.Event,
    ) -> None:
        """Run the steps of one pair, until they are over; None in the queue says that they have ended."""
        try:
            for step in share:
                if over.is_set():
                    return
                made.put(self._run(pair, step, listener))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            made.put(error)
        finally:
            made.put(None)

    def _interrupt(self) -> None:
        for pair in self.pairs:
            for host in pair.pair.loads:
                _or_none(host, "interrupt")

    def _run(self, pair: PairTools, step: Step, listener: Any) -> Made:
        before = _readings(pair.pair)
        if isinstance(step, PlannedTrial):
            cell = self.plan.cells[step.cell_id]
            listener.trial_started(step, cell)
            seen: Callable[[Interval], None] = partial(listener.interval_seen, step)
            found = run_trial(step, cell, pair.tools, self.store.log_folder(step, cell), seen)
            return found.model_copy(update={"hosts": _facts(pair, before)})
        cells = tuple(self.plan.cells[cell_id] for cell_id in step.cell_ids)
        listener.duet_started(step, cells)
        start = DuetStart(step, cells, self.store.log_folder(step, cells[0]), partial(listener.block_seen, step))
        tools = DuetTools(
            (pair.tools.launcher,) * len(cells), pair.processes_of, pair.driver, replace(pair.tools.placement)
        )
        return run_start(start, tools)


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
        cell: Cell = plan.cells[step.cell_id if isinstance(step, PlannedTrial) else step.cell_ids[0]]
        return step.round, cell.scenario.name, cell.load.name

    numbers: dict[tuple[str, str], int] = {}
    shares: list[list[Step]] = [[] for _ in range(pairs)]
    for (round_, *names), together in itertools.groupby(sorted(steps, key=group), key=group):
        number = numbers.setdefault((names[0], names[1]), len(numbers))
        shares[(number + round_) % pairs] += sorted(together, key=lambda step: step.position)
    return tuple(tuple(sorted(share, key=lambda step: step.position)) for share in shares)


Reading = tuple[ClockReading | None, Footprint | None]


def _readings(pair: Pair) -> list[Reading]:
    """Of each host: its clock, and what connects the hosts."""
    return [(_or_none(host, "clock"), _or_none(host, "footprint")) for host in pair.hosts]


def _facts(pair: PairTools, before: Sequence[Reading]) -> tuple[HostFacts, ...]:
    """The hosts of a trial that has just ended."""
    shares = pair.driver.seen.shares
    found = []
    for host, (clock_before, first), (clock_after, last) in zip(
        pair.pair.hosts, before, _readings(pair.pair), strict=True
    ):
        report = host.report
        found.append(
            HostFacts(
                name=report.name,
                role=host.role,
                address=report.address,
                clock_before=clock_before,
                clock_after=clock_after,
                share=shares.get(report.name) if host.role == "load" else None,
                cluster_cpu_ns=max(0, last.cpu_ns - first.cpu_ns) if first and last else None,
                cluster_rss_bytes=last.rss_bytes if last else None,
            )
        )
    return tuple(found)


def _or_none(host: Host, method: str, *arguments: Any) -> Any:
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
