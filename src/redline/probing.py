"""One probe of a search, on a server that is running: a proposal becomes a load, its traffic becomes evidence."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from redline.model import Cell, Interval, Load, Objective, Open, Traffic
from redline.ports import Drive, Driver, Endpoint
from redline.quantities import duration, percent
from redline.search import Evidence, Proposal, Slice, hopeless
from redline.search.beyond import BeyondPlan
from redline.search.steps import QUANTILES

SLICES_PER_PROBE = 50
LEAST_SLICE_NS = 20_000_000
SATURATED = 0.95
"""Of the time of its workers: an engine that is so busy may be what holds the rate down."""
WAITED = 0.05
"""Of the requests that fell due: so many found all connections busy."""
UNMOVED = 1.5
"""Service times of so many times the calmest: a server that is overloaded has far longer ones."""
LATE = 0.1
"""Of a limit of latency: an engine that is as late at p99 may be why it is not met."""
FAILING = 0.05
"""Of the requests that fell due."""
_FEWEST_TIMES = 50
_LATENCY = {**QUANTILES, "max": 1.0}


def slice_of(interval: Interval, *, cut: bool = False) -> Slice:
    """An interval of the measurement, or of the drain: that one has no length, since nothing falls due in it.

    `cut`: its load was ended by us, so what had no answer by then is no error.
    """
    counts, measured = interval.counts, interval.phase == "measure"
    ended_by_us = counts.outcomes.in_flight + counts.outcomes.unsent if cut else 0
    return Slice(
        seconds=(interval.end_ns - interval.start_ns) / 1e9 if measured else 0.0,
        due=counts.due,
        answered=counts.completed if measured else counts.outcomes.ok,
        errors=counts.outcomes.errors - ended_by_us,
        response=interval.response,
    )


def evidence_of(rate_per_s: float, traffic: Traffic, *, cut: bool, client: str = "") -> Evidence:
    """What a probe showed; `cut`: it was ended since it was hopeless; `client`: why it tells nothing of a server."""
    slices = tuple(slice_of(each, cut=cut) for each in traffic.intervals if each.phase != "warmup")
    return Evidence(rate_per_s, slices, hopeless=cut and not client, client=client)


def busy_workers(traffic: Traffic, workers: int) -> str:
    """Says that the engine's workers had no time left; empty when they had."""
    busy = traffic.engine_cpu_ns / 1e9 / max(traffic.seconds * workers, 1e-9)
    return f"the engine was busy {percent(min(busy, 1.0))} of the time: give -t more" if busy > SATURATED else ""


def busy_connections(traffic: Traffic, connections: int, calm_ns: float | None, room: int | None = None) -> str:
    """Says that requests waited for a connection though the server was no slower than it is when it is calm.

    An overloaded server keeps all connections busy as well, but by its own queue: each answer then takes far longer
    than `calm_ns`, the median when it was calm. Where that is not known, nothing is said.
    """
    if not _waits(traffic) or calm_ns is None or _slower(traffic, room or connections, calm_ns):
        return ""
    return f"all {connections} connections were busy: give -c more"


def _slower(traffic: Traffic, room: int, calm_ns: float) -> bool:
    """Whether the server was slower than when it is calm.

    What was due before the window may have been all that was sent in it. Then the answers that came tell the mean time
    of service, by Little's law, since there was always as much under way as there is room for. A mean may be twice a
    median. Where nothing came, the server was.
    """
    if traffic.service.count >= _FEWEST_TIMES:
        return traffic.service.quantile_ns(0.5) > UNMOVED * calm_ns
    answered = traffic.counts.completed
    return answered == 0 or room * traffic.seconds * 1e9 / answered > 2 * UNMOVED * calm_ns


def late_engine(traffic: Traffic, objectives: tuple[Objective, ...], *, cut: bool) -> str:
    """Says that the engine was late by what matters to a limit that was missed, and that the server alone met.

    Lateness only ever adds to a response time: a limit that is met is met in spite of it.
    """
    late_ns = traffic.lateness.quantile_ns(0.99)
    for each in objectives:
        if each.metric not in _LATENCY or late_ns <= LATE * each.limit:
            continue
        q = _LATENCY[each.metric]
        missed = cut or traffic.response.quantile_ns(q) >= each.limit
        if missed and traffic.service.quantile_ns(q) < each.limit:
            return f"the engine was late (p99 {duration(late_ns)}): pin it or free a core"
    return ""


