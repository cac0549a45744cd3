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

from redline.findings.warming import Watch
from redline.model import Cell, Closed, Interval, Objective, Open, Traffic
from redline.model.limits import LimitStart
from redline.ports import Drive, Driver, Endpoint
from redline.search import Evidence, Proposal, Slice, hopeless
from redline.search.client import busy_connections, busy_workers, calmest_ns, failing, lacking, late_engine
from redline.search.overload import OverloadPlan

SLICES_PER_PROBE = 50
LEAST_SLICE_NS = 20_000_000

SETTLE_NS = 1_000_000_000
"""Loaded before each probe counts, though the server is warm: its connections are new."""

WARM_SHARE = 0.7
"""Of the first rate that is probed on a start: next to its edge a server is long until a backlog is gone."""

_AFTER_NS = 500_000_000
"""A load has to measure something, also where only its warm-up is wanted: one more interval of what is watched."""


def template(cell: Cell) -> Cell:
    """What every probe of a cell is like but for its rate: the server is warm by then."""
    return cell.model_copy(update={"warmup_ns": min(SETTLE_NS, cell.warmup_ns), "warmup_detect": False})


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
    """Puts a search's proposals on a server.

    `cell` says all but the rate and the arrivals' seed; its warm-up is that of each start.
    `objectives` are all that is searched for: how late the engine may be depends on them. `start` is the number of
    the server's start.
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
        watch = _Watch(self.on_interval, cuts=not proposal.whole, patience_s=self.cell.timeout_ns / 1e9)
        cell = self._at(proposal.rate_per_s, template(self.cell))
        interval_ns = max(cell.load.duration_ns // SLICES_PER_PROBE, LEAST_SLICE_NS)
        traffic = self._drive(cell, number, interval_ns, watch)
        self.traffic, self._unserved_s = traffic, unserved_s(traffic, _room(cell), self.cell.timeout_ns / 1e9)
        client = self._client(traffic, cell, cut=watch.cut)
        evidence = evidence_of(proposal.rate_per_s, traffic, cut=watch.cut, client=client)
        return replace(evidence, start=self.start)

    def move_to(self, endpoint: Endpoint, log: Path, start: int) -> None:
        """Probe another start from now on, which has nothing to do yet."""
        self.endpoint, self.log, self.start, self._unserved_s = endpoint, log, start, 0.0

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

    def warm(self, first_per_s: float, number: int) -> LimitStart:
        """Load a start with what counts for nothing, for as long as its cell says, or until it is steady.

        By users who ask again at once, one on each connection: that is as much as it can do, and no more. A rate would
        be too much for a server that is cold, or tell little of one that is warm: its answers are as quick long before
        it can give as many of them. Then by what is to be measured, below the first rate and for as long as a probe at
        most: it has new connections, and another pattern. Raises KeyboardInterrupt and DriveError.
        """
        warmed = self._warm_by_users(number)
        calm = self._at(WARM_SHARE * first_per_s, self.cell)
        load = calm.load.model_copy(update={"duration_ns": min(calm.load.duration_ns, calm.warmup_ns)})
        self._put(calm.model_copy(update={"load": load, "warmup_ns": 0, "warmup_detect": False}), number)
        return warmed

    def _warm_by_users(self, number: int) -> LimitStart:
        cell = self.cell.model_copy(update={"load": self.cell.load.model_copy(update={"shape": self._users()})})
        if not cell.warmup_detect:
            load = cell.load.model_copy(update={"duration_ns": cell.warmup_ns})
            self._put(cell.model_copy(update={"load": load, "warmup_ns": 0}), number)
            return LimitStart(warmed_ns=cell.warmup_ns)
        load = cell.load.model_copy(update={"duration_ns": _AFTER_NS})
        began_ns = self._put(cell.model_copy(update={"load": load}), number, _AFTER_NS).measure_start_ns
        return LimitStart(warmed_ns=began_ns, steady=began_ns < cell.warmup_ns)

    def staged(self, plan: OverloadPlan, number: int) -> Traffic:
        """The load past the edge. Raises KeyboardInterrupt and DriveError."""
        shape = self.cell.load.shape
        assert isinstance(shape, Open)
        changed = {"shape": plan.shape(shape), "duration_ns": round(plan.seconds * 1e9)}
        cell = template(self.cell).model_copy(update={"load": self.cell.load.model_copy(update=changed)})
        return self._put(cell, number, round(plan.slice_s * 1e9))

    def too_busy(self, traffic: Traffic) -> str:
        """Says that the engine's workers had no time left; workers that spin are always busy."""
        return "" if self.cell.engine.spin else busy_workers(traffic, self.workers)

    def _put(self, cell: Cell, number: int, interval_ns: int | None = None) -> Traffic:
        return self._drive(cell, number, interval_ns, _Watch(self.on_interval, cuts=False, patience_s=0.0))

    def _drive(self, cell: Cell, number: int, interval_ns: int | None, watch: "_Watch") -> Traffic:
        self._let_drain()
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
            is_warm=Watch(cell).is_warm if cell.warmup_detect else None,
        )
        with _heard_interrupts() as heard:
            traffic = self.driver.drive(drive)
        if heard or (traffic.ended == "interrupted" and not watch.cut):
            raise KeyboardInterrupt
        return traffic

    def _users(self) -> Closed:
        shape = self.cell.load.shape
        assert isinstance(shape, Open)
        return Closed(users=shape.connections, depth=shape.depth, requests_per_connection=shape.requests_per_connection)

    def _at(self, rate_per_s: float, cell: Cell) -> Cell:
        shape = cell.load.shape
        assert isinstance(shape, Open)
        load = cell.load.model_copy(update={"shape": shape.model_copy(update={"rate_per_s": rate_per_s})})
        return cell.model_copy(update={"load": load})

    def _client(self, traffic: Traffic, cell: Cell, *, cut: bool) -> str:
        """Why the client was the limit in this probe, and what to do about it; empty when it was not."""
        self._calm_ns = calmest_ns(traffic, self._calm_ns)
        busy = lacking(traffic) or self.too_busy(traffic)
        if busy or failing(traffic):
            return busy
        late = late_engine(traffic, self.objectives, cut=cut)
        return late or busy_connections(traffic, cell.load.connections, self._calm_ns, _room(cell))


def _room(cell: Cell) -> int:
    """How many requests may be under way at once."""
    shape = cell.load.shape
    assert isinstance(shape, Open), "probes are open loads"
    return shape.connections * shape.depth


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
