"""The driver that is ours: `redline-engine`, a process of its own, spoken to in JSON."""

import contextlib
import errno
import hashlib
import http.client
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from redline.errors import DriveError
from redline.model import Cell, Interval, Traffic
from redline.plugins.drivers.job import Transcript, deadline_ns, job
from redline.plugins.linux.yielding import give_way
from redline.plugins.timed import connect
from redline.ports import Drive, Endpoint
from redline.store import told

ENGINE = "redline-engine"
RESERVED_FILES = 64
VERIFY_WITHIN_S = (5.0, 30.0)
LONGEST_BODY = 64 << 20
_ENDED_BY_INTERRUPT = (130, -signal.SIGINT)
_SHOWN_BYTES = 120


def find_engine() -> Path:
    """The engine beside this Python, or on the PATH. Raises DriveError when there is none."""
    beside = Path(sys.executable).with_name(ENGINE)
    found = str(beside) if beside.is_file() else shutil.which(ENGINE)
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

    def refuses(self, cell: Cell) -> str | None:
        """More connections than this process may open cannot be driven from here."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = hard - RESERVED_FILES
        if hard == resource.RLIM_INFINITY or cell.load.connections <= most:
            return None
        return (
            f"{cell.load.connections} connections need more file descriptors than this machine gives a process:"
            f" {most} are possible; raise the hard limit (ulimit -Hn) to have more"
        )

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Ask once, over a connection of its own, and compare status and body.

        All of it has to be over within the cell's timeout, but no sooner than in 5 s and no later than in 30.
        """
        request = cell.scenario.request
        within_s = verify_within_s(cell)
        connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        try:
            body = request.body.content() if request.body else None
            connection.sock = connect(endpoint.host, endpoint.port, within_s)
            connection.request(request.method, request.path, body=body, headers=request.headers)
            answer = connection.getresponse()
            return _difference(cell, answer.status, _body(answer, request.expect.body_length))
        except TimeoutError:
            return f"{request.method} {request.path}: no whole answer within {within_s:.3g} s"
        except http.client.HTTPException as error:
            return f"{request.method} {request.path}: {_what_is_no_http(error)}"
        except OSError as error:
            return f"{request.method} {request.path}: {error.strerror or type(error).__name__}"
        finally:
            connection.close()

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
                hint=f"its messages are in {drive.log}",
            )
        return traffic

    @contextlib.contextmanager
    def _running(self, drive: Drive) -> Iterator["subprocess.Popen[str]"]:
        with told(drive.log):
            log = drive.log.open("w")
        with log:
            process = self._start(log)
        watchdog = threading.Timer(deadline_ns(drive) / 1e9 + 5, process.kill)
        watchdog.daemon = True
        try:
            watchdog.start()
            _send(process, json.dumps(job(drive)))
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
                process_group=0,  # Ctrl-C is for the lab to hear; it tells the engine itself
            )
        except OSError as error:
            exhausted = error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
            raise DriveError(
                f"the engine {self._engine} cannot be started: {error.strerror}",
                hint="this machine is out of processes, memory or open files: end what is not needed (`ulimit -a`)"
                if exhausted
                else "run `make build`",
            ) from error


def _send(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin:  # an engine that ends early says why in its events
        process.stdin.write(text)


def _follow(process: "subprocess.Popen[str]", transcript: Transcript, drive: Drive) -> None:
    """Read events to the end. The first interrupt asks the engine for what it has; the second one is final."""
    reader = _Reader(process, transcript, drive.on_interval)
    reader.start()
    interrupted = False
    while reader.is_alive():
        try:
            reader.join()
        except KeyboardInterrupt:
            if interrupted or not drive.keep_interrupted:
                raise
            interrupted = True
            process.send_signal(signal.SIGINT)
    if reader.error is not None:
        raise reader.error


class _Reader(threading.Thread):
    """Takes in the engine's events without being in its way."""

    def __init__(
        self, process: "subprocess.Popen[str]", transcript: Transcript, on_interval: Callable[[Interval], None]
    ) -> None:
        super().__init__(name="reader", daemon=True)
        self._lines = process.stdout
        self._transcript = transcript
        self._on_interval = on_interval
        self.error: Exception | None = None

    def run(self) -> None:
        give_way()
        try:
            for line in self._lines or ():
                interval = self._transcript.read(line)
                if interval is not None:
                    self._on_interval(interval)
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits
            self.error = error


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def verify_within_s(cell: Cell) -> float:
    """How long the answer that is compared may take."""
    shortest, longest = VERIFY_WITHIN_S
    return min(max(cell.timeout_ns / 1e9, shortest), longest)


def _body(answer: http.client.HTTPResponse, expected: int | None) -> bytes:
    """The body, or a little more of it than was expected: enough to see that it is wrong, and to show it."""
    most = LONGEST_BODY if expected is None else max(expected, _SHOWN_BYTES)
    body = answer.read(most + 1)
    if expected is None and len(body) > most:
        raise http.client.HTTPException(f"a body that is longer than {most} bytes")
    # Of a body that is asked for in part, http.client does not say that it broke off.
    if len(body) <= most and answer.length:
        raise http.client.IncompleteRead(body, answer.length)
    return body


def _what_is_no_http(error: http.client.HTTPException) -> str:
    match error:
        case http.client.RemoteDisconnected():
            return "the connection was closed without an answer"
        case http.client.BadStatusLine():
            return f"no HTTP answer but {_shown(str(error).encode('latin-1', 'replace'))}"
        case http.client.IncompleteRead():
            more = f", {error.expected} more were announced" if error.expected else ""
            return f"the connection was closed within the body, after {len(error.partial)} bytes{more}"
        case _:
            return str(error) or type(error).__name__


def _difference(cell: Cell, status: int, body: bytes) -> str | None:
    """In one line, how an answer differs from the expected one."""
    request, expect = cell.scenario.request, cell.scenario.request.expect
    asked = f"{request.method} {request.path}"
    if status != expect.status:
        return f"{asked}: status {status} instead of {expect.status}, body {_shown(body)}"
    if expect.body is not None and body != expect.body.encode():
        return f"{asked}: body {_shown(body)} instead of {_shown(expect.body.encode())}"
    if expect.body_length is not None and len(body) != expect.body_length:
        least = "at least " if len(body) > _SHOWN_BYTES else ""
        return f"{asked}: {least}{len(body)} bytes instead of {expect.body_length}"
    return None


def _shown(body: bytes) -> str:
    more = " and more" if len(body) > _SHOWN_BYTES else ""
    return f"{body[:_SHOWN_BYTES].decode('utf-8', 'backslashreplace')!r}{more}"


def _tail(log: Path) -> str:
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        text = ""
    return text[-500:] or "it said nothing"
