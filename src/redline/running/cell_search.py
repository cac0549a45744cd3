"""The search on a cell: servers started fresh, verified, warmed up, probed and stopped. Its order is the method.

1. On a fresh server the search brackets and narrows.
2. Both ends of every answer are probed on further fresh starts, if the search asks for them.
3. The last start then takes the rates that the curve lacks, and a single overload test.

A server that was already running has one start, and nothing follows its answer. A turn is a start, or a probe: other
cells are searched between turns, so that changes over time affect all answers.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

from redline.errors import DriveError, LaunchError
from redline.limits.probe_loads import under_probe
from redline.limits.search_state import SearchState
from redline.model import Cell, Failure, Interval, PlannedTrial
from redline.model.limits import LimitStart
from redline.model.search import LoadPhase, ProbeRecording
from redline.ports import Launch
from redline.quantities import duration
from redline.running.probing import Prober
from redline.running.record import Tools, failure_of, new_recording, verify
from redline.search import Converged, Doomed, Evidence, Exhausted, Limit, Proposal
from redline.search.search import LOOKS_AGAIN
from redline.search.times import AROUND_NS
from redline.storage.runs import RunStore

AGAIN = "again: the host had taken CPU time"
WAITS_S = (5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0)
"""Waits before disturbed probes of a search are repeated, in seconds: hosts are busy for a moment or for minutes."""
_REPORT = 3
"""How long the report takes, in times of what is around a load."""
MOST_OF_ONE = 3
"""The waits of a single probe: a busy first minute must not use up the waits of the probes near the limit."""


class SearchListener(Protocol):
    """Follows the search on a cell, to show it."""

    def started(self, number: int) -> None:
        """A server is about to be started, the `number`-th of this cell from 0."""

    def seen(self, interval: Interval) -> None:
        """The engine reported another interval."""

    def warmed(self, start: LimitStart) -> None:
        """The server that was started last is warm, or has been warmed up for the maximum time."""

    def probed(self, made: ProbeRecording, evidence: Evidence, number: int) -> None:
        """The `number`-th probe of this cell, from 1, was made."""

    def narrowed(self, limits: Sequence[Limit]) -> None:
        """What is known of the limit of each set of objectives, from all probes before the next one."""

    def waits(self, seconds: float) -> None:
        """The host disturbed the last probe; it is repeated after this time."""


@dataclass
class CellSearch:
    """A search that continues from its stored recordings. It stores every observation before it goes on.

    If servers take turns by probe, the server stays alive after a turn: the caller finally calls `stop`. Once
    `is_over`, the next load is an interrupt.
    """

    tools: Tools
    state: SearchState
    store: RunStore
    listener: SearchListener
    log_is_kept: bool = True
    pause: Callable[[float], object] = time.sleep
    is_over: Callable[[], bool] = lambda: False
    left_s: Callable[[], float] = lambda: inf
    """The seconds that the session still has: no load begins that would not end in them."""
    now: Callable[[], float] = time.monotonic
    _start_s: float = 0.0
    _around_s: float = AROUND_NS / 1e9
    """What the last load took besides its own time: on a busy machine that is much."""
    _judging_s: float = 0.0
    """What judging all loads so far took: the report does so once more."""
    _prober: Prober | None = None
    _cold: bool = True
    _confirmed_on: int = 0
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self._waits_s = list(WAITS_S[self.state.retries :])

    @property
    def cell(self) -> Cell:
        """The cell whose limit is searched."""
        return self.state.cell

    def check(self) -> None:
        """Ask a running server once, before any load. Raises LaunchError and DriveError, also stored."""
        try:
            self._start_fresh()
        finally:
            self.stop()

    def turn(self) -> bool:
        """Search on one start of the server and stop it, or make one probe. Returns whether another turn follows.

        Raises LaunchError, DriveError and KeyboardInterrupt.
        """
        try:
            has_more = self._search()
            if not has_more or not self.state.terms.by_probe:
                self._end_start()
        except BaseException:
            with contextlib.suppress(LaunchError):  # the first error has precedence
                self.stop()
            raise
        return has_more

    def stop(self) -> None:
        """Stop the server that runs, if any. Raises LaunchError if a command after it fails."""
        self._prober = None
        self._stack.close()

    def _end_start(self) -> None:
        """Stop the server that runs, if any. Raises LaunchError, also stored: the search cannot go on."""
        number = self._prober.start if self._prober is not None else 0
        try:
            self.stop()
        except LaunchError as error:
            self._store(self._not_loaded(number, failure_of("stop", error.kind, error, error.log_tail)))
            raise

    def _search(self) -> bool:
        while isinstance(step := self._next(), Proposal):
            if not self._has_time_for(step):
                return False
            if step.fresh_start not in (0, self._confirmed_on):
                self._confirmed_on = step.fresh_start
                if self._prober is not None and not self.state.terms.by_probe:
                    return True
                self._end_start()
            self._probe(step, "confirm" if step.fresh_start else "search")
            if self.state.terms.by_probe and self._prober is not None:
                self._prober.let_drain()  # a backlog would disturb the server whose turn is next
                return True
        for rate_per_s in self.state.curve_left():
            if not self._has_time(rate_per_s, "the curve was complete"):
                return False
            self._probe(Proposal(rate_per_s, "for the curve"), "curve")
        plan = self.state.overload_wanted()
        if not isinstance(plan, str) and not self.state.ended:
            if not self._fits(plan.seconds):
                self._ends("the overload test")
                return False
            self._keep(self._warm_prober(lambda: plan.calm_per_s).overload(plan))
        return False

    def _has_time_for(self, step: Proposal) -> bool:
        """Whether a probe ends in the time of the search, with another look at an early rate, if that is still to come.

        Else that look is taken, if there is time, and that the search is over is stored.
        """
        if self._prober is None and not self.state.loads and self.left_s() > 0:
            self._prober = self._start_fresh()  # how long a start takes is not known before the first
            return self._has_time(step.rate_per_s, f"its first probe: it took {duration(self._start_s * 1e9)} to start")
        if self._prober is not None:
            self._prober.let_drain()
        look = None if step.why == LOOKS_AGAIN else self.state.search.last_look(later=1)
        reserved_s = 0.0 if look is None else self._probe_s(look.rate_per_s) + self._around_s
        starts = step.fresh_start not in (0, self._confirmed_on)
        if self._fits(self._probe_s(step.rate_per_s) + reserved_s, starts=starts):
            return True
        self._look_again()
        self._ends("both ends of the answer were known and confirmed")
        return False

    def _look_again(self) -> None:
        """Try early rates once more, before a search ends for want of time."""
        while self._prober is not None and (look := self.state.search.last_look()) is not None:
            self._prober.let_drain()
            if not self._fits(self._probe_s(look.rate_per_s)):
                return
            self._probe(look, "search")
            self.state.next()  # takes in the probe

    def _has_time(self, rate_per_s: float, before: str) -> bool:
        """Whether a probe at this rate ends in the time of the search; else the search is over, and this is stored."""
        if self._prober is not None:
            self._prober.let_drain()
        if self._fits(self._probe_s(rate_per_s)):
            return True
        self._ends(before)
        return False

    def _saw_around(self, took_s: float, rate_per_s: float, evidence: Evidence) -> None:
        """Take in what a probe took besides its own time; what is less than before halves it, for chance is large."""
        load = self.state.load_at(rate_per_s)
        own_s = under_probe(self.cell, load).warmup_ns / 1e9 + evidence.seconds
        around_s = max(0.0, took_s - own_s)
        self._around_s = max(around_s, (around_s + self._around_s) / 2)

    def _probe_s(self, rate_per_s: float) -> float:
        """The length of a probe with its warm-up, in seconds."""
        load = self.state.load_at(rate_per_s)
        return (load.duration_ns + under_probe(self.cell, load).warmup_ns) / 1e9

    def _fits(self, seconds: float, *, starts: bool = False) -> bool:
        """Whether a load of this length ends in the time that is left, with the start and the warm-up that it takes."""
        if starts or self._prober is None:
            seconds += self._start_s
        if starts or self._prober is None or self._cold:
            seconds += (self.cell.warmup_ns + min(self.cell.warmup_ns, self.cell.load.duration_ns)) / 1e9
        # After the last load all loads are judged again, and the report is written, which takes about as long as what
        # is around a few loads.
        return seconds + self._judging_s + (1 + _REPORT) * self._around_s <= self.left_s()

    def _ends(self, before: str) -> None:
        """Store that the time of the search was over before this."""
        number = self._prober.start if self._prober is not None else max(self.state.next_start - 1, 0)
        self._store(self._without_load(number, "over", before))

    def _pause(self, seconds: float) -> None:
        self.pause(min(seconds, max(self.left_s(), 0.0)))

    def _next(self) -> Proposal | Converged | Exhausted | Doomed:
        """What the search proposes next; the listener gets what that rests on."""
        with self._judging():
            step = self.state.next()
            limits = self.state.search.limits() if self.state.search.evidence else ()
        if limits:
            self.listener.narrowed(limits)
        return step

    def _probe(self, step: Proposal, phase: LoadPhase) -> None:
        """Make a probe, and repeat it while the host disturbs it, as often as the waits allow."""
        most = min(len(self._waits_s), MOST_OF_ONE)
        prober = self._warm_prober(lambda: self._rate_of(step))
        step, again = replace(step, rate_per_s=self._rate_of(step)), False
        for most_left in range(most, -1, -1):
            # A probe is not made again where the wait and another one would not end in time.
            is_last = not most_left or not self._fits(2 * self._probe_s(step.rate_per_s) + self._waits_s[0])
            left = 0 if is_last else most_left
            began_s = self.now()
            evidence = self._keep(prober.probe(step, phase, retries_left=left, again=again))
            if evidence is not None:
                self._saw_around(self.now() - began_s, step.rate_per_s, evidence)
            if evidence is None or not evidence.passing or not left:
                return
            wait_s = self._waits_s.pop(0)
            self.listener.waits(wait_s)
            self._pause(wait_s)
            step, again = replace(step, why=AGAIN), True

    def _rate_of(self, step: Proposal) -> float:
        """Return the rate of a step; the warm-up may have changed where the search begins."""
        begins = self.state.next()
        return begins.rate_per_s if isinstance(begins, Proposal) and not self.state.probes else step.rate_per_s

    def _warm_prober(self, first_per_s: Callable[[], float]) -> Prober:
        """Return the prober of a running, warm server; `first_per_s` is called after its users have loaded it."""
        prober = self._prober = self._prober or self._start_fresh()
        if self._cold and self.cell.warmup_ns:
            for made in prober.warm(first_per_s):
                self._keep(made)
            self.listener.warmed(self.state.starts[-1])
        self._cold = False
        return prober

    def _start_fresh(self) -> Prober:
        """Start a server and verify it. Raises LaunchError and DriveError, also stored."""
        # A server that somebody else runs is still the same when its search is resumed.
        number, self._cold = 0 if self.cell.variant.is_attached else self.state.next_start, True
        self.listener.started(number)
        logs = self.store.create_folder(f"logs/{self.cell.slug}/start-{number}")
        log, seed = logs / "server.log", self._seed + number
        try:
            launch = Launch(self.cell.variant, self.tools.placement, log, seed, log_is_kept=self.log_is_kept)
            began_s = self.now()
            server = self._stack.enter_context(self.tools.launcher.running(launch))
            self._start_s = self.now() - began_s
        except LaunchError as error:
            self._store(self._not_loaded(number, failure_of("launch", error.kind, error, error.log_tail)))
            raise
        if (wrong := verify(self.cell, server, self.tools.driver)) is not None:
            self._keep(self._not_loaded(number, wrong))
        return Prober(
            cell=self.cell,
            load_at=self.state.load_at,
            tools=self.tools,
            server=server,
            logs=logs,
            seed=self._seed,
            start=number,
            loads=self.state.loads,
            workers=self.state.terms.workers,
            log_is_kept=self.log_is_kept,
            on_interval=self._tell_listener,
            pause=self._pause,
            is_over=self.is_over,
        )

    def _tell_listener(self, interval: Interval) -> None:
        """Tell the listener of this turn: a prober may outlive the turn that made it."""
        self.listener.seen(interval)

    def _keep(self, made: ProbeRecording) -> Evidence | None:
        """Store a load and return its evidence. Raises DriveError if the search cannot go on."""
        evidence = self._store(made)
        if evidence is not None:
            self.listener.probed(made, evidence, len(self.state.probes))
        if self.state.broken:
            failure = made.recording.failure
            raise DriveError(self.state.broken, hint=failure.hint if failure else "see its log")
        return evidence

    def _store(self, made: ProbeRecording) -> Evidence | None:
        self.store.save_probe(made, self.cell)
        with self._judging():
            return self.state.add(made)

    @contextlib.contextmanager
    def _judging(self) -> Iterator[None]:
        """Count the time in it as that of judging."""
        begins_s = self.now()
        yield
        self._judging_s += self.now() - begins_s

    def _not_loaded(self, start: int, failure: Failure) -> ProbeRecording:
        """Return the recording of a start that failed before a load."""
        return self._without_load(start, "start", failure=failure)

    def _without_load(
        self, start: int, phase: LoadPhase, why: str = "", failure: Failure | None = None
    ) -> ProbeRecording:
        """Return a recording without a load, which may have failed."""
        planned = PlannedTrial(cell_id=self.cell.id, round=start, position=self.state.loads, seed=self._seed)
        empty = new_recording(planned, time.time_ns())
        return ProbeRecording(
            phase=phase,
            why=why,
            load=self.cell.load,
            workers=self.tools.workers(self.cell.load, self.state.terms.workers),
            retries_left=0,
            recording=empty if failure is None else empty.failed(failure),
        )

    @property
    def _seed(self) -> int:
        trials = self.state.manifest.plan.trials
        return next(trial.seed for trial in trials if trial.round == 0 and trial.cell_id == self.cell.id)
