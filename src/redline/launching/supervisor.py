"""Run a command for the lab, and end it with its descendants when the lab says so or is gone.

A process of its own: see `commands.py`.

- Its arguments are the number of a descriptor, and the command.
- stdin is a pipe that only the lab holds. Its end, or SIGTERM, means: kill the command and all that it started.
- The descriptor gets the errno of a command that cannot be executed. Its end means that the command runs.
- stdout and stderr are the command's, which also inherits the locks that the lab holds.

It ends as the command ended. Processes that the command left running, such as a compiler's daemon, go on.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

from redline.launching.warden import (
    PR_SET_CHILD_SUBREAPER,
    SWEEP_S,
    begin_session,
    descendants,
    listen_to_signals,
    reap_all,
    send,
)


def main() -> None:
    """Run the command in its own session."""
    failed, command = int(sys.argv[2]), sys.argv[3:]
    os.set_inheritable(failed, False)  # noqa: FBT003
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake = listen_to_signals()
    supervisor, child = os.getpid(), os.fork()
    if child == 0:
        _become(command, failed, libc, supervisor)
    os.close(failed)
    status = _watched(child, wake)
    if status is None:
        _end_all(child)
    elif os.WIFSIGNALED(status):
        _die_by(os.WTERMSIG(status))
    os._exit(1 if status is None else os.WEXITSTATUS(status))


def _become(command: list[str], failed: int, libc: ctypes.CDLL, supervisor: int) -> None:
    try:
        begin_session(libc)
        if os.getppid() != supervisor:
            os._exit(127)  # it was gone before
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)  # noqa: S606 - the lab's own words
    except OSError as error:
        os.write(failed, str(error.errno or 0).encode())
    finally:
        os._exit(127)


def _watched(child: int, wake: int) -> int | None:
    """Return the command's exit status, or None if the lab is gone or wants it to end."""
    poll = select.poll()
    for fd in (0, wake):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        terminated = wake in ready and signal.SIGTERM in os.read(wake, 256)
        pid = -1
        while pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                return status
        if terminated or (0 in ready and not os.read(0, 4096)):
            return None


def _end_all(child: int) -> None:
    """Kill descendants until none is left: this process inherits all orphans."""
    send(-child, signal.SIGKILL)
    deadline = time.monotonic() + SWEEP_S
    while reap_all() and time.monotonic() < deadline:
        for pid in descendants(os.getpid()):
            send(pid, signal.SIGKILL)
        time.sleep(0.001)


def _die_by(number: int) -> None:
    """End by the signal that ended the command, without a core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
