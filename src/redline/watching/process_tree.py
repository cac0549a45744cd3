"""CPU, memory, threads and scheduling of server, engine and machine, ten times a second."""

import os
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from redline import watching
from redline.lazily import dataclass
from redline.linux import procfs, sockets
from redline.linux.cgroup import quotas, throttling
from redline.linux.host import STAT, Host, cpu_times
from redline.linux.network import Link, Namespace, towards
from redline.linux.scheduling import run_when_idle
from redline.model import OTHERS, RuntimeFacts, Series, Subject
from redline.ports import ServerUsage
from redline.watching.listening import Listening
from redline.watching.other_loads import OtherLoads
from redline.watching.tree import OwnedProcesses, ProcessTree

if TYPE_CHECKING:  # a server that somebody else runs has neither
    from redline.watching.gc_traces import Traced
    from redline.watching.jvm import Jvm

_GAUGES = {
    "heap_capacity_bytes",
    "rss_bytes",
    "threads",
    "descriptors",
    "descriptors_limit",
    "listen_queue",
    "close_wait",
    "quota_millicores",
    "processes",
    "processes_replaced",
    "time_wait",
    "local_ports",
    "link_bits_per_s",
}
_UNITS = {"_ns": "ns", "_bytes": "B", "_bits_per_s": "bit/s"}
"""Units by the suffix of a series' name; all others are plain numbers."""

# Of one core, for each subject: looking at every thread, for new processes, and at open files and sockets. What
# costs more, for many threads or on a machine of many processes, is done less often than at every sample.
_THREADS_SHARE = 0.0025
_SEARCH_SHARE = 0.001
_FILES_SHARE = 0.001
_WHOLE_EVERY = 3
_LONGEST_READING_NS = 1_000_000
_READING_TRIES = 3
MOST_SAMPLES = 6001
"""The most samples of a series: ten minutes at ten a second, and the first sample. An odd number."""
_MOST_NEIGHBOURS = 3
_CLOSES_WITHIN_S = 0.25
_LEAST_OF_NEIGHBOUR = 0.02
"""The smallest share of a core that is worth a name."""
T = TypeVar("T")
Values = dict[str, int]


@dataclass(frozen=True)
class MachineShare:
    """The cores and CPU quotas that a process had at its start."""

    cores: tuple[int, ...]
    groups: tuple[Path, ...]
    quota_millicores: int = 0

    @classmethod
    def of(cls, *pids: int) -> "MachineShare":
        """Return the share of processes. `cores`, of the first, is empty if it may use the whole machine."""
        try:
            cores = os.sched_getaffinity(pids[0])
        except OSError:
            cores = set()
        own = tuple(sorted(cores)) if len(cores) < (os.cpu_count() or 1) else ()
        limits = {group: limit for pid in pids for group, limit in quotas(pid).items()}
        return cls(own, tuple(limits), round(1000 * min(limits.values(), default=0)))

    def sample(self, stat: str) -> Values:
        """Its counters, given the text of /proc/stat. Without a quota it reads nothing else."""
        values: Values = {}
        times = [times for cpu in self.cores if (times := cpu_times(stat, cpu)) is not None]
        if times:
            values["cores_busy_ns"] = sum(cpu.busy_ns for cpu in times)
        interrupts = [cpu.interrupts_ns for cpu in times if cpu.interrupts_ns is not None]
        if interrupts:
            values["cores_interrupts_ns"] = sum(interrupts)
        quota = throttling(self.groups) if self.groups else None
        return values | ({**quota._asdict(), "quota_millicores": self.quota_millicores} if quota is not None else {})


@dataclass(frozen=True)
class Surroundings:
    """The machine, a network namespace, and the link to the peer, if that is another machine."""

    host: Host
    namespace: Namespace
    link: Link | None = None

    @classmethod
    def of(cls, host: Host, pid: int, peer: str | None) -> "Surroundings":
        """The surroundings of a process, and the link from this machine to a peer."""
        return cls(host, Namespace.of(pid, host.root), towards(peer) if peer else None)

    def stat(self) -> str:
        """The text of /proc/stat, which holds the times of all cores."""
        return self.host.text(STAT)

    def busy(self, stat: str) -> Values:
        """Busy time of all cores together, given that text."""
        times = cpu_times(stat)
        if times is None:
            return {}
        apart = {} if times.interrupts_ns is None else {"interrupts_ns": times.interrupts_ns}
        return {"busy_ns": times.busy_ns, "steal_ns": times.steal_ns, **apart}

    def sample(self) -> Iterator[Values]:
        """Other counters of the machine; each file is read once."""
        pressure = self.host.cpu_pressure_ns()
        if pressure is not None:
            yield {"cpu_pressure_ns": pressure}
        if (tcp := self.namespace.tcp()) is not None:
            yield tcp._asdict()
        if (waiting := self.namespace.time_wait()) is not None:
            yield {"time_wait": waiting}
        counted = self.link.counted() if self.link else None
        if counted is not None:
            yield {"link_sent_bytes": counted.sent, "link_received_bytes": counted.received}

    def constants(self) -> Iterator[Values]:
        """Values that hardly change: sampled at both ends."""
        ports = self.host.port_range() if self.namespace.ours else None
        if ports is not None:
            yield {"local_ports": ports[1] - ports[0] + 1}
        if self.link is not None:
            yield {"link_bits_per_s": self.link.bits_per_s}


