"""Data of a running JVM: its own counters, its threads' clocks, and its log, without attaching to it.

`docs/decisions/0025-what-a-jvm-says.md` says why the lab asks in these ways and not in others.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from redline.linux import procfs
from redline.model.runtime import Collection, CounterCheck, Pause, RuntimeFacts
from redline.watching.jvm_log import JvmLog, Named
from redline.watching.perfdata import FREQUENCY, PerfData
from redline.watching.runtime_tally import RuntimeTally
from redline.watching.tree import Tally

LOGGED = "gc,gc+start,gc+init,gc+heap,safepoint"
"""Topics of the JVM's log: about ten lines per collection."""

_SAFEPOINT, _SYNC = "sun.rt.safepointTime", "sun.rt.safepointSyncTime"
_COUNTED = {"safepoints": "sun.rt.safepoints", "compiles": "sun.ci.totalCompiles"}
_COLLECTIONS = ("sun.gc.collector.0.invocations", "sun.gc.collector.1.invocations")
_COUNTS_COLLECTIONS = frozenset({"Serial", "Parallel", "G1"})
"""Collectors that count young and full collections. Shenandoah and Z count phases."""
_SYNC_IN_SAFEPOINT = 11
"""Up to this release the time at safepoints includes the time to the safepoint."""

_FIRST_LOGGED = 9
_BEGINNING_BYTES = 1 << 14
_LOGS_INTO = re.compile(r"-Xlog:([^:]*):file=([^:]+)(?::.*)?")
_MAX_HEAP = re.compile(r"-Xmx(\d{1,12})([kKmMgGtT]?)")
_NOT_NAMED_YET = b"java"
_ROLES = (
    ("compiler", re.compile(rb"C[12] CompilerThre|JVMCI|Graal|LibGraal")),
    (
        "collector",
        re.compile(rb"GC Thread#|G1 |Shenandoah |Z(Director|Driver|Worker|Stat|Uncommitter|Unmapper)|VM Thread"),
    ),
)
"""Thread names, cut to 15 letters by the kernel. The VM thread runs Serial's collections."""


def log_flag(feature: int, file: Path) -> tuple[str, ...]:
    """The flag that makes a JVM of that release write this log; none before JDK 9."""
    if feature < _FIRST_LOGGED:
        return ()
    return (f"-Xlog:{LOGGED}:file={file}:utctime,uptimenanos,level,tags:filecount=0",)


class RoleClocks:
    """CPU time of a JVM's compiler and collector threads, and their waits for a core, summed since they began."""

    def __init__(self, pid: int, proc: str = "/proc") -> None:
        self._pid, self._proc = pid, proc
        self._roles: dict[int, str] = {}
        self._tallies = {(role, clock): Tally() for role, _ in _ROLES for clock in ("cpu", "wait")}

    def sample(self) -> dict[str, int]:
        """CPU and wait times of compiler and collector threads, by series; empty after the JVM's end."""
        clocks: dict[tuple[str, str], dict[int, int]] = {key: {} for key in self._tallies}
        for thread in procfs.threads_of(self._pid, self._proc):
            role = self._role(thread)
            if not role:
                continue
            times = procfs.read_bytes(f"{self._proc}/{self._pid}/task/{thread}/schedstat").split()
            if len(times) == 3:
                clocks[role, "cpu"][thread], clocks[role, "wait"][thread] = int(times[0]), int(times[1])
        if not any(clocks.values()):
            return {}
        return {f"{role}_{clock}_ns": self._tallies[role, clock].total(now) for (role, clock), now in clocks.items()}

    def _role(self, thread: int) -> str:
        if thread not in self._roles:
            name = procfs.read_bytes(f"{self._proc}/{self._pid}/task/{thread}/comm").strip()
            if name in (b"", _NOT_NAMED_YET):
                return ""
            self._roles[thread] = next((role for role, pattern in _ROLES if pattern.match(name)), "")
        return self._roles[thread]


def compilers_of(pids: Iterable[int], proc: str = "/proc") -> Callable[[], int | None]:
    """Return a reader of these processes' compiler threads: CPU time and waits for a core, ns; None without a JVM."""
    clocks = [RoleClocks(pid, proc) for pid in pids if PerfData.of(pid, proc) is not None]

    def read() -> int | None:
        samples = [sample for clock in clocks if (sample := clock.sample())]
        return sum(sample["compiler_cpu_ns"] + sample["compiler_wait_ns"] for sample in samples) if samples else None

    return read


