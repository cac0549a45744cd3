"""Load servers and observe them: the only part of the selftest that measures."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from redline.driving.engine import EngineDriver
from redline.errors import DriveError, LaunchError, UsageError
from redline.extras.selftest.results import Quantile
from redline.launching.attached import processes_of
from redline.launching.process import ProcessLauncher, ProcessServer
from redline.linux.scheduling import on_cores
from redline.model import (
    Cell,
    Closed,
    Expected,
    Failure,
    Histogram,
    Interval,
    Load,
    Open,
    PlannedTrial,
    Recording,
    Request,
    Scenario,
    ServerFacts,
    Traffic,
    Variant,
)
from redline.ports import Endpoint, Launch, LoadOptions, Placement, RunningServer
from redline.running.record import Tools, record_load
from redline.suite import load_catalogue
from redline.watching.process_tree import ProcessTreeMonitor

PATH = "/path0"
WARMUP_NS = 500_000_000
_SECOND_NS = 1_000_000_000
_SEED = 1
STOPPED_AFTER_SHARE = 0.4
"""The share of the measurement after which a server is suspended."""
_ENDS_WITHIN_S = 10.0
_ENTRY = "oracle.null"
_KEYS = {0.5: "late_p50_ns", 0.9: "late_p90_ns", 0.99: "late_p99_ns", 0.999: "late_p999_ns", 1.0: "late_max_ns"}
_PERIOD_S = 0.001
_SLACK = Path("/proc/self/timerslack_ns")


@dataclass(frozen=True)
class Oracle:
    """The built oracle. Raises the errors of the catalogue's launcher."""

    launcher: ProcessLauncher
    null: Variant
    placement: Placement

    @contextlib.contextmanager
    def running(self, arguments: tuple[str, ...], log: Path) -> Iterator[ProcessServer]:
        """Start an oracle in a mode; its output goes to `log`."""
        entry = self.null.catalogued
        command = (entry.start.command[0], *arguments, "--port", "{port}")
        variant = Variant(entry=entry.started_by(command))
        with self.launcher.running(Launch(variant, self.placement, log)) as server:
            yield server


def build_oracle(catalogue: Path, cache: Path, placement: Placement, progress: Callable[[str], None]) -> Oracle:
    """The catalogue's oracle, built if necessary. Raises BuildError, and UsageError if there is no oracle."""
    entry = load_catalogue(catalogue).servers.get(_ENTRY)
    if entry is None:
        raise UsageError(
            f"{catalogue} has no {_ENTRY}, the server with known answers",
            hint="add it again, as Redline's own catalogue has it",
        )
    launcher, null = ProcessLauncher(catalogue, cache), Variant(entry=entry)
    launcher.build((null,), lambda building: progress(building.line)).hash_of(null.slug)
    return Oracle(launcher, null, placement)


def own_lateness(log: Path) -> tuple[Quantile, ...]:
    """The lateness that an oracle reported at its end; empty for an oracle that answers at once."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        if line.startswith("{"):
            lateness = json.loads(line)
            return tuple(Quantile(q=q, ns=lateness[name]) for q, name in _KEYS.items() if name in lateness)
    return ()


@dataclass(frozen=True)
class Observed:
    """The recording of a load, the server's own lateness, and how long the server was suspended."""

    recording: Recording
    traffic: Traffic
    server_late: tuple[Quantile, ...] = ()
    stopped_s: float = 0.0


