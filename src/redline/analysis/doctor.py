"""How a machine affects the numbers, and what to do about it. docs/guide/doctor.md explains each topic."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from redline.model import ClockReading, Environment
from redline.model.base import Frozen
from redline.model.hosts import MOST_CLOCK_ERROR
from redline.quantities import duration

_Advised = tuple[str, Literal["ok", "note", "warn"], str, str]
"""The fields of an Advice."""

# The load of the quickstart needs hundreds; every connection of a large load needs a descriptor.
_ENOUGH_FILES = 16_384
# Below it, open loads and reconnects at a few hundred a second run out of ports within TIME_WAIT's 60 s.
_ENOUGH_PORTS = 20_000
# A shorter queue drops some of the connections that a load opens at once.
_ENOUGH_BACKLOG = 1_024
# Stolen time hits server and engine alike; above one in a hundred it shows in the 99th percentile.
MOST_STEAL = 0.01
# Other programs take time from server or engine; 5% of the machine moves a throughput by about as much.
MOST_BUSY = 0.05
_ENOUGH_MEMORY_BYTES = 2 << 30
# Half of the largest error between two hosts for which a one-way time of 1 ms is shown.
_GOOD_CLOCK_NS = 50_000


class Advice(Frozen):
    """Advice on one topic: how the machine affects the numbers (`says`) and what to do about it (`do`)."""

    topic: str
    grade: Literal["ok", "note", "warn"]
    says: str
    do: str = Field(default="", description="a command or an action; empty if there is nothing to do")


def examine(environment: Environment) -> tuple[Advice, ...]:
    """Advice on every topic about which this machine gives information, always in the same order."""
    parts = (_cores, _frequency, _layout, _others, _process, _network)
    return tuple(
        Advice(topic=topic, grade=grade, says=says, do=do)
        for part in parts
        for topic, grade, says, do in part(environment)
    )


def container_advice(version: str, reason: str = "", hint: str = "") -> Advice:
    """Whether servers can run in containers: the engine's version, or the reason why not."""
    if not reason:
        says = f"{version}: it has run a container, so servers can run in containers"
        return Advice(topic="containers", grade="ok", says=says)
    return Advice(topic="containers", grade="note", says=f"no server can run in a container: {reason}", do=hint)


def cache_advice(folder: str, held: str, reason: str = "") -> Advice:
    """The place and contents of the user's cache, or why it cannot be written."""
    if reason:
        return Advice(
            topic="cache",
            grade="note",
            says=f"{folder} cannot be written: {reason}; no server of the catalogue can be built",
            do="set XDG_CACHE_HOME to a folder that can be written",
        )
    return Advice(topic="cache", grade="ok", says=f"{folder} holds {held}; `redline cache` lists it")


def clock_advice(reading: ClockReading | None) -> Advice:
    """How far a host's clock may be off in a setup of several hosts. Only one-way times depend on it."""
    if reading is None:
        says = "no chrony says how far this clock is off: one-way times will not be shown"
        return Advice(topic="clock", grade="note", says=says, do="apt install chrony, on every host")
    shown = duration(round(reading.bound_ns / MOST_CLOCK_ERROR))
    says = f"at most {duration(reading.bound_ns)} off, by {reading.reference}: one-way times above {shown} can be shown"
    if reading.bound_ns < _GOOD_CLOCK_NS:
        return Advice(topic="clock", grade="ok", says=says)
    return Advice(topic="clock", grade="note", says=says, do="let chrony follow a source in the same network")


