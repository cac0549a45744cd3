"""The raw facts of one trial, without judgement."""

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from redline.lazily import LateModule
from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import Leg
from redline.model.hosts import HostFacts, host_of
from redline.model.profile import HOPS, ProfileFacts, Subject
from redline.model.runtime import RuntimeFacts
from redline.model.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
else:
    np = LateModule("numpy")

RECORDING_FORMAT: Literal["redline.recording/1"] = "redline.recording/1"
_OF_ALL_PROCESSES = frozenset(
    {"cpu_ns", "run_delay_ns", "preemptions", "context_switches_voluntary", "context_switches_involuntary"}
)
OTHERS = "other_cpu_ns:"
"""Prefix of series of other processes; the rest is the name of their command."""
OTHER_LOAD = "other_load:"
"""Prefix of series of other labs that loaded something meanwhile: the CPU time of their engines; the rest is a lab's
process."""
FailureKind = Literal["start", "not_ready", "wrong_answer", "died", "engine", "unread"]
SETUP = "how long `before`, `prepare` and `after` of its servers took"
ASKED_AGAIN = "after wrong answers to several requests: which of them is answered wrongly when sent once more, and how"
Stage = Literal["launch", "verify", "load", "stop"]


class Series(Frozen):
    """Values of a subject that a monitor sampled over time.

    `times_unix_ns` and `values` have equal length, at least one; counters are cumulative, gauges are not. The names:

    - server, engine and each hop: `cpu_ns`, `context_switches_voluntary`, `context_switches_involuntary`,
      `preemptions` (the involuntary switches of threads without idle priority), `run_delay_ns` (of the same threads;
      counters),
      `processes_started`, `processes_ended` (since the first sample; counters), `listen_drops` (attempts to connect
      that its listening sockets dropped; counter), `listen_queue` (connections that wait there to be accepted),
      `close_wait` (at the end of the load: its connections that the other end closed and it did not), `rss_bytes`,
      `threads`, `descriptors` (open files and sockets), `descriptors_limit` (of the process with the lowest),
      `processes`, `processes_replaced` (those of the first sample that have ended while others of the same name took
      their place; gauges); if it was pinned, `cores_busy_ns` (busy time of its cores, of all processes) and, if the
      kernel leaves it out of processes' times, `cores_interrupts_ns` (the part of that in interrupts; counters); with a
      CPU quota, `quota_periods`, `throttled_periods`, `throttled_ns` (counters, summed over control groups) and
      `quota_millicores` (the narrowest; gauge); of a JVM, `safepoints`, `safepoint_ns` (with the time to them),
      `compiles`, CPU time and waits for a core of its compiler and collector threads, `compiler_cpu_ns`,
      `compiler_wait_ns`, `collector_cpu_ns`, `collector_wait_ns` (counters), and `heap_capacity_bytes` (gauge);
      recordings of earlier versions also have `collector_ns` and `compile_ns`;
    - machine: `busy_ns` (CPU time of all cores that was not idle), `steal_ns`, `cpu_pressure_ns` (PSI some; counters),
      and `interrupts_ns` if the kernel leaves it out of processes' times (part of `busy_ns`; counter);
      of the network namespace of the server, or of the engine if no server is watched: `tcp_segments_sent`,
      `tcp_segments_retransmitted`, `listen_drops`, `listen_overflows` (part of them), `syn_cookies` (counters),
      `time_wait` (sockets; gauge), `local_ports` (number of ports to connect from; gauge); of the link to another
      machine: `link_sent_bytes`, `link_received_bytes` (counters) and `link_bits_per_s` (gauge); and
      `other_cpu_ns:NAME`, CPU time of the busiest processes but server, engine and lab that lived to the end, and
      `other_load:LAB`, that of the engines of another lab, from when they were first seen to the last (counters, two
      samples);
    - of a server in the warm-up of a sampled duet, `syscalls:KIND` (counters, two samples);
    - of a monitor of another package, `MONITOR.NAME`, which only reports show.
    """

    name: str
    unit: str
    subject: Subject
    kind: Literal["counter", "gauge"]
    times_unix_ns: tuple[int, ...] = Field(min_length=1)
    values: tuple[float, ...] = Field(min_length=1)
    host: str = omitted_if_default("", "where it was sampled, if not on the server's host")

    @model_validator(mode="after")
    def _aligned(self) -> "Series":
        if len(self.times_unix_ns) != len(self.values):
            raise ValueError("times_unix_ns and values differ in length")
        return self

    @property
    def is_of_a_package(self) -> bool:
        """Whether a monitor of another package sampled it: only those have names with a dot."""
        return "." in self.name and not self.name.startswith((OTHERS, OTHER_LOAD))

    def increase(self, start_unix_ns: int, end_unix_ns: int) -> float | None:
        """The increase of a counter over a window, extrapolated from samples in it that span half of it or more.

        Interpolating at the window's ends would include time outside, in which a server may be idle: only fewer samples
        are interpolated. None if they cover less than 80% of the window.
        """
        length, times, values = end_unix_ns - start_unix_ns, self.times_unix_ns, self.values
        first, past = bisect_left(times, start_unix_ns), bisect_right(times, end_unix_ns)
        if past - first >= 2 and times[past - 1] - times[first] >= 0.5 * length:
            return (values[past - 1] - values[first]) * length / (times[past - 1] - times[first])
        begin, end = max(start_unix_ns, times[0]), min(end_unix_ns, times[-1])
        if end <= begin or end - begin < 0.8 * length:
            return None
        return (self._at(end) - self._at(begin)) * length / (end - begin)

    def _at(self, unix_ns: int) -> float:
        """The value at a time from the first sample to the last, on the line between those around it."""
        times, values = self.times_unix_ns, self.values
        before = bisect_right(times, unix_ns) - 1
        if times[before] == unix_ns:
            return values[before]
        slope = (values[before + 1] - values[before]) / (times[before + 1] - times[before])
        return slope * (unix_ns - times[before]) + values[before]

    def most(self, start_unix_ns: int, end_unix_ns: int) -> float:
        """The largest value of a gauge in a window; without samples in it, the value nearest to its middle."""
        first, past = bisect_left(self.times_unix_ns, start_unix_ns), bisect_right(self.times_unix_ns, end_unix_ns)
        if first < past:
            return max(self.values[first:past])
        middle = (start_unix_ns + end_unix_ns) // 2
        return min(zip(self.times_unix_ns, self.values, strict=True), key=lambda sample: abs(sample[0] - middle))[1]

    def of_monitor(self, name: str) -> "Series":
        """The same series, of a monitor of another package: `MONITOR.NAME`."""
        return self.model_copy(update={"name": f"{name}.{self.name}"})

    def of_host(self, name: str) -> "Series":
        """The same series, of a host of this name."""
        return self.model_copy(update={"host": name})


