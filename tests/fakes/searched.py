"""A search on a cell whose server, driver and listener are fakes, so that it takes no time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from redline.limits.search_state import SearchState, search_state
from redline.model import Cell, Interval, Load, Manifest, Objective, Open, Outcomes, Plan, PlannedTrial, Traffic
from redline.model.limits import LimitStart
from redline.model.search import ProbeRecording, SearchTerms
from redline.ports import Drive, Endpoint, Placement
from redline.running.cell_search import CellSearch
from redline.running.record import Tools
from redline.search import Converged, Doomed, Evidence, Exhausted, Limit, Proposal
from redline.storage.runs import RunStore
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_cell, simulated_recording, simulated_run

CAPACITY = 3000.0
SECOND = 1_000_000_000
OBJECTIVES = parse_objectives("p99 < 20ms")
PROBE = Load(name="probe", shape=Open(rate_per_s=1000, connections=64), duration_ns=SECOND)
CELL = simulated_cell(load=PROBE).model_copy(update={"warmup_ns": 20 * SECOND})


@dataclass
class Driver(WithoutDuets):
    """A server of 3000/s as a driver sees it, and the calls to it."""

    events: list[str] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    wrong: str | None = None
    on_drive: Callable[[int], None] = field(default=lambda _number: None)
    losing: bool = False
    silent: bool = False
    late: int = 0
    exhausted: bool = False
    warm_after_ns: int = 0

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        self.events.append("verify")
        return self.wrong

    def drive(self, drive: Drive) -> Traffic:
        self.drives.append(drive)
        self.events.append("warm" if drive.cell.warmup_ns == 0 or drive.is_warm else "probe")
        self.on_drive(len(self.drives))
        shape = drive.cell.load.shape
        short = drive.cell.load.model_copy(update={"duration_ns": SECOND})
        cell = drive.cell.model_copy(update={"load": short, "warmup_ns": 0})
        slow = Behaviour(response_ns=1e9) if isinstance(shape, Open) and shape.most_per_s > CAPACITY else GOOD
        if self.late == len(self.drives):
            slow = replace(slow, lateness_ns=0.7 * slow.response_ns)
        traffic = simulated_recording(cell, slow, seed=drive.seed).traffic
        assert traffic is not None
        for interval in traffic.intervals:
            drive.on_interval(interval)
        if drive.is_warm:
            return traffic.model_copy(update={"measure_start_ns": self.warm_after_ns})
        if self.silent:
            wrong = {"completed": 0, "outcomes": Outcomes(closed=1)}
            silent = [each.counts.model_copy(update=wrong) for each in traffic.intervals]
            pairs = zip(traffic.intervals, silent, strict=True)
            return traffic.model_copy(
                update={"intervals": tuple(each.model_copy(update={"counts": counts}) for each, counts in pairs)}
            )
        if self.exhausted and shape.stages:
            due = traffic.counts.due
            lacked = {"exhausted": due // 10, "outcomes": Outcomes(ok=due - due // 10, connect=due // 10)}
            return traffic.model_copy(update={"counts": traffic.counts.model_copy(update=lacked)})
        if not self.losing:
            return traffic
        counts = traffic.counts.model_copy(update={"outcomes": Outcomes(ok=traffic.counts.due - 1, reset=1)})
        return traffic.model_copy(update={"counts": counts})


@dataclass
class Seen:
    """A listener that keeps all messages."""

    starts: list[int] = field(default_factory=list)
    warmed_up: list[LimitStart] = field(default_factory=list)
    whys: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    known: list[tuple[Limit, ...]] = field(default_factory=list)

    def started(self, number: int) -> None:
        self.starts.append(number)

    def seen(self, interval: Interval) -> None:
        pass

    def warmed(self, start: LimitStart) -> None:
        self.warmed_up.append(start)

    def probed(self, made: ProbeRecording, evidence: Evidence, number: int) -> None:
        self.whys.append(made.why)

    def narrowed(self, limits: Sequence[Limit]) -> None:
        self.known.append(tuple(limits))

    def waits(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass
class Bench:
    """A search with everything that it was made with."""

    made: CellSearch
    driver: Driver
    server: FakeServer
    listener: Seen
    launcher: FakeLauncher

    @property
    def state(self) -> SearchState:
        """What is known of the cell."""
        return self.made.state

    def run(self) -> Converged | Exhausted | Doomed:
        """Run it to its end, turn by turn."""
        while self.made.turn():
            pass
        end = self.state.next()
        assert not isinstance(end, Proposal)
        return end

    def again(self, **changes: object) -> "Bench":
        """Another session of the same search, from what is stored."""
        store = self.made.store
        state = search_state(store.manifest(), self.made.cell, store.probes(self.made.cell))
        self.listener = Seen()
        self.made = replace(self.made, state=state, listener=self.listener, **changes)  # type: ignore[arg-type]
        return self


def plan_of(
    cell: Cell, *, trials: int = 2, beyond: bool = False, objectives: tuple[Objective, ...] = OBJECTIVES
) -> Manifest:
    """The request for a single cell."""
    manifest = simulated_run().manifest
    rounds = tuple(PlannedTrial(cell_id=cell.id, round=each, position=each, seed=7) for each in range(max(trials, 1)))
    planned = Plan(suite=manifest.plan.suite, cells={cell.id: cell}, trials=rounds)
    terms = SearchTerms(
        sets={"good": objectives},
        start_per_s=1000,
        probes=12,
        precision=0.03,
        trials=trials,
        beyond=beyond,
    )
    return manifest.model_copy(update={"kind": "search", "plan": planned, "search": terms})


def bench_in(folder: Path, *, beyond: bool = False, **changes: object) -> Bench:
    """A search in that folder, on a cell with these changes."""
    driver, server, listener = Driver(), FakeServer(), Seen()
    launcher = FakeLauncher(driver.events, server)
    tools = Tools(launcher, driver, lambda _server: (), Placement((0,), (1,)))
    cell = CELL.model_copy(update=changes)
    manifest, store = plan_of(cell, beyond=beyond), RunStore(folder)
    store.create(manifest)
    made = CellSearch(tools, search_state(manifest, cell, ()), store, listener, pause=lambda _seconds: None)
    return Bench(made, driver, server, listener, launcher)