def _cores(env: Environment) -> Iterator[_Advised]:
    pinned = f"server on {_listed(env.server_cpus)}, engine on {_listed(env.engine_cpus)}"
    spare = env.cores > len(env.server_cpus) + len(env.engine_cpus)
    if env.cores == 1:
        says = "one core: server and engine take it from each other, so no throughput here is the server's own"
        do = "use a machine of at least 2 cores, better 4; compare here only at open loads far below its limit"
        yield "cores", "warn", says, do
    elif env.cores < 4 or not spare:
        sharing = "the kernel shares" if spare else "the kernel and the lab share"
        says = f"{env.cores} cores: {pinned}; {sharing} these cores, which widens the tails"
        do = "use 4 cores or more (not counting hardware threads) for numbers that will be quoted"
        yield "cores", "note", says, do
    else:
        yield "cores", "ok", f"{env.cores} cores: {pinned}, the others for the kernel and the lab", ""
    if env.smt:
        slowed = "each slows the other; server and engine get whole cores where possible"
        do = "echo off | sudo tee /sys/devices/system/cpu/smt/control"
        yield "smt", "note", f"sibling threads share a core: {slowed}", do
    elif env.virtual:
        says = "unknown: a guest is not shown whether its cores are threads of the host's cores"
        yield "smt", "note", says, "ask the provider, or take an instance whose virtual CPUs are whole cores"
    elif env.smt is not None:
        yield "smt", "ok", "no sibling threads: each core has its execution units for itself", ""


def _frequency(env: Environment) -> Iterator[_Advised]:
    if env.governor == "performance":
        yield "governor", "ok", "governor performance: cores keep their frequency", ""
    elif env.governor:
        slow = "cores slow down between requests, so a light load looks slower than a heavy one"
        yield "governor", "warn", f"governor {env.governor}: {slow}", "sudo cpupower frequency-set -g performance"
    if env.turbo:
        says = "turbo is on: a core is faster while others idle or are cool, so the first trials of a run may be faster"
        intel = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
        yield "turbo", "note", says, f"{intel}; on AMD: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    elif env.turbo is not None:
        yield "turbo", "ok", "turbo is off: a core runs as fast when the others are busy", ""
    if env.frequency_mhz is not None:
        lowest, highest = env.frequency_mhz
        says = f"cores run at {lowest} to {highest} MHz" if lowest < highest else f"cores run at {lowest} MHz"
        yield "frequency", "ok", says, ""


def _layout(env: Environment) -> Iterator[_Advised]:
    """Advice about the layout of memory, and the cost of access to it and to the kernel."""
    if env.numa_nodes is not None and env.numa_nodes > 1:
        says = f"{env.numa_nodes} NUMA nodes: memory of another node is slower, and which one a process gets may vary"
        yield "numa", "note", says, "start the lab on the cores and memory of one node: numactl -N 0 -m 0 redline …"
    elif env.numa_nodes is not None:
        yield "numa", "ok", "one NUMA node: all memory is equally far", ""
    if env.huge_pages == "always":
        says = "transparent huge pages always: the kernel merges pages while a server runs, which may stop it meanwhile"
        do = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        yield "huge pages", "note", says, do
    elif env.huge_pages:
        yield "huge pages", "ok", f"transparent huge pages {env.huge_pages}: no server gets them unasked", ""
    if env.aslr:
        yield "aslr", "ok", "memory is at random addresses, so fresh starts average over its layouts", ""
    elif env.aslr is not None:
        says = "every start has the same layout of memory: a server that it favours looks faster than it is"
        yield "aslr", "note", says, "sudo sysctl -w kernel.randomize_va_space=2"
    if env.mitigations:
        yield "mitigations", "ok", f"processor faults that the kernel works around: {env.mitigations}", ""


def _others(env: Environment) -> Iterator[_Advised]:
    """Advice about the hypervisor and other programs."""
    if env.virtual:
        name = "" if env.virtual == "yes" else f" ({env.virtual})"
        says = f"a virtual machine{name}: its neighbours and its host's clock change the numbers from hour to hour"
        do = "compare only within one run, never with a run of another day; prefer dedicated instances"
        yield "virtual", "note", says, do
    else:
        yield "virtual", "ok", "no hypervisor is seen", ""
    if env.steal_share is not None:
        says = f"{env.steal_share:.1%} of CPU time is being stolen by the hypervisor"
        doubt = "requests wait for it, which shows first in p99" if env.steal_share > MOST_STEAL else ""
        yield _warning_if("steal", says, doubt, "choose another machine, or another hour")
    if env.busy_share is not None:
        says = f"others use {env.busy_share:.0%} of the machine now; load average {env.load_average_1m:.2f}"
        doubt = "what they take is missing from server or engine" if env.busy_share > MOST_BUSY else ""
        yield _warning_if("other load", says, doubt, "end what is not needed; see it with `top`")


