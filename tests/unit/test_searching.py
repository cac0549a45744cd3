"""A cell is searched on fresh servers, each verified and warm before it is probed; with fakes, in no time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from redline.errors import DriveError, LaunchError
from redline.model import Cell, Closed, Finding, FindingKind, Grade, Interval, Load, Open, Outcomes, Traffic, Variant
from redline.model.limits import Beyond, LimitStart
from redline.ports import Drive, Endpoint, Placement
from redline.probing import SETTLE_NS, WARM_SHARE
from redline.search import Converged, Doomed, Evidence, Search, Settings
from redline.searching import CellSearch
from redline.suite import parse_objectives
from redline.trial import Tools
from redline.watched import WatchedDriver
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import DEATH, FakeLauncher, FakeServer
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

    def refuses(self, cell: Cell) -> str | None:
        return None

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


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    driver, server, watcher = Driver(), FakeServer(), Seen()
    placement = Placement(server_cpus=(0,), engine_cpus=(1,))
    tools = Tools(FakeLauncher(driver.events, server), driver, lambda: (), placement)
    search = Search({"good": parse_objectives("p99 < 20ms")}, Settings(lowest_per_s=100, start_per_s=1000, trials=2))
    return Bench(CellSearch(CELL, tools, search, tmp_path, 7, watcher, past_the_edge=False), driver, server, watcher)


def test_every_start_is_verified_and_warmed_before_its_probes(bench: Bench) -> None:
    end = bench.made.run()
    assert isinstance(end, Converged)
    events = bench.driver.events
    assert bench.watcher.starts == [0, 1, 2]
    starts = [index for index, event in enumerate(events) if event == "start"]
    assert len(starts) == 3
    for index in starts:
        assert events[index : index + 5] == ["start", "verify", "warm", "warm", "probe"]
    assert events.count("warm") == 6
    assert events[-1] == "stop"
    assert bench.server.stopped


def test_the_ends_of_the_answer_are_probed_on_fresh_starts(bench: Bench) -> None:
    end = bench.made.run()
    (limit,) = end.limits
    confirming = [each for each in bench.made.probes if each.phase == "confirm"]
    assert [each.start for each in confirming] == [1, 1, 2, 2]
    assert all(each.fresh for each in confirming)
    assert not any(each.fresh for each in bench.made.probes if each.phase == "search")
    assert {each.rate_per_s for each in confirming[-2:]} == {limit.low_per_s, limit.high_per_s}
    assert [each.start for each in bench.made.search.evidence][-4:] == [1, 1, 2, 2]


def test_what_the_search_leaves_out_of_the_curve_comes_last_and_is_no_evidence(bench: Bench) -> None:
    bench.made.run()
    drawn = [each for each in bench.made.probes if each.phase == "curve"]
    assert drawn == bench.made.probes[len(bench.made.search.evidence) :]
    assert all(each.start == 2 for each in drawn)


def test_the_warm_up_is_the_suites_by_as_many_users_as_connections_and_each_probe_settles(bench: Bench) -> None:
    bench.made.run()
    first, calm, probe = bench.driver.drives[:3]
    assert first.cell.load.duration_ns == 20 * SECOND
    assert first.cell.load.shape == Closed(users=64)
    assert isinstance(calm.cell.load.shape, Open)
    assert (calm.cell.load.shape.most_per_s, calm.cell.load.duration_ns) == (WARM_SHARE * 1000, SECOND)
    assert probe.cell.warmup_ns == SETTLE_NS
    assert {drive.cpus for drive in bench.driver.drives} == {(1,)}
    seeds = [drive.seed for drive in bench.driver.drives if isinstance(drive.cell.load.shape, Open)]
    assert seeds == list(range(7, 7 + len(seeds)))
    assert bench.made.warm_ups == bench.watcher.warmed_up == [LimitStart(warmed_ns=20 * SECOND)] * 3


@pytest.mark.parametrize(("at_most", "steady"), [(20 * SECOND, True), (SECOND, False)])
def test_a_warm_up_that_is_watched_ends_when_the_server_is_steady(bench: Bench, at_most: int, steady: bool) -> None:
    bench.made.cell = bench.made.cell.model_copy(update={"warmup_ns": at_most, "warmup_detect": True})
    bench.driver.warm_after_ns = SECOND
    bench.made.run()
    watched = [drive for drive in bench.driver.drives if drive.is_warm]
    assert len(watched) == 3
    assert {drive.cell.warmup_ns for drive in watched} == {at_most}
    assert bench.made.warm_ups == bench.watcher.warmed_up == [LimitStart(warmed_ns=SECOND, steady=steady)] * 3
    assert not any(drive.cell.warmup_detect for drive in bench.driver.drives if drive not in watched)


def test_without_a_warm_up_there_is_none(bench: Bench) -> None:
    bench.made.cell = bench.made.cell.model_copy(update={"warmup_ns": 0})
    bench.made.run()
    assert bench.driver.drives[0].cell.load.duration_ns == SECOND


def test_a_wrong_answer_ends_it_before_any_load(bench: Bench) -> None:
    bench.driver.wrong = "GET /path0: status 500, not 200"
    with pytest.raises(DriveError, match=r"rust\.hyper answered SimpleGet wrongly before any load: GET"):
        bench.made.run()
    assert bench.driver.events == ["start", "verify", "stop"]


def test_a_server_that_dies_of_a_probe_is_said_to_and_what_was_seen_stays(bench: Bench) -> None:
    def kill(number: int) -> None:
        bench.server.dead = DEATH if number == 5 else None

    bench.driver.on_drive = kill
    with pytest.raises(DriveError, match=r"rust\.hyper died at 4.*/s: killed by SIGKILL"):
        bench.made.run()
    assert len(bench.made.search.evidence) == 2
    assert len(bench.made.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_lives_and_answers_no_more_ends_the_search(bench: Bench) -> None:
    def hang(number: int) -> None:
        bench.driver.silent = number >= 5
        bench.driver.wrong = "GET /path0: timed out" if number >= 5 else None

    bench.driver.on_drive = hang
    with pytest.raises(DriveError, match=r"rust\.hyper gives no right answer any more after 4.*/s: GET /path0: timed"):
        bench.made.run()
    assert len(bench.made.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_loses_connections_is_given_a_moment_to_be_seen_dead(bench: Bench) -> None:
    bench.driver.losing = True
    bench.server.dead, bench.server.slow_to_die = DEATH, 3
    with pytest.raises(DriveError, match="killed by SIGKILL"):
        bench.made.run()


def test_an_interrupt_stops_the_server_and_goes_out(bench: Bench) -> None:
    def interrupt(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.made.run()
    assert bench.driver.events[-1] == "stop"
    assert len(bench.made.search.evidence) == 1


def test_a_server_that_does_not_start_is_a_launch_error(bench: Bench, tmp_path: Path) -> None:
    @contextmanager
    def refusing(variant: Variant, placement: Placement, log: Path) -> Iterator[FakeServer]:
        assert log == tmp_path / "start-0" / "server.log"
        raise LaunchError("it exited with code 1", hint="see its log")
        yield

    bench.made.tools.launcher.running = refusing  # type: ignore[method-assign]
    with pytest.raises(LaunchError):
        bench.made.run()


def past(bench: Bench) -> CellSearch:
    bench.made.past_the_edge = True
    return bench.made


def test_what_was_done_to_a_probe_is_told_by_its_place(bench: Bench) -> None:
    bench.driver.late = 5
    bench.made.run()
    (found,) = bench.made.findings
    assert (found.kind, found.position, found.cell_id) == (FindingKind.SEND_LATENESS, 2, CELL.id)


def test_past_the_edge_is_looked_once_and_last(bench: Bench) -> None:
    made = past(bench)
    end = made.run()
    (limit,) = end.limits
    assert limit.high_per_s is not None
    last = bench.driver.drives[-1].cell.load
    assert isinstance(last.shape, Open)
    assert last.shape.stages
    assert last.shape.most_per_s > limit.high_per_s
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.course
    assert sum(bool(drive.cell.load.shape.stages) for drive in bench.driver.drives) == 1


def test_a_server_that_dies_past_the_edge_keeps_its_answer(bench: Bench) -> None:
    def kill(_number: int) -> None:
        staged = bool(bench.driver.drives[-1].cell.load.shape.stages)
        bench.server.dead = DEATH if staged else None

    bench.driver.on_drive = kill
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.recovery == "does not come back"
    assert "killed by SIGKILL" in made.beyond.reason


def test_a_load_past_the_edge_that_found_no_ports_says_nothing_of_the_server(bench: Bench) -> None:
    bench.driver.exhausted = True
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.goodput == made.beyond.recovery == "not known"
    assert "no port, descriptor or memory" in made.beyond.reason


def test_a_load_past_the_edge_whose_cores_the_host_took_says_nothing_of_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"message": "The host took 20% of it.", "advice": "Take another one.", "cell_id": CELL.id}
    taken = Finding(kind=FindingKind.CPU_STEAL, grade=Grade.WARN, **told)

    def findings(_self: WatchedDriver, _cell_id: str, _position: int) -> tuple[Finding, ...]:
        return (taken,) if bench.driver.drives[-1].cell.load.shape.stages else ()

    monkeypatch.setattr(WatchedDriver, "findings", findings)
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.goodput == made.beyond.recovery == "not known"
    assert "the host took 20% of it" in made.beyond.reason


def test_where_no_edge_is_known_nothing_is_looked_for_past_it(bench: Bench) -> None:
    made = past(bench)
    made.search = Search(made.search.sets, Settings(start_per_s=1000, highest_per_s=2000, trials=2))
    assert isinstance(made.run(), Doomed)
    assert made.beyond == "no edge was found to look past"


def test_a_probe_that_the_host_disturbs_is_made_again_on_the_same_start_and_the_search_hears_of_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Finding(kind=FindingKind.CPU_STEAL, grade=Grade.WARN, message="M.", advice="A.", cell_id=CELL.id)

    def findings(_self: WatchedDriver, _cell_id: str, position: int) -> tuple[Finding, ...]:
        return (taken,) if position == 2 else ()

    quiet = bench.made.run()
    monkeypatch.setattr(WatchedDriver, "findings", findings)
    paused: list[float] = []
    search = Search(bench.made.search.sets, bench.made.search.settings)
    made = replace(bench.made, search=search, probes=[], warm_ups=[], findings=[], pause=paused.append)
    assert made.run() == quiet
    assert made.probes[2].client == "m"
    assert made.probes[3].rate_per_s == made.probes[2].rate_per_s
    assert made.probes[3].start == made.probes[2].start
    assert sum(each.phase != "curve" for each in made.probes) == len(search.evidence) + 1
    assert bench.watcher.waited == [5.0]
    assert 5.0 in paused
