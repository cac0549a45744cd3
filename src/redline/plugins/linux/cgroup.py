"""Control groups, version 2: in the hybrid layout too, where it accounts for CPU time beside version 1.

A group of its own lets the server's CPU time be known exactly, with processes that came and went, and lets all of it be
killed at once. No controller is enabled in it and no limit set, so it does not change how the server is scheduled.
"""

import os
import re
from pathlib import Path

_MARK = "redline-"
_OCTAL = re.compile(r"\\([0-7]{3})")


def mount_points(kind: str, mountinfo: Path = Path("/proc/self/mountinfo")) -> tuple[tuple[Path, frozenset[str]], ...]:
    """Where file systems of type `cgroup2` or `cgroup` are mounted, each with its super options (v1: its controllers).

    The format is that of proc(5), /proc/pid/mountinfo. Empty when it cannot be read.
    """
    try:
        lines = mountinfo.read_text().splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, tail = before.split(), after.split()
        if len(fields) > 4 and len(tail) > 2 and tail[0] == kind:
            point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
            found.append((Path(point), frozenset(tail[2].split(","))))
    return tuple(found)


def group_of(pid: int | str = "self", proc: Path = Path("/proc")) -> Path | None:
    """The folder of a process's version 2 group, or None where there is none."""
    mounts = mount_points("cgroup2", proc / "self/mountinfo")
    if not mounts:
        return None
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, _, path = line.partition(":")
        if number == "0":
            folder = mounts[0][0] / path.removeprefix(":").lstrip("/")
            return folder if folder.is_dir() else None
    return None


def own_group_of(pid: int) -> Path | None:
    """The group that the launcher made for this process alone, or None."""
    folder = group_of(pid)
    return folder if folder is not None and folder.name.startswith(_MARK) else None


def parent_for_servers() -> Path | None:
    """The group below which a server's own may be made, or None where this process may not.

    Groups that a killed warden left behind are removed on the way; the kernel keeps those that are in use.
    """
    folder = group_of()
    if folder is None or not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
        return None
    for stale in folder.glob(f"{_MARK}*"):
        warden = stale.name.removeprefix(_MARK).partition("-")[0]
        if not Path("/proc", warden).exists():
            _remove(stale)
    return folder


def processes(folder: Path) -> tuple[int, ...]:
    """The processes of a group; empty when it is gone."""
    try:
        return tuple(int(line) for line in (folder / "cgroup.procs").read_text().split())
    except OSError:
        return ()


def cpu_ns(folder: Path) -> int | None:
    """CPU time that the group has used since it was made, its ended processes too; None when it is gone."""
    try:
        first = (folder / "cpu.stat").read_text().partition("\n")[0]
    except OSError:
        return None
    name, _, value = first.partition(" ")
    return int(value) * 1000 if name == "usage_usec" else None


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
