"""Signals to processes and groups that may have ended, and finding those that are left."""

# pathlib takes longer to load than all that the warden imports.
# ruff: noqa: PTH123, PTH208

import fcntl
import os
import signal

F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20


def widen(pipe: int) -> None:
    """A burst of output should not block the server while this process waits for a core."""
    try:
        fcntl.fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return


def write_text(path: str, text: str) -> None:
    """To an existing file, in one write(2), as control files want it."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def kill_cgroup(folder: str) -> None:
    """Kill every process of a control group: at once, or one by one where there is no cgroup.kill (before 5.14)."""
    try:
        write_text(f"{folder}/cgroup.kill", "1")
    except OSError:
        try:
            with open(f"{folder}/cgroup.procs") as file:
                for line in file:
                    send(int(line), signal.SIGKILL)
        except OSError:
            return


def send(pid: int, number: int) -> None:
    """A signal to a process, or to the group `-pid`, that may have ended."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def descendants(root: int) -> list[int]:
    """All processes below `root`, by their parents in /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def reap_all() -> bool:
    """Reap every child that has ended; whether any is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
