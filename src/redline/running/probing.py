"""The loads of a search, on the server that runs: warm-up, probe, overload test, each with its recording."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from redline.analysis.search_state import at_rate, open_shape, probe_cell, room
from redline.errors import DriveError
from redline.model import Cell, Closed, Failure, Interval, PlannedTrial, Recording, Traffic
from redline.model.search import LoadPhase, ProbeRecording
from redline.ports import LoadOptions, RunningServer
from redline.running.aborting import LoadAbort, OverloadAbort
from redline.running.record import Tools, failure_of, record_load
from redline.search import Proposal
from redline.search.overload import OverloadPlan

SLICES_PER_PROBE = 50
LEAST_SLICE_NS = 20_000_000

WARM_SHARE = 0.7
"""Of the first rate that is probed on a start: next to its limit a server is long until a backlog is gone."""

_AFTER_NS = 500_000_000
"""A load has to measure something, also where only its warm-up is wanted: one more interval of what is watched."""


def unserved_s(traffic: Traffic, room_for: int, most_s: float) -> float:
    """For how long a server may go on with what nobody waits for any more, at the rate at which it answered.

    Where requests were never sent there was no room: then as many as there is room for were in flight, whenever due.
    """
    outcomes, answered = traffic.counts.outcomes, traffic.counts.completed
    left = outcomes.timeout + max(outcomes.in_flight, room_for if outcomes.unsent else 0)
    if left == 0 or answered == 0:
        return most_s if left else 0.0
    return min(left * traffic.seconds / answered, most_s)


@dataclass
class Prober:
    """Puts loads on one start of a server, and records each. `cell` says all but the rate and the arrivals' seed.

    `logs` is the folder of this start, `start` its number. `loads` counts those of the cell: no two have the same
    arrivals. Every load raises KeyboardInterrupt when it was ended from outside, or `is_over`; and StoreError.
    """

    cell: Cell
    tools: Tools
    server: RunningServer
    logs: Path
    seed: int
    start: int = 0
    loads: int = 0
    workers: int | None = None
    log_is_kept: bool = True
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    pause: Callable[[float], None] = time.sleep
    is_over: Callable[[], bool] = lambda: False
    _unserved_s: float = 0.0

    def warm(self, first_per_s: Callable[[], float]) -> Iterator[ProbeRecording]:
        """Load a start with what counts for nothing, for as long as its cell says, or until it is steady.

        By users with zero think time, the suite's or one on each connection: that is as much as it can do, and no more.
        A rate would be too much for a server that is cold, or show little of one that is warm: its answers are as quick
        long before it can give as many of them. Then by what is to be measured, below the first rate and for as long as
        a probe at most: it has new connections, and another pattern. `first_per_s` may depend on what the users got.
        """
        shape = open_shape(self.cell.load)
        shared = shape.model_dump(include={"depth", "requests_per_connection"})
        each = self.cell.load.model_copy(update={"shape": Closed(users=shape.connections, **shared)})
        users, cell = self.cell.warmup_by or each, self.cell.model_copy(update={"warmup_by": None})
        if cell.warmup_detect:
            load = users.model_copy(update={"duration_ns": _AFTER_NS})
            yield self._load("warmup", cell.model_copy(update={"load": load}), interval_ns=_AFTER_NS)
        else:
            load = users.model_copy(update={"duration_ns": cell.warmup_ns})
            yield self._load("warmup", cell.model_copy(update={"load": load, "warmup_ns": 0}))
        calm = at_rate(cell.load, WARM_SHARE * first_per_s())
        load = calm.model_copy(update={"duration_ns": min(calm.duration_ns, cell.warmup_ns)})
        cold = {"load": load, "warmup_ns": 0, "warmup_detect": False}
        yield self._load("approach", cell.model_copy(update=cold))

    def probe(self, step: Proposal, phase: LoadPhase, *, retries_left: int = 0, again: bool = False) -> ProbeRecording:
        """One probe, ended early when it is hopeless.

        After a probe without one right answer the server is asked once, without load: one that is gone would pass for
        the limit.
        """
        load = at_rate(self.cell.load, step.rate_per_s)
        interval_ns = max(load.duration_ns // SLICES_PER_PROBE, LEAST_SLICE_NS)
        abort = LoadAbort() if step.whole else OverloadAbort(self.cell.timeout_ns / 1e9)
        made = self._load(phase, probe_cell(self.cell).model_copy(update={"load": load}), interval_ns, abort)
        made = made.model_copy(update={"why": step.why, "again": again, "retries_left": retries_left})
        traffic = made.recording.traffic
        if traffic is None or made.recording.failure is not None:
            return made
        self._unserved_s = unserved_s(traffic, room(load), self.cell.timeout_ns / 1e9)
        if any(each.counts.completed for each in traffic.intervals if each.phase == "measure"):
            return made
        return made.model_copy(update={"recording": self._asked_once(made.recording)})

    def overload(self, plan: OverloadPlan) -> ProbeRecording:
        """The overload test."""
        shape = plan.shape(open_shape(self.cell.load))
        load = self.cell.load.model_copy(update={"shape": shape, "duration_ns": round(plan.seconds * 1e9)})
        cell = probe_cell(self.cell).model_copy(update={"load": load})
        return self._load("overload", cell, round(plan.slice_s * 1e9), LoadAbort())

    def _asked_once(self, recording: Recording) -> Recording:
        self.let_drain()
        try:
            wrong = self.tools.driver.verify(self.cell, self.server.endpoint)
        except DriveError as error:
            return recording.model_copy(update={"failure": failure_of("load", "engine", error)})
        if not wrong:
            return recording
        hint = "see whether it still runs, and what it printed"
        failure = Failure(stage="load", kind="wrong_answer", message=wrong, hint=hint)
        return recording.model_copy(update={"failure": failure})

    def let_drain(self) -> None:
        """Wait while the server may still be busy with the probe before: its backlog is none of the next one's."""
        if self._unserved_s > 0:
            self.pause(self._unserved_s)
        self._unserved_s = 0.0

    def _load(
        self, phase: LoadPhase, cell: Cell, interval_ns: int | None = None, abort: LoadAbort[Interval] | None = None
    ) -> ProbeRecording:
        """Put it on and record it; without an `abort` of its own, it ends where all of its requests fail."""
        self.let_drain()
        if self.is_over():
            raise KeyboardInterrupt
        number, self.loads = self.loads, self.loads + 1
        planned = PlannedTrial(cell_id=self.cell.id, round=self.start, position=number, seed=self.seed + number)

        options = LoadOptions(
            log=self.logs / "engine.log",
            server_log=self.logs / "server.log",
            log_is_kept=self.log_is_kept,
            workers=self.workers,
            keep_interrupted=True,
            interval_ns=interval_ns,
            on_interval=self.on_interval,
        )
        hosts = self.tools.hosts()
        with _heard_interrupts() as heard:
            recording = record_load(cell, planned, self.server, self.tools, options, abort=abort)
        recording = recording.model_copy(update={"hosts": hosts()})
        traffic, cut = recording.traffic, abort is not None and abort.done
        if heard or self.is_over() or (traffic is not None and traffic.ended == "interrupted" and not cut):
            raise KeyboardInterrupt
        workers = self.tools.workers(cell.load, self.workers)
        return ProbeRecording(
            phase=phase, load=cell.load, workers=workers, retries_left=0, cut=cut, recording=recording
        )


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
