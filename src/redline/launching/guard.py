"""The lab's side of the warden: sends the order, follows the server, stops it."""

import json
import logging
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redline.files import as_store_error
from redline.launching.variables import hidden_in
from redline.linux import procfs

# Imported rather than run as a script, so that Python keeps it compiled; isolated, and without site packages.
WARDEN = (
    *(sys.executable, "-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); import warden; warden.main()",
    str(Path(__file__).parent),
)
_log = logging.getLogger(__name__)
_START_WITHIN_S = 10.0
_STOP_BEYOND_GRACE_S = 15.0


@dataclass(frozen=True)
class LaunchOrder:
    """What the warden runs. Output beyond `log_head + log_tail` bytes is counted and dropped, and `secrets` hidden.

    `own_variables` are the server's own variables in `env`: a container gets no others. The values of the
    `private` variables appear in no command line.
    """

    command: tuple[str, ...]
    folder: Path
    env: dict[str, str]
    cpus: tuple[int, ...]
    grace_ns: int
    cgroup_parent: Path | None
    log: Path
    log_head: int = 16 << 20
    log_tail: int = 64 << 10
    secrets: tuple[str, ...] = ()
    own_variables: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    def line(self) -> bytes:
        """The order as the warden reads it; the environment and the log are given as its own."""
        of_the_lab = ("env", "log", "own_variables", "private")
        order = {key: value for key, value in vars(self).items() if key not in of_the_lab}
        return (json.dumps({**order, "cgroup_parent": self.cgroup_parent or ""}, default=str) + "\n").encode()


@dataclass(frozen=True)
class Started:
    """The server runs: its process, its start (CLOCK_MONOTONIC), and whether it has its own control group."""

    pid: int
    at_ns: int
    cgroup: bool


@dataclass(frozen=True)
class NotStarted:
    """The command could not be executed."""

    errno: int
    what: str


@dataclass(frozen=True)
class Exited:
    """The server ended: its exit code, or the signal that ended it. Neither is known if the warden was killed.

    `because` names the limits under which it got the signal; `oom_kills` are the kernel's kills for lack of memory on
    this machine while it ran, if known.
    """

    code: int | None
    signal: int | None
    at_ns: int
    because: str = ""
    oom_kills: int | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was ended by {signal_name(self.signal)}{f' {self.because}' if self.because else ''}"
        return "vanished with its warden" if self.code is None else f"exited with code {self.code}"


class Guard:
    """A warden process and the server that it guards. `stop` must be called, whatever happens."""

    def __init__(self, order: LaunchOrder) -> None:
        """Send the order. Raises StoreError if the log cannot be written, OSError if no process can be made."""
        self._order = order
        self._buffer = b""
        self._ended = False
        self._served_pid: int | None = None
        self._oom_kills = procfs.oom_kills()
        self.exited: Exited | None = None
        with as_store_error(order.log):
            order.log.parent.mkdir(parents=True, exist_ok=True)
            log = order.log.open("wb")
        with log:
            # Its own session: the terminal's Ctrl-C is for the lab, which then stops the server in order.
            self._process = subprocess.Popen(
                WARDEN,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=order.env,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        with suppress(BrokenPipeError):
            self._stdin.write(order.line())

    def started(self) -> Started | NotStarted:
        """Wait until the server runs or has failed to start."""
        line = self._line(_START_WITHIN_S)
        if line is None:
            return NotStarted(0, "its warden ended" if self._ended else "its warden did not answer")
        event = json.loads(line)
        if event["event"] == "failed":
            return NotStarted(event["errno"], event["what"])
        self._served_pid, order = event["pid"], self._order
        on = f" on CPUs {','.join(map(str, order.cpus))}" if order.cpus else ""
        command = shlex.join(hidden_in(word, order.secrets) for word in order.command)
        _log.debug("server: pid %d%s, in %s: %s", self._served_pid, on, order.folder, command)
        return Started(event["pid"], event["at_ns"], bool(event["cgroup"]))

    def poll(self, wait_s: float = 0.0) -> Exited | None:
        """Return how the server ended, if it has; wait up to `wait_s` for that."""
        if self.exited is None:
            line = self._line(wait_s)
            if line is not None:
                event = json.loads(line)
                kills = procfs.oom_kills_since(self._oom_kills)
                self.exited = Exited(event["code"], event["signal"], event["at_ns"], oom_kills=kills)
            elif self._ended:
                self.exited = Exited(None, None, time.monotonic_ns())
        return self.exited

    def stop(self) -> None:
        """Stop the server and all of its descendants. May be called again."""
        began_s = time.monotonic()
        with suppress(BrokenPipeError):
            self._stdin.close()
        deadline = time.monotonic() + self._order.grace_ns / 1e9 + _STOP_BEYOND_GRACE_S
        # Interrupted here, the warden still does its work: it has been let go.
        while not self._ended and time.monotonic() < deadline:
            self._read(deadline - time.monotonic())
        if not self._ended:
            self._process.kill()
            self._ended = True
        self._process.wait()
        self._stdout.close()
        if self._served_pid is not None:
            _log.debug("server: pid %d is stopped after %.3f s", self._served_pid, time.monotonic() - began_s)
            self._served_pid = None

    def _line(self, wait_s: float) -> bytes | None:
        """Return the next line that the warden wrote; None if none came in time or ever will."""
        deadline = time.monotonic() + wait_s
        while b"\n" not in self._buffer:
            if self._ended or not self._read(max(0.0, deadline - time.monotonic())):
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _read(self, wait_s: float) -> bool:
        """Read what the warden writes within this time; False if nothing came or it has ended."""
        waiting = select.poll()
        waiting.register(self._stdout, select.POLLIN)
        if not waiting.poll(wait_s * 1000):
            return False
        data = os.read(self._stdout.fileno(), 1 << 16)
        self._buffer += data
        self._ended = not data
        return bool(data)


def how_ended(code: int) -> str:
    """`with code 3` or `by SIGKILL`, by the return code of a subprocess."""
    return f"with code {code}" if code > 0 else f"by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 64` for a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
