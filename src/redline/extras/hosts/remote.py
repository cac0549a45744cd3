"""The lab's side of its agents: a driver and monitors whose work is done on other hosts."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from redline.driving.ending import EngineEnding
from redline.driving.headers import secrets_of
from redline.driving.journeys import rows_of_check
from redline.driving.protocol import Transcript, deadline_ns, duet_job, job
from redline.errors import DriveError, RedlineError
from redline.extras.hosts.agent import Brought, HostReport
from redline.extras.hosts.engine import Ended
from redline.extras.hosts.parts import Part, merged, parts_of
from redline.model import (
    HOPS,
    Cell,
    DuetBlock,
    DuetTraffic,
    Interval,
    LoadShare,
    Role,
    RuntimeFacts,
    Series,
    Subject,
    Traffic,
)
from redline.ports import Drive, DuetDrive, Endpoint, NoResultError

CALL_S = 30.0
"""Time limit for a short call to a host."""
START_NOTICE_NS, MEASURE_NOTICE_NS = 1_000_000_000, 1_500_000_000
"""The notice for a start, or for a measurement that begins when the server is warm: enough for every host."""
BEYOND_DEADLINE_S = 15.0
"""How long the result of an engine may take after its deadline."""
SPARE_FILES = 200
FOLLOWED_S = 0.25
"""How often load hosts are asked for their intervals while they measure, if a condition may end the load."""


class HostLostError(RedlineError):
    """A host no longer answers."""


class Pending(Protocol):
    """A call that is in progress."""

    def result(self, within_s: float) -> Any:
        """Wait for the result, or raise its error. Raises HostLostError if the host is gone, or too slow."""


class RemoteHost(Protocol):
    """An agent on another host, as the lab calls it."""

    @property
    def report(self) -> HostReport:
        """The host's report."""

    @property
    def role(self) -> Role:
        """Its role."""

    def submit(self, method: str, *arguments: Any) -> Pending:
        """Call a method of `HostAgent`."""


@dataclass(frozen=True)
class Pair:
    """Hosts of a trial: for its servers, for the load, and perhaps for proxies, which else run beside the servers."""

    server: RemoteHost
    loads: tuple[RemoteHost, ...]
    proxy: RemoteHost | None = None

    @property
    def hosts(self) -> tuple[RemoteHost, ...]:
        """All hosts of the pair."""
        return (self.server, *self.loads, *((self.proxy,) if self.proxy else ()))


def call(host: RemoteHost, method: str, *arguments: Any, within_s: float = CALL_S) -> Any:
    """Call a method of the agent, and wait for its result. Raises HostLostError and the method's errors."""
    return host.submit(method, *arguments).result(within_s)


