"""What is around server and engine: the machine, their cores, their quotas, and the network between them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux.cgroup import quotas, throttling
from redline.plugins.linux.host import STAT, Host, cpu_times
from redline.plugins.linux.network import Link, Namespace, towards

Values = dict[str, int]


@dataclass(frozen=True)
class MachineShare:
    """What of the machine a process was given when it began: its cores, and groups with a quota of their time."""

    cores: tuple[int, ...]
    groups: tuple[Path, ...]

    @classmethod
    def of(cls, pid: int) -> "MachineShare":
        """That of a process. `cores` is empty where it may use all of the machine."""
        try:
            cores = os.sched_getaffinity(pid)
        except OSError:
            cores = set()
        own = tuple(sorted(cores)) if len(cores) < (os.cpu_count() or 1) else ()
        return cls(own, tuple(quotas(pid)))

    def sample(self, stat: str) -> Values:
        """Counters of it, given the text of /proc/stat. Without a quota there is nothing more to be read."""
        values: Values = {}
        times = [one for cpu in self.cores if (one := cpu_times(stat, cpu)) is not None]
        if times:
            values["cores_busy_ns"] = sum(one.busy_ns for one in times)
        interrupts = [one.interrupts_ns for one in times if one.interrupts_ns is not None]
        if interrupts:
            values["cores_interrupts_ns"] = sum(interrupts)
        quota = throttling(self.groups) if self.groups else None
        return values | (quota._asdict() if quota is not None else {})


@dataclass(frozen=True)
class Surroundings:
    """The machine, a network namespace of it, and the link to whom it talks, where that is another machine."""

    host: Host
    namespace: Namespace
    link: Link | None = None

    @classmethod
    def of(cls, host: Host, pid: int, peer: str | None) -> "Surroundings":
        """Those of a process, and the link from this machine to a peer."""
        return cls(host, Namespace.of(pid, host.root), towards(peer) if peer else None)

    def stat(self) -> str:
        """The text of /proc/stat, which holds the times of all cores."""
        return self.host.text(STAT)

    def busy(self, stat: str) -> Values:
        """How busy all cores together were, given that text."""
        times = cpu_times(stat)
        if times is None:
            return {}
        apart = {} if times.interrupts_ns is None else {"interrupts_ns": times.interrupts_ns}
        return {"busy_ns": times.busy_ns, "steal_ns": times.steal_ns, **apart}

    def sample(self) -> Iterator[Values]:
        """Other counters of the machine; each file is read once."""
        pressure = self.host.cpu_pressure_ns()
        if pressure is not None:
            yield {"cpu_pressure_ns": pressure}
        if (tcp := self.namespace.tcp()) is not None:
            yield tcp._asdict()
        if (waiting := self.namespace.time_wait()) is not None:
            yield {"time_wait": waiting}
        counted = self.link.counted() if self.link else None
        if counted is not None:
            yield {"link_sent_bytes": counted.sent, "link_received_bytes": counted.received}

    def constants(self) -> Iterator[Values]:
        """What hardly changes: for a sample at either end."""
        ports = self.host.port_range() if self.namespace.ours else None
        if ports is not None:
            yield {"local_ports": ports[1] - ports[0] + 1}
        if self.link is not None:
            yield {"link_bits_per_s": self.link.bits_per_s}
