"""Other loads of Redline on the same machine, while one is watched."""

import os
import time
from collections.abc import Callable, Container, Iterable

from redline.model import OTHER_LOAD, Series
from redline.plugins.linux import procfs

_ENGINE = b"redline-engine"


class OtherLoads:
    """The engines of other labs that were seen, by their process ids. `look` sees those that run at the time.

    The processes of an engine, and what only checks answers, are no loads of their own. A process is read twice, since
    it may have begun as a copy of what started it, and not again: a look costs little on a machine of many processes.
    """

    def __init__(
        self,
        processes: Callable[[], Iterable[int]] = procfs.process_ids,
        stat_of: Callable[[int], procfs.Stat | None] = procfs.read_stat,
        has_arguments: Callable[[int], bool] | None = None,
    ) -> None:
        self._processes, self._stat_of = processes, stat_of
        self._has_arguments = has_arguments or _has_arguments
        self._reads: dict[int, int] = {}
        """How often each process was read that is no engine."""
        self._seen: dict[int, tuple[str, int, int]] = {}
        """The lab, and when its engine was first and last seen, per process id."""

    def look(self) -> None:
        """Note the engines that run now."""
        now_unix_ns, running = time.time_ns(), frozenset(self._processes())
        self._reads = {pid: reads for pid, reads in self._reads.items() if pid in running}
        for pid in running:
            if self._reads.get(pid, 0) < 2 and (lab := self._lab_of(pid)):
                _, first_unix_ns, _ = self._seen.get(pid, ("", now_unix_ns, 0))
                self._seen[pid] = lab, first_unix_ns, now_unix_ns

    def _lab_of(self, pid: int) -> str:
        """The lab that loads something by this process; empty if it is no engine, or only a part of one."""
        stat = self._stat_of(pid)
        if stat is None or stat.name != _ENGINE:
            self._reads[pid] = self._reads.get(pid, 0) + 1
            return ""
        parent = self._stat_of(stat.parent)
        is_part = parent is not None and parent.name == _ENGINE
        if is_part or self._has_arguments(pid):
            return ""
        if stat.parent == os.getpid():
            return f"another thread ({stat.parent})"
        return f"{parent.name.decode(errors='replace') if parent is not None else 'process'} ({stat.parent})"

    def series(self, ours: Container[int]) -> tuple[Series, ...]:
        """When each was seen, by the lab that started it; those among `ours` are no others."""
        of_labs: dict[str, tuple[int, int]] = {}
        for pid, (lab, first_unix_ns, last_unix_ns) in self._seen.items():
            if pid not in ours:
                first, last = of_labs.get(lab, (first_unix_ns, last_unix_ns))
                of_labs[lab] = min(first, first_unix_ns), max(last, last_unix_ns)
        return tuple(
            Series(
                name=f"{OTHER_LOAD}{lab}",
                unit="1",
                subject="machine",
                kind="gauge",
                times_unix_ns=seen,
                values=(1.0, 1.0),
            )
            for lab, seen in of_labs.items()
        )


def _has_arguments(pid: int) -> bool:
    """Whether an engine was told on its command line what to do, in place of a job that is a load."""
    return procfs.read_bytes(f"/proc/{pid}/cmdline").count(b"\0") > 1
