"""Put a load on a running server, and record it. Every measured load goes through this module."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from redline import findings
from redline.defaults import ALONE
from redline.errors import DriveError, RedlineError
from redline.launching.ownership import KnownProcesses
from redline.lazily import dataclass
from redline.model import (
    HOPS,
    AttachedServer,
    Cell,
    CpuOwner,
    Failure,
    FailureKind,
    HostFacts,
    Interval,
    Load,
    PlannedTrial,
    Recording,
    Series,
    Stage,
    Traffic,
    Variant,
)
from redline.model.traffic import Phase
from redline.ports import (
    Drive,
    Driver,
    Launcher,
    LoadOptions,
    Monitor,
    NoResultError,
    OwnerMonitor,
    Placement,
    Profiler,
    Profilers,
    RunningServer,
    ServerUsage,
    ServerWatch,
    UsageMonitor,
)
from redline.running.aborting import FailingAbort, LoadAbort, RequestedAbort
from redline.running.own_monitors import failures_of
from redline.wording import part

DYING_S = 0.5
CLOSES_S = 0.1
"""How long a server may take to close the load's connections and end their threads."""
_OF_SOCKETS = frozenset(("listen_drops", "listen_queue", "close_wait"))
"""What the kernel says of a server's sockets, whoever holds them."""


@dataclass(frozen=True)
class Tools:
    """Tools for measuring a load.

    - `monitors`: new monitors for a load on a server.
    - `processes`: the processes of a server and its hops; empty if their CPU time cannot be read.
    - `fixed_work_ns`: the CPU time of a fixed piece of work per core, in nanoseconds; empty if unknown.
    - `compilers_of`: returns a reader of the time in nanoseconds that the compilers of a server and its hops have run
      or waited for a core; it reads None if there are no compilers.
    - `hosts`: looks at the hosts of a remote load, and returns a function that looks again and gives their facts.
    - `on_usage`: gets what a server used until the end of each interval, and its phase, after the interval itself.
    - `duet_monitors`: new monitors for a load on several servers: for each those that watch it; the first of them watch
      machine and engine too.
    - `watch`: determines which processes are a server's that somebody else runs, and whether that stays true.
    - `takes_at_once`: how many users a verified server surely takes at once; None for any number, or if not known.
    """

    launcher: Launcher
    driver: Driver
    monitors: Callable[[RunningServer], tuple[Monitor, ...]]
    placement: Placement
    processes: Callable[[RunningServer], tuple[int, ...]] = lambda _server: ()
    fixed_work_ns: Callable[[tuple[int, ...]], Mapping[int, int]] = lambda _cpus: {}
    profilers: Profilers | None = None
    compilers_of: Callable[[RunningServer], Callable[[], int | None]] = lambda _server: lambda: None
    hosts: Callable[[], Callable[[], tuple[HostFacts, ...]]] = lambda: tuple
    on_usage: Callable[[Cell, Phase, ServerUsage], None] | None = None
    duet_monitors: Callable[[Sequence[RunningServer]], tuple[tuple[Monitor, ...], ...]] = lambda _servers: ()
    watch: Callable[[RunningServer], ServerWatch] = lambda _server: KnownProcesses(())
    takes_at_once: Callable[[Cell, RunningServer], int | None] = lambda _cell, _server: None

    def workers(self, load: Load, wanted: int | None = None) -> int:
        """The number of engine workers: `wanted`, or one per core; at most one per connection."""
        return min(wanted or max(1, len(self.placement.engine_cpus)), load.connections)


def new_recording(planned: PlannedTrial, started_unix_ns: int) -> Recording:
    """Return the empty recording of a trial. The first takes long to make: none is made before a load begins."""
    return Recording(
        cell_id=planned.cell_id,
        round=planned.round,
        position=planned.position,
        seed=planned.seed,
        started_unix_ns=started_unix_ns,
    )


def record_load(  # noqa: PLR0913 - what, on what, with what, and until when
    cell: Cell,
    planned: PlannedTrial,
    server: RunningServer,
    tools: Tools,
    options: LoadOptions,
    *,
    abort: LoadAbort[Interval] | None = None,
) -> Recording:
    """Load a running server as its cell says, watched by monitors.

    It ends early by `abort` or, by default, if all requests fail or a condition of the cell's `abort_when` holds. A
    failed load, or a dead server, is in the recording's `failure`. Raises KeyboardInterrupt, and StoreError if the
    engine's log cannot be written.
    """
    if cell.warmup_by is not None:
        drive = _drive(cell, planned, server, tools, options)
        if (failure := warm_up(drive, cell.warmup_by, server, tools.driver)) is not None:
            return new_recording(planned, time.time_ns()).failed(failure, server.facts)
        cell = cell.settling
    asked = RequestedAbort(cell.abort_when) if cell.abort_when else FailingAbort()
    return _record(cell, planned, server, tools, options, abort=abort or asked)


