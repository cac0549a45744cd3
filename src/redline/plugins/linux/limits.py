"""What the control groups above this process allow it, in version 1, version 2 and the hybrid of both."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux.cgroup import mount_points

# Version 1 has no word for "no limit": an unlimited memory limit reads as the largest multiple of a page.
_UNLIMITED_BYTES = 1 << 62


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