@dataclass
class KeptSamples:
    """The samples of a series so far: the first, and every `_stride`-th of those after it.

    The stride doubles when there would be more than `MOST_SAMPLES`, so that a long load takes no more memory. Of merged
    samples, a counter keeps the last and a gauge the largest.
    """

    kind: Literal["counter", "gauge"]
    times_unix_ns: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    _stride: int = field(default=1, init=False)
    _in_last: int = field(default=1, init=False)

    def add(self, at_unix_ns: int, value: float) -> None:
        """Add a sample."""
        if self._in_last < self._stride:
            self._in_last += 1
            if self.kind == "counter" or value >= self.values[-1]:
                self.times_unix_ns[-1], self.values[-1] = at_unix_ns, value
            return
        if len(self.values) == MOST_SAMPLES:
            self._halve()
        self.times_unix_ns.append(at_unix_ns)
        self.values.append(value)
        self._in_last = 1

    def _halve(self) -> None:
        """Keep the first sample, and every second later sample."""
        samples = list(zip(self.times_unix_ns, self.values, strict=True))
        pairs = zip(samples[1::2], samples[2::2], strict=True)
        kept = [later if self.kind == "counter" or later[1] >= earlier[1] else earlier for earlier, later in pairs]
        self.times_unix_ns = array("q", (samples[0][0], *(at for at, _ in kept)))
        self.values = array("d", (samples[0][1], *(value for _, value in kept)))
        self._stride *= 2


