"""The lab's side of its agents: a launcher, a driver and a probe whose work is done on other hosts."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from redline.errors import BuildError, DriveError, LaunchError, RedlineError
from redline.model import (
    HOPS,
    Cell,
    DuetTraffic,
    Failure,
    Interval,
    LoadShare,
    Role,
    RuntimeFacts,
    Series,
    ServerFacts,
    Subject,
    Traffic,
    Variant,
)
from redline.plugins.drivers.protocol import Transcript, deadline_ns, duet_job, job
from redline.plugins.hosts.agent import HostReport, RemoteStart
from redline.plugins.hosts.engine import Ended
from redline.plugins.hosts.parts import Part, merged, merged_intervals, parts_of
from redline.plugins.hosts.shipping import Parcel, packed, parcel_of
from redline.plugins.launchers.builds import StandingBuild
from redline.ports import (
    NOTHING_MORE,
    Building,
    BuildOutcome,
    Drive,
    DuetDrive,
    Endpoint,
    Launcher,
    NoResultError,
    Placement,
)
from redline.storage.runs import as_store_error

CALL_S = 30.0
"""How long a host may take for what takes it a moment."""
BEYOND_READY_S = 60.0
START_NOTICE_NS = 1_000_000_000
"""How far ahead the start of a load is set, so that every host has the command in time."""
MEASURE_NOTICE_NS = 1_500_000_000
"""The same for a measurement that begins when the server is warm."""
BEYOND_DEADLINE_S = 15.0
"""An engine ends by its own deadline; its result may take this long to come."""
SPARE_FILES = 200


class HostLostError(RedlineError):
    """A host does not answer any more."""


class Pending(Protocol):
    """A call that is in progress."""

    def result(self, within_s: float) -> Any:
        """What it returns, or raises. Raises HostLostError when the host is gone, or when time is over."""


class Host(Protocol):
    """An agent on another host, as whatever connects the hosts gives it to the lab."""

    @property
    def report(self) -> HostReport:
        """What it said of itself."""

    @property
    def role(self) -> Role:
        """What it is for."""

    def submit(self, method: str, *arguments: Any) -> Pending:
        """Call a method of `HostAgent`."""


def call(host: Host, method: str, *arguments: Any, within_s: float = CALL_S) -> Any:
    """Call a method of the agent, and wait for what it returns. Raises HostLostError and what the method raises."""
    return host.submit(method, *arguments).result(within_s)


@dataclass(frozen=True)
class RemoteServer:
    """A server on another host."""

    host: Host
    number: int
    endpoint: Endpoint
    facts: ServerFacts

    def death(self) -> Failure | None:
        """Why and how it died, or that its host is gone; None while it lives."""
        return _death(self.host, self.number)


@dataclass(frozen=True)
class RemoteRoute:
    """A server on one host behind proxies on another: its endpoint is that of the first proxy."""

    server: RemoteServer
    proxy: Host
    number: int
    endpoint: Endpoint
    facts: ServerFacts

    def death(self) -> Failure | None:
        """Why and how the server died, or a proxy, or that a host is gone; None while all live."""
        return self.server.death() or _death(self.proxy, self.number)


def _death(host: Host, number: int) -> Failure | None:
    try:
        found: Failure | None = call(host, "death", number)
    except HostLostError as error:
        return Failure(stage="load", kind="died", message=error.problems[0].message, hint=error.hint)
    return found


@dataclass(frozen=True)
class Sender:
    """Sends builds to hosts, each once. `find` gives the build of an entry, which stands."""

    find: Callable[[Any], StandingBuild]
    project: Path

    def provide(
        self, variants: Sequence[Variant], hosts: Sequence[Host], progress: Callable[[Building], None]
    ) -> dict[str, dict[str, str | BuildError]]:
        """By host and slug, what runs each variant there, or why that host cannot run it."""
        entries = {each.catalogued.name: each.catalogued for one in variants for each in (one, *one.hops)}
        builds = {name: self.find(entry) for name, entry in entries.items()}
        parcels = {name: parcel_of(build, self.project) for name, build in builds.items()}
        found: dict[str, dict[str, str | BuildError]] = {}
        for host in hosts:
            self._send(host, parcels, builds, progress)
            progress(Building(tuple(entries), f"preparing {host.report.name}"))
            wanted = call(host, "provide", tuple(parcels.values()), tuple(variants), within_s=600.0)
            found[host.report.name] = wanted
        return found

    def _send(
        self,
        host: Host,
        parcels: Mapping[str, Parcel],
        builds: Mapping[str, StandingBuild],
        progress: Callable[[Building], None],
    ) -> None:
        by_key = {parcel.key: name for name, parcel in parcels.items()}
        for key in call(host, "lacking", tuple(by_key)):
            name = by_key[key]
            progress(Building((name,), f"sending it to {host.report.name}"))
            chunks = itertools.chain(packed(builds[name], self.project), (None,))
            for chunk, following in itertools.pairwise(chunks):
                call(host, "take", key, chunk, following is None)


class RemoteLauncher:
    """Launcher of servers on one host, of builds that were made here; its proxies run there, or on one of their own.

    `servers` and `proxies` are all hosts that may run either: what is built is sent to each.
    """

    def __init__(self, local: Launcher, sender: Sender, servers: Sequence[Host], proxies: Sequence[Host]) -> None:
        self._local, self._sender, self._servers, self._proxies = local, sender, servers, proxies
        self._host, self._proxy = servers[0], proxies[0] if proxies else None

    def on(self, host: Host, proxy: Host | None = None) -> "RemoteLauncher":
        """The same for one of the servers' hosts, and maybe one of the proxies'."""
        other = RemoteLauncher(self._local, self._sender, self._servers, self._proxies)
        other._host, other._proxy = host, proxy
        return other

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], copies: int = 1) -> BuildOutcome:
        """Build what the variants need here, and send it to the hosts. What one of them cannot run is a failure."""
        wanted = {variant.slug: variant for variant in variants}
        outcome = self._local.build(wanted.values(), progress, copies)
        standing = [variant for slug, variant in wanted.items() if slug in outcome.hashes]
        hops = {hop.slug: hop for variant in standing for hop in variant.hops}
        of_servers = self._misfits(standing, self._servers, outcome, progress)
        of_proxies = self._misfits(list(hops.values()), self._proxies, outcome, progress)
        for variant in standing:
            errors = (of_servers.get(variant.slug), *(of_proxies.get(hop.slug) for hop in variant.hops))
            if (error := next(filter(None, errors), None)) is not None:
                outcome.failures[variant.slug] = error
                del outcome.hashes[variant.slug]
                outcome.runtimes.pop(variant.slug, None)
        return outcome

    def _misfits(
        self,
        variants: Sequence[Variant],
        hosts: Sequence[Host],
        outcome: BuildOutcome,
        progress: Callable[[Building], None],
    ) -> dict[str, BuildError]:
        """By slug, why one of the hosts cannot run what was built here and sent there."""
        found: dict[str, BuildError] = {}
        if not variants:
            return found
        for name, runtimes in self._sender.provide(variants, hosts, progress).items():
            for slug in (variant.slug for variant in variants):
                error = _misfit(slug, name, outcome.runtimes.get(slug, ""), runtimes.get(slug, ""))
                if error is not None:
                    found.setdefault(slug, error)
        return found

    @contextmanager
    def running(  # noqa: PLR0913 - what, where, and how it differs from other starts
        self,
        variant: Variant,
        placement: Placement,
        log: Path,
        seed: int | None = None,
        copy: int = 0,
        *,
        env: Mapping[str, str] = NOTHING_MORE,
    ) -> Iterator[RemoteServer | RemoteRoute]:
        """Start it on its host, and stop it whatever happens. Raises LaunchError; its output is fetched at the end."""
        del placement  # the agent knows the cores of its host
        apart = self._proxy if variant.hops else None
        alone = variant.without_hops if apart else variant
        with ExitStack() as stack:
            started = _started(self._host, (alone, *alone.hops), log, "start", alone, seed, copy, dict(env))
            start = stack.enter_context(started)
            assert start.facts is not None, "a server has facts"
            server = RemoteServer(self._host, start.number, start.endpoint, start.facts)
            if apart is None:
                yield server
                return
            in_front = _started(apart, variant.hops, log, "start_hops", variant, start.endpoint, copy)
            hops = stack.enter_context(in_front)
            facts = start.facts.model_copy(update={"hops": hops.hops})
            yield RemoteRoute(server, apart, hops.number, hops.endpoint, facts)


@contextmanager
def _started(host: Host, parts: Sequence[Variant], log: Path, method: str, *arguments: Any) -> Iterator[RemoteStart]:
    """What that method of the agent starts, until the block ends; its output is fetched then. Raises LaunchError."""
    within_s = BEYOND_READY_S + sum(part.catalogued.ready.within_ns for part in parts) / 1e9
    try:
        start = call(host, method, *arguments, within_s=within_s)
    except HostLostError as error:
        raise LaunchError(error.problems[0].message, hint=error.hint) from error
    try:
        yield start
    finally:
        stop_s = BEYOND_READY_S + sum(part.catalogued.stop.within_ns for part in parts) / 1e9
        with contextlib.suppress(HostLostError):  # it ends by itself what runs there
            _write_logs(log, call(host, "stop", start.number, within_s=stop_s))


def _misfit(slug: str, host: str, here: str, there: str | BuildError) -> BuildError | None:
    """Why a host cannot run what was built here, if it cannot."""
    if isinstance(there, BuildError):
        return BuildError(f"{host}: {there.problems[0].message}", hint=there.hint)
    if here == there:
        return None
    return BuildError(
        f"{slug} would run on {there or 'nothing known'} on {host}, and on {here or 'nothing known'} here",
        hint="install the same runtime on all hosts",
    )


def _write_logs(log: Path, texts: Mapping[str, bytes]) -> None:
    with as_store_error(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        for end, text in texts.items():
            (log.parent / f"{log.stem}{end}").write_bytes(text)


@dataclass
class Seen:
    """What load hosts saw of the last load, besides the traffic: by host its share, and series of engine and host."""

    shares: dict[str, LoadShare] = field(default_factory=dict)
    series: tuple[Series, ...] = ()


class PartsDriver:
    """Drives one load from several hosts: each does its part, and what they saw is merged here."""

    def __init__(self, hosts: Sequence[Host], server: Host | None) -> None:
        self._hosts, self._server = tuple(hosts), server
        self.seen = Seen()

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """What is wrong with the answers of a server, asked from the first load host; None if nothing is."""
        return self._asked("verify", cell, endpoint)

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """Where the answers of two servers first differ; None where they do not."""
        return self._asked("differ", cell, names, endpoints)

    def _asked(self, method: str, *arguments: Any) -> str | None:
        try:
            said: str | None = call(self._hosts[0], method, *arguments, within_s=20 * CALL_S)
        except HostLostError as error:
            return error.problems[0].message
        return said

    def drive(self, drive: Drive) -> Traffic:
        """One load, from all hosts. An interrupt ends it; with `keep_interrupted`, what there is is given.

        Raises DriveError when a host, or its engine, gives no result: part of a load is not that load.
        """
        self.seen = Seen()
        try:
            with self._ended_whatever_happens():
                return self._drive(drive)
        except HostLostError as error:
            raise DriveError(error.problems[0].message, hint=error.hint) from error

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        """Several servers of one host in slices, from the first load host."""
        self.seen = Seen()
        try:
            with self._ended_whatever_happens():
                return self._duet(drive)
        except HostLostError as error:
            raise DriveError(error.problems[0].message, hint=error.hint) from error

    def _drive(self, drive: Drive) -> Traffic:
        load = drive.cell.load
        parts = parts_of([_workers(host, drive, len(self._hosts)) for host in self._hosts], load.connections)
        hosts = self._hosts[: len(parts)]
        entire = job(drive) | {"deadline_ns": deadline_ns(drive) + START_NOTICE_NS, **self._clocks((drive.pids,))}
        for key in ("pids", "cpus"):
            entire.pop(key, None)
        self._connect(hosts, parts, entire, deadline_ns(drive) / 1e9)
        epoch_unix_ns = time.time_ns() + START_NOTICE_NS
        _all(hosts, "order", {"command": "start", "at_unix_ns": epoch_unix_ns})
        self._follow_warmup(hosts, drive, epoch_unix_ns)
        ended = self._finished(hosts, drive)
        traffics = [_traffic_of(host, one) for host, (one, _) in zip(hosts, ended, strict=True)]
        self._keep(hosts, traffics, [series for _, series in ended])
        traffic = merged(traffics, entire["interval_ns"])
        for interval in traffic.intervals:
            if interval.phase != "warmup":
                drive.on_interval(interval)
        return traffic

    def _connect(self, hosts: Sequence[Host], parts: Sequence[Part], entire: dict[str, Any], within_s: float) -> None:
        """Let every host open its connections. Raises DriveError where one cannot, or all have none."""
        jobs = [entire | part.keys() for part in parts]
        for one in jobs[1:]:
            one.pop("clocks", None)  # one engine reads them
        pending = [host.submit("connect", one, within_s) for host, one in zip(hosts, jobs, strict=True)]
        events = [each.result(within_s + CALL_S) for each in pending]
        for host, event in zip(hosts, events, strict=True):
            if event["event"] == "error":
                raise DriveError(f"{host.report.name}: {event['message']}", hint=event["hint"])
        without = next((event for event in events if event.get("error")), None)
        if without is not None and not any(event["connections"] for event in events):
            raise DriveError(without["error"]["message"], hint=without["error"]["hint"])

    def _follow_warmup(self, hosts: Sequence[Host], drive: Drive, epoch_unix_ns: int) -> None:
        """Show the warm-up, and end it when the server is warm. Afterwards the hosts are left alone."""
        quiet_ns = epoch_unix_ns + drive.cell.warmup_ns - MEASURE_NOTICE_NS
        transcripts = [Transcript() for _ in hosts]
        known, seen = [0] * len(hosts), [list[Interval]() for _ in hosts]
        index = 0
        while time.time_ns() < quiet_ns:
            pending = [host.submit("lines_after", at, 1.0) for host, at in zip(hosts, known, strict=True)]
            for number, each in enumerate(pending):
                lines = each.result(CALL_S)
                known[number] += len(lines)
                found = [transcripts[number].read(line) for line in lines]
                seen[number] += [one for one in found if isinstance(one, Interval) and one.phase == "warmup"]
            while all(len(of_host) > index for of_host in seen):
                here = [[of_host[index]] for of_host in seen]
                interval = merged_intervals(here, here[0][0].lasts_ns)[0].model_copy(
                    update={"start_ns": here[0][0].start_ns, "index": index}
                )
                index += 1
                drive.on_interval(interval)
                if drive.is_warm is not None and drive.is_warm(interval):
                    at_ns = max(0, time.time_ns() - epoch_unix_ns) + MEASURE_NOTICE_NS
                    _all(hosts, "order", {"command": "measure", "at_ns": at_ns})
                    return

    def _finished(self, hosts: Sequence[Host], drive: Drive) -> list[tuple[Ended, tuple[Series, ...]]]:
        """What every engine wrote, when all have ended."""
        pending = [host.submit("finish") for host in hosts]
        until_s = time.monotonic() + deadline_ns(drive) / 1e9 + BEYOND_DEADLINE_S
        try:
            return [each.result(max(1.0, until_s - time.monotonic())) for each in pending]
        except KeyboardInterrupt:
            if not drive.keep_interrupted:
                raise
            _all(hosts, "interrupt")
            return [each.result(CALL_S) for each in pending]

    def _keep(self, hosts: Sequence[Host], traffics: Sequence[Traffic], series: Sequence[tuple[Series, ...]]) -> None:
        names = [host.report.name for host in hosts]
        self.seen.shares = {name: _share_of(traffic) for name, traffic in zip(names, traffics, strict=True)}
        self.seen.series = tuple(
            each.model_copy(update={"host": name})
            for name, of_host in zip(names, series, strict=True)
            for each in of_host
        )

    def _duet(self, duet: DuetDrive) -> DuetTraffic:
        host, drive = self._hosts[0], duet.drive
        wanted = duet_job(duet) | self._clocks(duet.pids)
        wanted["duet"] = {**wanted["duet"], "pids": []}
        wanted.pop("cpus", None)
        wanted["workers"] = min(_workers(host, drive, 1), drive.cell.load.connections)
        call(host, "begin", wanted)
        if drive.is_warm is not None:
            self._follow_duet(host, drive)
        ((ended, series),) = self._finished((host,), drive)
        transcript = _read(host, ended, Transcript(on_block=duet.on_block))
        traffic = transcript.duet_traffic()
        if traffic is None:
            raise _no_result(host, ended)
        self.seen.series = tuple(each.model_copy(update={"host": host.report.name}) for each in series)
        return traffic

    def _follow_duet(self, host: Host, drive: Drive) -> None:
        """End the warm-up of a duet when its servers are warm."""
        transcript, known = Transcript(), 0
        while lines := call(host, "lines_after", known, 5.0):
            known += len(lines)
            for line in lines:
                seen = transcript.read(line)
                if seen is not None and seen.phase != "warmup":
                    return
                if seen is not None and drive.is_warm is not None and drive.is_warm(seen):
                    call(host, "order", {"command": "measure"})
                    return

    def _clocks(self, pids: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
        """The key of a job that says where the clocks of the servers' processes are read."""
        if self._server is None or not any(pids):
            return {}
        return {"clocks": call(self._server, "serve_clocks", pids)}

    @contextmanager
    def _ended_whatever_happens(self) -> Iterator[None]:
        """No engine outlives the load, whatever becomes of the others."""
        try:
            yield
        except BaseException:
            for host in self._hosts:
                with contextlib.suppress(HostLostError):
                    call(host, "end_engine", within_s=CALL_S)
            raise


