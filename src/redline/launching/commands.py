"""Run commands, such as builds, read them line by line, and hold file locks for as long as they run.

A lock belongs to an open file (flock(2)), which every process started under it shares. If the lab is killed, the
lock is held until the last process of its build has ended.
"""

import fcntl
import logging
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from redline.refusals import refusal_of

_OUT_OF_RESOURCES = "this machine is out of processes, memory or open files: end what is not needed (`ulimit -a`)"
# Isolated, and without site packages: it needs none, and starts in a few milliseconds.
_SUPERVISOR = (
    *(sys.executable, "-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); from redline.launching import supervisor; supervisor.main()",
    str(Path(__file__).parents[2]),
)
_READ_AT_MOST = 65_536
_log = logging.getLogger(__name__)
_held: set[int] = set()
_changing = threading.Lock()  # keeps a lock from being released while a command is started under it


def hint_of(error: OSError) -> str:
    """What to do where a process cannot be started for a reason that is not in its command."""
    refused = refusal_of(error)
    return _OUT_OF_RESOURCES if refused is None else f"{refused.message}: {refused.hint}"


@contextmanager
def started(
    command: Sequence[str],
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    output: int = subprocess.PIPE,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command behind a supervisor, with both outputs in the same pipe, or in the open file `output`.

    It ends, with all processes that it started, if the block is left early or the lab is killed. Until then it holds
    the locks that the lab holds. Raises OSError if it cannot be run.
    """
    stdin, alive = os.pipe()
    failed, failing = os.pipe()
    try:
        try:
            with _changing:
                process = subprocess.Popen(
                    [*_SUPERVISOR, str(failing), *command],
                    cwd=folder,
                    env=env,
                    stdin=stdin,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(failing, *_held),
                )
        finally:
            os.close(stdin)
            os.close(failing)
        try:
            if errno := os.read(failed, 64):
                raise OSError(int(errno), os.strerror(int(errno)), command[0])
            began_s = time.monotonic()
            _log.debug("command: pid %d, %s", process.pid, shlex.join(command))
            yield process
            took_s = time.monotonic() - began_s
            _log.debug("command: pid %d was used for %.3f s", process.pid, took_s)
        finally:
            os.close(alive)
            alive = -1
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    finally:
        os.close(failed)
        if alive >= 0:
            os.close(alive)


def lines_of(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """Yield a process's lines as it prints them; a line without an end, such as a progress bar, in pieces of 64 KiB."""
    while process.stdout and (raw := process.stdout.readline(_READ_AT_MOST)):
        yield raw


@contextmanager
def locked(descriptor: int, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock of an open file, which is closed at the end. Raises OSError.

    Calls `waiting` first if another process holds it.
    """
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            with _changing:
                _held.add(descriptor)
            yield
        finally:
            with _changing:
                _held.discard(descriptor)
            # Closing is not enough: a daemon that a build left has inherited it.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