def _process(env: Environment) -> Iterator[_Advised]:
    """Advice about the kernel's limits for a process."""
    if env.clock_source in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        says = f"clock {env.clock_source}: read without a system call, in tens of nanoseconds"
        yield "clock", "ok", says, ""
    elif env.clock_source:
        slow = "each reading is a system call or slower, which the engine pays for every request"
        do = "boot with clocksource=tsc where the CPU's TSC is reliable (dmesg | grep -i tsc)"
        yield "clock", "warn", f"clock {env.clock_source}: {slow}", do
    if env.cgroup_cpu_limit is not None:
        says = f"the control group allows {env.cgroup_cpu_limit:.3g} cores of {env.cores}"
        stands = "once used up, all of it stands still for the rest of each 100 ms"
        do = "start the container without --cpus, and give it whole cores with --cpuset-cpus"
        yield _warning_if("cgroup cpu", says, stands if env.cgroup_cpu_limit < env.cores else "", do)
    limit = env.cgroup_memory_limit_bytes
    memory = env.memory_bytes if limit is None else min(limit, env.memory_bytes)
    whose = "the machine has" if memory == env.memory_bytes else "the control group allows"
    says = f"{whose} {memory / (1 << 30):.1f} GiB of memory"
    doubt = "builds and JVM servers may be killed for lack of it" if memory < _ENOUGH_MEMORY_BYTES else ""
    yield _warning_if("memory", says, doubt, "use at least 2 GiB, 4 for servers on the JVM")
    says = f"a process may open {env.open_files_soft} files (up to {env.open_files_hard})"
    if env.open_files_hard < _ENOUGH_FILES:
        do = "raise LimitNOFILE of the session, or `nofile` in /etc/security/limits.conf"
        yield "open files", "warn", f"{says}: loads of more connections cannot be made", do
    else:
        yield "open files", "ok", f"{says}; the lab raises it to that for the server and the engine", ""


def _network(env: Environment) -> Iterator[_Advised]:
    if env.port_range is not None:
        first, last = env.port_range
        says = f"{last - first + 1} ports for outgoing connections ({first} to {last})"
        few = last - first + 1 < _ENOUGH_PORTS
        doubt = "loads of many connections, or with reconnects, run out of them" if few else ""
        yield _warning_if("ports", says, doubt, 'sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"')
    if env.tcp_tw_reuse == 0:
        says = "ports stay blocked for 60 s after a connection that the engine closed: reconnects may run out of them"
        yield "time-wait", "note", says, "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"
    elif env.tcp_tw_reuse is not None:
        where = "on loopback" if env.tcp_tw_reuse == 2 else "everywhere"
        yield "time-wait", "ok", f"ports in TIME_WAIT are used again {where}", ""
    if env.somaxconn is not None:
        says = f"at most {env.somaxconn} new connections wait to be accepted"
        dropped = "when many open at once some are dropped and retried a second later"
        doubt = dropped if env.somaxconn < _ENOUGH_BACKLOG else ""
        yield _warning_if("backlog", says, doubt, "sudo sysctl -w net.core.somaxconn=4096")
    if env.congestion_control == "bbr":
        says = "congestion control bbr paces what is sent, at a cost in CPU and, for large answers, in latency"
        do = "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic, or compare only with runs under bbr"
        yield "congestion", "note", says, do
    elif env.congestion_control:
        yield "congestion", "ok", f"congestion control {env.congestion_control}", ""


def _warning_if(topic: str, says: str, doubt: str, do: str) -> _Advised:
    """A warning that ends with the doubt; without a doubt, `ok` and nothing to do."""
    return (topic, "warn", f"{says}: {doubt}", do) if doubt else (topic, "ok", says, "")


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