@dataclass(frozen=True)
class Rig:
    """The tools of a selftest. `scratch` is a folder for logs, `watch` is called with each interval."""

    oracle: Oracle
    driver: EngineDriver
    scratch: Path
    watch: Callable[[Interval], None]

    def observe(
        self, arguments: tuple[str, ...], shape: Open | Closed, seconds: float, *, stop_s: float = 0.0
    ) -> Observed:
        """Load a fresh oracle, which is suspended once, in the middle, for `stop_s`.

        Raises BuildError, LaunchError and DriveError.
        """
        log = self.scratch / "oracle.log"
        stopper = None
        with self.oracle.running(arguments, log) as server:
            if stop_s:
                stopper = Stopper(server.facts.pid, stop_s)
            with stopper or contextlib.nullcontext():
                recording, traffic = self._load(server, shape, seconds, stopper)
        return Observed(recording, traffic, own_lateness(log), stopper.lasted_s if stopper else 0.0)

    @contextlib.contextmanager
    def server(self, arguments: tuple[str, ...], *, stop_s: float = 0.0, after_s: float = 0.0) -> Iterator[str]:
        """Start an oracle for another tool's load, and yield its URL.

        It is suspended once for `stop_s` after `after_s`.
        """
        with self.oracle.running(arguments, self.scratch / "oracle.log") as server:
            url = f"http://{server.endpoint.host}:{server.endpoint.port}{PATH}"
            if not stop_s:
                yield url
                return
            with Stopper(server.facts.pid, stop_s) as stopper:
                timer = threading.Timer(after_s, stopper.reached, (1.0,))
                timer.start()
                try:
                    yield url
                finally:
                    timer.cancel()

    def record_arrivals(self, shape: Open, seconds: float) -> tuple[Observed, tuple[int, ...]]:
        """Load the recorder. Return also the Unix times in ns at which it read the requests."""
        with _recorder(self.oracle.placement.server_cpus) as recorder:
            recording, traffic = self._load(recorder, shape, seconds, None)
            printed, _ = recorder.process.communicate(timeout=_ENDS_WITHIN_S)
        return Observed(recording, traffic), tuple(int(line) for line in printed.split())

    @property
    def tools(self) -> Tools:
        """The session's tools for its loads; the engine has a single core."""
        placement = replace(self.oracle.placement, engine_cpus=self.oracle.placement.engine_cpus[:1])
        return Tools(
            self.oracle.launcher, self.driver, lambda _server: (ProcessTreeMonitor(),), placement, processes_of
        )

    def _load(
        self, server: RunningServer, shape: Open | Closed, seconds: float, stopper: "Stopper | None"
    ) -> tuple[Recording, Traffic]:
        cell = self._cell(shape, seconds)

        def seen(interval: Interval) -> None:
            if stopper is not None and interval.phase == "measure":
                stopper.reached((interval.end_ns - WARMUP_NS) / cell.load.duration_ns)
            self.watch(interval)

        planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=_SEED)
        options = LoadOptions(log=self.scratch / "engine.log", log_is_kept=False, on_interval=seen)
        recording = record_load(cell, planned, server, self.tools, options)
        if recording.traffic is None:
            assert recording.failure is not None, "a load without traffic has failed"
            raise DriveError(recording.failure.message, hint=recording.failure.hint)
        return recording, recording.traffic

    def _cell(self, shape: Open | Closed, seconds: float) -> Cell:
        expect = Expected(body=PATH.removeprefix("/"))
        return Cell(
            variant=Variant(entry=self.oracle.null.entry),
            scenario=Scenario(name="known", request=Request(path=PATH, expect=expect)),
            load=Load(name="known", shape=shape, duration_ns=round(seconds * _SECOND_NS)),
            warmup_ns=WARMUP_NS,
            timeout_ns=10 * _SECOND_NS,
        )


class Stopper:
    """Suspends a process once, when enough has been measured, and resumes it `stop_s` later.

    It runs in a thread of normal priority, since it has to be on time. `lasted_s` is the actual length of the stop.
    """

    def __init__(self, pid: int, stop_s: float) -> None:
        self._pid, self._stop_s = pid, stop_s
        self._now, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="stopper", daemon=True)
        self.lasted_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._now.set()
        self._thread.join()

    def reached(self, share: float) -> None:
        """Record the share of the measurement that has passed."""
        if share >= STOPPED_AFTER_SHARE:
            self._now.set()

    def _run(self) -> None:
        self._now.wait()
        if self._over.is_set():
            return
        with contextlib.suppress(ProcessLookupError):
            began = time.monotonic()
            os.kill(self._pid, signal.SIGSTOP)
            try:
                self._over.wait(self._stop_s)
            finally:
                os.kill(self._pid, signal.SIGCONT)
                self.lasted_s = time.monotonic() - began


@dataclass(frozen=True)
class _Recorder:
    """The recorder of arrivals, which ends when its standard input does."""

    process: "subprocess.Popen[str]"
    endpoint: Endpoint
    facts: ServerFacts

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its processes."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """None: its output shows whether it failed to record."""
        return None


@contextlib.contextmanager
def _recorder(cpus: tuple[int, ...]) -> Iterator[_Recorder]:
    """Start the recorder on these cores (empty: any), and end it whatever happens. Raises LaunchError."""
    command = (sys.executable, "-m", "redline.extras.selftest.recorder")
    with on_cores(cpus):
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise LaunchError("the recorder of arrivals did not start", hint="its message stands above")
        facts = ServerFacts(pid=process.pid, command=command, port=int(port), cpus=cpus, build="", ready_ns=0)
        yield _Recorder(process, Endpoint("127.0.0.1", int(port)), facts)
    finally:
        process.kill()
        process.communicate()


def wake_ups(seconds: float, cpus: tuple[int, ...]) -> Histogram:
    """The lateness of a wake-up every millisecond, on these cores (empty: any), by absolute due times."""
    late_ns = []
    with on_cores(cpus), _precise():
        due_ns = time.monotonic_ns()
        for _ in range(max(1, round(seconds / _PERIOD_S))):
            due_ns += round(_PERIOD_S * 1e9)
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            now_ns = time.monotonic_ns()
            late_ns.append(max(0, now_ns - due_ns))
            due_ns = max(due_ns, now_ns)
    return Histogram.of(late_ns)


@contextlib.contextmanager
def _precise() -> Iterator[None]:
    """Use timers exact to 1 ns (by default the kernel groups them by 50 us), and no garbage collection."""
    slack = ""
    with contextlib.suppress(OSError):
        slack = _SLACK.read_text()
        _SLACK.write_text("1")
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        with contextlib.suppress(OSError):
            _SLACK.write_text(slack)