def _drive(cell: Cell, planned: PlannedTrial, server: RunningServer, tools: Tools, options: LoadOptions) -> Drive:
    options = replace(options, workers=tools.workers(cell.load, options.workers))
    return Drive.of(options, cell, server.endpoint, planned.seed, tools.placement.engine_cpus)


def _record(  # noqa: PLR0913 - as above
    cell: Cell,
    planned: PlannedTrial,
    server: RunningServer,
    tools: Tools,
    options: LoadOptions,
    *,
    abort: LoadAbort[Interval],
) -> Recording:
    started_unix_ns, profiled = time.time_ns(), _Profiled(options.profiler, cell)
    monitors = (*tools.monitors(server), *profiled.monitors)
    tell_usage = _usage_of(cell, monitors, tools)

    def follow(pid: int) -> None:
        options.on_start(pid)
        abort.started(pid)
        for monitor in monitors:
            monitor.follow("engine", pid)
        profiled.opens()

    def seen(interval: Interval) -> None:
        watch.look()
        options.on_interval(interval)
        tell_usage(interval)
        profiled.seen(interval)
        abort.seen(interval)

    watch = tools.watch(server) if server.facts is None else KnownProcesses(_processes(server, tools))
    pids = tuple(sorted(watch.pids))
    drive = replace(
        _drive(cell, planned, server, tools, options),
        on_start=follow,
        on_remote=abort.started_on_hosts,
        on_interval=seen,
        pids=pids,
        is_warm=findings.WarmupDetector(cell, tools.compilers_of(server)).is_warm if cell.warmup_detect else None,
    )
    attached_runtimes = tuple(sorted(server.runtimes)) if server.facts is None else ()
    traffic, error, unloaded_unix_ns = None, None, None
    written_before = _size_of(options.server_log)
    try:
        follow_server(server, monitors, watch.pids)
        traffic = _whole(tools.driver.drive(drive), cell.load).with_labels(cell.scenario.several_labels)
        if server.facts is not None and traffic.clocks is not None and _processes(server, tools) != pids:
            traffic = traffic.without_server_cpu()
        reads_cpu = any(isinstance(monitor, UsageMonitor) for monitor in monitors)
        unloaded_ns = cell.load.unloaded_ns(traffic.seconds * 1e9) if options.looks_after and reads_cpu else 0
        if unloaded_ns and traffic.ended == "complete":
            unloaded_unix_ns = _watch_unloaded(unloaded_ns, options.on_stopped)
    except DriveError as raised:
        error = raised
        traffic = raised.traffic if isinstance(raised, NoResultError) else None
    finally:
        series = tuple(reading for monitor in monitors for reading in monitor.finish())
    owner = watch.finish() if server.facts is None else None
    if owner is not None and owner.unknown:
        traffic = traffic and traffic.without_server_cpu()
        series = of_its_sockets(series)
    written = _size_of(options.server_log)
    window = traffic.window_unix_ns if traffic is not None else None
    runtimes = [monitor.runtime(window, options.server_log) for monitor in monitors] if window else []
    failure = _why_failed(server, traffic, error)
    if traffic is not None and isinstance(abort, FailingAbort):
        traffic, failing = abort.ended(traffic)
        failure = failure or failing
    return new_recording(planned, started_unix_ns).loaded(
        server.facts,
        traffic,
        attached_runtimes=attached_runtimes,
        owner=owner if owner != CpuOwner() else None,
        series=series,
        runtime=next(filter(None, runtimes), None),
        perturbed=any(monitor.perturbs for monitor in monitors),
        failure=failure,
        log_bytes=None if written_before is None or written is None else max(written - written_before, 0),
        unloaded_unix_ns=unloaded_unix_ns,
        failed_monitors=failures_of(monitors),
    )


def _whole(traffic: Traffic, load: Load) -> Traffic:
    """The traffic; if the load ended as its last request was due, the measurement lasts until the last answer."""
    ran_out = load.ran_out_within(traffic.measure_end_ns - traffic.measure_start_ns)
    return traffic.until_last_answer() if traffic.ended == "complete" and ran_out else traffic


def _watch_unloaded(lasts_ns: int, on_stopped: Callable[[], None]) -> tuple[int, int] | None:
    """Let monitors watch the server while nothing loads it. Returns when that began and ended.

    None if Ctrl-C ended it: the load was complete, and is kept.
    """
    try:
        time.sleep(CLOSES_S)
        began_unix_ns = time.time_ns()
        time.sleep(lasts_ns / 1e9)
    except KeyboardInterrupt:
        on_stopped()
        return None
    return began_unix_ns, time.time_ns()


