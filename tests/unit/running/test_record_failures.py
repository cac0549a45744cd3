"""Why a load or its verification failed, what is profiled of it, and what is known of its server."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.errors import DriveError
from redline.model import (
    AttachedServer,
    Cell,
    Closed,
    Counts,
    CpuOwner,
    Interval,
    Load,
    Open,
    Outcomes,
    PlannedTrial,
    Recording,
    Series,
    Traffic,
    Variant,
)
from redline.model.exchange import Scenario
from redline.model.journey import Journey, JourneyStep
from redline.model.way import Access, Proxy
from redline.ports import Drive, LoadOptions, NoResultError, Placement, ServerUsage
from redline.running import record
from redline.running.record import Tools, death_soon, lost_connections, of_its_sockets, record_load, verify
from tests.fakes.plugins import DEATH, FakeDriver, FakeLauncher, FakeMonitor, FakeServer
from tests.fakes.recordings import SIMPLE_GET, simulated_cell, simulated_recording

SECOND = 1_000_000_000
CELL = simulated_cell(load=Load(name="probe", shape=Open(rate_per_s=1000, connections=4), duration_ns=SECOND))
PLANNED = PlannedTrial(cell_id=CELL.id, round=0, position=3, seed=5)


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "DYING_S", 0.01)


def tools_of(driver: FakeDriver, *monitors: FakeMonitor, **changed: Any) -> Tools:
    tools = Tools(FakeLauncher([]), driver, lambda _server: monitors, Placement(engine_cpus=(1, 2)))
    return replace(tools, **changed)


def made(
    driver: FakeDriver, *monitors: FakeMonitor, cell: Cell = CELL, server: FakeServer | None = None, **changed: Any
) -> Recording:
    options = changed.pop("options", LoadOptions(log=Path("unused")))
    return record_load(cell, PLANNED, server or FakeServer(), tools_of(driver, *monitors, **changed), options)


@pytest.mark.parametrize(
    ("wanted", "cpus", "connections", "workers"),
    [(None, (), 4, 1), (None, (1, 2), 4, 2), (3, (1, 2), 4, 3), (9, (1, 2), 4, 4), (None, (1, 2), 1, 1)],
)
def test_the_engine_has_a_worker_for_each_core_and_none_without_a_connection(
    wanted: int | None, cpus: tuple[int, ...], connections: int, workers: int
) -> None:
    tools = tools_of(FakeDriver([]), placement=Placement(engine_cpus=cpus))
    load = CELL.load.model_copy(update={"shape": Open(rate_per_s=1000, connections=connections)})
    assert tools.workers(load, wanted) == workers


def test_a_recording_has_its_place_in_the_run() -> None:
    found = made(FakeDriver([]))
    assert (found.cell_id, found.round, found.position, found.seed) == (CELL.id, 0, 3, 5)
    assert found.failure is None
    assert found.perturbed is False
    assert found.log_bytes is None
    assert found.owner is None
    assert found.attached_runtimes == ()


def test_a_monitor_that_perturbs_is_recorded() -> None:
    events = list[str]()
    assert made(FakeDriver([]), FakeMonitor(events), FakeMonitor(events, perturbs=True)).perturbed
    assert events.count("follow server 4321") == 2
    assert events.count("follow engine 99") == 2


def test_the_growth_of_the_servers_log_is_recorded(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("12345")

    def write(_pid: int) -> None:
        log.write_text("12345" + 7 * "x")

    options = LoadOptions(log=tmp_path / "engine.log", server_log=log, on_start=write)
    assert made(FakeDriver([]), options=options).log_bytes == 7

    def shorten(_pid: int) -> None:
        log.write_text("1")

    shrinks = replace(options, on_start=shorten)
    assert made(FakeDriver([]), options=shrinks).log_bytes == 0
    gone = replace(options, on_start=lambda _pid: log.unlink())
    assert made(FakeDriver([]), options=gone).log_bytes is None


def test_a_dead_server_explains_an_engine_that_failed() -> None:
    error = DriveError("it broke", hint="h")
    alone = made(FakeDriver([], error=error)).failure
    assert alone is not None
    assert (alone.stage, alone.kind, alone.message) == ("load", "engine", "it broke")
    assert made(FakeDriver([], error=error), server=FakeServer(dead=DEATH, slow_to_die=2)).failure == DEATH
    assert made(FakeDriver([]), server=FakeServer(dead=DEATH)).failure == DEATH
    assert made(FakeDriver([]), server=FakeServer(dead=DEATH, slow_to_die=1)).failure is None, "it is asked once"


def test_what_an_engine_without_a_result_saw_is_kept() -> None:
    traffic = simulated_recording(CELL).traffic
    error = NoResultError("it ended", hint="h")
    error.traffic = traffic
    found = made(FakeDriver([], error=error))
    assert found.traffic == traffic
    assert found.failure is not None


@pytest.mark.parametrize("outcome", ["connect", "tls", "reset", "closed", "refused", "timeout", "malformed"])
def test_lost_connections_may_be_those_of_a_dying_server(outcome: str) -> None:
    traffic = simulated_recording(CELL).traffic
    assert traffic is not None
    assert not lost_connections(traffic)
    lost = traffic.model_copy(update={"counts": Counts(outcomes=Outcomes(**{outcome: 1}))})
    assert lost_connections(lost) is (outcome not in ("timeout", "malformed"))


def test_a_death_is_waited_for_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [10.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(record, "DYING_S", 0.5)
    monkeypatch.setattr(record, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    assert death_soon(FakeServer(dead=DEATH, slow_to_die=1)) == DEATH
    assert clock[0] == pytest.approx(10.05), "it looks every 50 ms"
    clock[0] = 10.0
    assert death_soon(FakeServer()) is None
    assert 10.5 <= clock[0] < 10.551


def series(subject: str, name: str) -> Series:
    facts = {"name": name, "unit": "1", "subject": subject, "kind": "counter", "times_unix_ns": (1,), "values": (1.0,)}
    return Series.model_validate(facts)


def test_the_sockets_of_a_server_are_its_own_whoever_serves() -> None:
    own, queue, machine = series("server", "cpu_ns"), series("server", "listen_queue"), series("machine", "busy_ns")
    assert of_its_sockets([own, queue, machine]) == (queue, machine)


@dataclass
class Watch:
    """A watch over the processes of somebody else's server."""

    owner: CpuOwner
    looks: int = 0
    pids: tuple[int, ...] = (7, 5)

    def look(self) -> None:
        self.looks += 1

    def finish(self) -> CpuOwner:
        return self.owner


