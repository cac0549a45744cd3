"""The driver that is ours: `redline-engine`, a process of its own, spoken to in JSON."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from redline.errors import DriveError
from redline.model import Cell, Interval, Traffic
from redline.plugins.drivers.protocol import Transcript, deadline_ns, job
from redline.plugins.drivers.verifying import verify, verify_by_load
from redline.plugins.linux.scheduling import give_way
from redline.ports import Drive, Endpoint
from redline.storage.runs import as_store_error

ENGINE = "redline-engine"
MEASURE = json.dumps({"command": "measure"})
_ENDED_BY_INTERRUPT = (130, -signal.SIGINT)


def find_engine() -> Path:
    """The engine in the folder of this Python, or on the PATH. Raises DriveError when there is none."""
    installed = Path(sys.executable).with_name(ENGINE)
    found = str(installed) if installed.is_file() else shutil.which(ENGINE)
    if found is None:
        raise DriveError(f"{ENGINE} is not installed", hint="run `make build`")
    return Path(found)


class EngineDriver:
    """Drives one load at a time through a fresh engine process."""

    def __init__(self, engine: Path) -> None:
        self._engine = engine

    def version(self) -> str:
        """What `redline-engine --version` says. Raises DriveError when it cannot be run."""
        try:
            done = subprocess.run([self._engine, "--version"], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise DriveError(f"{self._engine} cannot be run: {error}", hint="run `make build`") from error
        return done.stdout.split()[-1]

    def sha256(self) -> str:
        """The binary's hex SHA-256: a version has many builds. Raises DriveError when it cannot be read."""
        try:
            with self._engine.open("rb") as binary:
                return hashlib.file_digest(binary, "sha256").hexdigest()
        except OSError as error:
            raise DriveError(f"{self._engine} cannot be read: {error.strerror}", hint="run `make build`") from error

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Ask each request once and compare status and body; over HTTP/2 the engine itself does so."""
        if cell.variant.http == "1.1":
            return verify(cell, endpoint)
        return verify_by_load(cell, endpoint, self.drive)

    def drive(self, drive: Drive) -> Traffic:
        """Run the job. An interrupt ends the engine; with `keep_interrupted` what it has is given first.

        Raises DriveError when the engine cannot be run, refuses the job, or ends without a result, and StoreError when
        its log cannot be written.
        """
        transcript = Transcript()
        with self._running(drive) as process:
            drive.on_start(process.pid)
            _follow(process, transcript, drive)
        traffic = transcript.traffic()
        if traffic is None and process.returncode in _ENDED_BY_INTERRUPT:
            raise KeyboardInterrupt
        if traffic is None:
            raise DriveError(
                f"the engine ended with code {process.returncode} and no result: {_tail(drive.log)}",
                hint=f"its messages are in {drive.log}" if drive.log_is_kept else "see whether the server still runs",
            )
        return traffic

    @contextlib.contextmanager
    def _running(self, drive: Drive) -> Iterator["subprocess.Popen[str]"]:
        with as_store_error(drive.log):
            log = drive.log.open("w")
        with log:
            process = self._start(log)
        watchdog = threading.Timer(deadline_ns(drive) / 1e9 + 5, process.kill)
        watchdog.daemon = True
        try:
            watchdog.start()
            with contextlib.suppress(OSError):  # it takes them itself as well, and says so when it may not
                os.sched_setaffinity(process.pid, drive.cpus or os.sched_getaffinity(0))
            _send(process, json.dumps(job(drive)), more=drive.is_warm is not None)
            yield process
            process.wait()
        finally:
            watchdog.cancel()
            _end(process)

    def _start(self, log: IO[str]) -> "subprocess.Popen[str]":
        try:
            return subprocess.Popen(
                [self._engine],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "REDLINE_PARENT": str(os.getpid())},
                process_group=0,  # Ctrl-C is for the lab, which stops the engine itself
            )
        except OSError as error:
            exhausted = error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
            raise DriveError(
                f"the engine {self._engine} cannot be started: {error.strerror}",
                hint="this machine is out of processes, memory or open files: end what is not needed (`ulimit -a`)"
                if exhausted
                else "run `make build`",
            ) from error


def _send(process: "subprocess.Popen[str]", line: str, *, more: bool) -> None:
    """Write a line to the engine; it is the last one unless there may be `more`."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # an engine that ends early says why in its events
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    if not more:
        _hang_up(process)


def _hang_up(process: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(BrokenPipeError):
        if process.stdin is not None:
            process.stdin.close()


def _follow(process: "subprocess.Popen[str]", transcript: Transcript, drive: Drive) -> None:
    """Read events to the end. The first interrupt makes the engine end early and report; the second one kills it."""
    reader = _EventReader(process, transcript, drive)
    reader.start()
    interrupted = False
    while not reader.done.is_set():
        try:
            # Not `join`: an interrupt in it makes Python take the thread for ended (bpo-45274).
            reader.done.wait()
        except KeyboardInterrupt:
            if interrupted or not drive.keep_interrupted:
                raise
            interrupted = True
            process.send_signal(signal.SIGINT)
    if reader.error is not None:
        raise reader.error


class _EventReader(threading.Thread):
    """Reads the engine's events without being in its way, and starts the measurement when the server is warm."""

    def __init__(self, process: "subprocess.Popen[str]", transcript: Transcript, drive: Drive) -> None:
        super().__init__(name="reader", daemon=True)
        self._process = process
        self._transcript = transcript
        self._drive = drive
        self._is_warm = drive.is_warm
        self.error: Exception | None = None
        self.done = threading.Event()

    def run(self) -> None:
        give_way()
        try:
            for line in self._process.stdout or ():
                interval = self._transcript.read(line)
                if interval is not None:
                    self._drive.on_interval(interval)
                    self._heed(interval)
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error
        finally:
            self.done.set()

    def _heed(self, interval: Interval) -> None:
        if interval.phase == "warmup" and self._is_warm is not None and self._is_warm(interval):
            self._is_warm = None
            _send(self._process, MEASURE, more=False)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    _hang_up(process)
    if process.stdout is not None:
        process.stdout.close()


def _tail(log: Path) -> str:
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        text = ""
    return text[-500:] or "it said nothing"
