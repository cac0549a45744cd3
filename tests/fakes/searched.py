"""A search on a cell whose server, driver and watcher are fakes: with them it takes no time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from redline.model import Cell, Interval, Load, Open, Outcomes, Traffic
from redline.model.limits import LimitStart
from redline.ports import Drive, Endpoint, Placement
from redline.running.cell_search import CellSearch
from redline.running.record import Tools
from redline.search import Evidence, Search, Settings
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import FakeLauncher, FakeServer
from tests.fakes.recordings import simulated_cell, simulated_recording

CAPACITY = 3000.0
SECOND = 1_000_000_000
PROBE = Load(name="probe", shape=Open(rate_per_s=1000, connections=64), duration_ns=SECOND)
CELL = simulated_cell(load=PROBE).model_copy(update={"warmup_ns": 20 * SECOND})


@dataclass
class Driver:
    """A server of 3000/s as a driver sees it, and what was asked of it."""

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
    """A watcher that keeps what it was told."""

    starts: list[int] = field(default_factory=list)
    warmed_up: list[LimitStart] = field(default_factory=list)
    whys: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def started(self, number: int) -> None:
        self.starts.append(number)

    def seen(self, interval: Interval) -> None:
        pass

    def warmed(self, start: LimitStart) -> None:
        self.warmed_up.append(start)

    def probed(self, evidence: Evidence, why: str) -> None:
        self.whys.append(why)

    def waits(self, seconds: float) -> None:
        self.waited.append(seconds)


@dataclass
class Bench:
    """A search with everything that it was made with."""

    made: CellSearch
    driver: Driver
    server: FakeServer
    watcher: Seen


def bench_in(folder: Path) -> Bench:
    driver, server, watcher = Driver(), FakeServer(), Seen()
    placement = Placement(server_cpus=(0,), engine_cpus=(1,))
    tools = Tools(FakeLauncher(driver.events, server), driver, lambda: (), placement)
    search = Search({"good": parse_objectives("p99 < 20ms")}, Settings(lowest_per_s=100, start_per_s=1000, trials=2))
    return Bench(CellSearch(CELL, tools, search, folder, 7, watcher, past_the_edge=False), driver, server, watcher)