@dataclass
class Owners(FakeMonitor):
    """A monitor that follows the processes of somebody else's server."""

    owned: tuple[int, ...] = ()

    def follow_owner(self, pids: tuple[int, ...]) -> None:
        self.owned = pids


def test_the_processes_of_somebody_elses_server_are_watched_at_each_interval() -> None:
    watch, monitor, driver = Watch(CpuOwner(processes=("a (5)",))), Owners([]), FakeDriver([])
    server = FakeServer(facts=None, runtimes=frozenset({"node", "jvm"}))
    found = made(driver, monitor, server=server, watch=lambda _server: watch)
    assert monitor.owned == (7, 5)
    assert driver.drives[0].pids == (5, 7)
    assert found.traffic is not None
    assert watch.looks == len(found.traffic.intervals)
    assert found.owner == watch.owner
    assert found.attached_runtimes == ("jvm", "node")
    assert [line.name for line in found.series] == ["cpu_ns"]
    assert made(driver, server=server, watch=lambda _server: Watch(CpuOwner())).owner is None


def test_an_unknown_owner_has_no_cpu_time() -> None:
    watch = Watch(CpuOwner(unknown="no rights"))
    found = made(FakeDriver([]), FakeMonitor([]), server=FakeServer(facts=None), watch=lambda _server: watch)
    assert found.owner == watch.owner
    assert found.series == ()


