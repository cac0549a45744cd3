"""The machine according to /proc and /sys, and its clock according to chrony; unknown is an empty text or None."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from redline.lazily import dataclass
from redline.linux.procfs import TICK_NS
from redline.model import ClockReading

STAT = "/proc/stat"
_TRACKING = ("chronyc", "-n", "-c", "tracking")
_TRACKING_WITHIN_S = 5.0
_TRACKING_FIELDS = 14
_NO_REFERENCE = "00000000"
"""The reference of an unsynchronized clock."""
_BY_VENDOR = {
    "amazon ec2": "Amazon EC2",
    "google": "Google Compute Engine",
    "microsoft corporation": "Hyper-V",
    "qemu": "KVM",
    "vmware": "VMware",
    "innotek gmbh": "VirtualBox",
    "xen": "Xen",
    "parallels": "Parallels",
    "firecracker": "Firecracker",
}


@dataclass(frozen=True)
class CpuTimes:
    """CPU times since the machine started, in nanoseconds: total, busy, and stolen by the hypervisor.

    `interrupts_ns` is the part of the non-idle time that is in no process's CPU time; None if the kernel leaves
    interrupts in the time of the interrupted process (without CONFIG_IRQ_TIME_ACCOUNTING).
    """

    total_ns: int
    busy_ns: int
    steal_ns: int
    interrupts_ns: int | None = None


@dataclass(frozen=True)
class Host:
    """The machine whose files are below `root`."""

    root: Path = Path("/")

    def text(self, path: str) -> str:
        """The file's stripped content; empty when it is missing or unreadable."""
        try:
            return (self.root / path.lstrip("/")).read_text(errors="replace").strip()
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """The file's content as a whole number, or None."""
        text = self.text(path)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    def cpu_model(self) -> str:
        """Its name: from /proc/cpuinfo on x86, from the device tree on boards that have it."""
        match = re.search(r"^model name\s*:\s*(.+)$", self.text("/proc/cpuinfo"), re.MULTILINE)
        return match[1].strip() if match else self.text("/proc/device-tree/model").rstrip("\0")

    def virtual(self) -> str:
        """The hypervisor's name, `yes` if only its presence is known, empty on bare metal."""
        vendor = f"{self.text('/sys/class/dmi/id/sys_vendor')} {self.text('/sys/class/dmi/id/product_name')}".lower()
        named = next((name for mark, name in _BY_VENDOR.items() if mark in vendor), "")
        flags = re.search(r"^flags\s*:.*\bhypervisor\b", self.text("/proc/cpuinfo"), re.MULTILINE)
        declared = self.text("/sys/hypervisor/type")
        # Bare-metal machines of these vendors exist as well: there the flag is absent.
        return (named or declared or "yes") if flags or declared else ""

    def governor(self) -> str:
        """The frequency governor of the first core that has a governor."""
        governors = sorted(self.root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
        return self.text(str(governors[0].relative_to(self.root))) if governors else ""

    def turbo(self) -> bool | None:
        """Whether cores may run above their nominal frequency."""
        no_turbo = self.number("/sys/devices/system/cpu/intel_pstate/no_turbo")
        if no_turbo is not None:
            return no_turbo == 0
        boost = self.number("/sys/devices/system/cpu/cpufreq/boost")
        return None if boost is None else boost == 1

    def smt(self) -> bool | None:
        """Whether cores share their execution units with a sibling."""
        active = self.number("/sys/devices/system/cpu/smt/active")
        return None if active is None else active == 1

    def frequency_mhz(self) -> tuple[int, int] | None:
        """The lowest and highest frequency that governors may choose, over all cores."""
        ends = []
        for name, end in (("scaling_min_freq", min), ("scaling_max_freq", max)):
            files = self.root.glob(f"sys/devices/system/cpu/cpu[0-9]*/cpufreq/{name}")
            frequencies = [khz for file in files if (khz := self.number(str(file.relative_to(self.root)))) is not None]
            ends += [end(frequencies) // 1000] if frequencies else []
        return (ends[0], ends[1]) if len(ends) == 2 else None

    def numa_nodes(self) -> int | None:
        """The number of NUMA nodes; None if the kernel does not say."""
        return len(list(self.root.glob("sys/devices/system/node/node[0-9]*"))) or None

    def huge_pages(self) -> str:
        """The mode of transparent huge pages: always, madvise or never."""
        chosen = re.search(r"\[(\w+)\]", self.text("/sys/kernel/mm/transparent_hugepage/enabled"))
        return chosen[1] if chosen else ""

    def aslr(self) -> bool | None:
        """Whether address space layout randomization is on."""
        chosen = self.number("/proc/sys/kernel/randomize_va_space")
        return None if chosen is None else chosen > 0

    def mitigations(self) -> str:
        """The processor faults that the kernel works around, `none`, or an empty text if it does not say."""
        files = sorted(self.root.glob("sys/devices/system/cpu/vulnerabilities/*"))
        worked = [file.name for file in files if self.text(str(file.relative_to(self.root))).startswith("Mitigation")]
        return (", ".join(worked) or "none") if files else ""

    def port_range(self) -> tuple[int, int] | None:
        """First and last port for outgoing connections."""
        ports = re.fullmatch(r"(\d+)\s+(\d+)", self.text("/proc/sys/net/ipv4/ip_local_port_range"))
        return (int(ports[1]), int(ports[2])) if ports else None

    def load_average_1m(self) -> float:
        """Running and runnable processes, averaged over a minute."""
        match = re.match(r"\d+(\.\d+)?", self.text("/proc/loadavg"))
        return float(match[0]) if match else 0.0

    def cpu_times(self) -> CpuTimes | None:
        """CPU times of all cores together. Resolution: a tick, 10 ms."""
        return cpu_times(self.text(STAT))

    def cpu_pressure_ns(self) -> int | None:
        """Time in which some task waited for a core, since the machine started (PSI, Linux 4.20)."""
        match = re.search(r"^some .*total=(\d+)", self.text("/proc/pressure/cpu"), re.MULTILINE)
        return int(match[1]) * 1000 if match else None

    def physical_cores(self, cpus: Iterable[int]) -> tuple[tuple[int, ...], ...]:
        """The given CPUs, grouped by physical core, in the order of their first CPUs."""
        groups: dict[str, list[int]] = {}
        for cpu in sorted(cpus):
            siblings = self.text(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            groups.setdefault(siblings or f"alone {cpu}", []).append(cpu)
        return tuple(tuple(group) for group in groups.values())


def cpu_times(stat: str, cpu: int | None = None) -> CpuTimes | None:
    """CPU times of a core, or of all together, from the text of /proc/stat.

    The columns (proc(5)) are user nice system idle iowait irq softirq steal guest guest_nice. Guest time is part of
    user time. Busy is all time that was neither idle nor stolen.
    """
    match = re.search(rf"^cpu{'' if cpu is None else cpu} +([\d ]+)", stat, re.MULTILINE)
    if match is None:
        return None
    ticks = [int(value) for value in match[1].split()][:8]
    ticks += [0] * (8 - len(ticks))
    idle, steal = ticks[3] + ticks[4], ticks[7]
    total = sum(ticks)
    # A kernel that counts by ticks alone never meets a hard interrupt in a tick: its `irq` always stays 0.
    of_all = re.match(r"cpu +(?:\d+ +){5}(\d+)", stat)
    interrupts_ns = (ticks[5] + ticks[6]) * TICK_NS if of_all and int(of_all[1]) > 0 else None
    return CpuTimes(total * TICK_NS, (total - idle - steal) * TICK_NS, steal * TICK_NS, interrupts_ns)


def read_clock() -> ClockReading | None:
    """Chrony's current reading of this host's clock; None if no chronyd answers here."""
    try:
        done = subprocess.run(_TRACKING, capture_output=True, text=True, timeout=_TRACKING_WITHIN_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_tracking(done.stdout) if done.returncode == 0 else None


def parse_tracking(line: str) -> ClockReading | None:
    """Parse the output of `chronyc -c tracking`; None for anything else, or if the clock is not synchronized.

    The fields: reference id, its name, stratum, time of the last update, system offset, last offset, RMS offset,
    frequency, residual frequency, skew, root delay, root dispersion, update interval, leap status; in seconds. The
    system offset is positive when the clock is behind (chronyc: "slow of NTP time").
    """
    fields = line.strip().split(",")
    if len(fields) != _TRACKING_FIELDS or fields[0] in (_NO_REFERENCE, ""):
        return None
    try:
        stratum, offset_s, delay_s, dispersion_s = (
            int(fields[2]),
            float(fields[4]),
            float(fields[10]),
            float(fields[11]),
        )
    except ValueError:
        return None
    if fields[13] == "Not synchronised" or delay_s < 0 or dispersion_s < 0:
        return None
    return ClockReading(
        reference=fields[1] or fields[0],
        stratum=stratum,
        offset_ns=round(-offset_s * 1e9),
        root_delay_ns=round(delay_s * 1e9),
        root_dispersion_ns=round(dispersion_s * 1e9),
    )
