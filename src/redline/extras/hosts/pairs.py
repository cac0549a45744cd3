"""Pairs of hosts: the tools for trials on a pair, facts of its hosts, and the calibration before a run.

The calibration compares pairs by duets of a server with itself.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from redline.errors import RedlineError
from redline.extras.hosts.agent import AgentUsage
from redline.extras.hosts.launcher import RemoteLauncher, RemoteServer
from redline.extras.hosts.remote import (
    HostLostError,
    LoadHostsMonitor,
    Pair,
    PartsDriver,
    RemoteHost,
    RemoteMonitor,
    call,
)
from redline.launching.ownership import KnownProcesses
from redline.model import (
    Cell,
    ClockReading,
    Closed,
    DuetRecording,
    HostFacts,
    Load,
    Plan,
    PlannedDuet,
    Scenario,
    UsedHost,
)
from redline.ports import Placement, RunningServer, ServerWatch
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools

LOST_AFTER_S = 5.0
"""A host that is silent for longer is lost."""
READ_WITHIN_NS = 1_000_000
"""The largest error of comparing two clocks: a busy host may pause between reading them."""
STARTS = 3
"""Starts on each pair; fewer give no useful variance."""
LOAD = Load(name="calibration", shape=Closed(users=16), duration_ns=1_000_000_000)
"""The load of both copies of the server."""
WARM_UP_NS = 2_000_000_000
"""The warm-up of both copies. A JVM is still cold then, but equally so on all pairs, which is enough."""


@dataclass(frozen=True)
class PairTools:
    """Tools for trials on a pair of hosts."""

    pair: Pair
    launcher: RemoteLauncher

    @cached_property
    def driver(self) -> PartsDriver:
        """The driver on the load hosts."""
        return PartsDriver(self.pair.loads, self.pair.server, self.pair.proxy)

    @cached_property
    def tools(self) -> Tools:
        """Tools for trials."""
        server, proxy = self.pair.server, self.pair.proxy
        engines, cores = self.pair.loads[0].report.environment, server.report.environment
        return Tools(
            launcher=self.launcher.on(server, proxy),
            driver=self.driver,
            monitors=lambda _server: (RemoteMonitor(server, proxy), LoadHostsMonitor(self.driver)),
            duet_monitors=lambda servers: (
                (RemoteMonitor(server), LoadHostsMonitor(self.driver)),
                *((RemoteMonitor(server),) for _ in servers[1:]),
            ),
            placement=Placement(server_cpus=cores.server_cpus, engine_cpus=engines.engine_cpus),
            hosts=self.follow,
            processes=self.processes_of,
            compilers_of=self.compilers_of,
            watch=self.watch,
        )

    def processes_of(self, server: RunningServer) -> tuple[int, ...]:
        """Return the processes of a server, and of its proxies if they are on its host."""
        if not isinstance(server, RemoteServer):
            return ()
        processes = (_or_none(self.pair.server, "processes", pid) for pid in server.started.pids)
        return tuple(chain.from_iterable(filter(None, processes)))

    def compilers_of(self, server: RunningServer) -> Callable[[], int | None]:
        """Return a reader of the time that these processes' compilers have run or waited for a core."""
        pids = tuple(sorted(self.processes_of(server)))
        return lambda: _or_none(self.pair.server, "compilers_ns", pids)

    @property
    def used(self) -> tuple[UsedHost, ...]:
        """The hosts."""
        roles = [(host.role, host.report) for host in self.pair.hosts]
        return tuple(
            UsedHost(name=report.name, role=role, address=report.address, environment=report.environment)
            for role, report in roles
        )

    @property
    def duet_tools(self) -> Tools:
        """Tools for duets. Proxies run on the server's host, since the CPU time of both is read there."""
        return replace(self.tools, launcher=self.launcher.on(self.pair.server))

    def watch(self, server: RunningServer) -> ServerWatch:
        """Watch a server, whose processes are known."""
        return KnownProcesses(self.processes_of(server))

    def follow(self) -> Callable[[], tuple[HostFacts, ...]]:
        """Look at the hosts now. The returned function looks again, and gives their facts for the time between."""
        before = [_reading(host) for host in self.pair.hosts]
        return lambda: _facts(self, before)

    def interrupt(self) -> None:
        """End the loads of these hosts early."""
        for host in self.pair.loads:
            _or_none(host, "interrupt")

    @property
    def is_lost(self) -> bool:
        """Whether a host no longer answers."""
        try:
            for host in self.pair.hosts:
                call(host, "lacking", (), within_s=LOST_AFTER_S)
        except HostLostError:
            return True
        return False