class PartsDriver:
    """Drives a load from several hosts, and merges their traffic.

    After a load, `shares` has the parts by host, and `series` those of the load hosts and their engines.
    """

    def __init__(self, hosts: Sequence[RemoteHost], server: RemoteHost | None, proxy: RemoteHost | None = None) -> None:
        self._hosts, self._server, self._proxy = tuple(hosts), server, proxy
        self.shares: dict[str, LoadShare] = {}
        self.series: tuple[Series, ...] = ()

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Return the first wrong answer of a server to the first load host, or None."""
        return self._call_first_host("verify", cell, endpoint)

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """Return the first difference between the answers of two servers, or None."""
        return self._call_first_host("differ", cell, names, endpoints)

    def _call_first_host(self, method: str, cell: Cell, *arguments: Any) -> str | None:
        known = {name: value for asked in cell.scenario.requests for name, value in secrets_of(asked).items()}
        brought = Brought(known, rows_of_check(cell.scenario))
        try:
            said: str | None = call(self._hosts[0], method, brought, cell, *arguments, within_s=20 * CALL_S)
        except HostLostError as error:
            return error.message
        return said

    def drive(self, drive: Drive) -> Traffic:
        """Run a load from all hosts. An interrupt ends it; with `keep_interrupted`, the partial result is returned.

        Raises DriveError if a host, or its engine, gives no result: part of a load is not that load.
        """
        with self._loading():
            load = drive.cell.load
            parts = parts_of([_workers(host, drive, len(self._hosts)) for host in self._hosts], load.connections)
            hosts = self._hosts[: len(parts)]
            self._keep_alive(drive)
            # The clocks of a server and of its proxies are read together, on the same host.
            same_host = self._proxy is None or not drive.cell.variant.hops
            clocks = self._clocks((drive.pids,)) if same_host else {}
            entire = job(drive) | {"deadline_ns": deadline_ns(drive) + START_NOTICE_NS, **clocks}
            for key in ("pids", "cpus"):
                entire.pop(key, None)
            self._connect(hosts, parts, entire, deadline_ns(drive) / 1e9)
            epoch_unix_ns = time.time_ns() + START_NOTICE_NS
            _all(hosts, "order", {"command": "start", "at_unix_ns": epoch_unix_ns})
            self._follow_warmup(hosts, drive, epoch_unix_ns)
            interval_ns = entire["interval_ns"]
            followed = _FollowedLoad(hosts, drive)
            ended = self._finished(hosts, drive, followed.until_it_ends)
            traffics = [_traffic_of(host, lines, interval_ns) for host, (lines, _) in zip(hosts, ended, strict=True)]
            self._keep(hosts, traffics, [series for _, series in ended])
            traffic = merged(traffics, interval_ns)
            for interval in traffic.intervals:
                if interval.phase != "warmup" and not followed.has_reported(interval):
                    drive.on_interval(interval)
            return traffic

    def _connect(
        self, hosts: Sequence[RemoteHost], parts: Sequence[Part], entire: dict[str, Any], within_s: float
    ) -> None:
        """Let every host open its connections. Raises DriveError if a host cannot, or there is no host."""
        jobs = [entire | part.keys() for part in parts]
        for other in jobs[1:]:
            other.pop("clocks", None)  # the first engine reads them
        pending = [host.submit("connect", part, within_s) for host, part in zip(hosts, jobs, strict=True)]
        events = [answer.result(within_s + CALL_S) for answer in pending]
        for host, event in zip(hosts, events, strict=True):
            if event["event"] == "error":
                raise DriveError(f"{host.report.name}: {event['message']}", hint=event["hint"])
        without = next((event for event in events if event.get("error")), None)
        if without is not None and not any(event["connections"] for event in events):
            raise DriveError(without["error"]["message"], hint=without["error"]["hint"])

    def _follow_warmup(self, hosts: Sequence[RemoteHost], drive: Drive, epoch_unix_ns: int) -> None:
        """Show the warm-up, and end it when the server is warm. From then on only a condition disturbs the hosts."""
        quiet_ns = epoch_unix_ns + drive.cell.warmup_ns - MEASURE_NOTICE_NS
        transcripts = [Transcript() for _ in hosts]
        known, seen = [0] * len(hosts), [list[Interval]() for _ in hosts]
        index = 0
        while time.time_ns() < quiet_ns:
            pending = [host.submit("lines_after", at, 1.0) for host, at in zip(hosts, known, strict=True)]
            for number, answer in enumerate(pending):
                lines = answer.result(CALL_S)
                known[number] += len(lines)
                events = [transcripts[number].read(line) for line in lines]
                seen[number] += [event for event in events if isinstance(event, Interval) and event.phase == "warmup"]
            while all(len(of_host) > index for of_host in seen):
                here = [of_host[index] for of_host in seen]
                interval = Interval.merged(here, index, here[0].start_ns, max(part.end_ns for part in here))
                index += 1
                drive.on_interval(interval)
                if drive.is_warm is not None and drive.is_warm(interval):
                    at_ns = max(0, time.time_ns() - epoch_unix_ns) + MEASURE_NOTICE_NS
                    _all(hosts, "order", {"command": "measure", "at_ns": at_ns})
                    return

    def _finished(
        self, hosts: Sequence[RemoteHost], drive: Drive, follow: Callable[[], None]
    ) -> list[tuple[Ended, tuple[Series, ...]]]:
        """Return the lines of every engine, when all have ended. `follow` is called first, while they run."""
        until_s = time.monotonic() + deadline_ns(drive) / 1e9 + BEYOND_DEADLINE_S
        pending: list[Pending] = []
        try:
            follow()
            pending = [host.submit("finish") for host in hosts]
            return [answer.result(max(1.0, until_s - time.monotonic())) for answer in pending]
        except KeyboardInterrupt:
            if not drive.keep_interrupted:
                raise
            _all(hosts, "interrupt")
            pending = pending or [host.submit("finish") for host in hosts]
            return [answer.result(CALL_S) for answer in pending]

    def _keep(
        self, hosts: Sequence[RemoteHost], traffics: Sequence[Traffic], series: Sequence[tuple[Series, ...]]
    ) -> None:
        names = [host.report.name for host in hosts]
        self.shares = {name: _share_of(traffic) for name, traffic in zip(names, traffics, strict=True)}
        self.series = tuple(line.of_host(name) for name, of_host in zip(names, series, strict=True) for line in of_host)

    def duet(self, duet: DuetDrive) -> DuetTraffic:
        """Load several servers of a host in slices, from the first load host. Raises DriveError."""
        with self._loading():
            host, drive = self._hosts[0], duet.drive
            self._keep_alive(drive)
            wanted = duet_job(duet) | self._clocks(duet.pids)
            wanted["duet"] = {**wanted["duet"], "pids": []}
            wanted.pop("cpus", None)
            wanted["workers"] = min(_workers(host, drive, 1), drive.cell.load.connections)
            call(host, "begin", wanted)
            followed = _FollowedDuet(host, duet)
            followed.until_warm()
            ((ended, series),) = self._finished((host,), drive, followed.until_it_ends)
            traffic = followed.traffic(ended)
            if traffic is None:
                raise _no_result(host, ended)
            self.series = tuple(line.of_host(host.report.name) for line in series)
            return traffic

    def _keep_alive(self, drive: Drive) -> None:
        """Tell the hosts of server and proxies to expect no call during the load."""
        for host in (self._server, self._proxy):
            if host is not None:
                call(host, "keep_alive", deadline_ns(drive) / 1e9 + BEYOND_DEADLINE_S)

    def _clocks(self, pids: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
        """Return the job's key `clocks`: where the engine reads the CPU time of the servers' processes."""
        if self._server is None or not any(pids):
            return {}
        return {"clocks": call(self._server, "serve_clocks", pids)}

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """End all engines if the block fails. Raises DriveError for a lost host."""
        self.shares, self.series = {}, ()
        try:
            yield
        except BaseException as error:
            for host in self._hosts:
                with contextlib.suppress(HostLostError):
                    call(host, "end_engine", within_s=CALL_S)
            if isinstance(error, HostLostError):
                raise DriveError.of(error) from error
            raise


class _FollowedLoad:
    """A load that a condition may end early: its intervals are reported during the measurement.

    A condition is about all of the load, so it is judged by what all hosts report of the same time.
    """

    def __init__(self, hosts: Sequence[RemoteHost], drive: Drive) -> None:
        self._hosts, self._drive = hosts, drive
        self._is_followed = bool(drive.cell.abort_when)
        self._unreported: list[list[Interval]] = [[] for _ in hosts]
        self._index = 0

    def until_it_ends(self) -> None:
        """Report measured intervals until all engines have ended. Returns at once if there is no condition."""
        if not self._is_followed:
            return
        self._drive.on_remote(self._interrupt)
        transcripts, known = [Transcript() for _ in self._hosts], [0] * len(self._hosts)
        has_ended = False
        while not has_ended:
            time.sleep(FOLLOWED_S)
            pending = [host.submit("news_after", at) for host, at in zip(self._hosts, known, strict=True)]
            news: list[tuple[tuple[str, ...], bool]] = [answer.result(CALL_S) for answer in pending]
            for number, (host, (lines, _)) in enumerate(zip(self._hosts, news, strict=True)):
                known[number] += len(lines)
                events = _events_of(host, lines, transcripts[number])
                self._unreported[number] += [event for event in events if isinstance(event, Interval)]
            has_ended = all(is_last for _, is_last in news)
            self._report(entirely=has_ended)

    def _report(self, *, entirely: bool) -> None:
        """Report the intervals up to the time that all hosts have reached; with `entirely`, all intervals."""
        measured = [[interval for interval in line if interval.phase == "measure"] for line in self._unreported]
        if not entirely and not all(measured):
            return
        reported_ns = [interval.end_ns for line in measured for interval in line[-1:]]
        if not reported_ns:
            return
        # Intervals of hosts end at about the same times: not more than half an interval apart.
        half_ns = min(interval.lasts_ns for line in measured for interval in line) // 2
        until_ns = max(reported_ns) if entirely else min(reported_ns) + half_ns
        shares = [[interval for interval in line if interval.end_ns <= until_ns] for line in measured]
        if not entirely and not all(shares):
            return
        self._unreported = [line[len(share) :] for line, share in zip(measured, shares, strict=True)]
        reported = [interval for share in shares for interval in share]
        start_ns, end_ns = min(part.start_ns for part in reported), max(part.end_ns for part in reported)
        self._drive.on_interval(Interval.merged(reported, self._index, start_ns, end_ns))
        self._index += 1

    def _interrupt(self) -> None:
        _all(self._hosts, "interrupt")

    def has_reported(self, interval: Interval) -> bool:
        """Whether this interval was reported during the measurement."""
        return self._is_followed and interval.phase == "measure"


class _FollowedDuet:
    """A duet on a load host: blocks are reported during the warm-up, and to the end if a condition may end it."""

    def __init__(self, host: RemoteHost, duet: DuetDrive) -> None:
        self._host, self._drive, self._known = host, duet.drive, 0
        self._transcript = Transcript(on_block=duet.on_block)

    def until_warm(self) -> None:
        """End the warm-up when the servers are warm, if that is to be detected."""
        is_warm = self._drive.is_warm
        while is_warm is not None and (lines := call(self._host, "lines_after", self._known, 5.0)):
            for seen in self._read(lines):
                if seen.phase != "warmup":
                    return
                if is_warm(seen):
                    call(self._host, "order", {"command": "measure"})
                    return

    def until_it_ends(self) -> None:
        """Report blocks until the engine has ended. Returns at once if there is no condition."""
        if not self._drive.cell.abort_when:
            return
        self._drive.on_remote(partial(call, self._host, "interrupt"))
        has_ended = False
        while not has_ended:
            time.sleep(FOLLOWED_S)
            lines, has_ended = call(self._host, "news_after", self._known)
            self._read(lines)

    def traffic(self, ended: Ended) -> DuetTraffic | None:
        """Read the rest, and return the traffic; None if the engine wrote no result."""
        self._read(ended.lines[self._known :])
        return self._transcript.duet_traffic()

    def _read(self, lines: Sequence[str]) -> list[Interval | DuetBlock]:
        self._known += len(lines)
        return _events_of(self._host, lines, self._transcript)


class RemoteMonitor:
    """A monitor on the server's host, and on the host of its proxies if it is another."""

    perturbs = False
    _numbers = itertools.count(1)

    def __init__(self, host: RemoteHost, proxy: RemoteHost | None = None) -> None:
        self._host, self._proxy, self._watch = host, proxy, next(self._numbers)
        self._apart = False

    def follow(self, subject: Subject, pid: int) -> None:
        """Begin to watch a process; agents watch their engines themselves. `server` comes first."""
        if subject == "engine":
            return
        host = self._proxy if subject in HOPS and self._proxy else self._host
        self._apart |= host is self._proxy
        with contextlib.suppress(HostLostError):
            call(host, "follow", self._watch, subject, pid)

    def finish(self) -> tuple[Series, ...]:
        """End, and return the series; empty for a lost host. Series of the proxies' host have its name."""
        series = list(self._series_of(self._host))
        if self._apart and self._proxy:
            name = self._proxy.report.name
            of_hops = self._series_of(self._proxy)
            series += [line if line.subject in HOPS else line.of_host(name) for line in of_hops]
        return tuple(series)

    def _series_of(self, host: RemoteHost) -> tuple[Series, ...]:
        with contextlib.suppress(HostLostError):
            series: tuple[Series, ...] = call(host, "unfollow", self._watch)
            return series
        return ()

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """Return the facts of the server's runtime about this time."""
        del server_log  # it is on that host
        with contextlib.suppress(HostLostError):
            facts: RuntimeFacts | None = call(self._host, "runtime", self._watch, window_unix_ns)
            return facts
        return None


