"""Counters and gauges of a process and its descendants."""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from redline.linux import cgroup, procfs
from redline.linux.cgroup import started_by
from redline.linux.owners import who_starts_all
from redline.linux.scheduling import runs_when_idle

_SWITCHES = re.compile(rb"^voluntary_ctxt_switches:\s+(\d+)\s+nonvoluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
_CPUCLOCK_SCHED = 2


class Tally:
    """The sum over parts of counters that only grow, such as the CPU times of processes. The sum never falls.

    A part, known by its id, that is missing, or smaller than before (the id was reused), has ended: its
    count is kept. What a part counts after it was last seen is lost.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._ended = 0

    def total(self, now: Mapping[int, int]) -> int:
        """The sum, given the present parts and their values."""
        self._ended += sum(before for part, before in self._last.items() if now.get(part, -1) < before)
        self._last = dict(now)
        return self._ended + sum(now.values())


class Size(NamedTuple):
    """The size of the tree now, and how many of its processes began and ended since the first look: by series.

    Processes that lived only between two samples are not counted. `processes_replaced` are those that were there at
    the first look and have ended, as far as there are now so many of the same command's name that were not there then.
    Page faults are summed since they began; a major one reads from a disk.
    """

    rss_bytes: int
    threads: int
    processes: int
    processes_started: int
    processes_ended: int
    processes_replaced: int
    minor_faults: int
    major_faults: int


class Descriptors(NamedTuple):
    """Open files and sockets of all its processes, and the lowest limit of one of them; 0 without a limit."""

    descriptors: int
    descriptors_limit: int


class Scheduling(NamedTuple):
    """How its threads were scheduled, summed since they began: by series.

    `preemptions` and `run_delay_ns` are those of threads that do not give way to others (SCHED_IDLE).
    """

    context_switches_voluntary: int
    context_switches_involuntary: int
    preemptions: int
    run_delay_ns: int


class OwnedProcesses:
    """The processes of a server that somebody else runs, and those that they start from now on."""

    def __init__(self, pids: Collection[int]) -> None:
        self._known = tuple(pids)
        above, below = who_starts_all(pids), procfs.children()
        self._growing = [pid for pid in pids if pid not in above]
        self._others = above.union(*(below.get(pid, ()) for pid in pids)).difference(pids)

    def __call__(self) -> tuple[int, ...]:
        """Look for processes that have started since, and return all."""
        below = procfs.children()
        grown = list(self._growing)
        for pid in grown:
            grown += [child for child in below.get(pid, ()) if child not in self._others and child not in grown]
        self._growing = grown
        self._known = tuple(dict.fromkeys((*self._known, *grown)))
        return self._known


class ProcessTree:
    """A process and all its descendants, by its own control group if it has one, else by parents.

    By parents, `look_around` must be called regularly, and a process that lives only between two calls is not seen.
    """

    def __init__(self, root: int, owned: OwnedProcesses | None = None) -> None:
        self._group = None if owned else cgroup.own_group_of(root)
        self._look = owned or self._by_root(root)
        self._members = owned() if owned else started_by(root)
        self._cpu = Tally()
        self._scheduling = (Tally(), Tally(), Tally(), Tally())
        self._faults = (Tally(), Tally())
        self._first: Mapping[int, bytes] | None = None
        self._alive: frozenset[int] = frozenset()
        self._started = self._ended = 0
        self._memory_files: Mapping[int, tuple[str, ...]] = {}

    @property
    def members(self) -> tuple[int, ...]:
        """The processes of the tree when last looked at."""
        return tuple(self._members)

    def look_around(self) -> None:
        """Find processes that have started since."""
        self._members = self._look()

    def _by_root(self, root: int) -> Callable[[], tuple[int, ...]]:
        group = self._group
        return (lambda: started_by(root)) if group is None else (lambda: cgroup.processes(group))

    def cpu_ns(self) -> int | None:
        """CPU time, user and system, ended processes included; None when the tree is gone."""
        if self._group is not None:
            return cgroup.cpu_ns(self._group)
        clocks = {pid: clock for pid in self._members if (clock := process_cpu_ns(pid)) is not None}
        return self._cpu.total(clocks) if clocks else None

    def size(self) -> Size | None:
        """Return its size now, or None if no process is left. In the rss, shared pages count once for each process.

        Files of anonymous memory count with their whole content, however often the process maps it.
        """
        members = {pid: stat for pid in self._members if (stat := procfs.read_stat(pid)) is not None}
        stats = [stat for stat in members.values() if stat.state != "Z"]
        if not stats:
            return None
        replaced = self._compare({pid: stat.name for pid, stat in members.items() if stat.state != "Z"})
        rss_bytes, threads = sum(stat.rss_bytes for stat in stats), sum(stat.threads for stat in stats)
        files = self._memory_files
        self._memory_files = {pid: files[pid] if pid in files else procfs.memory_files(pid) for pid in members}
        rss_bytes += sum(procfs.missing_rss_bytes(pid, own) for pid, own in self._memory_files.items() if own)
        minor = self._faults[0].total({pid: stat.minor_faults for pid, stat in members.items()})
        major = self._faults[1].total({pid: stat.major_faults for pid, stat in members.items()})
        return Size(rss_bytes, threads, len(stats), self._started, self._ended, replaced, minor, major)

    def descriptors(self) -> Descriptors | None:
        """Return how many files and sockets its processes have open; None if this user may not see that."""
        known = [(procfs.open_files(pid), procfs.open_files_limit(pid)) for pid in self._members]
        counts = [count for count, _ in known if count is not None]
        limits = [limit for count, limit in known if count is not None and limit is not None]
        if not counts or any(count is None for count, _ in known):
            return None
        return Descriptors(sum(counts), min(limits, default=0))

    def _compare(self, names: Mapping[int, bytes]) -> int:
        """Count started and ended processes since the last time. Returns how many first processes are replaced."""
        alive = frozenset(names)
        if self._first is None:
            self._first = names
        else:
            self._started += len(alive - self._alive)
            self._ended += len(self._alive - alive)
        self._alive = alive
        gone = Counter(name for pid, name in self._first.items() if pid not in alive)
        new = Counter(name for pid, name in names.items() if pid not in self._first)
        return (gone & new).total()

    def scheduling(self) -> Scheduling | None:
        """Context switches and time spent waiting for a core, of all threads, or None when none is left.

        What an ended thread counted after it was last seen is lost. A thread of SCHED_IDLE waits by design, as the
        engine's main thread does, so its waiting is not counted. Costs two small reads for each thread.
        """
        counts: tuple[dict[int, int], ...] = ({}, {}, {}, {})
        voluntary, involuntary, preempted, delay = counts
        for pid in self._members:
            for thread in procfs.threads_of(pid):
                switches = _SWITCHES.search(procfs.read_bytes(f"/proc/{pid}/task/{thread}/status"))
                if switches is None:
                    continue
                voluntary[thread], involuntary[thread] = int(switches[1]), int(switches[2])
                waited = procfs.read_bytes(f"/proc/{pid}/task/{thread}/schedstat").split()
                if len(waited) == 3 and not runs_when_idle(int(thread)):
                    delay[thread], preempted[thread] = int(waited[1]), int(switches[2])
        if not voluntary:
            return None
        return Scheduling(*(tally.total(parts) for tally, parts in zip(self._scheduling, counts, strict=True)))


def process_cpu_ns(pid: int) -> int | None:
    """Return the CPU time of a process with all its threads, ended threads too; None if it has ended.

    From its CPU clock (clock_getcpuclockid(3)), in nanoseconds: /proc/PID/stat counts in ticks of 10 ms. A thread that
    runs at this moment is known as of the kernel's last timer tick on its core.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return None
