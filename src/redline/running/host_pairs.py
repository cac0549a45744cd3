"""Pairs of hosts: what trials are made with on one, what its hosts say meanwhile, and how the pairs compare.

Pairs are compared before a run, by a duet of one server with itself on each of them.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redline.errors import RedlineError
from redline.model import Cell, ClockReading, Closed, DuetRecording, HostFacts, Load, Plan, PlannedDuet
from redline.plugins.hosts.agent import AgentUsage
from redline.plugins.hosts.launcher import RemoteLauncher, RemoteServer
from redline.plugins.hosts.remote import (
    HostLostError,
    LoadHostsMonitor,
    Pair,
    PartsDriver,
    RemoteHost,
    RemoteMonitor,
    call,
)
from redline.plugins.launchers.watching import KnownProcesses
from redline.ports import Placement, RunningServer, ServerWatch
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools

LOST_AFTER_S = 5.0
"""A host that has not answered for so long is lost."""
READ_WITHIN_NS = 1_000_000
"""Two clocks of a host are read one after the other; a host that is busy may do something else between."""
STARTS = 3
"""On each pair: fewer have no variance to speak of."""
LOAD = Load(name="calibration", shape=Closed(users=16), duration_ns=1_000_000_000)
"""The load of the server, and of the same once more."""
WARM_UP_NS = 2_000_000_000
"""The warm-up of both. A JVM is not warm by then, on any pair; that all are cold alike is enough to compare them."""


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
            monitors=lambda _server: (RemoteMonitor(server, proxy), LoadHostsMonitor(driver)),
            placement=Placement(server_cpus=cores.server_cpus, engine_cpus=engines.engine_cpus),
        )
        own = cls(pair, tools, driver, launcher)
        tools = replace(
            tools, hosts=own.follow, processes=own.processes_of, compilers_of=own.compilers_of, watch=own.watch
        )
        return replace(own, tools=tools)

    def processes_of(self, server: RunningServer) -> tuple[int, ...]:
        """The processes of a server, and of its proxies if they are on its host."""
        if not isinstance(server, RemoteServer):
            return ()
        pids = server.started.pids
        return tuple(child for pid in pids for child in _or_none(self.pair.server, "processes", pid) or ())

    def compilers_of(self, server: RunningServer) -> Callable[[], int | None]:
        """What reads the time that the compilers of these processes have used and waited for a core."""
        pids = tuple(sorted(self.processes_of(server)))
        return lambda: _or_none(self.pair.server, "compilers_ns", pids)

    @property
    def duet_tools(self) -> Tools:
        """What duets are made with. The servers' CPU time is read on one host, so their proxies are on it too."""
        return replace(self.tools, launcher=self.launcher.on(self.pair.server))

    def watch(self, server: RunningServer) -> ServerWatch:
        """The watch over a server, whose processes are known."""
        return KnownProcesses(self.processes_of(server))

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


def calibrate(pairs: Sequence[PairTools], plan: Plan, logs: Path) -> tuple[DuetRecording, ...]:
    """Start after start of each pair, the pairs at the same time; nothing of a plan without a subject.

    What failed is in the recordings. An interrupt ends the loads.
    """
    cell, is_over = reference(plan), threading.Event()
    if cell is None:
        return ()

    def starts_of(number: int) -> list[DuetRecording]:
        positions = range(number, STARTS * len(pairs), len(pairs))
        return [_start(pairs[number], cell, position, logs) for position in positions if not is_over.is_set()]

    with ThreadPoolExecutor(len(pairs)) as threads:
        made = [threads.submit(starts_of, number) for number in range(len(pairs))]
        try:
            found = [recording for each in made for recording in each.result()]
        except BaseException:
            is_over.set()
            for pair in pairs:
                pair.interrupt()
            raise
    return tuple(sorted(found, key=lambda recording: recording.position))


def reference(plan: Plan) -> Cell | None:
    """The cell whose server is the reference: the first that needs no virtual machine, which takes long to get warm."""
    subjects = [cell for cell in plan.cells.values() if cell.role == "subject"]
    native = (cell for cell in subjects if "jvm" not in cell.variant.runtimes)
    first = next(native, subjects[0] if subjects else None)
    return first and first.under(LOAD, warmup_ns=WARM_UP_NS)


def _start(pair: PairTools, cell: Cell, position: int, logs: Path) -> DuetRecording:
    planned = PlannedDuet(cell_ids=(cell.id,), round=0, position=position, seed=position)
    folder = logs / f"{position:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    (recording,) = run_start(DuetStart((planned,), {cell.id: cell}, logs=lambda _duet: folder), pair.duet_tools)
    return recording


@dataclass(frozen=True)
class _Reading:
    """A host at one moment: what its chrony says, its clock over one that nobody sets, and what connects it."""

    clock: ClockReading | None
    ahead_ns: int | None
    usage: AgentUsage | None


def _readings(pair: Pair) -> list[_Reading]:
    """The readings of all hosts. What a host that is lost would say is None."""
    return [_reading(host) for host in pair.hosts]


def _reading(host: RemoteHost) -> _Reading:
    clock, ahead_ns = _or_none(host, "clock") or (None, None)
    return _Reading(clock, ahead_ns, _or_none(host, "usage"))


def _facts(pair: PairTools, before: Sequence[_Reading]) -> tuple[HostFacts, ...]:
    """The hosts of what has just ended."""
    shares = pair.driver.seen.shares
    found = []
    for host, first, last in zip(pair.pair.hosts, before, _readings(pair.pair), strict=True):
        report = host.report
        used = (first.usage, last.usage) if first.usage and last.usage else None
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
                cluster_rss_bytes=last.usage.rss_bytes if last.usage else None,
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