class LoadHostsMonitor:
    """The series of the load hosts and their engines, which come with the end of the load."""

    perturbs = False

    def __init__(self, driver: PartsDriver) -> None:
        self._driver = driver

    def follow(self, subject: Subject, pid: int) -> None:
        """Do nothing: agents watch their engines."""

    def finish(self) -> tuple[Series, ...]:
        """The series of the last load."""
        return self._driver.series

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """None: no server runs there."""
        del window_unix_ns, server_log
        return None


def _workers(host: RemoteHost, drive: Drive, hosts: int) -> int:
    """Return the number of a host's workers: at least its cores, and as many as its connections need."""
    cores = len(host.report.environment.engine_cpus) or host.report.environment.cores
    mine = -(-drive.cell.load.connections // hosts)
    return max(cores, -(-mine // max(1, host.report.environment.open_files_hard - SPARE_FILES)))


def _all(hosts: Sequence[RemoteHost], method: str, *arguments: Any) -> list[Any]:
    """Make a call to all hosts at once."""
    pending = [host.submit(method, *arguments) for host in hosts]
    return [answer.result(CALL_S) for answer in pending]


def _events_of(host: RemoteHost, lines: Sequence[str], transcript: Transcript) -> list[Interval | DuetBlock]:
    """Read lines of a host's engine, and return their intervals and blocks. Raises DriveError that names the host."""
    try:
        return [event for line in lines if (event := transcript.read(line)) is not None]
    except DriveError as error:
        raise DriveError(f"{host.report.name}: {error.message}", hint=error.hint) from error


def _traffic_of(host: RemoteHost, ended: Ended, interval_ns: int) -> Traffic:
    transcript = Transcript(interval_ns=interval_ns)
    _events_of(host, ended.lines, transcript)
    traffic = transcript.traffic()
    if traffic is None:
        raise _no_result(host, ended)
    return traffic


def _no_result(host: RemoteHost, ended: Ended) -> NoResultError:
    ending = EngineEnding(ended.code, ended.log)
    return NoResultError(f"{host.report.name}: {ending}", hint=ending.hint)


def _share_of(traffic: Traffic) -> LoadShare:
    return LoadShare(
        workers=traffic.engine.workers,
        connections=traffic.connections,
        epoch_unix_ns=traffic.epoch_unix_ns,
        counts=traffic.counts,
        response=traffic.response,
        service=traffic.service,
        lateness=traffic.lateness,
        engine_cpu_ns=traffic.engine_cpu_ns,
    )