@dataclass
class Usage(FakeMonitor):
    """A monitor that knows what a server uses."""

    asked: int = 0

    def usage(self) -> ServerUsage:
        self.asked += 1
        return ServerUsage(0, self.asked, None)


def test_usage_is_told_after_each_interval() -> None:
    told = list[tuple[str, ServerUsage]]()

    def on_usage(_cell: Cell, phase: str, usage: ServerUsage) -> None:
        told.append((phase, usage))

    found = made(FakeDriver([]), FakeMonitor([]), Usage([]), on_usage=on_usage)
    assert found.traffic is not None
    assert [phase for phase, _ in told] == [interval.phase for interval in found.traffic.intervals]
    assert told[-1][1].cpu_ns == len(told)
    quiet = Usage([])
    made(FakeDriver([]), quiet)
    assert quiet.asked == 0
    made(FakeDriver([]), FakeMonitor([]), on_usage=on_usage)
    assert len(told) == len(found.traffic.intervals)


class Slept:
    """What `time.sleep` was asked for; it ends at once, by Ctrl-C if so wanted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, interrupted: bool = False) -> None:
        self.seconds = list[float]()
        self._interrupted = interrupted
        monkeypatch.setattr(record.time, "sleep", self)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if self._interrupted:
            raise KeyboardInterrupt


AFTER = LoadOptions(log=Path("unused"), looks_after=True)


@pytest.mark.parametrize(("load_s", "after_s"), [(1, 0.25), (5, 0.5), (20, 2.0), (60, 2.0)])
def test_a_server_is_watched_without_load_for_a_tenth_of_the_loads_time(
    monkeypatch: pytest.MonkeyPatch, load_s: int, after_s: float
) -> None:
    slept = Slept(monkeypatch)
    cell = CELL.model_copy(update={"load": CELL.load.lasting(load_s * SECOND)})
    found = made(FakeDriver([]), Usage([]), cell=cell, options=AFTER)
    assert slept.seconds == [record.CLOSES_S, pytest.approx(after_s)]
    assert found.unloaded_unix_ns is not None
    assert found.unloaded_unix_ns[0] <= found.unloaded_unix_ns[1]


def test_nobody_waits_without_load_for_what_is_not_read_or_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = Slept(monkeypatch)
    assert made(FakeDriver([]), FakeMonitor([]), options=AFTER).unloaded_unix_ns is None
    assert made(FakeDriver([]), Usage([])).unloaded_unix_ns is None
    traffic = simulated_recording(CELL).traffic
    assert traffic is not None
    assert slept.seconds == []
    error = NoResultError("it ended", hint="h", traffic=traffic)
    assert made(FakeDriver([], error=error), Usage([]), options=AFTER).unloaded_unix_ns is None


def test_ctrl_c_after_the_load_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Slept(monkeypatch, interrupted=True)
    stopped: list[str] = []
    found = made(FakeDriver([]), Usage([]), options=replace(AFTER, on_stopped=lambda: stopped.append("now")))
    assert found.traffic is not None
    assert found.unloaded_unix_ns is None
    assert stopped == ["now"]


@dataclass
class Profiler(FakeMonitor):
    """Notes when it samples."""

    calls: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self) -> None:
        self.calls.append("end")


@dataclass
class Telling(FakeDriver):
    """Reports intervals, and notes after which of them the profiler began and ended."""

    profiler: Profiler = field(default_factory=lambda: Profiler([]))
    seen: list[tuple[str, int, str]] = field(default_factory=list)

    def drive(self, drive: Drive) -> Traffic:
        def tell(interval: Interval, before: Callable[[Interval], None] = drive.on_interval) -> None:
            before(interval)
            self.note(interval.phase, interval.end_ns // 10**8)

        def start(pid: int, before: Callable[[int], None] = drive.on_start) -> None:
            before(pid)
            self.note("start", 0)

        return super().drive(replace(drive, on_interval=tell, on_start=start))

    def note(self, phase: str, at: int) -> None:
        self.seen += [(phase, at, call) for call in self.profiler.calls]
        self.profiler.calls.clear()


def profiled(cell: Cell) -> list[tuple[str, int, str]]:
    driver = Telling([])
    made(driver, cell=cell, options=LoadOptions(log=Path("unused"), profiler=driver.profiler))  # type: ignore[arg-type]
    return driver.seen


def test_a_profile_begins_with_the_measurement_and_ends_before_the_drain() -> None:
    stages = [{"to": 1001, "over_ns": SECOND}]
    shape = Open.model_validate({"rate_per_s": 1000, "connections": 4, "stages": stages})
    changing = CELL.model_copy(update={"load": CELL.load.model_copy(update={"shape": shape})})
    seen = profiled(changing.model_copy(update={"warmup_ns": 5 * 10**8}))
    assert seen[0] == ("warmup", 5, "begin"), "the last interval of the warm-up ends it"
    assert seen[-1] == ("drain", 15, "end")
    assert {call for _, _, call in seen[:-1]} == {"begin"}
    assert profiled(changing.model_copy(update={"warmup_ns": 0}))[0] == ("start", 0, "begin")


def test_the_middle_of_a_measurement_is_profiled() -> None:
    cell = CELL.under_profiler.model_copy(update={"warmup_ns": 0})
    whole, unprofiled = cell.load.duration_ns // 10**8, cell.unprofiled_ns // 10**8
    seen = profiled(cell)
    assert (whole, unprofiled) == (20, 5)
    assert next(at for _, at, call in seen if call == "begin") == unprofiled
    assert next(at for _, at, call in seen if call == "end") == whole - unprofiled


def hint(wrong: str, cell: Cell = CELL, **way: Any) -> str:
    entry = AttachedServer(host="127.0.0.1", port=80, way=Access(**way))
    attached = cell.model_copy(update={"variant": Variant(entry=entry)})
    failure = verify(attached, FakeServer(), FakeDriver([], wrong=wrong))
    assert failure is not None
    assert (failure.stage, failure.kind) == ("verify", "wrong_answer")
    assert failure.message == f"{entry.name} does not answer as expected: {wrong}"
    return failure.hint


def test_a_right_answer_is_no_failure_and_a_dead_server_explains_a_wrong_one() -> None:
    assert verify(CELL, FakeServer(), FakeDriver([])) is None
    wrong = FakeDriver([], wrong="GET /: status 500 in place of 200")
    assert verify(CELL, FakeServer(dead=DEATH, slow_to_die=2), wrong) == DEATH
    failure = verify(CELL, FakeServer(), wrong)
    assert failure is not None
    assert failure.message == (
        "rust.hyper answered SimpleGet wrongly before any load: GET /: status 500 in place of 200"
    )
    assert failure.hint == "fix the server, or the expected answer; nothing was timed"


@pytest.mark.parametrize(
    ("wrong", "way", "advice"),
    [
        ("GET /: connect: the proxy answered 407", {"proxy": Proxy(host="p", port=1)}, "give a user and a password"),
        ("GET /: connect: the proxy answered 403", {"proxy": Proxy(host="p", port=1)}, "let the proxy open tunnels"),
        ("GET /: connect: the proxy answered 502", {"proxy": Proxy(host="p", port=1)}, "see what the proxy logged"),
        ("GET /: connect: the proxy closed it", {"proxy": Proxy(host="p", port=1)}, "see what the proxy logged"),
        ("GET /: connect: the proxy answered 407", {}, "see the whole exchange with `curl -v`"),
        ("GET /: connect: refused", {"addresses": "all"}, "leave that address out"),
        ("GET /: connect: refused", {}, "see the whole exchange with `curl -v`"),
        ("GET /: reset", {"addresses": "all"}, "see the whole exchange with `curl -v`"),
        ("GET /: tls: the server's certificate is not trusted", {}, "give it or its authority: --cacert FILE, or"),
        ("GET /: tls: the server's certificate is of y", {}, "let the server show another, or accept any"),
        ("GET /: status 401 in place of 200", {}, "sign in with `auth`"),
        ("GET /: status 403 in place of 200", {}, "sign in with `auth`"),
        ("GET /: status 404 in place of 200", {}, "see the whole exchange with `curl -v`, or say that this status is"),
        ("GET /: status 302 to /x in place of 200", {}, "see the whole exchange with `curl -v`, or say that this "),
        ("GET /: connect: Too many open files", {}, "this machine has no port or descriptor"),
        ("GET /: connect: Cannot assign requested address", {}, "this machine has no port or descriptor"),
        ("GET /: connect: Too many open files", {"sources": ("127.0.0.2",)}, "this machine has no port or descriptor"),
        (
            "GET /: connect: Cannot assign requested address",
            {"sources": ("1.2.3.4",)},
            "name addresses of the machine that sends the load, which `ip addr` lists: --source ADDRESS",
        ),
    ],
)
def test_advice_about_a_server_that_runs_already_is_by_its_answer(wrong: str, way: dict[str, Any], advice: str) -> None:
    assert hint(wrong, **way).startswith(f"nothing was timed; {advice}")
    assert ("ask for /x" in hint(wrong, **way)) is ("to /x" in wrong)


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("requests", 404, "is right: --status 404"),
        ("items", 404, "is right: `expect: {status: 404}` of the request"),
        ("requests", 401, "sign in with --user or -H 'Authorization: …'; "),
        ("items", 401, "sign in with `auth`, or a header; "),
        ("items", 401, "if the answer is right, say so: `expect: {status: 401}` of the request"),
    ],
)
def test_advice_names_flags_to_whom_described_a_request_by_flags(name: str, status: int, says: str) -> None:
    cell = CELL.model_copy(update={"scenario": SIMPLE_GET.model_copy(update={"name": name})})
    said = hint(f"GET /: status {status} in place of 200", cell)
    assert says in said
    assert ("--" in said.replace("redline import --journey", "")) is (name == "requests")


def test_a_step_of_a_journey_may_have_another_status() -> None:
    steps = Journey(steps=(JourneyStep(), JourneyStep()))
    shop = Scenario(name="shop", request=SIMPLE_GET.request, others=(SIMPLE_GET.request,), journey=steps)
    journey = CELL.model_copy(update={"scenario": shop})
    assert "say in the step that this status is right" in hint("POST /: status 401 in place of 200", journey)
    assert "say in the step" not in hint("POST /: status 199 in place of 200", journey), "it is no status of an answer"


def warmed(driver: FakeDriver, server: FakeServer | None = None, **changed: Any) -> Recording:
    by = Load(name="by", shape=Closed(users=1), duration_ns=9 * SECOND)
    return made(driver, cell=CELL.model_copy(update={"warmup_by": by, **changed}), server=server)


def test_another_load_warms_up_first_for_as_long_as_the_cell_says() -> None:
    driver = FakeDriver([])
    assert warmed(driver, warmup_ns=4 * SECOND).failure is None
    first, second = driver.drives
    assert (first.cell.load.duration_ns, first.cell.warmup_ns, first.workers) == (4 * SECOND, 0, 1)
    assert first.keep_interrupted is False
    assert second.workers == 2
    assert second.cell.warmup_by is None
    none = FakeDriver([])
    assert warmed(none, warmup_ns=0).failure is None
    assert len(none.drives) == 1, "there is nothing to warm up for"


def test_a_server_that_dies_in_its_warm_up_is_not_measured() -> None:
    server = FakeServer()
    driver = FakeDriver([], kills=server)
    found = warmed(driver, server)
    assert found.failure == DEATH
    assert len(driver.drives) == 1
    failed = warmed(FakeDriver([], error=DriveError("it broke", hint="")))
    assert failed.failure is not None
    assert (failed.failure.kind, failed.failure.message) == ("engine", "it broke")
    assert failed.traffic is None