class RemoteProbe:
    """A probe on the server's host, and on that of its proxies if they have one of their own."""

    perturbs = False
    _numbers = itertools.count(1)

    def __init__(self, host: Host, proxy: Host | None = None) -> None:
        self._host, self._proxy, self._watch = host, proxy, next(self._numbers)
        self._apart = False

    def follow(self, subject: Subject, pid: int) -> None:
        """Begin to watch a process; engines are watched by theirs. `server` comes first."""
        if subject == "engine":
            return
        host = self._proxy if subject in HOPS and self._proxy else self._host
        self._apart |= host is self._proxy
        with contextlib.suppress(HostLostError):
            call(host, "follow", self._watch, subject, pid)

    def finish(self) -> tuple[Series, ...]:
        """End, and give what was seen: nothing of a host that is gone. What is of the proxies' host has its name."""
        found = list(self._seen(self._host))
        if self._apart and self._proxy:
            name = self._proxy.report.name
            of_hops = self._seen(self._proxy)
            found += [each if each.subject in HOPS else each.model_copy(update={"host": name}) for each in of_hops]
        return tuple(found)

    def _seen(self, host: Host) -> tuple[Series, ...]:
        with contextlib.suppress(HostLostError):
            series: tuple[Series, ...] = call(host, "unfollow", self._watch)
            return series
        return ()

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """What the server's runtime says of this time."""
        del server_log  # it is on that host
        with contextlib.suppress(HostLostError):
            facts: RuntimeFacts | None = call(self._host, "runtime", self._watch, window_unix_ns)
            return facts
        return None


