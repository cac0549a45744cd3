"""How a machine affects the numbers, and what to do about it. docs/guide/doctor.md explains each topic."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from redline.model import Environment
from redline.model.base import Frozen

Verdict = tuple[Literal["ok", "note", "warn"], str, str]

# The load of the quickstart needs hundreds; a run of tens of thousands of connections needs one descriptor for each.
_ENOUGH_FILES = 16_384
# Below it, open loads and reconnects at a few hundred a second run out of ports within TIME_WAIT's 60 s.
_ENOUGH_PORTS = 20_000
# A queue of new connections that is shorter drops some of those that a load opens at once.
_ENOUGH_BACKLOG = 1_024
# Stolen time hits server and engine alike; above one in a hundred it shows in the 99th percentile.
_STEAL = 0.01
# What others use is taken from server or engine; 5% of the machine moves a throughput by about as much.
_BUSY = 0.05
_ENOUGH_MEMORY_BYTES = 2 << 30


class Advice(Frozen):
    """Advice on one topic: how the machine affects the numbers (`says`) and what to do about it (`do`)."""

    topic: str
    grade: Literal["ok", "note", "warn"]
    says: str
    do: str = Field(default="", description="a command or an action; empty if there is nothing to do")


def examine(environment: Environment) -> tuple[Advice, ...]:
    """Advice on each topic for which this machine gives information, always in the same order."""
    found = []
    for topic, look in _TOPICS.items():
        verdict = look(environment)
        if verdict is not None:
            grade, says, do = verdict
            found.append(Advice(topic=topic, grade=grade, says=says, do=do))
    return tuple(found)


def _cores(env: Environment) -> Verdict:
    if env.cores == 1:
        says = "one core: server and engine take it from each other, so no throughput here is the server's own"
        return (
            "warn",
            says,
            "use a machine of at least 2 cores, better 4; compare here only at open loads far below its limit",
        )
    pinned = f"server on {_listed(env.server_cpus)}, engine on {_listed(env.engine_cpus)}"
    spare = env.cores > len(env.server_cpus) + len(env.engine_cpus)
    if env.cores < 4 or not spare:
        sharing = "the kernel shares" if spare else "the kernel and the lab share"
        says = f"{env.cores} cores: {pinned}; {sharing} these cores, which widens the tails"
        return "note", says, "use 4 cores or more (not counting hardware threads) for numbers that will be quoted"
    return "ok", f"{env.cores} cores: {pinned}, the others for the kernel and the lab", ""


def _governor(env: Environment) -> Verdict | None:
    if not env.governor:
        return None
    if env.governor == "performance":
        return "ok", "governor performance: cores keep their frequency", ""
    says = f"governor {env.governor}: cores slow down between requests, so a light load looks slower than a heavy one"
    return "warn", says, "sudo cpupower frequency-set -g performance"


def _turbo(env: Environment) -> Verdict | None:
    if env.turbo is None:
        return None
    if not env.turbo:
        return "ok", "turbo is off: a core runs as fast when the others are busy", ""
    says = "turbo is on: a core is faster while others idle or are cool, so the first trials of a run may be faster"
    intel = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    return "note", says, f"{intel}; on AMD: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"


def _smt(env: Environment) -> Verdict | None:
    if env.smt is None:
        return None
    if not env.smt:
        return "ok", "no sibling threads: each core has its execution units for itself", ""
    says = "sibling threads share a core: one is slowed by the other; server and engine get whole cores where possible"
    return "note", says, "echo off | sudo tee /sys/devices/system/cpu/smt/control"


def _virtual(env: Environment) -> Verdict:
    if not env.virtual:
        return "ok", "no hypervisor is seen", ""
    name = "" if env.virtual == "yes" else f" ({env.virtual})"
    says = f"a virtual machine{name}: its neighbours and its host's clock change the numbers from hour to hour"
    return "note", says, "compare only within one run, never with a run of another day; prefer dedicated instances"


def _steal(env: Environment) -> Verdict | None:
    if env.steal_share is None:
        return None
    share = f"{env.steal_share:.1%} of CPU time is being stolen by the hypervisor"
    if env.steal_share > _STEAL:
        return (
            "warn",
            f"{share}: requests wait for it, which shows first in p99",
            "choose another machine, or another hour",
        )
    return "ok", share, ""


def _open_files(env: Environment) -> Verdict:
    says = f"a process may open {env.open_files_soft} files (up to {env.open_files_hard})"
    if env.open_files_hard < _ENOUGH_FILES:
        return (
            "warn",
            f"{says}: loads of more connections cannot be made",
            "raise LimitNOFILE of the session, or `nofile` in /etc/security/limits.conf",
        )
    return "ok", f"{says}; the lab raises it to that for the server and the engine", ""


def _port_range(env: Environment) -> Verdict | None:
    if env.port_range is None:
        return None
    first, last = env.port_range
    says = f"{last - first + 1} ports for outgoing connections ({first} to {last})"
    if last - first + 1 < _ENOUGH_PORTS:
        do = 'sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"'
        return "warn", f"{says}: loads of many connections, or with reconnects, run out of them", do
    return "ok", says, ""


def _tw_reuse(env: Environment) -> Verdict | None:
    if env.tcp_tw_reuse is None:
        return None
    if env.tcp_tw_reuse == 0:
        says = "ports stay blocked for 60 s after a connection that the engine closed: reconnects may run out of them"
        return "note", says, "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"
    where = "on loopback" if env.tcp_tw_reuse == 2 else "everywhere"
    return "ok", f"ports in TIME_WAIT are used again {where}", ""


def _backlog(env: Environment) -> Verdict | None:
    if env.somaxconn is None:
        return None
    says = f"at most {env.somaxconn} new connections wait to be accepted"
    if env.somaxconn < _ENOUGH_BACKLOG:
        do = "sudo sysctl -w net.core.somaxconn=4096"
        return "warn", f"{says}: when many open at once some are dropped and retried a second later", do
    return "ok", says, ""


def _congestion(env: Environment) -> Verdict | None:
    if not env.congestion_control:
        return None
    if env.congestion_control == "bbr":
        says = "congestion control bbr paces what is sent, at a cost in CPU and, for large answers, in latency"
        return "note", says, "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic, or compare only with runs under bbr"
    return "ok", f"congestion control {env.congestion_control}", ""


def _clock(env: Environment) -> Verdict | None:
    if not env.clock_source:
        return None
    if env.clock_source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return "ok", f"clock {env.clock_source}: read without a system call, in tens of nanoseconds", ""
    says = f"clock {env.clock_source}: each reading is a system call or slower, which the engine pays for every request"
    return "warn", says, "boot with clocksource=tsc where the CPU's TSC is reliable (dmesg | grep -i tsc)"


def _cgroup_cpu(env: Environment) -> Verdict | None:
    if env.cgroup_cpu_limit is None:
        return None
    says = f"the control group allows {env.cgroup_cpu_limit:.3g} cores of {env.cores}"
    if env.cgroup_cpu_limit < env.cores:
        do = "start the container without --cpus, and give it whole cores with --cpuset-cpus"
        return "warn", f"{says}: once used up, all of it stands still for the rest of each 100 ms", do
    return "ok", says, ""


def _memory(env: Environment) -> Verdict:
    limit = env.cgroup_memory_limit_bytes
    memory = env.memory_bytes if limit is None else min(limit, env.memory_bytes)
    whose = "the machine has" if memory == env.memory_bytes else "the control group allows"
    says = f"{whose} {memory / (1 << 30):.1f} GiB of memory"
    if memory < _ENOUGH_MEMORY_BYTES:
        return (
            "warn",
            f"{says}: builds and JVM servers may be killed for lack of it",
            "use at least 2 GiB, 4 for servers on the JVM",
        )
    return "ok", says, ""


def _others(env: Environment) -> Verdict | None:
    if env.busy_share is None:
        return None
    says = f"others use {env.busy_share:.0%} of the machine now; load average {env.load_average_1m:.2f}"
    if env.busy_share > _BUSY:
        return (
            "warn",
            f"{says}: what they take is missing from server or engine",
            "end what is not needed; see it with `top`",
        )
    return "ok", says, ""


_TOPICS: dict[str, Callable[[Environment], Verdict | None]] = {
    "cores": _cores,
    "governor": _governor,
    "turbo": _turbo,
    "smt": _smt,
    "virtual": _virtual,
    "steal": _steal,
    "other load": _others,
    "clock": _clock,
    "cgroup cpu": _cgroup_cpu,
    "memory": _memory,
    "open files": _open_files,
    "ports": _port_range,
    "time-wait": _tw_reuse,
    "backlog": _backlog,
    "congestion": _congestion,
}


def _listed(cpus: tuple[int, ...]) -> str:
    """`1-3`, `0,2`, or `any` when nothing is pinned."""
    if not cpus:
        return "any"
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
