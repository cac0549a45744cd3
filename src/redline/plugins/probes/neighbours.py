"""Which other processes of the machine used its CPU time, by the names of their commands."""

import os
import time
from collections import Counter
from collections.abc import Container

from redline.model import OTHERS, Series
from redline.plugins.linux import procfs

_MOST = 3
_LEAST = 0.02
"""Of one core: less is not worth a name."""


class Neighbours:
    """Looks at every process when it is made, and once more when asked: two readings of /proc/PID/stat for each.

    A process that ends before the second look is not seen.
    """

    def __init__(self) -> None:
        self._began_unix_ns = time.time_ns()
        self._before = {pid: stat.cpu_ns for pid, stat in _processes().items()}

    def series(self, ours: Container[int]) -> tuple[Series, ...]:
        """CPU time since then of those that used most, by name, without `ours` and this process."""
        now_unix_ns, used = time.time_ns(), Counter[str]()
        for pid, stat in _processes().items():
            if pid not in ours and pid != os.getpid():
                used[stat.name.decode(errors="replace")] += max(stat.cpu_ns - self._before.get(pid, 0), 0)
        least_ns = _LEAST * (now_unix_ns - self._began_unix_ns)
        return tuple(
            Series(
                name=f"{OTHERS}{name}",
                unit="ns",
                subject="machine",
                kind="counter",
                times_unix_ns=(self._began_unix_ns, now_unix_ns),
                values=(0.0, float(cpu_ns)),
            )
            for name, cpu_ns in used.most_common(_MOST)
            if cpu_ns > least_ns
        )


def _processes() -> dict[int, procfs.Stat]:
    return {pid: stat for pid in procfs.process_ids() if (stat := procfs.read_stat(pid)) is not None}
