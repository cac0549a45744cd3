"""One probe of a search, on a server that is running: a proposal becomes a load, its traffic becomes evidence."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from redline.model import Cell, Interval, Open, Traffic
from redline.ports import Drive, Driver, Endpoint
from redline.search import Evidence, Proposal, Slice, hopeless

SLICES_PER_PROBE = 50
LEAST_SLICE_NS = 20_000_000
SATURATED = 0.95
"""Of the time of its workers: an engine that is so busy may be what holds the rate down."""


def slice_of(interval: Interval) -> Slice:
    """An interval of the measurement, or of the drain: that one has no length, since nothing falls due in it."""
    counts, measured = interval.counts, interval.phase == "measure"
    return Slice(
        seconds=(interval.end_ns - interval.start_ns) / 1e9 if measured else 0.0,
        due=counts.due,
        answered=counts.completed if measured else counts.outcomes.ok,
        errors=counts.outcomes.errors,
        response=interval.response,
    )


def evidence_of(rate_per_s: float, traffic: Traffic, *, cut: bool, workers: int, spins: bool) -> Evidence:
    """What a probe showed; `cut`: it was ended because it was hopeless. Workers that spin are always busy."""
    slices = tuple(slice_of(each) for each in traffic.intervals if each.phase != "warmup")
    busy = traffic.engine_cpu_ns / 1e9 / max(traffic.seconds * workers, 1e-9)
    saturated = busy > SATURATED and not spins
    return Evidence(rate_per_s, slices, hopeless=cut and not saturated, engine_saturated=saturated)


@dataclass
class Prober:
    """Puts a search's proposals on one server. `cell` says all but the rate and the arrivals' seed."""

    driver: Driver
    cell: Cell
    endpoint: Endpoint
    workers: int
    seed: int
    log: Path
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    traffic: Traffic | None = None

    def probe(self, proposal: Proposal, number: int) -> Evidence:
        """Of the `number`-th probe. Raises KeyboardInterrupt when it was ended from outside, and DriveError."""
        watch = _Watch(self.on_interval, cuts=not proposal.whole)
        shape = self.cell.load.shape
        assert isinstance(shape, Open)
        load = self.cell.load.model_copy(update={"shape": shape.model_copy(update={"rate_per_s": proposal.rate_per_s})})
        drive = Drive(
            cell=self.cell.model_copy(update={"load": load}),
            endpoint=self.endpoint,
            seed=self.seed + number,
            cpus=(),
            workers=self.workers,
            log=self.log,
            keep_interrupted=True,
            interval_ns=max(load.duration_ns // SLICES_PER_PROBE, LEAST_SLICE_NS),
            on_start=watch.started,
            on_interval=watch.seen,
        )
        traffic = self.driver.drive(drive)
        if traffic.ended == "interrupted" and not watch.cut:
            raise KeyboardInterrupt
        self.traffic = traffic
        spins = self.cell.engine.spin
        return evidence_of(proposal.rate_per_s, traffic, cut=watch.cut, workers=self.workers, spins=spins)


class _Watch:
    """Ends the engine's load as soon as it is hopeless; it tells what it has, as after Ctrl-C."""

    def __init__(self, on_interval: Callable[[Interval], None], *, cuts: bool) -> None:
        self._on_interval = on_interval
        self._cuts = cuts
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
        if self._cuts and self._pid is not None and hopeless(self._slices):
            self.cut = True
            os.kill(self._pid, signal.SIGINT)
