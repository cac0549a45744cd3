"""The agent on a host, for a lab on another host: it starts servers and engines, watches them, and stops them.

Plain Python, called by whatever connects the hosts, perhaps several methods at once. Only the lab calls it: it
starts what the lab's catalogue contains, from builds that the lab has sent.
"""

import json
import os
import platform
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import end_engine, find_engine, say
from redline.driving.secrets import secrets_of_the_lab
from redline.errors import BuildError, DriveError, RedlineError
from redline.extras.hosts.engine import Ended, HeldEngine
from redline.extras.hosts.shipping import Parcel, Received
from redline.files import user_cache
from redline.launching.process import ProcessLauncher
from redline.launching.route import RouteLauncher, RunningHops
from redline.launching.temporary import temporary_folder
from redline.linux.cgroup import started_by
from redline.linux.host import Host as Machine
from redline.linux.host import read_clock
from redline.model import (
    Cell,
    ClockReading,
    Environment,
    Failure,
    HopFacts,
    Role,
    RuntimeFacts,
    Series,
    ServerFacts,
    Subject,
    Variant,
)
from redline.ports import Endpoint, Launch, Placement, RunningServer
from redline.watching.jvm import compilers_of
from redline.watching.machine import read_environment
from redline.watching.process_tree import ProcessTreeMonitor

R = TypeVar("R", bound="RunningServer | RunningHops")
ALONE_S = 120.0
"""The time without a call from the lab after which the agent ends everything that it runs for it."""

_LOG_BYTES = 1 << 20
_READING_TRIES, _LONGEST_READING_NS = 10, 50_000


@dataclass(frozen=True)
class HostReport:
    """A host's description of itself when the lab first calls it. `libc` is name and version."""

    name: str
    address: str
    machine: str
    libc: tuple[str, str]
    environment: Environment
    clock: ClockReading | None


@dataclass(frozen=True)
class Brought:
    """What of a scenario only the lab's host has: secrets of its environment by name, and the rows of its check."""

    secrets: dict[str, str]
    rows: dict[str, Any] | None


class AgentUsage(NamedTuple):
    """CPU time until now and memory of the processes that connect the hosts."""

    cpu_ns: int
    rss_bytes: int


@dataclass(frozen=True)
class RemoteStart:
    """A server, or the proxies of a server, as started: its number here, where it listens, and its facts."""

    number: int
    endpoint: Endpoint
    facts: ServerFacts | None = None
    hops: tuple[HopFacts, ...] = ()


@dataclass
class _Running:
    """A server of this host, or the proxies of a server, and how to stop it."""

    server: RunningServer | RunningHops
    stop: ExitStack
    log: Path