def unserved_s(traffic: Traffic, room: int, most_s: float) -> float:
    """For how long a server may go on with what nobody waits for any more, at the rate at which it answered.

    Where requests were never sent there was no room: then as many as there is room for were under way, whenever due.
    """
    outcomes, answered = traffic.counts.outcomes, traffic.counts.completed
    left = outcomes.timeout + max(outcomes.in_flight, room if outcomes.unsent else 0)
    if left == 0 or answered == 0:
        return most_s if left else 0.0
    return min(left * traffic.seconds / answered, most_s)


@dataclass
class Prober:
    """Puts a search's proposals on a server. `cell` says all but the rate and the arrivals' seed.

    `objectives` are all that is searched for: how late the engine may be depends on them. `endpoint`, `log` and
    `start` may change between probes: to another start of the same server, with its number.
    """

    driver: Driver
    cell: Cell
    endpoint: Endpoint
    workers: int
    seed: int
    log: Path
    objectives: tuple[Objective, ...] = ()
    cpus: tuple[int, ...] = ()
    start: int = 0
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    traffic: Traffic | None = None
    pause: Callable[[float], None] = time.sleep
    _calm_ns: int | None = None
    _unserved_s: float = 0.0

    def probe(self, proposal: Proposal, number: int) -> Evidence:
        """Of the `number`-th probe. Raises KeyboardInterrupt when it was ended from outside, and DriveError."""
        self._let_drain()
        watch = _Watch(self.on_interval, cuts=not proposal.whole, patience_s=self.cell.timeout_ns / 1e9)
        cell = self._at(proposal.rate_per_s)
        interval_ns = max(cell.load.duration_ns // SLICES_PER_PROBE, LEAST_SLICE_NS)
        traffic = self._drive(cell, number, interval_ns, watch)
        self.traffic, self._unserved_s = traffic, unserved_s(traffic, _room(cell), self.cell.timeout_ns / 1e9)
        client = self._client(traffic, cell, cut=watch.cut)
        evidence = evidence_of(proposal.rate_per_s, traffic, cut=watch.cut, client=client)
        return replace(evidence, start=self.start)

    def gone(self, evidence: Evidence) -> str:
        """Why the server answers no more: after a probe without one right answer it is asked once, without load.

        Else its end would pass for the limit. Empty while it answers.
        """
        if evidence.answered_per_s > 0:
            return ""
        self._let_drain()
        return self.driver.verify(self.cell, self.endpoint) or ""

    def _let_drain(self) -> None:
        """Wait while the server may still be busy with the probe before: its backlog is none of the next one's."""
        if self._unserved_s > 0:
            self.pause(self._unserved_s)
        self._unserved_s = 0.0

    def warm(self, rate_per_s: float, length_ns: int, number: int) -> None:
        """Load that counts for nothing. Raises KeyboardInterrupt and DriveError."""
        cell = self._at(rate_per_s)
        self._put(cell.load.model_copy(update={"duration_ns": length_ns}), 0, number, length_ns)

    def staged(self, plan: BeyondPlan, number: int) -> Traffic:
        """The load past the edge. Raises KeyboardInterrupt and DriveError."""
        shape = self.cell.load.shape
        assert isinstance(shape, Open)
        changed = {"shape": plan.shape(shape), "duration_ns": round(plan.seconds * 1e9)}
        return self._put(self.cell.load.model_copy(update=changed), self.cell.warmup_ns, number, plan.slice_s * 1e9)

    def too_busy(self, traffic: Traffic) -> str:
        """Says that the engine's workers had no time left; workers that spin are always busy."""
        return "" if self.cell.engine.spin else busy_workers(traffic, self.workers)

    def _put(self, load: Load, warmup_ns: int, number: int, interval_ns: float) -> Traffic:
        cell = self.cell.model_copy(update={"load": load, "warmup_ns": warmup_ns})
        watch = _Watch(self.on_interval, cuts=False, patience_s=0.0)
        return self._drive(cell, number, round(interval_ns), watch)

    def _drive(self, cell: Cell, number: int, interval_ns: int, watch: "_Watch") -> Traffic:
        drive = Drive(
            cell=cell,
            endpoint=self.endpoint,
            seed=self.seed + number,
            cpus=self.cpus,
            workers=self.workers,
            log=self.log,
            keep_interrupted=True,
            interval_ns=interval_ns,
            on_start=watch.started,
            on_interval=watch.seen,
        )
        with _heard_interrupts() as heard:
            traffic = self.driver.drive(drive)
        if heard or (traffic.ended == "interrupted" and not watch.cut):
            raise KeyboardInterrupt
        return traffic

    def _at(self, rate_per_s: float) -> Cell:
        shape = self.cell.load.shape
        assert isinstance(shape, Open)
        load = self.cell.load.model_copy(update={"shape": shape.model_copy(update={"rate_per_s": rate_per_s})})
        return self.cell.model_copy(update={"load": load})

    def _client(self, traffic: Traffic, cell: Cell, *, cut: bool) -> str:
        """Why the client was the limit in this probe, and what to do about it; empty when it was not."""
        self._calm_ns = _calmest_ns(traffic, self._calm_ns)
        busy = self.too_busy(traffic)
        if busy or _failing(traffic):
            return busy
        late = late_engine(traffic, self.objectives, cut=cut)
        return late or busy_connections(traffic, cell.load.connections, self._calm_ns, _room(cell))


def _room(cell: Cell) -> int:
    """How many requests may be under way at once."""
    shape = cell.load.shape
    assert isinstance(shape, Open), "probes are open loads"
    return shape.connections * shape.depth


def _failing(traffic: Traffic) -> bool:
    """Whether so many requests ended wrong that service times say nothing: a refusal is fast."""
    outcomes = traffic.counts.outcomes
    not_by_waiting = outcomes.errors - outcomes.in_flight - outcomes.unsent - outcomes.timeout
    return not_by_waiting > FAILING * traffic.counts.due


def _calmest_ns(traffic: Traffic, before_ns: int | None) -> int | None:
    """The least median service time of the probes so far in which hardly a request waited; None where all did.

    The first moments of one that is overloaded are no calm: its connections fill up meanwhile.
    """
    if _waits(traffic) or traffic.service.count < _FEWEST_TIMES:
        return before_ns
    median_ns = traffic.service.quantile_ns(0.5)
    return median_ns if before_ns is None else min(median_ns, before_ns)


def _waits(traffic: Traffic) -> bool:
    return traffic.counts.waited > WAITED * traffic.counts.due


@contextlib.contextmanager
def _heard_interrupts() -> Iterator[list[int]]:
    """The signals that asked us to end meanwhile: one that follows our own end of a load must not be taken for it."""
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        then = before[signal.Signals(number)]
        if callable(then):
            then(number, frame)

    try:
        for number, then in before.items():
            if callable(then):  # what is ignored, or ends the process, stays as it is
                signal.signal(number, hear)
        yield heard
    finally:
        for number, then in before.items():
            if callable(then):
                signal.signal(number, then)


class _Watch:
    """Ends the engine's load as soon as it is hopeless; it tells what it has, as after Ctrl-C."""

    def __init__(self, on_interval: Callable[[Interval], None], *, cuts: bool, patience_s: float) -> None:
        self._on_interval = on_interval
        self._cuts = cuts
        self._patience_s = patience_s
        self._pid: int | None = None
        self._slices: list[Slice] = []
        self.cut = False

    def started(self, pid: int) -> None:
        self._pid = pid

    def seen(self, interval: Interval) -> None:
        self._on_interval(interval)
        if interval.phase != "measure" or self.cut:
            return
        self._slices.append(slice_of(interval))
        if self._cuts and self._pid is not None and hopeless(self._slices, self._patience_s):
            self.cut = True
            os.kill(self._pid, signal.SIGINT)
