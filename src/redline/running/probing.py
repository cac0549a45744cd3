"""The loads that a search puts on a running server, and their recordings: warm-up, probes, overload test."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from redline.errors import DriveError
from redline.limits.probe_loads import slice_of, under_probe
from redline.model import AbortRule, Cell, Closed, Failure, Interval, Load, PlannedTrial, Recording, Traffic
from redline.model.search import LoadPhase, ProbeRecording
from redline.ports import LoadOptions, RunningServer
from redline.running.aborting import LoadAbort
from redline.running.record import Tools, failure_of, record_load
from redline.running.views_ahead import OF_SEARCHES
from redline.search import ProbeSlice, Proposal, hopeless
from redline.search.overload import OverloadPlan
from redline.search.stretch import without_times
from redline.stats.abort import AbortJudge

SLICES_PER_PROBE = 50
LEAST_SLICE_NS = 20_000_000

WARM_SHARE = 0.7
"""The last warm-up's share of the first rate that a start is probed at: near its limit a server drains slowly."""

_AFTER_NS = 500_000_000
"""The measurement of a load that only warms up: one more interval of what is watched."""


def unserved_s(traffic: Traffic, room_for: int, most_s: float) -> float:
    """Return for how many seconds a server may still work on timed-out requests, at the rate at which it answered.

    If requests were never sent, all connections were in use: `room_for` requests were in flight.
    """
    outcomes, answered = traffic.counts.outcomes, traffic.counts.completed
    left = outcomes.timeout + max(outcomes.in_flight, room_for if outcomes.unsent else 0)
    if left == 0 or answered == 0:
        return most_s if left else 0.0
    return min(left * traffic.seconds / answered, most_s)


class ProbeAbort(LoadAbort[Interval]):
    """Ends a probe of a search if a condition holds that the user gave, which is `why`; or if it is hopeless.

    `patience_s` is how long a server may give no answer at all; None for a probe that is made although it is hopeless.
    """

    def __init__(self, rules: Sequence[AbortRule], patience_s: float | None) -> None:
        super().__init__()
        self.why = ""
        self._judge, self._patience_s = AbortJudge(rules), patience_s
        self._slices: list[ProbeSlice] = []

    def _is_enough(self, interval: Interval) -> bool:
        if interval.phase != "measure":
            return False
        self.why = self._judge.seen(interval)
        self._slices.append(slice_of(interval))
        return bool(self.why) or (self._patience_s is not None and hopeless(self._slices, self._patience_s))


