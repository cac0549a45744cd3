"""System calls of a server by kind, counted in the kernel by `perf stat` in the warm-up, when nothing is sampled."""

import subprocess
import time
from functools import cache
from pathlib import Path

from redline.extras.profiling import commands
from redline.extras.profiling.commands import PERF, Perf
from redline.model import Series

_TRACING = Path("/sys/kernel/tracing/events")
_ALL = "raw_syscalls:sys_enter"
_KINDS = (
    *(
        "read",
        "readv",
        "pread64",
        "write",
        "writev",
        "pwrite64",
        "recvfrom",
        "recvmsg",
        "sendto",
        "sendmsg",
        "sendfile64",
    ),
    *("accept", "accept4", "close", "shutdown", "openat", "newfstat", "newfstatat", "fcntl", "fsync", "fdatasync"),
    *("epoll_wait", "epoll_pwait", "epoll_ctl", "poll", "ppoll", "select", "pselect6", "io_uring_enter", "eventfd2"),
    *("futex", "nanosleep", "clock_nanosleep", "sched_yield", "mmap", "munmap", "mprotect", "madvise", "brk", "clone3"),
)
OTHERS = "others"
_GIVES_RIGHT = "run as root, or lower /proc/sys/kernel/perf_event_paranoid to -1 and make /sys/kernel/tracing readable"


class SystemCalls(Perf):
    """Counts the system calls of a process and what it starts, from `start` to `stop`."""

    def __init__(self) -> None:
        super().__init__()
        self.env = {}
        self._kinds = [kind for kind in _KINDS if (_TRACING / "syscalls" / f"sys_enter_{kind}").exists()]
        self._times = (0, 0)

    def _ordered(self, folder: Path) -> list[str]:
        self._data, self._log = folder / "syscalls.csv", folder / "syscalls.log"
        events = ",".join([_ALL, *(f"syscalls:sys_enter_{kind}" for kind in self._kinds)])
        return [PERF, "stat", "-x", ",", "-e", events]

    def start(self, pid: int, folder: Path) -> None:
        """Count from now on."""
        if self._process is None:
            self.prepare(pid, folder)
        self._order("enable")
        self._times = time.time_ns(), 0

    def stop(self) -> None:
        """Count no more."""
        if self._process is None:
            return
        try:
            self._order("disable")
            self._times = self._times[0], time.time_ns()
        finally:
            self._end()

    def series(self) -> tuple[Series, ...]:
        """A counter for each kind, and one for the others. Raises OSError and ValueError if perf did not write them."""
        counts = dict[str, int]()
        for line in self._data.read_text().splitlines():
            value, _, event = (*line.split(","), "", "")[:3]
            if ":" in event:
                counts[event.rpartition("sys_enter")[2].removeprefix("_")] = int(value)
        counts[OTHERS] = max(0, counts.pop("", 0) - sum(counts.values()))
        self._data.unlink()
        self._log.unlink(missing_ok=True)
        return tuple(
            Series(
                name=f"syscalls:{kind}",
                unit="1",
                subject="server",
                kind="counter",
                times_unix_ns=self._times,
                values=(0.0, float(count)),
            )
            for kind, count in counts.items()
        )


@cache
def uncounted() -> str:
    """Say why system calls cannot be counted here, with a hint; empty if they can."""
    if reason := commands.missing(PERF):
        return reason
    try:
        tried = subprocess.run(
            [PERF, "stat", "-e", _ALL, "--control=fd:0", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "perf could not be run, or did not end"
    return "" if tried.returncode == 0 else f"perf may not read {_ALL}: {_GIVES_RIGHT}"
