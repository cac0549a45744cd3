"""Other loads of Redline on the same machine, while one is watched."""

import os
import time
from collections.abc import Callable, Container, Mapping

from redline.model import OTHER_LOAD, Series
from redline.plugins.linux import procfs

_ENGINE = b"redline-engine"


class OtherLoads:
    """The engines of other labs that were seen, by their process ids. `look` sees those that run at the time.

    The processes of an engine, and what only checks answers, are no loads of their own.
    """

    def __init__(
        self,
        processes: Callable[[], Mapping[int, procfs.Stat]],
        has_arguments: Callable[[int], bool] | None = None,
    ) -> None:
        self._processes = processes
        self._has_arguments = has_arguments or _has_arguments
        self._seen: dict[int, tuple[str, int, int]] = {}
        """The lab, and when its engine was first and last seen, per process id."""

    def look(self) -> None:
        """Note the engines that run now."""
        now_unix_ns, running = time.time_ns(), self._processes()
        for pid, stat in running.items():
            parent = running.get(stat.parent)
            is_part = parent is not None and parent.name == _ENGINE
            if stat.name != _ENGINE or is_part or stat.parent == os.getpid() or self._has_arguments(pid):
                continue
            name = parent.name.decode(errors="replace") if parent is not None else "process"
            lab, first_unix_ns, _ = self._seen.get(pid, (f"{name} ({stat.parent})", now_unix_ns, now_unix_ns))
            self._seen[pid] = lab, first_unix_ns, now_unix_ns

    def series(self, ours: Container[int]) -> tuple[Series, ...]:
        """When each was seen, by the lab that started it; those among `ours` are no others."""
        return tuple(
            Series(
                name=f"{OTHER_LOAD}{lab}",
                unit="1",
                subject="machine",
                kind="gauge",
                times_unix_ns=(first_unix_ns, last_unix_ns),
                values=(1.0, 1.0),
            )
            for pid, (lab, first_unix_ns, last_unix_ns) in self._seen.items()
            if pid not in ours
        )


def _has_arguments(pid: int) -> bool:
    """Whether an engine was told on its command line what to do, in place of a job that is a load."""
    return procfs.read_bytes(f"/proc/{pid}/cmdline").count(b"\0") > 1
