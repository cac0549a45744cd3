"""Other measurements and loads of Redline on the same machine, while one is watched."""

import os
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import replace

from redline.lazily import dataclass
from redline.linux import procfs
from redline.model import OTHER_LOAD, Series
from redline.watching.measurements import Measurement, measurements

_ENGINE = b"redline-engine"


@dataclass(frozen=True)
class _SeenEngine:
    """An engine of a lab: when it was first and last seen, and the CPU time that it had used then.

    `parent` is the process of the lab.
    """

    lab: str
    parent: int
    first_unix_ns: int
    last_unix_ns: int
    first_cpu_ns: int
    last_cpu_ns: int


class OtherLoads:
    """The measurements of other labs that were seen, and their engines. `look` sees those that run at the time.

    A measurement says itself what it is. It may be of a lab in a container, whose engines are not seen here, and an
    engine of a lab that shares no directory with this one.

    The processes of an engine, and what only checks answers, are no loads of their own. A process is read twice, since
    it may have begun as a copy of what started it, and not again: a look costs little on a machine of many processes.
    """

    def __init__(
        self,
        processes: Callable[[], Iterable[int]] = procfs.process_ids,
        stat_of: Callable[[int], procfs.Stat | None] = procfs.read_stat,
        has_arguments: Callable[[int], bool] | None = None,
        measured: Callable[[], Iterable[Measurement]] | None = None,
    ) -> None:
        self._processes, self._stat_of = processes, stat_of
        self._has_arguments = has_arguments or _has_arguments
        self._measured = measured or _measured
        self._named: dict[str, tuple[Measurement, int, int]] = {}
        """The measurements by the names of their files, and when they were first and last seen."""
        self._reads: dict[int, int] = {}
        """How often each process was read that is no engine."""
        self._seen: dict[int, _SeenEngine] = {}

    def look(self) -> None:
        """Note the measurements and engines that run now."""
        now_unix_ns = time.time_ns()
        for other in self._measured():
            _, first_unix_ns, _ = self._named.get(other.name, (other, now_unix_ns, now_unix_ns))
            self._named[other.name] = other, first_unix_ns, now_unix_ns
        now_unix_ns, running = time.time_ns(), frozenset(self._processes())
        self._reads = {pid: reads for pid, reads in self._reads.items() if pid in running}
        for pid in running:
            stat = self._stat_of(pid) if self._reads.get(pid, 0) < 2 else None
            if stat is None or stat.name != _ENGINE:
                self._reads[pid] = self._reads.get(pid, 0) + 1
            elif lab := self._lab_of(pid, stat):
                first = self._seen.setdefault(
                    pid, _SeenEngine(lab, stat.parent, now_unix_ns, now_unix_ns, stat.cpu_ns, stat.cpu_ns)
                )
                self._seen[pid] = replace(first, last_unix_ns=now_unix_ns, last_cpu_ns=stat.cpu_ns)

    def _lab_of(self, pid: int, stat: procfs.Stat) -> str:
        """The lab that loads something by this engine; empty if it is only a part of one, or checks answers."""
        parent = self._stat_of(stat.parent)
        is_part = parent is not None and parent.name == _ENGINE
        if is_part or self._has_arguments(pid):
            return ""
        if stat.parent == os.getpid():
            return f"another thread ({stat.parent})"
        return f"{parent.name.decode(errors='replace') if parent is not None else 'process'} ({stat.parent})"

    def series(self, ours: Container[int]) -> tuple[Series, ...]:
        """When each was seen, and CPU time of its engines, by the lab; those among `ours` are no others."""
        by_process = {other.pid: str(other) for other, *_ in self._named.values() if other.pid is not None}
        of_labs: dict[str, list[tuple[int, int, int]]] = {
            str(other): [(first_unix_ns, last_unix_ns, 0)]
            for other, first_unix_ns, last_unix_ns in self._named.values()
        }
        for pid, engine in self._seen.items():
            if pid not in ours:
                used_ns = engine.last_cpu_ns - engine.first_cpu_ns
                lab = of_labs.setdefault(by_process.get(engine.parent, engine.lab), [])
                lab.append((engine.first_unix_ns, engine.last_unix_ns, used_ns))
        return tuple(
            Series(
                name=f"{OTHER_LOAD}{lab}",
                unit="ns",
                subject="machine",
                kind="counter",
                times_unix_ns=(min(first for first, _, _ in seen), max(last for _, last, _ in seen)),
                values=(0.0, float(sum(used_ns for _, _, used_ns in seen))),
            )
            for lab, seen in of_labs.items()
        )


def _measured() -> tuple[Measurement, ...]:
    """What other processes measure now, and do not only wait to."""
    known = measurements()
    return tuple(it for it in known.others() if not it.is_waiting) if known is not None else ()


def _has_arguments(pid: int) -> bool:
    """Whether an engine was told on its command line what to do, in place of a job that is a load."""
    return procfs.read_bytes(f"/proc/{pid}/cmdline").count(b"\0") > 1