@dataclass
class Prober:
    """Puts loads on one start of a server, and records them. `cell` sets all but the rate and the arrivals' seed.

    `load_at` makes the load of a rate, by default the cell's at that rate.
    `logs` is the folder of this start, `start` its number. `loads` counts the loads of the cell: no two have the same
    arrivals. A load raises KeyboardInterrupt if it was ended from outside, or `is_over`; and StoreError.
    """

    cell: Cell
    tools: Tools
    server: RunningServer
    logs: Path
    seed: int
    log_is_kept: bool
    start: int = 0
    loads: int = 0
    workers: int | None = None
    on_interval: Callable[[Interval], None] = field(default=lambda _interval: None)
    pause: Callable[[float], object] = time.sleep
    is_over: Callable[[], bool] = lambda: False
    load_at: Callable[[float], Load] | None = None
    _unserved_s: float = 0.0

    def warm(self, first_per_s: Callable[[], float]) -> Iterator[ProbeRecording]:
        """Warm up a start, for as long as its cell says or until it is steady.

        Users with zero think time come first, the suite's or one per connection: they ask for as much as the server
        can do, and no more. A rate would be too high for a cold server, or show little of a warm server: its answers
        are quick long before it reaches that rate. Then a load below that of the first probe, no longer than a probe,
        brings new connections and another pattern. `first_per_s` may depend on the throughput of the users.
        """
        cell, load = self.cell.to_its_end, self.cell.load
        shared = load.shape.model_dump(include={"depth", "requests_per_connection"})
        users = cell.warmup_by or load.shaped(Closed(users=load.connections, **shared))
        if cell.warmup_detect:
            steady = cell.warmed_by_its_load().under(users.lasting(_AFTER_NS))
            yield self._load("warmup", steady, interval_ns=_AFTER_NS)
        else:
            yield self._load("warmup", cell.under(users.lasting(cell.warmup_ns), warmup_ns=0))
        calm = self._at(WARM_SHARE * first_per_s())
        yield self._load("approach", cell.under(calm.lasting(min(calm.duration_ns, cell.warmup_ns)), warmup_ns=0))

    def probe(self, step: Proposal, phase: LoadPhase, *, retries_left: int = 0, again: bool = False) -> ProbeRecording:
        """Make a probe, and end it early when it is hopeless or a condition of `abort_when` holds.

        After a probe without a right answer the server is asked once, without load: a dead server would look like
        a server at its limit.
        """
        load = self._at(step.rate_per_s)
        interval_ns = max(load.duration_ns // SLICES_PER_PROBE, LEAST_SLICE_NS)
        # What is left of a recording may be calmer than what was sent of it.
        whole = step.whole or load.by_users or load.is_replay
        abort = ProbeAbort(self.cell.abort_when, None if whole else self.cell.timeout_ns / 1e9)
        cell = under_probe(self.cell, load)
        recording, cut = self._record(cell, interval_ns, abort)
        if cut and abort.why and recording.traffic is not None:
            recording, cut = recording.carrying(recording.traffic.ended_as_asked(abort.why)), False
        traffic = recording.traffic
        if traffic is not None and recording.failure is None:
            self._unserved_s = unserved_s(traffic, load.most_in_flight, self.cell.timeout_ns / 1e9)
            if not any(interval.counts.completed for interval in traffic.intervals if interval.phase == "measure"):
                recording = self._asked_once(recording)
        return ProbeRecording(
            phase=phase,
            why=step.why,
            load=without_times(load),
            workers=self.tools.workers(load, self.workers),
            again=again,
            retries_left=retries_left,
            cut=cut,
            recording=recording,
        )

    def overload(self, plan: OverloadPlan) -> ProbeRecording:
        """Make the overload test."""
        load = self.cell.load.shaped(plan.shape(self.cell.load.open_shape)).lasting(round(plan.seconds * 1e9))
        return self._load("overload", under_probe(self.cell, load), round(plan.slice_s * 1e9), LoadAbort())

    def _asked_once(self, recording: Recording) -> Recording:
        self.let_drain()
        try:
            wrong = self.tools.driver.verify(self.cell, self.server.endpoint)
        except DriveError as error:
            return recording.failed(failure_of("load", "engine", error))
        if not wrong:
            return recording
        hint = "see whether it still runs, and what it printed"
        failure = Failure(stage="load", kind="wrong_answer", message=wrong, hint=hint)
        return recording.failed(failure)

    def let_drain(self) -> None:
        """Wait while the server may still be busy with the backlog of the probe before."""
        if self._unserved_s > 0:
            self.pause(self._unserved_s)
        self._unserved_s = 0.0

    def _at(self, rate_per_s: float) -> Load:
        return (self.load_at or self.cell.load.at_rate)(rate_per_s)

    def _load(
        self, phase: LoadPhase, cell: Cell, interval_ns: int | None = None, abort: LoadAbort[Interval] | None = None
    ) -> ProbeRecording:
        recording, cut = self._record(cell, interval_ns, abort)
        workers = self.tools.workers(cell.load, self.workers)
        return ProbeRecording(
            phase=phase, load=without_times(cell.load), workers=workers, retries_left=0, cut=cut, recording=recording
        )

    def _record(self, cell: Cell, interval_ns: int | None, abort: LoadAbort[Interval] | None) -> tuple[Recording, bool]:
        """Record a load, and return whether `abort` cut it; without `abort`, it ends if all requests fail."""
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
            later=OF_SEARCHES,
        )
        hosts = self.tools.hosts()
        with _heard_interrupts() as heard:
            recording = record_load(cell, planned, self.server, self.tools, options, abort=abort)
        recording = recording.made_on(hosts())
        traffic, cut = recording.traffic, abort is not None and abort.done
        if heard or self.is_over() or (traffic is not None and traffic.ended == "interrupted" and not cut):
            raise KeyboardInterrupt
        return recording, cut


@contextlib.contextmanager
def _heard_interrupts() -> Iterator[list[int]]:
    """Yield signals that ask us to end, so that our own end of a load is not mistaken for such a signal."""
    heard: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if is_main else ()
    # Leave signals alone that are ignored, or that end the process.
    before = {number: then for number in signals if callable(then := signal.getsignal(number))}

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        before[signal.Signals(number)](number, frame)

    try:
        for number in before:
            signal.signal(number, hear)
        yield heard
    finally:
        for number, then in before.items():
            signal.signal(number, then)