class LoadHostsProbe:
    """What the load hosts saw of their engines and of themselves, which comes with the end of the load."""

    perturbs = False

    def __init__(self, driver: PartsDriver) -> None:
        self._driver = driver

    def follow(self, subject: Subject, pid: int) -> None:
        """Their agents do."""

    def finish(self) -> tuple[Series, ...]:
        """What they saw of the last load."""
        return self._driver.seen.series

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """Nothing: no server runs there."""
        del window_unix_ns, server_log
        return None


def _workers(host: Host, drive: Drive, hosts: int) -> int:
    """How many workers a host has for its part: one for each of its cores, and as many as its connections take."""
    cores = len(host.report.environment.engine_cpus) or host.report.environment.cores
    mine = -(-drive.cell.load.connections // hosts)
    return max(cores, -(-mine // max(1, host.report.open_files - SPARE_FILES)))


def _all(hosts: Sequence[Host], method: str, *arguments: Any) -> list[Any]:
    """The same call to all hosts at once."""
    pending = [host.submit(method, *arguments) for host in hosts]
    return [each.result(CALL_S) for each in pending]


def _read(host: Host, ended: Ended, transcript: Transcript) -> Transcript:
    try:
        for line in ended.lines:
            transcript.read(line)
    except DriveError as error:
        raise DriveError(f"{host.report.name}: {error.problems[0].message}", hint=error.hint) from error
    return transcript


def _traffic_of(host: Host, ended: Ended) -> Traffic:
    traffic = _read(host, ended, Transcript()).traffic()
    if traffic is None:
        raise _no_result(host, ended)
    return traffic


def _no_result(host: Host, ended: Ended) -> NoResultError:
    return NoResultError(
        f"{host.report.name}: the engine ended with code {ended.code} and no result: {ended.log}",
        hint="see whether that host works",
    )


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
