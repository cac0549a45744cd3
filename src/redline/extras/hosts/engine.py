"""An engine on this host, from its job to its last event, for a lab on another host.

No data leaves the host while it measures: events are kept here until the lab fetches them.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redline.driving.engine_process import end_engine, log_tail, say, start_engine, whole_lines
from redline.errors import DriveError
from redline.linux.scheduling import run_when_idle

_BEYOND_DEADLINE_S = 5.0


@dataclass(frozen=True)
class Ended:
    """The lines of an engine that has ended, its exit code, and the end of its messages."""

    lines: tuple[str, ...]
    code: int
    log: str


class HeldEngine:
    """An engine process, and its lines until they are asked for."""

    def __init__(self, engine: Path, job: dict[str, Any], log: Path) -> None:
        """Start an engine with a job. Raises DriveError if it cannot be started.

        It is killed shortly after the deadline of its job if it does not end by itself.
        """
        self._log = log
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self._process: subprocess.Popen[str] | None = None
        self._begun = threading.Event()
        self._error: Exception | None = None
        # The thread that starts the engine lives as long: the kernel takes it for the parent that it ends with.
        threading.Thread(target=self._run, args=(engine, job), name="engine", daemon=True).start()
        self._begun.wait()
        if self._error is not None:
            raise self._error

    @property
    def pid(self) -> int:
        """The engine's process."""
        assert self._process is not None
        return self._process.pid

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], within_s: float) -> dict[str, Any] | None:
        """Return the first event that `wanted` accepts, or an `error`; None if the engine or the time ends before."""

        def wanted_event() -> dict[str, Any] | None:
            events = (json.loads(line) for line in self._lines)
            return next((event for event in events if event["event"] == "error" or wanted(event)), None)

        with self._news:
            self._news.wait_for(lambda: self._ended or wanted_event() is not None, within_s)
            return wanted_event()

    def lines_after(self, known: int, within_s: float) -> tuple[str, ...]:
        """Wait for lines after the first `known`, and return them; empty if the engine or the time ends."""
        with self._news:
            self._news.wait_for(lambda: self._ended or len(self._lines) > known, within_s)
            return tuple(self._lines[known:])

    def news_after(self, known: int) -> tuple[tuple[str, ...], bool]:
        """Return the lines after the first `known`, at once, and whether there will be no more."""
        with self._news:
            return tuple(self._lines[known:]), self._ended

    def say(self, command: dict[str, Any]) -> None:
        """Send a command to the engine."""
        if self._process is not None:
            say(self._process, json.dumps(command), more=True)

    def interrupt(self) -> None:
        """End the engine early; it still writes a result."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def finish(self) -> Ended:
        """Wait until the engine ends, at its deadline at the latest."""
        with self._news:
            self._news.wait_for(lambda: self._ended)
        assert self._process is not None
        return Ended(tuple(self._lines), self._process.returncode, log_tail(self._log))

    def kill(self) -> None:
        """Kill the engine."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _run(self, engine: Path, job: dict[str, Any]) -> None:
        watchdog = None
        try:
            with self._log.open("w") as log:
                process = self._process = start_engine(engine, log)
            watchdog = threading.Timer(job["deadline_ns"] / 1e9 + _BEYOND_DEADLINE_S, process.kill)
            watchdog.daemon = True
            watchdog.start()
            if job.get("cpus"):
                os.sched_setaffinity(process.pid, job["cpus"])
            # A job without commands ends with standard input.
            say(process, json.dumps(job), more=bool(job.get("commands")))
            self._begun.set()
            run_when_idle()
            for line in whole_lines(process):
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()
            process.wait()
        except (DriveError, OSError) as error:
            self._error = error
        finally:
            if watchdog is not None:
                watchdog.cancel()
            if self._process is not None:
                end_engine(self._process)
            with self._news:
                self._ended = True
                self._news.notify_all()
            self._begun.set()
