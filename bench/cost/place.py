"""Where a bench runs: cores, binaries and lengths; and how busy the machine is with other things."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_SECOND_S = 1.0
BUSY_SHARE = 0.05
_NAMED = 3


@dataclass(frozen=True)
class Place:
    """The cores, two at least, the oracle's binary, a folder for files, and how many rounds of how many seconds."""

    cores: tuple[int, ...]
    oracle: Path
    scratch: Path
    pairs: int
    seconds: int

    @property
    def server_core(self) -> int:
        """The first one."""
        return self.cores[0]

    @property
    def client_core(self) -> int:
        """The second one."""
        return self.cores[1]


@dataclass(frozen=True)
class Use:
    """CPU time since the boot over all cores, used or stolen, in all and by us, and the clock; in seconds."""

    busy_s: float
    stolen_s: float
    ours_s: float
    at_s: float
    cores: int

    @classmethod
    def now(cls) -> "Use":
        """Ours are this process and those children that have ended."""
        times = psutil.cpu_times()
        busy = times.user + times.nice + times.system + times.irq + times.softirq
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        return cls(busy, times.steal, ours, time.monotonic(), os.cpu_count() or 1)

    def others_since(self, before: "Use") -> tuple[float, float]:
        """Shares of all cores' time that others used and that the hypervisor took."""
        total = max((self.at_s - before.at_s) * self.cores, 1e-9)
        others = (self.busy_s - before.busy_s) - (self.ours_s - before.ours_s)
        return max(0.0, others / total), (self.stolen_s - before.stolen_s) / total


def busy_line(before: Use, after: Use) -> str:
    """One line; it warns where others used more than a twentieth."""
    others, stolen = after.others_since(before)
    warning = " **The machine is busy: do not keep these figures.**" if others + stolen > BUSY_SHARE else ""
    return f"others used {others:.0%} of all cores' time, {stolen:.1%} was stolen.{warning}"


def look() -> str:
    """One second of doing nothing: who is busy meanwhile, and the load average."""
    processes = list(psutil.process_iter(["name"]))
    before_s = {process.pid: _cpu_s(process) for process in processes}
    before = Use.now()
    time.sleep(_SECOND_S)
    after = Use.now()
    used = [(_cpu_s(process) - before_s[process.pid], process.info["name"]) for process in processes]
    busiest = ", ".join(f"{name} {share:.0%}" for share, name in sorted(used, reverse=True)[:_NAMED] if share > 0.01)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    by = f" (of one core: {busiest})" if busiest else ""
    return f"load average {load}; over one second {busy_line(before, after)}{by}"


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