def follow_server(server: RunningServer, monitors: Sequence[Monitor], pids: tuple[int, ...]) -> None:
    """Have monitors watch a server and the proxies in front of it, or the processes of one that somebody else runs."""
    for monitor in monitors if server.facts is None else ():
        if isinstance(monitor, OwnerMonitor):
            monitor.follow_owner(pids)
    for subject, pid in zip(("server", *HOPS), server.facts.pids if server.facts else (), strict=False):
        for monitor in monitors:
            monitor.follow(subject, pid)


def of_its_sockets(series: Sequence[Series]) -> tuple[Series, ...]:
    """The series without those of a server's processes, which turned out not to be all of them or not its own."""
    return tuple(line for line in series if line.subject != "server" or line.name in _OF_SOCKETS)


def _usage_of(cell: Cell, monitors: Sequence[Monitor], tools: Tools) -> Callable[[Interval], None]:
    """Return what tells how much the server used until the end of an interval, where somebody asks and it is read."""
    told, usage = (
        tools.on_usage,
        next((monitor.usage for monitor in monitors if isinstance(monitor, UsageMonitor)), None),
    )
    if told is None or usage is None:
        return lambda _interval: None
    return lambda interval: told(cell, interval.phase, usage())


def _why_failed(server: RunningServer, traffic: Traffic | None, error: DriveError | None) -> Failure | None:
    """Return the server's death, or else the engine's error."""
    failure = death_soon(server) if error or traffic is None or lost_connections(traffic) else server.death()
    return failure or (failure_of("load", "engine", error) if error is not None else None)


class _Profiled:
    """Begins and ends a profile, if any, so that the same start is measured with and without the profiler.

    A load without unprofiled ends is profiled from the beginning of its measurement: a fixed warm-up ends with its
    last interval, a detected warm-up before the first measured interval.
    """

    def __init__(self, profiler: Profiler | None, cell: Cell) -> None:
        self._profiler, self._cell = profiler, cell
        self._measured_from_ns: int | None = None

    @property
    def monitors(self) -> tuple[Monitor, ...]:
        return (self._profiler,) if self._profiler else ()

    def opens(self) -> None:
        """Note that the engine runs; without a warm-up, it measures."""
        if self._profiler and not self._cell.warmup_ns and not self._cell.unprofiled_ns:
            self._profiler.begin()

    def seen(self, interval: Interval) -> None:
        if self._profiler is None:
            return
        if interval.phase == "drain":
            self._profiler.end()
        elif interval.phase == "measure":
            self._measured(interval, self._profiler)
        elif interval.end_ns >= self._cell.warmup_ns and not self._cell.unprofiled_ns:
            self._profiler.begin()

    def _measured(self, interval: Interval, profiler: Profiler) -> None:
        if self._measured_from_ns is None:
            self._measured_from_ns = interval.start_ns
        measured_ns, unprofiled_ns = interval.end_ns - self._measured_from_ns, self._cell.unprofiled_ns
        if measured_ns >= unprofiled_ns:
            profiler.begin()
        if unprofiled_ns and measured_ns >= self._cell.load.duration_ns - unprofiled_ns:
            profiler.end()


def warm_up(drive: Drive, by: Load, server: RunningServer, driver: Driver) -> Failure | None:
    """Warm a server up with another load than the drive's, and keep nothing. Returns why that failed, if it did.

    A rate may be too high for a cold server, and its backlog would be measured; or too low to warm it up.
    """
    abort = FailingAbort()

    def seen(interval: Interval) -> None:
        drive.on_interval(interval.as_warm_up())
        abort.seen(interval)

    def started(pid: int) -> None:
        drive.on_start(pid)
        abort.started(pid)

    cell = drive.cell.under(by.lasting(drive.cell.warmup_ns), warmup_ns=0)
    workers = min(drive.workers, by.connections)
    try:
        if drive.cell.warmup_ns:
            warming = replace(drive, cell=cell, workers=workers, keep_interrupted=False, request_log=None)
            traffic = driver.drive(replace(warming, on_start=started, on_interval=seen))
            _, failing = abort.ended(traffic.with_labels(cell.scenario.several_labels))
            if failing is not None:
                return death_soon(server) or failing
    except DriveError as error:
        return death_soon(server) or failure_of("load", "engine", error)
    return server.death()


_OF_PROXY = re.compile(r": connect: the proxy (?:answered (\d{3}))?")
_TUNNEL_HINT = "see what the proxy logged, and whether it takes CONNECT"
_TUNNEL_HINTS = {
    "407": "give a user and a password that the proxy takes: http://USER:PASSWORD@HOST:PORT",
    "403": "let the proxy open tunnels to that port: many do so to port 443 alone",
}
_ANOTHER_STATUS = re.compile(r": status (?P<status>[2-5]\d\d) (?:to (?P<target>\S+) )?in place of ")
_EXHAUSTED = ("connect: Cannot assign requested address", "connect: Too many open files")
_EXHAUSTED_HINT = (
    "this machine has no port or descriptor left for a connection: see who holds connections (`ss -tan`), "
    "net.ipv4.ip_local_port_range and `ulimit -n`"
)
_CERTIFICATE = "the server's certificate"
_SIGNED_OUT = frozenset(("401", "403"))