class Jvm:
    """A JVM: its counters, the clocks of its threads, and the log that it writes.

    It reads the beginning of the log, which names the collector, and later lines: a search makes many
    loads on one server.
    """

    def __init__(self, pid: int, counters: PerfData, proc: str = "/proc") -> None:
        words = procfs.read_bytes(f"{proc}/{pid}/cmdline").decode(errors="replace").split("\0")
        self._counters, self._clocks = counters, RoleClocks(pid, proc)
        self._logs, self._max_heap_bytes = _logs(f"{proc}/{pid}", words), _max_heap_bytes(words)
        capacities = counters.matching("sun.gc.generation.", ".capacity")
        self._capacities = [name for name in capacities if ".space." not in name]
        self._ticks_per_s = counters.values(FREQUENCY).get(FREQUENCY, 0) or 1_000_000_000
        release = counters.texts.get("java.property.java.vm.specification.version", "")
        self._adds_sync = release.isdigit() and int(release) > _SYNC_IN_SAFEPOINT
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        """First and last sample of counters that the log has too."""
        self._from = next((size for path in self._logs if (size := _size_of(path)) is not None), 0)

    @classmethod
    def among(cls, pids: Iterable[int], proc: str = "/proc") -> "Jvm | None":
        """Return the first of these processes that is a JVM with counters, or None."""
        return next((cls(pid, data, proc) for pid in pids if (data := PerfData.of(pid, proc)) is not None), None)

    def sample(self) -> dict[str, int]:
        """Its current counters and gauges, by series; empty when it has ended."""
        times = (_SAFEPOINT, _SYNC)
        read = self._counters.values(*_COUNTED.values(), *times, *_COLLECTIONS, *self._capacities)
        if not read:
            return {}
        values = {name: read[counter] for name, counter in _COUNTED.items() if counter in read}
        ns = {name: read.get(name, 0) * 1_000_000_000 // self._ticks_per_s for name in times}
        values["safepoint_ns"] = ns[_SAFEPOINT] + (ns[_SYNC] if self._adds_sync else 0)
        values["heap_capacity_bytes"] = sum(read.get(name, 0) for name in self._capacities)
        logged = {name: values[name] for name in ("safepoints", "safepoint_ns") if name in values}
        self._last = logged | {"collections": sum(read.get(name, 0) for name in _COLLECTIONS)}
        self._first = self._first or self._last
        return values | self._clocks.sample()

    def facts(self, window_unix_ns: tuple[int, int]) -> RuntimeFacts | None:
        """Return facts about a window from its log; None without a log."""
        for path in self._logs:
            with suppress(OSError), path.open("rb") as file:
                return self._read(file, window_unix_ns)
        return None

    def _read(self, file: BinaryIO, window_unix_ns: tuple[int, int]) -> RuntimeFacts:
        tally, logged = RuntimeTally(window_unix_ns), dict.fromkeys(("safepoints", "safepoint_ns", "collections"), 0)
        beginning, log = file.read(min(self._from, _BEGINNING_BYTES)).decode(errors="replace").splitlines(), JvmLog()
        for event in log.read(beginning):
            if isinstance(event, Named):
                tally.add(event)
        file.seek(self._from)
        for event in log.later().read(line.decode(errors="replace") for line in file):
            tally.add(event)
            if isinstance(event, Pause):
                logged["safepoints"] += 1
                logged["safepoint_ns"] += event.duration_ns
            elif isinstance(event, Collection):
                logged["collections"] += not event.concurrent
        if tally.collector not in _COUNTS_COLLECTIONS:
            del logged["collections"]
        checks = [
            CounterCheck(name=name, logged=number, counted=self._last[name] - self._first[name])
            for name, number in logged.items()
            if name in self._first
        ]
        return tally.facts("jvm", self._max_heap_bytes, checks)


def _size_of(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size
    return None


def _logs(process: str, words: Iterable[str]) -> tuple[Path, ...]:
    """Return paths of its safepoint log according to its command: as the JVM sees it, and as this process does."""
    for match in filter(None, map(_LOGS_INTO.fullmatch, words)):
        if "safepoint" in match[1]:
            own = Path(match[2])
            return (Path(f"{process}/root{own}"), own) if own.is_absolute() else (Path(f"{process}/cwd/{own}"),)
    return ()


def _max_heap_bytes(words: Iterable[str]) -> int | None:
    """The value of a command's last `-Xmx`."""
    sizes = [match for match in map(_MAX_HEAP.fullmatch, words) if match]
    return int(sizes[-1][1]) << 10 * " KMGT".index(sizes[-1][2].upper() or " ") if sizes else None
