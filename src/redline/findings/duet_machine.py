"""Findings about duets from what the monitors saw of the machine: the rules are those of trials."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from redline.findings import machine, network
from redline.findings.duet import SeenDuet
from redline.findings.rules import HOLDS, OTHERS_BUSY, TICK_NS, Observation, Rule
from redline.findings.starts import BASELINE, measured, traffic_of
from redline.lazily import dataclass
from redline.model import DuetRecording, Grade, Series, Subject


@dataclass(frozen=True)
class WatchedStart:
    """A start whose machine was watched, in the time of its measured slices."""

    start: DuetRecording
    window_unix_ns: tuple[int, int]

    @classmethod
    def all(cls, starts: Sequence[DuetRecording]) -> "tuple[WatchedStart, ...]":
        """Those of the starts that monitors watched; older recordings have nothing of them."""
        return tuple(
            cls(start, window) for start in starts if start.series and (window := traffic_of(start).window_unix_ns)
        )

    @property
    def lasts_ns(self) -> int:
        """How long the measurement took, with what was between slices."""
        start, end = self.window_unix_ns
        return max(end - start, 1)

    def increase(self, name: str, subject: Subject, place: int | None = None) -> float | None:
        """The increase of a counter of the machine or the engine, or of the server at a place; None if unknown."""
        series = self.find(name, subject, place)
        return series.increase(*self.window_unix_ns) if series is not None else None

    def find(self, name: str, subject: Subject, place: int | None = None) -> Series | None:
        """That series of the machine or the engine, or of the server at a place."""
        own = self.start.series if place is None else self._of(place)
        return next((line for line in own if line.name == name and line.subject == subject), None)

    def of_servers(self, name: str) -> float | None:
        """The increase of a counter of all servers together; None if it is unknown of any."""
        known = [self.increase(name, "server", place) for place in range(len(self.start.server_series))]
        return None if not known or None in known else sum(filter(None, known))

    def _of(self, place: int) -> tuple[Series, ...]:
        return self.start.server_series[place] if place < len(self.start.server_series) else ()

    @property
    def servers_ns(self) -> float | None:
        """CPU time of all servers in the measured slices; None if it is unknown of any."""
        slices = [slice_ for block in measured(traffic_of(self.start)) for slice_ in block.slices]
        of_each: dict[int, list[int]] = {slice_.target: [] for slice_ in slices}
        for slice_ in slices:
            for target, used in enumerate(slice_.cpu_ns):
                if used is not None:
                    of_each.setdefault(target, []).append(used)
        return float(sum(map(sum, of_each.values()))) if all(of_each.values()) else None

    @property
    def engine_ns(self) -> float:
        """CPU time of the engine in the measured slices."""
        blocks = measured(traffic_of(self.start))
        return float(sum(slice_.engine_cpu_ns for block in blocks for slice_ in block.slices))

    @property
    def others(self) -> float | None:
        """The share of the machine's CPU time that neither the servers nor the engine used; None if unknown."""
        busy, servers = self.increase("busy_ns", "machine"), self.servers_ns
        if busy is None or servers is None or busy <= 0:
            return None
        interrupts = self.increase("interrupts_ns", "machine") or 0.0
        return (busy - interrupts - servers - self.engine_ns) / busy

    @property
    def engine_held_up(self) -> float | None:
        """The share of their time for which the engine's workers waited for cores of their own; None if unknown."""
        engine, waited = traffic_of(self.start).engine, self.increase("run_delay_ns", "engine")
        if waited is None or not engine.cpus or engine.workers > len(engine.cpus):
            return None
        by_others = max(waited - (self.increase("throttled_ns", "engine") or 0.0), 0.0)
        return by_others / (engine.workers * self.lasts_ns)

    @property
    def servers_held_up(self) -> float | None:
        """The share of their cores' time for which servers waited while others ran there; None if unknown."""
        first = self.start.servers[BASELINE] if self.start.servers else None
        waited, used = self.of_servers("run_delay_ns"), self.servers_ns
        busy = self.increase("cores_busy_ns", "server", BASELINE)
        if first is None or not first.cpus or waited is None or used is None or busy is None:
            return None
        interrupts = self.increase("cores_interrupts_ns", "server", BASELINE) or 0.0
        others = max(busy - interrupts - used - 2 * len(first.cpus) * TICK_NS, 0.0)
        return min(waited, others) / (len(first.cpus) * self.lasts_ns)

    @property
    def shares_cores(self) -> bool:
        """Whether server and engine have no cores of their own, or every server has others."""
        first = self.start.servers[BASELINE] if self.start.servers else None
        cores = set(first.cpus) if first is not None else set()
        return bool(self.start.places) or not cores or bool(cores & set(traffic_of(self.start).engine.cpus))


