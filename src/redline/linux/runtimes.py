"""Recognise the runtimes of processes by the programs and libraries that they map, however they were started.

A program that a runtime compiled ahead of time, such as GraalVM's native images, maps none of it and is native.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from redline.model.runtime import NATIVE

_NAMES = {
    "jvm": r"libjvm\.so",
    "node": r"node(js)?[\d.-]*|libnode\.so[\d.]*",
    "deno": r"deno",
    "bun": r"bun",
    "python": r"(python[\d.]*|libpython[\d.]*)[a-z]*(\.so[\d.]*)?",
    "pypy": r"pypy[\d.]*(-c)?|libpypy[\d.]*(-c)?\.so[\d.]*",
    "ruby": r"ruby[\d.]*|libruby[\d.-]*\.so[\d.]*",
    "php": r"php(-fpm|-cgi)?[\d.]*|libphp[\d.]*\.so",
    "dotnet": r"libcoreclr\.so",
    "beam": r"beam\.smp",
    "luajit": r"luajit[\d.-]*(beta\d+)?|libluajit[\d.-]*\.so[\d.]*",
}
"""Runtimes by the names of executable mapped files."""

_PATTERNS = {runtime: re.compile(pattern) for runtime, pattern in _NAMES.items()}
_DELETED = " (deleted)"
_FIELDS = 6


def runtimes_in(maps: str) -> frozenset[str]:
    """Runtimes of a process, given the text of its /proc/PID/maps (proc_pid_maps(5)). Pure."""
    lines = (line.split(maxsplit=_FIELDS - 1) for line in maps.splitlines())
    files = {fields[-1].removesuffix(_DELETED) for fields in lines if len(fields) == _FIELDS and "x" in fields[1]}
    names = {PurePosixPath(file).name for file in files if file.startswith("/")}
    return frozenset(
        runtime for runtime, pattern in _PATTERNS.items() if any(pattern.fullmatch(name) for name in names)
    )


def runtimes_of(pids: Iterable[int], proc: str = "/proc") -> frozenset[str]:
    """Return the runtimes of all these processes; `native` if none was recognised, empty if that cannot be seen."""
    maps = [_maps(pid, proc) for pid in pids]
    runtimes = frozenset(runtime for text in maps if text for runtime in runtimes_in(text))
    seen = any(maps) and None not in maps
    return runtimes or (frozenset({NATIVE}) if seen else frozenset())


def _maps(pid: int, proc: str) -> str | None:
    """Return the text of /proc/PID/maps: empty if the process has ended, None if it may not be read."""
    try:
        return Path(proc, str(pid), "maps").read_text(errors="replace")
    except PermissionError:
        return None
    except OSError:
        return ""
