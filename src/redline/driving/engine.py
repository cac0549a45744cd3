"""The driver for `redline-engine`, a process that reads and writes JSON."""

import contextlib
import hashlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from pydantic import PositiveInt, TypeAdapter

from redline.driving.ahead import imported_ahead, time_for_imports_ns
from redline.driving.ending import EngineEnding
from redline.driving.engine_process import INSTALL, end_engine, log_tail, say, start_engine, whole_lines
from redline.driving.protocol import Transcript, deadline_ns, duet_job, job, loggable_job
from redline.driving.verifying import differ, verify
from redline.errors import DriveError
from redline.files import as_store_error
from redline.linux import procfs
from redline.linux.scheduling import run_when_idle
from redline.linux.sockets import is_this_machine, shortest_queue
from redline.model import Cell, DuetTraffic, Traffic, Variant
from redline.ports import Drive, DuetDrive, Endpoint, NoResultError
from redline.refusals import RefusedError, as_refusal, refusal_of

_log = logging.getLogger(__name__)
MEASURE = json.dumps({"command": "measure"})
_CPU_NS_BY_CORE = TypeAdapter(dict[int, PositiveInt])
_ENDED_BY_INTERRUPT = (130, -signal.SIGINT)


class EngineDriver:
    """Drives a single load at a time through a fresh engine process."""

    def __init__(self, engine: Path, *arguments: str) -> None:
        self._engine, self._arguments = engine, arguments
        self._encoded: dict[tuple[str, str], tuple[str, ...]] = {}
        self._without_errors: dict[tuple[str, str], frozenset[int]] = {}
        self.cookies: tuple[str, ...] = ()
        """The cookies that the answers of the last `verify` set, by name."""
        self._closing: dict[str, bool] = {}
        self.asked = 0
        """How many requests the last `verify` sent."""

    def version(self) -> str:
        """Return the output of `redline-engine --version`. Raises DriveError if it cannot be run."""
        try:
            done = subprocess.run([self._engine, "--version"], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            hint = refused.hint if (refused := refusal_of(error)) else INSTALL
            raise DriveError(
                f"{self._engine} cannot be run: {refused.message if refused else error}", hint=hint
            ) from error
        return done.stdout.split()[-1]

    def sha256(self) -> str:
        """The binary's hex SHA-256: a version has many builds. Raises DriveError if it cannot be read."""
        try:
            with self._engine.open("rb") as binary:
                return hashlib.file_digest(binary, "sha256").hexdigest()
        except OSError as error:
            raise DriveError(f"{self._engine} cannot be read: {error.strerror}", hint=INSTALL) from error

    def fixed_work_ns(self, cpus: tuple[int, ...]) -> dict[int, int]:
        """Return the CPU time of a fixed piece of work by core; empty if it cannot be measured."""
        command = [str(self._engine), "fixed-work", ",".join(map(str, cpus))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
            return _CPU_NS_BY_CORE.validate_json(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return {}

    def verify(self, cell: Cell, endpoint: Endpoint, rows: dict[str, Any] | None = None) -> str | None:
        """Send each request once, as under load, and compare the whole answer. Raises DriveError.

        `rows` are those of the check of a journey; by default they are read from their file.
        """
        verified = verify(self._engine, cell, endpoint, rows)
        self.cookies, self._closing[str(endpoint)] = verified.cookies, verified.closes
        self.asked = verified.asked
        self._encoded[cell.variant.slug, cell.scenario.name] = verified.encoded
        self._without_errors[cell.variant.slug, cell.scenario.name] = verified.without_errors
        return verified.wrong

    def takes_at_once(self, cell: Cell, endpoint: Endpoint) -> int | None:
        """How many users a verified server surely takes at once, if requests need connections of their own.

        Further ones may wait for a second: the kernel drops what its listen queue has no room for. None if connections
        are kept, and where the queue is not known.
        """
        opens_often = cell.load.shape.requests_per_connection is not None or self._closing.get(str(endpoint))
        return shortest_queue(*endpoint.address) if opens_often and endpoint.address else None

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """Return where the answers of two servers first differ. Raises DriveError."""
        return differ(self._engine, cell, names, endpoints)

    def drive(self, drive: Drive) -> Traffic:
        """Run the job. An interrupt ends the engine; with `keep_interrupted` its partial result is returned first.

        Raises DriveError if the engine cannot be run, refuses the job, or ends without a result, and StoreError if
        its log cannot be written.
        """
        wanted = self._watching(job(drive), drive.cell, drive.cell.variant) | _connecting(drive.cell, drive.endpoint)
        transcript = Transcript(on_interval=drive.on_interval, interval_ns=wanted["interval_ns"])
        ending = self._run(drive, wanted, transcript)
        traffic = transcript.traffic() or _no_result(drive, ending, transcript)
        return traffic.with_encoded(self._encoded_by(drive.cell.variant, drive.cell))

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        """Run a duet. Interrupts and errors are as for `drive`."""
        transcript = Transcript(on_block=drive.on_block)
        cell = drive.drive.cell
        variants = (cell.variant, *(variant for variant, _ in drive.other_servers))
        endpoints = (drive.drive.endpoint, *(endpoint for _, endpoint in drive.other_servers))
        wanted = self._watching(duet_job(drive), cell, *variants) | _connecting(cell, *endpoints)
        ending = self._run(drive.drive, wanted, transcript)
        traffic = transcript.duet_traffic() or _no_result(drive.drive, ending, transcript)
        return traffic.with_encoded([self._encoded_by(variant, cell) for variant in variants])

    def _watching(self, wanted: dict[str, Any], cell: Cell, *variants: Variant) -> dict[str, Any]:
        """The job with the requests marked whose answers were JSON without `errors` when all variants were verified."""
        known = (self._without_errors.get((variant.slug, cell.scenario.name), frozenset()) for variant in variants)
        for at in frozenset.intersection(*known):
            wanted["requests"][at]["expect"]["watch_errors"] = True
        return wanted

    def _encoded_by(self, variant: Variant, cell: Cell) -> tuple[str, ...]:
        """How the encoded answers of a variant came when they were last verified."""
        return self._encoded.get((variant.slug, cell.scenario.name), ())

    def _run(self, drive: Drive, wanted: dict[str, Any], transcript: Transcript) -> EngineEnding:
        """Run the engine to its end. What the system refuses meanwhile is a DriveError: other trials are kept."""
        try:
            with as_refusal():
                return self._run_to_its_end(drive, wanted, transcript)
        except RefusedError as error:
            raise DriveError.of(error) from error

    def _run_to_its_end(self, drive: Drive, wanted: dict[str, Any], transcript: Transcript) -> EngineEnding:
        overdue, kills = threading.Event(), procfs.oom_kills()

        def kill() -> None:
            overdue.set()
            process.kill()

        if time_for_imports_ns(drive.cell) <= 0:
            import_module("numpy")  # what reads intervals needs it, and they are measured from the first on
        with as_store_error(drive.log):
            log = drive.log.open("w")
        with log:
            process, began_s = start_engine(self._engine, log, *self._arguments), time.monotonic()
        watchdog = threading.Timer(deadline_ns(drive) / 1e9 + 5, kill)
        watchdog.daemon = True
        try:
            watchdog.start()
            with contextlib.suppress(OSError):  # the engine also pins itself, and reports if it may not
                os.sched_setaffinity(process.pid, drive.cpus or os.sched_getaffinity(0))
            if _log.isEnabledFor(logging.DEBUG):  # nothing more than it must comes between the start and the load
                _log.debug("engine: pid %d gets the job %s", process.pid, json.dumps(loggable_job(wanted)))
            say(process, json.dumps(wanted), more=drive.is_warm is not None)
            drive.on_start(process.pid)
            with imported_ahead(drive):
                _follow(process, transcript, drive)
            process.wait()
        finally:
            watchdog.cancel()
            end_engine(process)
            took_s = time.monotonic() - began_s
            _log.debug("engine: pid %d ended with code %d after %.3f s", process.pid, process.returncode, took_s)
        said, killed = log_tail(drive.log), procfs.oom_kills_since(kills)
        return EngineEnding(process.returncode, said, overdue=overdue.is_set(), memory_kills=killed)


def _connecting(cell: Cell, *endpoints: Endpoint) -> dict[str, Any]:
    """How many connections are opened at once: half of the shortest listen queue, where it has no room for all.

    The kernel drops the others, and their users wait for seconds.
    """
    addresses = [endpoint.address for endpoint in endpoints]
    queues = [shortest_queue(*address) for address in addresses if address and is_this_machine(address[0])]
    shortest = min((queue for queue in queues if queue), default=cell.load.connections)
    return {"connects_at_once": max(1, shortest // 2)} if shortest < cell.load.connections else {}


def _no_result(drive: Drive, ending: EngineEnding, transcript: Transcript) -> NoReturn:
    """Raise KeyboardInterrupt after an interrupt, else NoResultError."""
    if ending.code in _ENDED_BY_INTERRUPT:
        raise KeyboardInterrupt
    where = f"; its messages are in {drive.log}" if drive.log_is_kept else ""
    raise NoResultError(
        str(ending),
        hint=f"{ending.hint}{where}",
        traffic=transcript.traffic_so_far() if drive.keep_interrupted else None,
    )


def _follow(process: "subprocess.Popen[str]", transcript: Transcript, drive: Drive) -> None:
    """Read events to the end. The first interrupt makes the engine end early and report; the second kills it."""
    done, errors = threading.Event(), list[Exception]()

    def read() -> None:
        """Read at low priority, and end the warm-up when the server is warm."""
        run_when_idle()
        is_warm = drive.is_warm
        try:
            for line in whole_lines(process):
                seen = transcript.read(line)
                if seen is None or seen.phase != "warmup":
                    continue
                if is_warm is not None and is_warm(seen):
                    is_warm = None
                    say(process, MEASURE, more=False)
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=read, name="reader", daemon=True).start()
    interrupted = False
    while not done.is_set():
        try:
            # Not `join`: an interrupt in it makes Python take the thread for ended (bpo-45274).
            done.wait()
        except KeyboardInterrupt:
            if interrupted or not drive.keep_interrupted:
                raise
            interrupted = True
            process.send_signal(signal.SIGINT)
    if errors:
        raise errors[0]