class HostAgent:
    """Starts and stops servers and engines for the lab. Servers listen on `address`."""

    def __init__(self, address: str, role: Role, cache: Path | None = None) -> None:
        self._address, self._role = address, role
        cache = (cache or user_cache()).absolute()
        self._lasting = ExitStack()
        self._scratch = self._lasting.enter_context(temporary_folder(cache / "agents"))
        self._driver = EngineDriver(find_engine())
        self._received = Received(cache)
        self._launcher = RouteLauncher(ProcessLauncher(cache, cache, host=address, builds=self._received))
        self._placement = self._place()
        self._running: dict[int, _Running] = {}
        self._monitors: dict[int, ProcessTreeMonitor] = {}
        self._engine: HeldEngine | None = None
        self._engine_monitor: ProcessTreeMonitor | None = None
        self._clocks: subprocess.Popen[str] | None = None
        self._compilers: dict[tuple[int, ...], Callable[[], int | None]] = {}
        self._numbers = iter(range(1, 1 << 62))
        self._busy, self._last_s, self._until_s = 0, time.monotonic(), 0.0
        self._lock = threading.RLock()
        threading.Thread(target=self._end_when_alone, name="alone", daemon=True).start()

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        """Call another method: return whether it succeeded, and its result or the RedlineError that it raised."""
        with self._working():
            try:
                return True, getattr(self, method)(*arguments)
            except RedlineError as error:
                return False, error

    def report(self) -> HostReport:
        """Describe this host. Takes a fifth of a second."""
        return HostReport(
            name=socket.gethostname(),
            address=self._address,
            machine=platform.machine(),
            libc=platform.libc_ver(),
            environment=read_environment(self._driver.version(), self._driver.sha256(), self._placement),
            clock=read_clock(),
        )

    def clock(self) -> tuple[ClockReading | None, int]:
        """Read this host's clock from chrony, and its lead over the monotonic clock in ns.

        The kernel slews both clocks alike, so their difference changes only when the clock is set.
        """
        return read_clock(), _ahead_ns()

    def keep_alive(self, for_s: float) -> None:
        """Keep everything running for this time without calls: the lab is silent while a load is measured."""
        with self._lock:
            self._until_s = time.monotonic() + for_s

    def usage(self) -> AgentUsage | None:
        """Return the usage of the processes that connect the hosts, on this host; None if unknown."""
        return None

    # Builds

    def lacking(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the builds that this host lacks."""
        return tuple(key for key in keys if not self._received.has(key))

    def take(self, key: str, chunk: bytes, last: bool) -> None:  # noqa: FBT001 - called from afar
        """Take in the next chunk of a build. Raises LaunchError."""
        self._received.take(key, chunk, last=last)

    def provide(self, parcels: tuple[Parcel, ...], variants: tuple[Variant, ...]) -> dict[str, str | BuildError]:
        """Return the runtimes of variants on this host, as in recordings, or why it cannot run a variant; by slug."""
        self._received.know(parcels)
        outcome = self._launcher.build(variants, lambda _building: None)
        return {**outcome.runtimes, **outcome.failures}

    # Servers

    def start(self, variant: Variant, seed: int | None, build_number: int, env: dict[str, str]) -> RemoteStart:
        """Start a server and its proxies. Raises LaunchError."""
        launch = self._launch(variant, seed=seed, build_number=build_number, env=env)
        number, server = self._keep(launch.log, self._launcher.running(launch))
        assert server.facts is not None, "the launcher has started its process"
        return RemoteStart(number, server.endpoint, server.facts)

    def start_hops(self, variant: Variant, server: Endpoint, build_number: int) -> RemoteStart:
        """Start the proxies in front of a server of another host. Raises LaunchError."""
        launch = self._launch(variant, build_number=build_number)
        number, hops = self._keep(launch.log, self._launcher.hops(launch, server))
        return RemoteStart(number, hops.endpoint, hops=hops.facts)

    def _launch(self, variant: Variant, **start: Any) -> Launch:
        return Launch(variant, self._placement, self._scratch / f"{next(self._numbers)}.log", **start)

    def _keep(self, log: Path, starting: AbstractContextManager[R]) -> tuple[int, R]:
        """Start a server, and keep it, by the number in its log's name, until it is stopped."""
        number = int(log.stem)
        stop = ExitStack()
        running = stop.enter_context(starting)
        with self._lock:
            self._running[number] = _Running(running, stop, log)
        return number, running

    def death(self, number: int) -> Failure | None:
        """Return why and how a server died; None while it runs."""
        return self._running[number].server.death()

    def stop(self, number: int) -> dict[str, bytes]:
        """Stop a server and its proxies. Returns their logs by suffix of the file's name, of at most 1 MiB."""
        with self._lock:
            running = self._running.pop(number, None)
        if running is None:
            return {}
        running.stop.close()
        logs = {}
        for file in sorted(running.log.parent.glob(f"{running.log.stem}*{running.log.suffix}")):
            with suppress(OSError):
                logs[file.name.removeprefix(running.log.stem)] = file.read_bytes()[-_LOG_BYTES:]
                file.unlink()
        return logs

    def processes(self, pid: int) -> tuple[int, ...]:
        """Return a process of this host and its descendants."""
        return started_by(pid)

    def compilers_ns(self, pids: tuple[int, ...]) -> int | None:
        """CPU time of these processes' compiler threads, and their waits for a core; None without compilers."""
        if pids not in self._compilers:
            self._compilers = {pids: compilers_of(pids)}
        return self._compilers[pids]()

    # Watching

    def follow(self, watch: int, subject: Subject, pid: int) -> None:
        """Watch a process of this host until `unfollow`."""
        with self._lock:
            if watch not in self._monitors:
                self._monitors = {watch: ProcessTreeMonitor(others=False)}  # one trial at a time
            monitor = self._monitors[watch]
        monitor.follow(subject, pid)

    def unfollow(self, watch: int) -> tuple[Series, ...]:
        """End a watch, and return its series."""
        return self._monitors[watch].finish() if watch in self._monitors else ()

    def runtime(self, watch: int, window_unix_ns: tuple[int, int]) -> RuntimeFacts | None:
        """Return the facts of the server's runtime about this time. Ends and forgets its watch."""
        monitor, running = self._monitors.pop(watch, None), next(iter(self._running.values()), None)
        return monitor.runtime(window_unix_ns, running.log if running else None) if monitor else None

    def serve_clocks(self, pids: tuple[tuple[int, ...], ...]) -> dict[str, str]:
        """Let engines on other hosts read the CPU time of these servers: the key `clocks` of their job."""
        token = secrets.token_hex(16)
        self.end_clocks()
        # The engine ends with its standard input, so with this process; its parent is a thread, which may end earlier.
        process = self._clocks = subprocess.Popen(
            [find_engine(), "clocks", self._address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        say(process, json.dumps({"token": token, "pids": pids}), more=True)
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise DriveError(
                f"the clocks of {self._address} cannot be served: the engine said nothing",
                hint="run `make build` there",
            )
        return {"address": json.loads(line)["address"], "token": token}

    def end_clocks(self) -> None:
        """Stop serving the clocks."""
        process, self._clocks = self._clocks, None
        if process is not None:
            end_engine(process)

    # Loads

    def verify(self, brought: Brought, cell: Cell, endpoint: Endpoint) -> str | None:
        """Return the first wrong answer of a server, or None."""
        with secrets_of_the_lab(brought.secrets):
            return self._driver.verify(cell, endpoint, brought.rows)

    def differ(
        self, brought: Brought, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]
    ) -> str | None:
        """Return the first difference between the answers of two servers, or None."""
        with secrets_of_the_lab(brought.secrets):
            return self._driver.differ(cell, names, endpoints)

    def connect(self, job: dict[str, Any], within_s: float) -> dict[str, Any]:
        """Start the engine with its part of a load, and wait for its event `connected`, or its error.

        Raises DriveError if neither comes in time.
        """
        self.begin(job)
        engine = self._held()
        event = engine.wait_for(lambda event: event["event"] == "connected", within_s)
        if event is not None:
            return event
        engine.kill()
        raise DriveError(
            f"the engine on {self._address} did not connect: {engine.finish().log}",
            hint="see whether that host works",
        )

    def begin(self, job: dict[str, Any]) -> None:
        """Start the engine with a load. Raises DriveError."""
        self.end_engine()
        cpus = list(self._placement.engine_cpus)
        self._engine = HeldEngine(find_engine(), job | ({"cpus": cpus} if cpus else {}), self._scratch / "engine.log")
        self._engine_monitor = ProcessTreeMonitor(peer=(job["target"]["host"], job["target"]["port"]), others=False)
        self._engine_monitor.follow("engine", self._engine.pid)

    def order(self, command: dict[str, Any]) -> None:
        """Give the engine a command."""
        self._held().say(command)

    def lines_after(self, known: int, within_s: float) -> tuple[str, ...]:
        """Return the engine's lines after the first `known`. Call it before the measurement, not during it."""
        return self._held().lines_after(known, within_s)

    def news_after(self, known: int) -> tuple[tuple[str, ...], bool]:
        """Return the engine's lines after the first `known`, at once, and whether there will be no more."""
        return self._held().news_after(known)

    def finish(self) -> tuple[Ended, tuple[Series, ...]]:
        """Wait for the end of the engine. Returns its lines, and the series of the engine and this host."""
        ended = self._held().finish()
        monitor, self._engine_monitor = self._engine_monitor, None
        self._engine = None
        return ended, monitor.finish() if monitor else ()

    def interrupt(self) -> None:
        """End the engine early."""
        if self._engine is not None:
            self._engine.interrupt()

    def end_engine(self) -> None:
        """End the engine now, and forget its lines."""
        engine, self._engine = self._engine, None
        monitor, self._engine_monitor = self._engine_monitor, None
        if engine is not None:
            engine.kill()
        if monitor is not None:
            monitor.finish()

    def end(self) -> None:
        """End everything that runs here for the lab."""
        self.end_engine()
        self.end_clocks()
        for number in tuple(self._running):
            self.stop(number)

    def _held(self) -> HeldEngine:
        if self._engine is None:
            raise DriveError(f"no engine runs on {self._address}", hint="this is an error in Redline")
        return self._engine

    def _place(self) -> Placement:
        """All cores but the first are for the server, or the engine; all of them if there are fewer than three."""
        of_load = self._role == "load"
        cores = Machine().physical_cores(os.sched_getaffinity(0))
        mine = tuple(sorted(cpu for core in (cores[1:] if len(cores) > 2 else cores) for cpu in core))
        return Placement(server_cpus=() if of_load else mine, engine_cpus=mine if of_load else (), cores=cores)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Note that a call is in progress."""
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._last_s = time.monotonic()

    def _end_when_alone(self) -> None:
        """End everything once the lab has been silent for too long."""
        while True:
            time.sleep(ALONE_S / 10)
            heard_s = max(self._last_s, self._until_s)
            if not self._busy and time.monotonic() - heard_s > ALONE_S and (self._running or self._clocks):
                with suppress(RedlineError, OSError):
                    self.end()


def _ahead_ns() -> int:
    """Return the lead of the clock over the monotonic clock; read again if this thread had to wait in between."""
    for _ in range(_READING_TRIES):
        before, now, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before < _LONGEST_READING_NS:
            break
    return now - (before + after) // 2
