"""The search on one cell: servers started fresh, verified, warmed up, probed and stopped. Its order is the method.

1. On a fresh server the search brackets and narrows.
2. Both ends of every answer are probed on further fresh starts: the search asks for them in turns, one start a turn.
3. On the last start follow the rates that the curve lacks, and once a load past the edge.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from redline.analysis.limits import probe as published
from redline.errors import DriveError
from redline.model import Cell, Failure, Finding, Interval, ServerFacts, Traffic
from redline.model.limits import Beyond, LimitProbe, LimitStart, ProbePhase
from redline.ports import Endpoint, RunningServer
from redline.quantities import rate
from redline.running.probing import Prober, slice_of
from redline.running.record import Tools, death_soon, lost_connections
from redline.running.recording_driver import WatchedDriver
from redline.running.steal_retry import Patience
from redline.search import Converged, Doomed, Evidence, Exhausted, Proposal, Search
from redline.search.client import disturbed, lacking, stolen
from redline.search.curve import curve, rates_for_curve
from redline.search.overload import OverloadPlan, judge_overload, overload_plan
from redline.storage.runs import told


class Watcher(Protocol):
    """Is told how it goes, to show and to keep it."""

    def started(self, number: int) -> None:
        """A server is about to be started, the `number`-th of this cell from 0."""
        ...

    def seen(self, interval: Interval) -> None:
        """The engine reported one more interval."""
        ...

    def warmed(self, start: LimitStart) -> None:
        """The server that was started last is warm, or has been loaded for as long as it may be."""
        ...

    def probed(self, evidence: Evidence, why: str) -> None:
        """A probe was made, and is among the `probes`."""
        ...

    def waits(self, seconds: float) -> None:
        """The host disturbed the last probe; it is made again after so long."""
        ...


@dataclass
class Starts:
    """The server of a cell, started again and again: at most one runs at a time."""

    cell: Cell
    tools: Tools
    logs: Path
    number: int = -1
    facts: ServerFacts | None = None
    dead: bool = False
    _running: RunningServer | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def log(self) -> Path:
        """Where the engine may write while this start runs."""
        return self._folder / "engine.log"

    @property
    def _folder(self) -> Path:
        return self.logs / f"start-{self.number}"

    def fresh(self) -> RunningServer:
        """Stop the one that runs, start another and verify it. Raises LaunchError and DriveError."""
        self.stop()
        self.number += 1
        with told(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        running = self.tools.launcher.running(self.cell.variant, self.tools.placement, self._folder / "server.log")
        server = self._running = self._stack.enter_context(running)
        self.facts = server.facts
        wrong = self.tools.driver.verify(self.cell, server.endpoint)
        if wrong is not None:
            self._raise_if(death_soon(server), "")
            message = f"{self.cell.variant.slug} answered {self.cell.scenario.name} wrongly before any load: {wrong}"
            raise DriveError(message, hint="mend the server, or the scenario's expected answer")
        return server

    def stop(self) -> None:
        """Stop the one that runs, if any."""
        self._stack.close()
        self._running = None

    @contextlib.contextmanager
    def loaded(self, when: str) -> Iterator[list[Traffic]]:
        """Around a load, which puts its traffic into what it is given. Raises DriveError when the server died of it."""
        server = self._running
        seen: list[Traffic] = []
        assert server is not None, "a server was started"
        try:
            yield seen
        except DriveError:
            self._raise_if(death_soon(server), when)
            raise
        lost = any(map(lost_connections, seen))
        self._raise_if(death_soon(server) if lost else server.death(), when)

    def _raise_if(self, death: Failure | None, when: str) -> None:
        if death is not None:
            self.dead = True
            raise DriveError(f"{self.cell.variant.slug} died{when and f' {when}'}: {death.message}", hint=death.hint)


@dataclass
class CellSearch:
    """One search; what it has seen stays when something ends it early."""

    cell: Cell
    tools: Tools
    search: Search
    logs: Path
    seed: int
    watcher: Watcher
    past_the_edge: bool = True
    pause: Callable[[float], None] = time.sleep
    probes: list[LimitProbe] = field(default_factory=list)
    warm_ups: list[LimitStart] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    beyond: Beyond | str = "nobody asked for it"
    _prober: Prober | None = None
    _loads: int = 0
    _cold: bool = True

    def __post_init__(self) -> None:
        self.starts = Starts(self.cell, self.tools, self.logs)
        self._driver = WatchedDriver(self.tools.driver, self.tools.probes)
        self._patience = Patience(self.watcher.waits, self.pause)

    def run(self) -> Converged | Exhausted | Doomed:
        """To its end, with the server stopped. Raises LaunchError and DriveError, and lets interrupts out."""
        turn = 0
        try:
            self._start_fresh()
            while isinstance(step := self.search.next(), Proposal):
                if step.fresh_start not in (0, turn):
                    self._start_fresh()
                    turn = step.fresh_start
                self.search.saw(self._probe(step, "confirm" if step.fresh_start else "search"))
            self._complete_curve()
            self._look_past()
        finally:
            self.starts.stop()
        return step

    def _start_fresh(self) -> None:
        self.watcher.started(self.starts.number + 1)
        endpoint = self.starts.fresh().endpoint
        self._driver.server, self._cold = self.starts.facts, True
        prober = self._prober = self._prober or self._new_prober(endpoint)
        prober.move_to(endpoint, self.starts.log, self.starts.number)

    def _new_prober(self, endpoint: Endpoint) -> Prober:
        cpus = self.tools.placement.engine_cpus
        return Prober(
            driver=self._driver,
            cell=self.cell,
            endpoint=endpoint,
            workers=min(max(1, len(cpus)), self.cell.load.connections),
            seed=self.seed,
            log=self.starts.log,
            objectives=tuple(each for one in self.search.sets.values() for each in one),
            cpus=cpus,
            on_interval=self.watcher.seen,
            pause=self.pause,
        )

    def _probe(self, step: Proposal, phase: ProbePhase) -> Evidence:
        """A probe that the host does not disturb, as far as there is patience. Raises DriveError."""
        return self._patience.undisturbed(step, lambda again: self._probe_once(again, phase))

    def _probe_once(self, step: Proposal, phase: ProbePhase) -> Evidence:
        """A probe, on a server that is warm. Raises DriveError, also when the server died of it."""
        assert self._prober is not None, "a server was started"
        if self._cold and self.cell.warmup_ns:
            with self.starts.loaded("while it was warmed up"):
                self.warm_ups.append(self._prober.warm(step.rate_per_s, self._next()))
            self.watcher.warmed(self.warm_ups[-1])
        self._cold = False
        with self.starts.loaded(f"at {rate(step.rate_per_s)}") as seen:
            evidence = self._prober.probe(step, self._next())
            seen.extend(filter(None, [self._prober.traffic]))
            found = self._driver.findings(self.cell.id, len(self.probes))
            evidence = disturbed(evidence, found, self._prober.objectives, patient=self._patience.left)
            self.findings.extend(found)
            fresh = phase == "confirm"
            self.probes.append(published(evidence, step.why, phase, fresh=fresh, start=evidence.start))
            self.watcher.probed(evidence, step.why)
            if wrong := self._prober.gone(evidence):
                what = f"{self.cell.variant.slug} gives no right answer any more after {rate(step.rate_per_s)}"
                raise DriveError(f"{what}: {wrong}", hint=f"what it printed is in {self.starts.log.parent}")
        return evidence

    def _next(self) -> int:
        """The number of the next load: no two have the same arrivals."""
        self._loads += 1
        return self._loads - 1

    def _complete_curve(self) -> None:
        """What a search near the edge leaves out of the curve."""
        for rate_per_s in rates_for_curve(curve(self.probes), self.search.settings.lowest_per_s):
            self._probe(Proposal(rate_per_s, "for the curve"), "curve")

    def _look_past(self) -> None:
        """Once past the edge and back. What goes wrong there is told, and takes nothing from the answer."""
        limits, evidence = self.search.limits(), self.search.evidence
        answered_per_s = max((each.answered_per_s for each in evidence if not each.client), default=0.0)
        ends = [(each.low_per_s, each.high_per_s) for each in limits]
        if not self.past_the_edge:
            return
        if answered_per_s == 0 or all(high is None for _, high in ends):
            self.beyond = "no edge was found to look past"
            return
        plan = overload_plan(ends, answered_per_s, self.cell.load.duration_ns / 1e9)
        if self.search.client_limited(plan.overload_per_s):
            self.beyond = f"not the server is the limit below {rate(plan.overload_per_s)}"
            return
        self.beyond = self._pushed(plan)

    def _pushed(self, plan: OverloadPlan) -> Beyond:
        """What the load of three stages showed; the server may die of it."""
        prober = self._prober
        assert prober is not None, "a server was started"
        intervals: list[Interval] = []

        def seen(interval: Interval) -> None:
            intervals.append(interval)
            self.watcher.seen(interval)

        prober.on_interval, client, failed = seen, "", ""
        try:
            with self.starts.loaded(f"at {rate(plan.overload_per_s)}") as traffics:
                traffics.append(prober.staged(plan, self._next()))
                told = self._driver.findings(self.cell.id, len(self.probes))
                client = lacking(traffics[0]) or prober.too_busy(traffics[0]) or stolen(told)
        except DriveError as error:
            failed = error.problems[0].message
        finally:
            prober.on_interval = self.watcher.seen
        slices = [slice_of(each) for each in intervals if each.phase != "warmup"]
        died, stopped = (failed, "") if self.starts.dead else ("", failed)
        return judge_overload(plan, slices, died=died, stopped=stopped, client=client)
