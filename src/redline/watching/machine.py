"""This machine: properties that may change the numbers, and the cores of server, engine and lab."""

import os
import platform
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from redline.git import git
from redline.linux.cgroup import read_limits
from redline.linux.host import CpuTimes, Host
from redline.model import Environment
from redline.ports import Placement
from redline.version import VERSION

_SAMPLE_S = 0.2
_LONG_AGO_S = 1.0
_HERE = Host()
_GIT_WITHIN_S = 10.0
_HEAD = "# branch.oid "


def plan_placement() -> Placement:
    """Divide the cores that this process may use among server, engine and lab."""
    cores = Host().physical_cores(os.sched_getaffinity(0))
    return replace(place(cores), cores=cores)


def place(cores: tuple[tuple[int, ...], ...]) -> Placement:
    """Separate server and engine. `cores` lists the usable CPUs (hardware threads) of every physical core.

    - One CPU: nothing is pinned, there is nothing to separate.
    - One core of several threads: its threads are treated as cores.
    - Two cores: the server gets the first, the engine the last, and the lab shares the engine's: if it disturbs the
      engine, lateness shows it, while on the server's core it would look like a slow server.
    - Three: the same, with the middle core for the lab.
    - Four or more: the first is left to the lab and to the kernel's own work (interrupts fall there first); the others
      are halved, and the server gets the odd core. Threads of a core are never split between the two.
    """
    if len(cores) == 1:
        cores = tuple((cpu,) for cpu in cores[0])
    if len(cores) < 2:
        return Placement()
    if len(cores) < 4:
        return Placement(server_cpus=cores[0], engine_cpus=cores[-1], lab_cpus=cores[1])
    rest = cores[1:]
    middle = (len(rest) + 1) // 2
    return Placement(server_cpus=_flat(rest[:middle]), engine_cpus=_flat(rest[middle:]), lab_cpus=cores[0])


def read_environment(
    engine_version: str, engine_sha256: str, placement: Placement, glance: "MachineGlance | None" = None
) -> Environment:
    """Read this machine; takes a fifth of a second, to see what else is running, unless a `glance` has begun."""
    host, limits = Host(), read_limits()
    steal, busy = (glance or MachineGlance()).shares(_SAMPLE_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Environment(
        redline=VERSION,
        engine=engine_version,
        engine_sha256=engine_sha256,
        commit=_commit(Path(__file__)),
        python=platform.python_version(),
        os=_os_name(),
        kernel=platform.release(),
        hostname=socket.gethostname(),
        cpu_model=host.cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        cores_online=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        virtual=host.virtual(),
        governor=host.governor(),
        turbo=host.turbo(),
        smt=host.smt(),
        frequency_mhz=host.frequency_mhz(),
        numa_nodes=host.numa_nodes(),
        huge_pages=host.huge_pages(),
        aslr=host.aslr(),
        mitigations=host.mitigations(),
        clock_source=host.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        congestion_control=host.text("/proc/sys/net/ipv4/tcp_congestion_control"),
        open_files_soft=soft,
        open_files_hard=hard,
        port_range=host.port_range(),
        tcp_tw_reuse=host.number("/proc/sys/net/ipv4/tcp_tw_reuse"),
        somaxconn=host.number("/proc/sys/net/core/somaxconn"),
        cgroup=limits.layout,
        cgroup_cpu_limit=limits.cores,
        cgroup_memory_limit_bytes=limits.memory_bytes,
        load_average_1m=host.load_average_1m(),
        steal_share=steal,
        busy_share=busy,
        server_cpus=placement.server_cpus,
        engine_cpus=placement.engine_cpus,
    )


class MachineGlance:
    """A look at what else runs on this machine, which begins with it: this process goes on meanwhile."""

    def __init__(
        self,
        cpu_times: Callable[[], CpuTimes | None] = _HERE.cpu_times,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        own_ns: Callable[[], int] | None = None,
    ) -> None:
        self._cpu_times, self._clock_s, self._sleep = cpu_times, clock_s, sleep
        self._own_ns = own_ns or _own_cpu_ns
        self._begin()

    def _begin(self) -> None:
        self._began_s, self._before, self._own_before_ns = self._clock_s(), self._cpu_times(), self._own_ns()

    def shares(self, seconds: float) -> tuple[float | None, float | None]:
        """Return the shares of all cores' time that were stolen, and used by other processes, over at least `seconds`.

        It waits for what is missing, and begins anew if it began long ago. None if the kernel does not say.
        """
        if self._clock_s() - self._began_s > max(_LONG_AGO_S, seconds):
            self._begin()
        self._sleep(max(0.0, self._began_s + seconds - self._clock_s()))
        after, own_ns = self._cpu_times(), self._own_ns() - self._own_before_ns
        return (None, None) if self._before is None or after is None else shares(self._before, after, own_ns)


def sample_shares(seconds: float) -> tuple[float | None, float | None]:
    """Return the shares of a glance that begins now."""
    return MachineGlance().shares(seconds)


def _own_cpu_ns() -> int:
    """The CPU time of this process and of those that it has started and that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(sum(usage.ru_utime + usage.ru_stime for usage in usages) * 1e9)


def shares(before: CpuTimes, after: CpuTimes, own_ns: int) -> tuple[float | None, float | None]:
    """Return the shares of all cores' time that were stolen, and used by other processes; None without a tick."""
    total = after.total_ns - before.total_ns
    if total <= 0:
        return None, None
    others = after.busy_ns - before.busy_ns - own_ns
    return (after.steal_ns - before.steal_ns) / total, min(1.0, max(0.0, others / total))


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _commit(own_file: Path) -> str:
    """Return the commit of the checkout that tracks this file; empty if it is installed otherwise."""
    if not _git(own_file, "ls-files", "--error-unmatch", "--", str(own_file)):
        return ""
    said = _git(own_file, "status", "--porcelain=v2", "--branch", "--untracked-files=no").splitlines()
    commit = next((line.removeprefix(_HEAD) for line in said if line.startswith(_HEAD)), "")
    changed = any(not line.startswith("#") for line in said)
    return commit + "+dirty" if commit.isalnum() and changed else commit if commit.isalnum() else ""


def _git(own_file: Path, *arguments: str) -> str:
    try:
        done = git(own_file.parent, *arguments, within_s=_GIT_WITHIN_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _flat(cores: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))
