"""Mounts of this machine, by /proc/self/mountinfo (proc(5)) and statvfs(3)."""

import os
import re
from pathlib import Path
from typing import NamedTuple

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """Where a file system is mounted, its type, and its super options: in a `cgroup`, its controllers."""

    point: Path
    kind: str
    options: frozenset[str]


def read_mounts(mountinfo: Path = _MOUNTS) -> list[Mount]:
    """Return all mounts, in the order in which they were made; empty if the file cannot be read."""
    try:
        lines = mountinfo.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    mounts = []
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, tail = before.split(" "), after.split(" ")
        if len(fields) > 4 and len(tail) > 2:
            point = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4]))
            mounts.append(Mount(point, tail[0], frozenset(tail[2].split(","))))
    return mounts


def noexec_mount(path: Path) -> str:
    """`/tmp is mounted noexec`, if that forbids executing the file at the path; else empty."""
    try:
        forbidden = os.statvfs(path).f_flag & os.ST_NOEXEC
    except OSError:
        return ""
    whole = path.resolve()
    above = [mount.point for mount in read_mounts() if whole.is_relative_to(mount.point)] if forbidden else []
    return f"{max(above, key=lambda point: len(point.parts))} is mounted noexec" if above else ""