def is_disturbed(starts: Sequence[DuetRecording]) -> bool:
    """Whether other work took so much of the machine that some requests waited for it, and others did not."""
    watched = WatchedStart.all(starts)
    apart = [one for one in watched if not one.shares_cores]
    held_up = (_mean(apart, lambda one: one.engine_held_up), _mean(apart, lambda one: one.servers_held_up))
    others = _mean(watched, lambda one: one.others) or 0.0
    waited = _mean(watched, lambda one: _per_time(one, one.increase("cpu_pressure_ns", "machine"))) or 0.0
    labs = any(machine.labs_in(one.start.series) for one in watched)
    is_busy = others >= OTHERS_BUSY and (labs or machine.cpu_pressure.grade(waited) is Grade.WARN)
    is_held_up = machine.noisy_neighbour.grade(max(share or 0.0 for share in held_up)) is Grade.WARN
    by_labs = machine.other_load.grade(_mean(watched, _engines_share) or 0.0) is Grade.WARN
    return is_busy or is_held_up or by_labs


def _mean(watched: Sequence[WatchedStart], read: Callable[[WatchedStart], float | None]) -> float | None:
    """The mean over the starts of which it is known; None if of none."""
    known = [value for one in watched if (value := read(one)) is not None]
    return fmean(known) if known else None


def _sum(watched: Sequence[WatchedStart], read: Callable[[WatchedStart], float | None]) -> float | None:
    known = [value for one in watched if (value := read(one)) is not None]
    return sum(known) if known else None


def _series(watched: Sequence[WatchedStart]) -> tuple[Series, ...]:
    """The series of the start whose other processes used most."""
    return max((one.start.series for one in watched), key=_used_by_others, default=())


def _used_by_others(series: Sequence[Series]) -> float:
    return sum(line.values[-1] for line in series if line.name.startswith(machine.OTHERS))


@machine.cpu_pressure.also("duet")
def cpu_pressure(duet: SeenDuet) -> Observation | None:
    """Tasks waited for a core beside other work; at most a warning, for slices in turn share it."""
    watched = WatchedStart.all(duet.starts)
    waited = _mean(watched, lambda one: _per_time(one, one.increase("cpu_pressure_ns", "machine")))
    others = _mean(watched, lambda one: one.others)
    if waited is None or others is None or others < OTHERS_BUSY:
        return None
    return machine.observe_pressure(waited, others, machine.named(_series(watched)))


@machine.noisy_neighbour.also("duet")
def noisy_neighbour(duet: SeenDuet) -> Observation | None:
    """Other work on the cores that servers and engine have to themselves."""
    watched = [one for one in WatchedStart.all(duet.starts) if not one.shares_cores]
    engine, servers = _mean(watched, lambda one: one.engine_held_up), _mean(watched, lambda one: one.servers_held_up)
    if engine is None and servers is None:
        return None
    often = _mean(watched, lambda one: _per_time(one, one.increase("preemptions", "engine")))
    per_s = None if often is None else often * 1e9
    return machine.observe_neighbour(engine or 0.0, servers, per_s, machine.named(_series(watched)))


@machine.other_load.also("duet")
def other_load(duet: SeenDuet) -> Observation | None:
    """Another lab loaded something."""
    watched = WatchedStart.all(duet.starts)
    labs = tuple(dict.fromkeys(lab for one in watched for lab in machine.labs_in(one.start.series)))
    at_least = _mean(watched, _engines_share)
    return machine.observe_labs(labs, _mean(watched, lambda one: one.others), at_least or 0.0) if labs else None


def _engines_share(one: WatchedStart) -> float:
    return machine.engines_share(one.start.series, one.increase("busy_ns", "machine"), one.window_unix_ns)