def verify(cell: Cell, server: RunningServer, driver: Driver) -> Failure | None:
    """Send one request before any load. Returns why the answer is wrong, or the server's death; None if it is right."""
    try:
        wrong = driver.verify(cell, server.endpoint)
    except DriveError as error:
        return failure_of("verify", "engine", error)
    if wrong is None:
        return None
    message = f"{cell.variant.slug} answered {cell.scenario.name} wrongly before any load: {wrong}"
    hint = "fix the server, or the expected answer; nothing was timed"
    if isinstance(cell.variant.entry, AttachedServer):
        message = f"{cell.variant.entry.name} does not answer as expected: {wrong}"
        hint = f"nothing was timed; {_advice(cell, cell.variant.entry, wrong)}"
    if any(text in wrong for text in _EXHAUSTED):
        hint = f"nothing was timed; {_lacked(cell.variant, wrong)}"
    return death_soon(server) or Failure(stage="verify", kind="wrong_answer", message=message, hint=hint)


def _lacked(variant: Variant, wrong: str) -> str:
    """What to do where no connection could be opened from this machine."""
    if isinstance(variant.entry, AttachedServer) and variant.entry.way.sources and _EXHAUSTED[0] in wrong:
        return f"name addresses of the machine that sends the load, which `ip addr` lists: {part('sources', 'ADDRESS')}"
    return _EXHAUSTED_HINT


def _advice(cell: Cell, attached: AttachedServer, wrong: str) -> str:
    """What to do about the wrong answer of a server that runs already."""
    if attached.way.proxy is not None and (at := _OF_PROXY.search(wrong)) is not None:
        return _TUNNEL_HINTS.get(at[1] or "", _TUNNEL_HINT)
    if attached.way.addresses == "all" and ": connect: " in wrong:
        return f"leave that address out, or load the first that answers ({part('addresses', 'first')})"
    if _CERTIFICATE in wrong:
        trusted = f"give it or its authority: {part('cacert', 'FILE')}"
        mends = trusted if "trusted" in wrong else "let the server show another"
        return f"{mends}, or accept any certificate: {part('insecure')} (`tls: {{insecure: true}}` in a file)"
    other, seen = _ANOTHER_STATUS.search(wrong), "see the whole exchange with `curl -v`"
    return _about_status(cell, other, seen) if other is not None else seen


def _about_status(cell: Cell, other: re.Match[str], seen: str) -> str:
    """What to do about another status than the expected."""
    if cell.scenario.journey is not None:
        return f"{seen}, or say in the step that this status is right: `expect: {{status: [200, 302]}}`"
    is_alone, status = cell.scenario.name == ALONE and not cell.scenario.others, int(other["status"])
    right = part("status", status) if is_alone else f"`expect: {{status: {status}}}` of the request"
    if other["status"] in _SIGNED_OUT:
        ways = f"{part('user')} or {part('headers', 'Authorization: …')}" if is_alone else "`auth`, or a header"
        return (
            f"sign in with {ways}; a login and what follows are a journey: `redline import --journey RECORDING`; if "
            f"the answer is right, say so: {right}"
        )
    leads = f"; to load what it leads to, ask for {other['target']}" if other["target"] else ""
    return f"{seen}, or say that this status is right: {right}{leads}"


def death_soon(server: RunningServer) -> Failure | None:
    """Wait briefly for the death of a server: its sockets close a moment before it is gone."""
    deadline = time.monotonic() + DYING_S
    while (death := server.death()) is None and time.monotonic() < deadline:
        time.sleep(DYING_S / 10)
    return death


def failure_of(stage: Stage, kind: FailureKind, error: RedlineError, log_tail: str = "") -> Failure:
    """Return the error in the form that recordings keep."""
    return Failure(stage=stage, kind=kind, message=error.message, hint=error.hint, log_tail=log_tail)


def lost_connections(traffic: Traffic) -> bool:
    """Whether connections failed or were lost, so that the server may be dying."""
    ended = traffic.counts.outcomes
    return ended.connect + ended.tls + ended.reset + ended.closed + ended.refused > 0


def _processes(server: RunningServer, tools: Tools) -> tuple[int, ...]:
    return tuple(sorted(tools.processes(server)))


def _size_of(file: Path | None) -> int | None:
    """Return the size in bytes; None if it cannot be read."""
    with suppress(OSError):
        return file.stat().st_size if file else None
    return None