def calibrate(pairs: Sequence[PairTools], plan: Plan, logs: Path) -> tuple[DuetRecording, ...]:
    """Calibrate all pairs at the same time, with failures in the recordings; empty for a plan without a subject."""
    cell, is_over = reference(plan), threading.Event()
    if cell is None:
        return ()

    def starts_of(number: int) -> list[DuetRecording]:
        positions = range(number, STARTS * len(pairs), len(pairs))
        return [_start(pairs[number], cell, position, logs) for position in positions if not is_over.is_set()]

    with ThreadPoolExecutor(len(pairs)) as threads:
        made = [threads.submit(copy_context().run, starts_of, number) for number in range(len(pairs))]
        try:
            recordings = [recording for future in made for recording in future.result()]
        except BaseException:
            is_over.set()
            for pair in pairs:
                pair.interrupt()
            raise
    return tuple(sorted(recordings, key=lambda recording: recording.position))


def reference(plan: Plan) -> Cell | None:
    """Return the cell of the calibration's server: the first that is not on a JVM, since a JVM warms up slowly.

    None if all scenarios take rows once: a calibration takes journeys again and again, and a duet of them is refused.
    """
    subjects = [cell for cell in plan.cells.values() if cell.role == "subject" and not _takes_rows_once(cell.scenario)]
    native = (cell for cell in subjects if "jvm" not in cell.variant.runtimes)
    first = next(native, subjects[0] if subjects else None)
    return first and first.under(_load_of(first.scenario), warmup_ns=WARM_UP_NS)


def _load_of(scenario: Scenario) -> Load:
    """The load of a calibration, of which each user has a row where rows belong to users."""
    rows = scenario.journey.rows if scenario.journey else None
    if rows is None or rows.use != "user":
        return LOAD
    users = min(LOAD.connections, rows.count)
    return Load(name=LOAD.name, shape=Closed(users=users), duration_ns=LOAD.duration_ns)


def _takes_rows_once(scenario: Scenario) -> bool:
    rows = scenario.journey.rows if scenario.journey else None
    return rows is not None and rows.use == "unique"


def _start(pair: PairTools, cell: Cell, position: int, logs: Path) -> DuetRecording:
    planned = PlannedDuet(cell_ids=(cell.id,), round=0, position=position, seed=position)
    folder = logs / f"{position:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    (recording,) = run_start(DuetStart((planned,), {cell.id: cell}, logs=lambda _duet: folder), pair.duet_tools)
    return recording


@dataclass(frozen=True)
class _Reading:
    """Readings of a host: chrony's report, the difference of its clock and a monotonic clock, and its agent's cost."""

    clock: ClockReading | None
    ahead_ns: int | None
    usage: AgentUsage | None


def _reading(host: RemoteHost) -> _Reading:
    """Read a host; the fields of a lost host are None."""
    clock, ahead_ns = _or_none(host, "clock") or (None, None)
    return _Reading(clock, ahead_ns, _or_none(host, "usage"))


def _facts(pair: PairTools, before: Sequence[_Reading]) -> tuple[HostFacts, ...]:
    """Return the facts of hosts whose load has just ended."""
    shares = pair.driver.shares
    facts = []
    for host, first in zip(pair.pair.hosts, before, strict=True):
        report, last = host.report, _reading(host)
        used = (first.usage, last.usage) if first.usage and last.usage else None
        facts.append(
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
    return tuple(facts)


def _step_ns(first: _Reading, last: _Reading) -> int | None:
    """Return how far a clock was set between two readings; None if unknown."""
    if first.ahead_ns is None or last.ahead_ns is None:
        return None
    moved_ns = last.ahead_ns - first.ahead_ns
    return 0 if abs(moved_ns) < READ_WITHIN_NS else moved_ns


def _or_none(host: RemoteHost, method: str, *arguments: Any) -> Any:
    """Call a host; None on a failure, which shows elsewhere."""
    try:
        return call(host, method, *arguments)
    except RedlineError:
        return None