@Rule("disturbed", when="duet", unit="", note=0.0, scatters=True)
def disturbed(duet: SeenDuet) -> Observation | None:
    """Other work took a tenth of the CPU time or more, and servers or engine waited for it: **note**.

    A percentile that lies between the times of disturbed and other slices may jump from one to the other, so its
    interval [allows for that](statistics.md#duets).

    Advice: Stop the other work, or read CPU per request, which it hardly changes.
    """
    if not is_disturbed(duet.starts):
        return None
    message = (
        "Other work disturbed some slices and not others: the interval of a percentile allows for the times of both, "
        "where it may be of either."
    )
    return Observation(HOLDS, message)


@machine.throttled.also("duet")
def throttled(duet: SeenDuet) -> Observation | None:
    """Periods of a quota in which a server or the engine had used it up."""
    watched = WatchedStart.all(duet.starts)
    names: dict[int | None, str] = {None: "The engine", BASELINE: duet.names[0], duet.target: duet.names[1]}
    if all(one.start.control_is_apart for one in watched):
        names[duet.servers - 1] = f"The second {duet.names[0]}"
    said = [
        machine.observe_throttled(name, *share)
        for place, name in names.items()
        if (share := _throttled(watched, place))
    ]
    return max(said, key=lambda one: one.value, default=None)


def _throttled(watched: Sequence[WatchedStart], place: int | None) -> tuple[float, float, float | None] | None:
    """The share of the periods in which its quota was used up, the CPU time lost in nanoseconds, and the quota."""
    subject: Subject = "engine" if place is None else "server"
    periods, often, lost_ns = (
        _sum(watched, lambda one, name=name: one.increase(name, subject, place))  # type: ignore[misc]
        for name in ("quota_periods", "throttled_periods", "throttled_ns")
    )
    limits = [line.values[-1] for one in watched if (line := one.find("quota_millicores", subject, place))]
    quota = min(limits, default=None)
    return (min(often / periods, 1.0), lost_ns or 0.0, quota) if periods and often is not None else None


@network.retransmits.also("duet")
def retransmits(duet: SeenDuet) -> Observation | None:
    """Segments that the machine sent again."""
    watched = WatchedStart.all(duet.starts)
    again = _sum(watched, lambda one: one.increase("tcp_segments_retransmitted", "machine"))
    sent = _sum(watched, lambda one: one.increase("tcp_segments_sent", "machine"))
    return network.observe_retransmits(again, sent) if again is not None and sent else None


@network.listen_overflow.also("duet")
def listen_overflow(duet: SeenDuet) -> Iterator[Observation]:
    """Attempts to connect that the listeners of servers dropped."""
    watched = WatchedStart.all(duet.starts)
    for name, places in duet.sides:
        due = sum(traffic_of(one.start).targets[place].counts.due for one in watched for place in places)
        dropped = [
            drops
            for one in watched
            for place in places
            if (drops := one.increase("listen_drops", "server", place)) is not None
        ]
        if dropped and due:
            yield network.observe_dropped(name, sum(dropped), due)


@network.port_pressure.also("duet")
def port_pressure(duet: SeenDuet) -> Observation | None:
    """Sockets that entered `TIME_WAIT`, in the start with most."""
    said = [
        network.said_ports(resting, ports, one.window_unix_ns[1], "start")
        for one in WatchedStart.all(duet.starts)
        if (resting := one.find("time_wait", "machine")) and (ports := one.find("local_ports", "machine"))
    ]
    return max(said, key=lambda one: one.value, default=None)


@network.network_limited.also("duet")
def network_limited(duet: SeenDuet) -> Observation | None:
    """Use of the link to the servers."""
    watched = WatchedStart.all(duet.starts)
    speeds = [speed for one in watched if (speed := one.find("link_bits_per_s", "machine"))]
    sent, received = (
        _mean(watched, lambda one, name=name: _per_time(one, one.increase(name, "machine")))  # type: ignore[misc]
        for name in ("link_sent_bytes", "link_received_bytes")
    )
    if not speeds or sent is None or received is None:
        return None
    return network.said_link(sent * 1e9, received * 1e9, speeds[0].values[-1])


def _per_time(one: WatchedStart, increase: float | None) -> float | None:
    return None if increase is None else increase / one.lasts_ns