@dataclass
class _Paced:
    """A task that may take no more than a share of a core's time."""

    share: float
    due_ns: int = 0

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Run the task, and delay its next run according to its cost."""
        began_ns = time.thread_time_ns()
        yield
        self.due_ns = time.monotonic_ns() + int((time.thread_time_ns() - began_ns) / self.share)

    def is_due(self) -> bool:
        return time.monotonic_ns() >= self.due_ns


@dataclass
class _Watched:
    """A process tree, its share of the machine, and the pace of its costly readings."""

    tree: ProcessTree
    share: MachineShare
    jvm: "Jvm | None" = None
    traced: "Traced | None" = None
    listening: Listening | None = None
    opens_files: bool = False
    threads: _Paced = field(default_factory=lambda: _Paced(_THREADS_SHARE))
    search: _Paced = field(default_factory=lambda: _Paced(_SEARCH_SHARE))
    files: _Paced = field(default_factory=lambda: _Paced(_FILES_SHARE))


class ProcessTreeMonitor:
    """Samples in a thread of its own, from the first `follow` to `finish`, and at both ends.

    The network is that of the process followed first. `peer` is the host and the port that the load goes to, if
    somebody else runs the server, and `listens_at` those of the server that this monitor watches. It says which
    `others` load something meanwhile, unless they are of the same lab. Where another watches the `machine`, it leaves
    the machine out. What others watch are `known` processes: they are no neighbours.
    """

    perturbs = False

    def __init__(  # noqa: PLR0913 - what it leaves out is independent
        self,
        period_s: float = 0.1,
        peer: tuple[str, int] | None = None,
        *,
        listens_at: tuple[str, int] | None = None,
        others: bool = True,
        machine: bool = True,
        known: tuple[int, ...] = (),
    ) -> None:
        self._machine, self._known = machine, known
        self._period_ns = int(period_s * 1e9)
        self._peer = peer
        at = sockets.listening_for(*listens_at) if listens_at else frozenset()
        self._unowned = Listening(at) if at else None
        self._host = Host()
        self._surroundings: Surroundings | None = None
        self._neighbours: Neighbours | None = None
        self._other_loads = OtherLoads() if others and machine else None
        self._looking = _Paced(_SEARCH_SHARE)
        self._watched: dict[Subject, _Watched] = {}
        self._followed: set[int] = set()
        self._kept: dict[tuple[Subject, str], KeptSamples] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_ended, name="monitor", daemon=True)

    def follow(self, subject: Subject, pid: int) -> None:
        """Begin to watch a process and its descendants, with a first sample now. The machine comes with the first."""
        tree = ProcessTree(pid)
        watched = _Watched(tree, MachineShare.of(pid))
        if subject not in ("engine", "machine"):
            watched.jvm, watched.traced = watching.Jvm.among(tree.members), watching.Traced.among(tree.members)
            watched.listening, watched.opens_files = Listening.of(tree.members), True
        self._watch(subject, pid, watched)

    def follow_owner(self, pids: tuple[int, ...]) -> None:
        """Begin to watch the processes of a server that somebody else runs, as `follow` does; nothing without any."""
        if pids:
            tree = ProcessTree(pids[0], OwnedProcesses(pids))
            listening, self._unowned = self._unowned, None
            self._watch(
                "server", pids[0], _Watched(tree, MachineShare.of(*pids), listening=listening, opens_files=True)
            )

    def _watch(self, subject: Subject, pid: int, watched: _Watched) -> None:
        with self._lock:
            first = self._surroundings is None
            if self._surroundings is None:
                self._surroundings = Surroundings.of(self._host, pid, self._peer[0] if self._peer else None)
                if self._machine:
                    self._keep_all(self._surroundings.constants())
                    self._neighbours = Neighbours()
            self._watched[subject] = watched
            self._followed.add(pid)  # its tree is empty once it has ended
            self._sample_cpu(subject, watched.tree)
            self._sample_tree(subject, watched)
            self._sample_surroundings(self._surroundings)
        if first:
            self._thread.start()

    def usage(self) -> ServerUsage:
        """CPU time since the first sample and memory of the server, by the latest samples."""
        with self._lock:
            cpu, memory = (self._kept.get(("server", name)) for name in ("cpu_ns", "rss_bytes"))
            began_unix_ns = cpu.times_unix_ns[0] if cpu else 0
            cpu_ns = int(cpu.values[-1] - cpu.values[0]) if cpu else None
            return ServerUsage(began_unix_ns, cpu_ns, int(memory.values[-1]) if memory else None)

    def finish(self) -> tuple[Series, ...]:
        """Take a last sample, and return all series."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._surroundings is not None:
            self._sample_all(whole=True, last=True)
            self._let_close()
            if self._machine:
                self._keep_all(self._surroundings.constants())
        known = (procfs.tree(pid) for pid in self._known)
        ours = self._followed.union(*(watched.tree.members for watched in self._watched.values()), *known)
        counted = ("machine", "busy_ns") in self._kept
        others = self._neighbours.series(ours) if self._neighbours and counted else ()
        loads = self._other_loads.series(ours) if self._other_loads else ()
        return (*(_series(subject, name, kept) for (subject, name), kept in self._kept.items()), *others, *loads)

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """Return facts about this time from the JVM's log, or another runtime's trace; None without either."""
        watched = self._watched.get("server")
        if watched and watched.jvm:
            return watched.jvm.facts(window_unix_ns)
        return watched.traced.facts(window_unix_ns, server_log) if watched and watched.traced else None

    def _sample_until_ended(self) -> None:
        run_when_idle()
        due_ns, taken = time.monotonic_ns(), 0
        while True:
            # A late sample does not shift later samples; missed samples are left out.
            now_ns = time.monotonic_ns()
            due_ns += self._period_ns * max(1, -(-(now_ns - due_ns) // self._period_ns))
            if self._ended.wait(max(0, due_ns - now_ns) / 1e9):
                return
            taken += 1
            self._sample_all(whole=taken % _WHOLE_EVERY == 0)

    def _sample_all(self, *, whole: bool, last: bool = False) -> None:
        """Sample CPU times, and in a `whole` sample everything else, which costs tens of times as much."""
        with self._lock:
            if whole and self._surroundings is not None:
                self._sample_surroundings(self._surroundings)
            if self._other_loads is not None and (last or (whole and self._looking.is_due())):
                with self._looking.spending():
                    self._other_loads.look()
            if last:
                self._keep_half_closed()
            for subject, watched in self._watched.items():
                self._sample_cpu(subject, watched.tree)
                if whole:
                    self._sample_tree(subject, watched, last=last)

    def _sample_surroundings(self, surroundings: Surroundings) -> None:
        now, stat = _timed(surroundings.stat)
        if self._machine:
            self._keep("machine", now, **surroundings.busy(stat))
        for subject, watched in self._watched.items():
            self._keep(subject, now, **watched.share.sample(stat))
            if watched.listening is not None:
                self._keep(subject, time.time_ns(), **watched.listening.sample())
        if self._unowned is not None:
            self._keep("server", time.time_ns(), **self._unowned.sample())
        if self._machine:
            self._keep_all(surroundings.sample())

    def _keep_all(self, of_machine: Iterable[Values]) -> None:
        for values in of_machine:
            self._keep("machine", time.time_ns(), **values)

    def _sample_cpu(self, subject: Subject, tree: ProcessTree) -> None:
        now, cpu = _timed(tree.cpu_ns)
        if cpu is not None:
            self._keep(subject, now, cpu_ns=cpu)

    def _sample_tree(self, subject: Subject, watched: _Watched, *, last: bool = False) -> None:
        tree, now = watched.tree, time.time_ns()
        if last or watched.search.is_due():
            with watched.search.spending():
                tree.look_around()
        if (size := tree.size()) is not None:
            self._keep(subject, now, **size._asdict())
        if last or watched.threads.is_due():
            with watched.threads.spending():
                now, scheduling = time.time_ns(), tree.scheduling()
            if scheduling is not None:
                self._keep(subject, now, **scheduling._asdict())
        if watched.opens_files and (last or watched.files.is_due()):
            with watched.files.spending():
                now, files = time.time_ns(), tree.descriptors()
            if files is not None:
                self._keep(subject, now, **files._asdict())
        if watched.jvm is not None:
            now, values = _timed(watched.jvm.sample)
            self._keep(subject, now, **values)

    def _let_close(self) -> None:
        """Give a server a moment to close connections that the engine closed at its end."""
        deadline = time.monotonic() + _CLOSES_WITHIN_S
        waiting = [kept for (_, name), kept in self._kept.items() if name == "close_wait"]
        while any(kept.values[-1] for kept in waiting) and time.monotonic() < deadline:
            time.sleep(_CLOSES_WITHIN_S / 10)
            self._keep_half_closed()

    def _keep_half_closed(self) -> None:
        """Look at all connections of this machine that are half closed, which takes milliseconds."""
        own: list[tuple[Subject, Listening | None]] = [(part, seen.listening) for part, seen in self._watched.items()]
        for subject, listening in (*own, ("server", self._unowned)):
            if listening is not None:
                self._keep(subject, time.time_ns(), **listening.half_closed())

    def _keep(self, subject: Subject, now: int, **values: int) -> None:
        for name, value in values.items():
            if (subject, name) not in self._kept:
                self._kept[subject, name] = KeptSamples("gauge" if name in _GAUGES else "counter")
            self._kept[subject, name].add(now, value)


def _timed(read: Callable[[], T]) -> tuple[int, T]:
    """Return a reading and its time; repeat it if this thread had to wait in between, so that neither is stale."""
    for _ in range(_READING_TRIES):
        before, value, after = time.time_ns(), read(), time.time_ns()
        if after - before < _LONGEST_READING_NS:
            break
    return (before + after) // 2, value


def _series(subject: Subject, name: str, kept: KeptSamples) -> Series:
    return Series(
        name=name,
        unit=next((unit for end, unit in _UNITS.items() if name.endswith(end)), "1"),
        subject=subject,
        kind=kept.kind,
        times_unix_ns=tuple(kept.times_unix_ns),
        values=tuple(kept.values),
    )


class Neighbours:
    """The other processes of the machine that used its CPU time, by the names of their commands.

    It looks at every process at its creation and in `series`; processes that end between are not seen.
    """

    def __init__(self) -> None:
        self._began_unix_ns = time.time_ns()
        self._before = {pid: stat.cpu_ns for pid, stat in _processes().items()}

    def series(self, ours: Container[int]) -> tuple[Series, ...]:
        """CPU time since then of the processes that used most, by name, without `ours` and this process."""
        now_unix_ns, used = time.time_ns(), Counter[str]()
        for pid, stat in _processes().items():
            if pid not in ours and pid != os.getpid():
                used[stat.name.decode(errors="replace")] += max(stat.cpu_ns - self._before.get(pid, 0), 0)
        least_ns = _LEAST_OF_NEIGHBOUR * (now_unix_ns - self._began_unix_ns)
        return tuple(
            Series(
                name=f"{OTHERS}{name}",
                unit="ns",
                subject="machine",
                kind="counter",
                times_unix_ns=(self._began_unix_ns, now_unix_ns),
                values=(0.0, float(cpu_ns)),
            )
            for name, cpu_ns in used.most_common(_MOST_NEIGHBOURS)
            if cpu_ns > least_ns
        )


def _processes() -> dict[int, procfs.Stat]:
    return {pid: stat for pid in procfs.process_ids() if (stat := procfs.read_stat(pid)) is not None}
