"""Control groups, version 2, also in the hybrid layout, where version 2 counts CPU time and version 1 limits it.

With its own group, the server's CPU time is known exactly, with processes that came and went, and all of it can be
killed at once. No controller is enabled in it and no limit set, so it does not change how the server is scheduled.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from redline.lazily import dataclass
from redline.linux import procfs
from redline.linux.mounts import Mount, read_mounts

_MARK = "redline-"
_CONTAINER = re.compile(r"(?:libpod-|docker-)?[0-9a-f]{64}(?:\.scope)?")
# An unlimited memory limit of version 1 reads as the largest multiple of a page.
_UNLIMITED_BYTES = 1 << 62


def group_of(pid: int | str = "self", proc: Path = Path("/proc")) -> Path | None:
    """Return the folder of a process's version 2 group; None if there is none."""
    mount, path = next(_mounts("cgroup2", proc), None), _paths(proc, str(pid)).get("")
    if mount is None or path is None:
        return None
    folder = mount.point / path.lstrip("/")
    return folder if folder.is_dir() else None


def own_group_of(pid: int) -> Path | None:
    """Return the group that the launcher made for this process alone, or its container's; None if there is none."""
    folder = group_of(pid)
    if folder is None:
        return None
    container = folder.parent if folder.name == "container" else folder  # podman may put the processes one below
    return folder if folder.name.startswith(_MARK) or _CONTAINER.fullmatch(container.name) else None


def parent_for_servers() -> Path | None:
    """Return the group in which servers' groups may be made; None if this process may not make any.

    Groups that a killed warden left behind are removed on the way; the kernel keeps groups in use.
    """
    folder = group_of()
    if folder is None or not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
        return None
    for stale in folder.glob(f"{_MARK}*"):
        warden = stale.name.removeprefix(_MARK).partition("-")[0]
        if not Path("/proc", warden).exists():
            with suppress(OSError):
                stale.rmdir()
    return folder


def processes(folder: Path) -> tuple[int, ...]:
    """Return the processes of a group; empty if it is gone."""
    try:
        return tuple(int(line) for line in (folder / "cgroup.procs").read_text().split())
    except OSError:
        return ()


def started_by(root: int) -> tuple[int, ...]:
    """Return a process started here and its descendants, even if their parents have ended; empty if there are none.

    Uses its control group, if it has its own, and parents: the warden inherits orphans, so all processes below the
    warden are the server's.
    """
    group, stat = own_group_of(root), procfs.read_stat(root)
    below: tuple[int, ...] = ()
    if stat is not None:
        warden = procfs.read_stat(stat.parent)
        ours = warden is not None and warden.parent == os.getpid()
        below = procfs.tree(stat.parent)[1:] if ours else procfs.tree(root)
    return tuple(dict.fromkeys((*below, *(processes(group) if group else ()))))


def cpu_ns(folder: Path) -> int | None:
    """Return the CPU time used since the group was made, ended processes included; None if it is gone."""
    used_us = _cpu_stat(folder).get(b"usage_usec")
    return None if used_us is None else used_us * 1000


def _cpu_stat(group: Path) -> dict[bytes, int]:
    words = procfs.read_bytes(f"{group}/cpu.stat").split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}


@dataclass(frozen=True)
class Limits:
    """`layout` is v1, v2, hybrid or empty; None where there is no limit. `tasks` are processes and threads."""

    layout: str
    cores: float | None
    memory_bytes: int | None
    tasks: int | None = None


def read_limits(proc: Path = Path("/proc"), pid: int | str = "self") -> Limits:
    """Return the narrowest limits of a process's groups and their ancestors, as far as they are visible."""
    unified, divided = (any(_mounts(kind, proc)) for kind in ("cgroup2", "cgroup"))
    layout = ("hybrid" if divided else "v2") if unified else ("v1" if divided else "")

    def narrowest(controller: str, name: str, name_in_v1: str) -> int | None:
        texts = [_text(folder / (name_in_v1 if v1 else name)) for folder, v1 in _groups(controller, pid, proc)]
        # Version 1 has no word for "no limit" of memory; elsewhere it is `max`.
        return min((int(text) for text in texts if text.isdigit() and int(text) < _UNLIMITED_BYTES), default=None)

    memory_bytes = narrowest("memory", "memory.max", "memory.limit_in_bytes")
    tasks = narrowest("pids", "pids.max", "pids.max")
    return Limits(layout, min(quotas(pid, proc).values(), default=None), memory_bytes, tasks)


def quotas(pid: int | str = "self", proc: Path = Path("/proc")) -> dict[Path, float]:
    """Return a process's groups, and their ancestors, with a CPU quota, and the quotas in cores."""
    limited = {}
    for folder, v1 in _groups("cpu", pid, proc):
        files = (folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us") if v1 else (folder / "cpu.max",)
        # Quota and period in microseconds; `max` and -1 mean no limit.
        words = [word for file in files for word in _text(file).split()]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]) > 0:
            limited[folder] = int(words[0]) / int(words[1])
    return limited


def _groups(controller: str, pid: int | str, proc: Path) -> Iterator[tuple[Path, bool]]:
    """Yield a process's groups of a controller and their ancestors, and whether they are of version 1."""
    paths = _paths(proc, str(pid))
    for mount in _mounts("cgroup2", proc):
        yield from ((folder, False) for folder in _upwards(mount.point, paths.get("", "/")))
    for mount in _mounts("cgroup", proc):
        if controller in mount.options:
            yield from ((folder, True) for folder in _upwards(mount.point, paths.get(controller, "/")))


def _mounts(kind: str, proc: Path) -> Iterator[Mount]:
    return (mount for mount in read_mounts(proc / "self/mountinfo") if mount.kind == kind)


def _paths(proc: Path, pid: str) -> dict[str, str]:
    """Map version 1 controllers to the process's groups, and the empty name to its version 2 group."""
    paths = {}
    for line in _text(proc / pid / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _upwards(mount: Path, path: str) -> Iterator[Path]:
    """Yield the group's folder and its ancestors. In a container the path may lead outside of the mount."""
    folder = mount / path.lstrip("/")
    while folder != mount and mount in folder.parents:
        yield folder
        folder = folder.parent
    yield mount


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


class Throttling(NamedTuple):
    """Counts since the groups were made, by series: active periods, throttled periods, and the throttled time.

    The time counts once for every core that had to wait for the next period.
    """

    quota_periods: int
    throttled_periods: int
    throttled_ns: int


def throttling(groups: Iterable[Path]) -> Throttling | None:
    """Sum over these groups, of version 1 or 2; None if none of them has counters."""
    counters = []
    for stat in map(_cpu_stat, groups):
        # Version 1 counts nanoseconds, version 2 microseconds.
        time_ns = stat.get(b"throttled_time", stat.get(b"throttled_usec", 0) * 1000)
        if b"nr_periods" in stat and b"nr_throttled" in stat:
            counters.append((stat[b"nr_periods"], stat[b"nr_throttled"], time_ns))
    return Throttling(*map(sum, zip(*counters, strict=True))) if counters else None