class ServerFacts(Frozen):
    """The server's process."""

    pid: int
    command: tuple[str, ...]
    port: int
    cpus: tuple[int, ...] = Field(default=(), description="the cores it was pinned to; empty if not pinned")
    build: str = Field(description="content hash of the build")
    runtime_version: str = ""
    cgroup: bool = Field(default=False, description="whether it had a cgroup of its own")
    ready_ns: int = Field(description="from its start to its first right answer")
    padding_bytes: int = omitted_if_default(0, "seeded addition to its environment, which moves the stack", ge=0)
    build_number: int = omitted_if_default(0, "number of the build of the same inputs that ran, from 0", ge=0)
    outputs: str = omitted_if_default("", "hash of the build's outputs, if there are several builds")
    hops: tuple["HopFacts", ...] = omitted_if_default((), "the proxies in front of it, the client's first")
    runtimes: tuple[str, ...] = omitted_if_default((), "runtimes of its processes once ready, such as `jvm`, if known")
    beside: tuple[str, ...] = omitted_if_default((), "other services of its compose file, which are not counted")
    kept: tuple[str, ...] = omitted_if_default((), "those of them that ran before this start, and served others")

    def behind(self, hops: tuple["HopFacts", ...]) -> "ServerFacts":
        """The same server behind these proxies."""
        return self.model_copy(update={"hops": hops})

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes of the server and of the hops in front of it."""
        return (self.pid, *(hop.process.pid for hop in self.hops))

    @property
    def all_runtimes(self) -> frozenset[str]:
        """Runtimes of its processes and of the hops in front of it."""
        return frozenset(self.runtimes).union(*(hop.process.runtimes for hop in self.hops))


class HopFacts(Frozen):
    """The process of a proxy in front of the server."""

    name: str = Field(description="the slug of the proxy")
    process: ServerFacts
    upstream: Leg = Field(description="the leg behind it, as the route says")
    upstream_seen: Leg | None = Field(default=None, description="the leg that it really used before the load, if known")
    certificate: str = Field(default="", description="the problem of the certificate behind it; empty if none")


class FixedWork(Frozen):
    """CPU time of fixed work on a core, just before and just after the load."""

    cpu: int
    before_ns: int = Field(gt=0)
    after_ns: int = Field(gt=0)


class Failure(Frozen):
    """Why a trial has no usable traffic, or why its server did not survive the load.

    `unread`: what was stored of it cannot be read, or not be used. Such a failure is never stored.
    """

    stage: Stage
    kind: FailureKind
    message: str
    hint: str
    log_tail: str = Field(default="", description="the end of the server's output")

    @classmethod
    def of_unread(cls, why: str, hint: str = "move its file away, and --resume measures it again") -> "Failure":
        """The failure of a trial whose recording cannot be used."""
        return cls(stage="load", kind="unread", message=why, hint=hint)


class CpuOwner(Frozen):
    """The processes of a server that Redline did not start: those whose CPU time and memory are read."""

    processes: tuple[str, ...] = Field(default=(), description="their names and numbers when the load began")
    unknown: str = Field(default="", description="why the owner is not known; empty if it is")
    hint: str = omitted_if_default("", "what would make it known; empty if it is, or nothing would")
    runtimes: tuple[str, ...] = omitted_if_default((), "of its processes, such as `jvm`, if known")
    behind: str = Field(default="", description="processes that they called in turn, whose CPU time is not counted")

    def and_of(self, processes: tuple[str, ...]) -> "CpuOwner":
        """The same owner, with the CPU time of these processes too."""
        return self.model_copy(update={"processes": (*self.processes, *processes)})


class Recording(Frozen):
    """A trial: its cell, what the engine and the monitors saw, and how it ended."""

    format: Literal["redline.recording/1"] = RECORDING_FORMAT
    cell_id: str
    round: int
    position: int
    seed: int
    started_unix_ns: int
    server: ServerFacts | None = None
    traffic: Traffic | None = None
    series: tuple[Series, ...] = ()
    perturbed: bool = Field(default=False, description="a monitor changed what it measured; never compared")
    failure: Failure | None = None
    stages_ns: dict[Stage, int] = Field(default={}, description="how long each stage took, without `setup_ns`")
    setup_ns: int = omitted_if_default(0, SETUP, ge=0)
    log_bytes: int | None = omitted_if_default(None, "bytes of server output during the load, if kept", ge=0)
    unloaded_unix_ns: tuple[int, int] | None = omitted_if_default(
        None, "when monitors watched the server after the load, which no longer had requests"
    )
    fixed_work: tuple[FixedWork, ...] = omitted_if_default((), "of the cores of server and engine; empty if not pinned")
    runtime: RuntimeFacts | None = omitted_if_default(None, "pauses, collections and memory, as the runtime reports")
    profile: ProfileFacts | None = omitted_if_default(None, "the profile of the load")
    hosts: tuple[HostFacts, ...] = omitted_if_default((), "the hosts it ran on; empty if it was this machine")
    attached_runtimes: tuple[str, ...] = omitted_if_default((), "runtimes of a server not started here, if known")
    owner: CpuOwner | None = omitted_if_default(
        None, "whose processes a server not started here is; absent where nobody looked, as in earlier versions"
    )
    failed_monitors: dict[str, str] = omitted_if_default({}, "monitors of other packages that failed, and why")
    checks: int | None = omitted_if_default(
        None, "of `redline load`: requests that checked the answers before it", ge=0
    )
    asked_again: str = omitted_if_default("", ASKED_AGAIN)

    def unusable(self, why: str) -> "Recording":
        """The place of this recording in its run, and why nothing else of it is used."""
        return Recording(
            cell_id=self.cell_id,
            round=self.round,
            position=self.position,
            seed=self.seed,
            started_unix_ns=self.started_unix_ns,
            failure=Failure.of_unread(why),
        )

    def failed(self, failure: Failure, server: ServerFacts | None = None) -> "Recording":
        """The same recording of a trial that failed, of that server if it was started."""
        return self.model_copy(update={"failure": failure, "server": server or self.server})

    def carrying(self, traffic: Traffic) -> "Recording":
        """The same recording with other traffic."""
        return self.model_copy(update={"traffic": traffic})

    def loaded(  # noqa: PLR0913 - everything observed of a load
        self,
        server: ServerFacts | None,
        traffic: Traffic | None,
        *,
        attached_runtimes: tuple[str, ...],
        owner: CpuOwner | None,
        series: tuple[Series, ...],
        runtime: RuntimeFacts | None,
        perturbed: bool,
        failure: Failure | None,
        log_bytes: int | None,
        unloaded_unix_ns: tuple[int, int] | None,
        failed_monitors: dict[str, str],
    ) -> "Recording":
        """The recording once the load has ended."""
        about = {"server": server, "attached_runtimes": attached_runtimes, "series": series, "runtime": runtime}
        whose = {"owner": owner, "unloaded_unix_ns": unloaded_unix_ns}
        seen = {"perturbed": perturbed, "failure": failure, "log_bytes": log_bytes, "failed_monitors": failed_monitors}
        return self.model_copy(update={"traffic": traffic, **about, **whose, **seen})

    def in_trial(  # noqa: PLR0913 - everything that only the whole trial knows
        self,
        *,
        started_unix_ns: int,
        stages_ns: dict[Stage, int],
        setup_ns: int,
        hosts: tuple[HostFacts, ...],
        fixed_work: tuple[FixedWork, ...] = (),
        profile: ProfileFacts | None = None,
    ) -> "Recording":
        """The recording of a whole trial, of which this is the load."""
        about = {"stages_ns": stages_ns, "setup_ns": setup_ns, "hosts": hosts}
        about |= {"fixed_work": fixed_work, "profile": profile}
        return self.model_copy(update={"started_unix_ns": started_unix_ns, **about})

    def checked(self, checks: int, asked_again: str) -> "Recording":
        """The recording of a load with single requests before and after it."""
        return self.model_copy(update={"checks": checks, "asked_again": asked_again})

    def made_on(self, hosts: tuple[HostFacts, ...]) -> "Recording":
        """The same recording, made on these hosts."""
        return self.model_copy(update={"hosts": hosts})

    @property
    def runtimes(self) -> frozenset[str]:
        """Runtimes of its server and the proxies in front of it; empty if not known."""
        return self.server.all_runtimes if self.server else frozenset(self.attached_runtimes)

    @property
    def host(self) -> str:
        """The host of its server; empty for this machine."""
        return host_of(self.hosts)

    @property
    def parts(self) -> dict[Subject, str]:
        """The loaded processes by subject: `server`, and the proxies in front of it by their slugs."""
        hops = self.server.hops if self.server else ()
        return {"server": "server", **{subject: hop.name for subject, hop in zip(HOPS, hops, strict=False)}}

    def find(self, name: str, subject: Subject) -> Series | None:
        """The series of that name and subject, if a monitor took it, from the server's host or the first load host."""
        for series in self.series:
            if series.name == name and series.subject == subject and (subject == "engine" or not series.host):
                return series
        return None

    def increase(self, name: str, subject: Subject) -> float | None:
        """The increase of that counter over the measurement window, hops of the server included; None if unknown.

        The engine's readings at both ends of the window take precedence over the samples of a monitor.
        """
        if self.traffic is None:
            return None
        if (read := self.traffic.clock_increase(name, subject)) is not None:
            return read
        if subject != "server" or name not in _OF_ALL_PROCESSES:
            return self.sampled_increase(name, subject)
        known = [increase for part in self.parts if (increase := self.sampled_increase(name, part)) is not None]
        return sum(known) if len(known) == len(self.parts) else None

    def most(self, name: str, subject: Subject) -> float | None:
        """The largest value of that gauge in the measurement window; None if unknown."""
        series = self.find(name, subject)
        return None if series is None or self.traffic is None else series.most(*self.traffic.window_unix_ns)

    def unloaded_cores(self) -> float | None:
        """Cores that the server and its hops used on average while nothing loaded them; None if that is not known."""
        began, ended = self.unloaded_unix_ns or (0, 0)
        if ended <= began:
            return None
        series = [self.find("cpu_ns", part) for part in self.parts]
        used = [line.increase(began, ended) if line else None for line in series]
        return None if None in used else sum(filter(None, used)) / (ended - began)

    def sampled_increase(self, name: str, subject: Subject) -> float | None:
        """The increase of a subject's counter, only from the samples of a monitor."""
        series = self.find(name, subject)
        if series is None or self.traffic is None:
            return None
        return series.increase(*self.traffic.window_unix_ns)
