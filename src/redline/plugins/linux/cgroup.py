"""Control groups, version 2: in the hybrid layout too, where it accounts for CPU time and version 1 limits it.

A group of its own lets the server's CPU time be known exactly, with processes that came and went, and lets all of it be
killed at once. No controller is enabled in it and no limit set, so it does not change how the server is scheduled.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux.procfs import read_bytes

_MARK = "redline-"
_OCTAL = re.compile(r"\\([0-7]{3})")
# Version 1 has no word for "no limit": an unlimited memory limit reads as the largest multiple of a page.
_UNLIMITED_BYTES = 1 << 62


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


@dataclass(frozen=True)
class Limits:
    """`layout` is v1, v2, hybrid or empty; None where there is no limit."""

    layout: str
    cores: float | None
    memory_bytes: int | None


def read_limits(proc: Path = Path("/proc")) -> Limits:
    """The narrowest limits of this process's groups and all above them, as far as they can be seen from here."""
    unified = mount_points("cgroup2", proc / "self/mountinfo")
    divided = mount_points("cgroup", proc / "self/mountinfo")
    paths = _paths(proc, "self")
    memory: list[int] = []
    for mount, _ in unified:
        for folder in _upwards(mount, paths.get("", "/")):
            memory += _bytes(_text(folder / "memory.max"))
    for mount, options in divided:
        for folder in _upwards(mount, paths.get("memory", "/")) if "memory" in options else ():
            memory += _bytes(_text(folder / "memory.limit_in_bytes"))
    layout = ("hybrid" if divided else "v2") if unified else ("v1" if divided else "")
    return Limits(layout, min(quotas(proc=proc).values(), default=None), min(memory, default=None))


def quotas(pid: int | str = "self", proc: Path = Path("/proc")) -> dict[Path, float]:
    """The groups of a process, and those above them, that have a quota of CPU time; each with how many cores it is."""
    paths = _paths(proc, str(pid))
    found: dict[Path, list[float]] = {}
    for mount, _ in mount_points("cgroup2", proc / "self/mountinfo"):
        for folder in _upwards(mount, paths.get("", "/")):
            found[folder] = _quota(_text(folder / "cpu.max").split())
    for mount, options in mount_points("cgroup", proc / "self/mountinfo"):
        for folder in _upwards(mount, paths.get("cpu", "/")) if "cpu" in options else ():
            found[folder] = _quota([_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")])
    return {folder: cores[0] for folder, cores in found.items() if cores}


def _paths(proc: Path, pid: str) -> dict[str, str]:
    """The process's group by version 1 controller; its version 2 group under the empty name."""
    paths = {}
    for line in _text(proc / pid / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """The group's folder and those above it. In a container the path may lead outside of what is mounted there."""
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        yield folder
        folder = folder.parent
    yield mount


def _quota(words: list[str]) -> list[float]:
    """Quota and period in microseconds as a number of cores; `max` and -1 mean no limit."""
    if len(words) == 2 and all(re.fullmatch(r"\d+", word) for word in words) and int(words[1]) > 0:
        return [int(words[0]) / int(words[1])]
    return []


def _bytes(text: str) -> list[int]:
    return [int(text)] if re.fullmatch(r"\d+", text) and int(text) < _UNLIMITED_BYTES else []


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Throttling:
    """Since the groups were made: periods that had work in them, those of which the quota ran out, and for how long.

    The time counts once for each core on which something had to wait for the next period.
    """

    periods: int
    throttled: int
    throttled_ns: int


def throttling(groups: Iterable[Path]) -> Throttling | None:
    """The sum over these groups, of version 1 or 2; None when none of them has counters."""
    found = [counts for group in groups if (counts := _read(group)) is not None]
    if not found:
        return None
    return Throttling(
        sum(one.periods for one in found), sum(one.throttled for one in found), sum(one.throttled_ns for one in found)
    )


def _read(group: Path) -> Throttling | None:
    """Version 1 counts nanoseconds (`throttled_time`), version 2 microseconds (`throttled_usec`)."""
    words = read_bytes(f"{group}/cpu.stat").split()
    stat = dict(zip(words[::2], words[1::2], strict=False))
    try:
        v2 = b"throttled_usec" in stat
        time_ns = int(stat[b"throttled_usec"]) * 1000 if v2 else int(stat[b"throttled_time"])
        return Throttling(int(stat[b"nr_periods"]), int(stat[b"nr_throttled"]), time_ns)
    except (KeyError, ValueError):
        return None
