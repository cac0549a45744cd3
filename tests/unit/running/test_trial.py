"""The order of a trial is the method, and all its possible ends are recorded."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.errors import DriveError, LaunchError
from redline.model import (
    AttachedServer,
    FixedWork,
    Interval,
    Load,
    Open,
    PlannedTrial,
    ProfileFacts,
    Recording,
    Traffic,
    Variant,
)
from redline.ports import Endpoint, Launch, Placement, ServerUsage
from redline.running import record, trial
from redline.running.record import Tools, verify
from redline.running.trial import TrialOptions, run_trial
from tests.fakes.plugins import DEATH, FakeDriver, FakeLauncher, FakeMonitor, FakeServer
from tests.fakes.recordings import SATURATE, simulated_cell

CELL = simulated_cell()
PLANNED = PlannedTrial(cell_id=CELL.id, round=1, position=7, seed=42)


def run(
    tmp_path: Path,
    launcher: FakeLauncher,
    driver: FakeDriver,
    *,
    perturbs: bool = False,
    intervals: list[Interval] | None = None,
) -> Recording:
    tools = Tools(launcher, driver, lambda _server: (FakeMonitor(launcher.events, perturbs),), Placement((0,), (1,)))
    seen = intervals if intervals is not None else []
    return run_trial(PLANNED, CELL, tools, tmp_path, TrialOptions(seen.append))


def test_a_trial_starts_verifies_loads_and_stops_in_that_order(tmp_path: Path) -> None:
    events: list[str] = []
    intervals: list[Interval] = []
    recording = run(tmp_path, FakeLauncher(events), FakeDriver(events), intervals=intervals)
    assert events == ["start", "verify", "follow server 4321", "drive", "follow engine 99", "finish", "stop"]
    assert (recording.cell_id, recording.round, recording.position, recording.seed) == (CELL.id, 1, 7, 42)
    assert recording.failure is None
    assert recording.traffic is not None
    assert list(recording.traffic.intervals) == intervals
    assert recording.find("cpu_ns", "server") is not None
    assert set(recording.stages_ns) == {"launch", "verify", "load", "stop"}


def test_its_caller_may_act_before_and_after_the_load_while_the_server_runs(tmp_path: Path) -> None:
    events, recorded = list[str](), list[Recording]()

    def keep(recording: Recording, endpoint: Endpoint) -> None:
        events.append(f"recorded at {endpoint}")
        recorded.append(recording)

    options = TrialOptions(on_verified=lambda: events.append("verified"), on_recorded=keep)
    tools = Tools(FakeLauncher(events), FakeDriver(events), lambda _server: (), Placement())
    whole = run_trial(PLANNED, CELL, tools, tmp_path, options)
    assert events == ["start", "verify", "verified", "drive", "recorded at 127.0.0.1:8080", "stop"]
    assert [recording.traffic for recording in recorded] == [whole.traffic] != [None]
    events.clear()
    failed = Tools(FakeLauncher(events), FakeDriver(events, wrong="status 500"), lambda _server: (), Placement())
    run_trial(PLANNED, CELL, failed, tmp_path, options)
    assert events == ["start", "verify", "recorded at 127.0.0.1:8080", "stop"]
    assert recorded[-1].failure is not None


class Usage(FakeMonitor):
    """A monitor that knows what a server uses."""

    def usage(self) -> ServerUsage:
        return ServerUsage(0, 0, None)


@pytest.mark.parametrize("saturates", [False, True])
def test_a_server_that_its_load_leaves_idle_is_watched_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, saturates: bool
) -> None:
    slept = list[float]()
    monkeypatch.setattr(record.time, "sleep", slept.append)
    quiet = Load(name="quiet", shape=Open(rate_per_s=100, connections=4), duration_ns=10**9)
    cell = simulated_cell(load=SATURATE if saturates else quiet)
    assert cell.load.saturates is saturates
    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (Usage([]),), Placement())
    recording = run_trial(PlannedTrial(cell_id=cell.id, round=0, position=0, seed=1), cell, tools, tmp_path)
    assert (recording.unloaded_unix_ns is None) is saturates
    assert (not slept) is saturates


def test_the_speed_of_the_cores_is_measured_before_and_after_the_load(tmp_path: Path) -> None:
    events: list[str] = []
    work_ns = iter([{0: 100, 1: 200}, {0: 150, 1: 201}])

    def fixed_work_ns(cpus: tuple[int, ...]) -> dict[int, int]:
        events.append(f"fixed work on {cpus}")
        return next(work_ns)

    launcher, placement = FakeLauncher(events), Placement((0,), (1,))
    tools = Tools(launcher, FakeDriver(events), lambda _server: (), placement, fixed_work_ns=fixed_work_ns)
    recording = run_trial(PLANNED, CELL, tools, tmp_path)
    assert events == ["start", "verify", "fixed work on (0, 1)", "drive", "fixed work on (0, 1)", "stop"]
    assert recording.fixed_work == (
        FixedWork(cpu=0, before_ns=100, after_ns=150),
        FixedWork(cpu=1, before_ns=200, after_ns=201),
    )


def test_the_speed_of_cores_that_nothing_is_pinned_to_is_not_measured(tmp_path: Path) -> None:
    def refuse(cpus: tuple[int, ...]) -> dict[int, int]:
        raise AssertionError(f"nothing is pinned to {cpus}")

    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement(), fixed_work_ns=refuse)
    recording = run_trial(PLANNED, CELL, tools, tmp_path)
    assert recording.fixed_work == ()
    assert "fixed_work" not in recording.model_dump(mode="json")


def test_a_server_is_watched_where_its_warm_up_is_detected(tmp_path: Path) -> None:
    driver = FakeDriver([])
    tools = Tools(FakeLauncher([]), driver, lambda _server: (), Placement((0,), (1,)))
    for detect in (False, True):
        cell = CELL.model_copy(update={"warmup_detect": detect})
        run_trial(PLANNED, cell, tools, tmp_path)
    assert [drive.is_warm is not None for drive in driver.drives] == [False, True]


BY = CELL.load.model_copy(update={"name": "by", "duration_ns": 1})
WARMED = CELL.model_copy(update={"warmup_by": BY, "warmup_ns": 3_000_000_000})


def test_another_load_warms_the_server_up_and_is_not_kept(tmp_path: Path) -> None:
    events: list[str] = []
    intervals: list[Interval] = []
    driver = FakeDriver(events)
    tools = Tools(FakeLauncher(events), driver, lambda _server: (), Placement((0,), (1,)))
    recording = run_trial(PLANNED, WARMED, tools, tmp_path, TrialOptions(intervals.append))
    assert events == ["start", "verify", "drive", "drive", "stop"]
    first, second = (drive.cell for drive in driver.drives)
    assert (first.load.name, first.load.duration_ns, first.warmup_ns) == ("by", 3_000_000_000, 0)
    assert (second.load, second.warmup_ns) == (CELL.load, 3_000_000_000)
    assert recording.traffic is not None
    measured = list(recording.traffic.intervals)
    assert intervals[-len(measured) :] == measured
    assert {interval.phase for interval in intervals[: -len(measured)]} == {"warmup"}


def test_its_own_load_runs_for_a_while_before_it_counts_after_another() -> None:
    def settling_s(warmup_s: int) -> float:
        return CELL.model_copy(update={"warmup_by": BY, "warmup_ns": warmup_s * 1_000_000_000}).settling_ns / 1e9

    assert [settling_s(warmup_s) for warmup_s in (1, 60)] == [1, 15]
    assert CELL.settling_ns == 0


def test_a_server_that_does_not_survive_its_warm_up_is_not_measured(tmp_path: Path) -> None:
    driver = FakeDriver([])
    tools = Tools(FakeLauncher([], server=FakeServer(dead=DEATH)), driver, lambda _server: (), Placement((0,), (1,)))
    recording = run_trial(PLANNED, WARMED, tools, tmp_path)
    assert len(driver.drives) == 1
    assert recording.traffic is None
    assert recording.failure == DEATH


def test_a_wrong_answer_ends_the_trial_before_any_load(tmp_path: Path) -> None:
    events: list[str] = []
    recording = run(tmp_path, FakeLauncher(events), FakeDriver(events, wrong="status 500 in place of 200"))
    assert events == ["start", "verify", "stop"]
    assert recording.traffic is None
    assert recording.failure is not None
    assert recording.failure.kind == "wrong_answer"
    assert "status 500 in place of 200" in recording.failure.message


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("GET /me: status 401 in place of 200, body ''", "--journey"),
        ("GET /me: status 403 in place of 200, body ''", "`auth`"),
        ("GET /me: status 404 in place of 200, body ''", "`expect: {status: 404}`"),
        ("GET /me: status 302 to /login in place of 200", "ask for /login"),
        (
            "GET /: tls: the TLS handshake failed: the server's certificate is self-signed and not trusted",
            "--cacert FILE",
        ),
        (
            "GET /: tls: the TLS handshake failed: the server's certificate is not for x, and for no other name",
            "--insecure",
        ),
    ],
)
def test_the_advice_about_a_running_server_names_what_its_answer_asks_for(wrong: str, advice: str) -> None:
    attached = CELL.model_copy(update={"variant": Variant(entry=AttachedServer(host="127.0.0.1", port=80))})
    failure = verify(attached, FakeServer(), FakeDriver([], wrong=wrong))
    assert failure is not None
    assert advice in failure.hint
    assert ("--cacert" in failure.hint) == ("trusted" in wrong)


def test_servers_of_the_same_arrivals_have_environments_of_other_sizes(tmp_path: Path) -> None:
    launcher = FakeLauncher([])
    tools = Tools(launcher, FakeDriver([]), lambda _server: (), Placement())
    for position in (0, 1):
        run_trial(PLANNED.model_copy(update={"position": position}), CELL, tools, tmp_path)
    assert len({launch.seed for launch in launcher.launches} - {None}) == 2


def test_a_server_that_does_not_start_is_recorded(tmp_path: Path) -> None:
    events: list[str] = []
    launcher = FakeLauncher(events, error=LaunchError("it exited with 1", hint="see its log"))
    recording = run(tmp_path, launcher, FakeDriver(events))
    assert recording.server is None
    assert recording.failure is not None
    assert (recording.failure.stage, recording.failure.kind) == ("launch", "start")
    assert recording.failure.message == "it exited with 1"
    assert set(recording.stages_ns) == {"launch"}


def test_a_server_that_dies_under_load_is_recorded_with_its_traffic(tmp_path: Path) -> None:
    events: list[str] = []
    server = FakeServer()
    recording = run(tmp_path, FakeLauncher(events, server), FakeDriver(events, kills=server))
    assert recording.traffic is not None
    assert recording.failure == DEATH
    assert server.stopped


def test_the_death_of_the_server_explains_an_engine_that_failed(tmp_path: Path) -> None:
    events: list[str] = []
    server = FakeServer()
    driver = FakeDriver(events, kills=server, error=DriveError("no connection", hint="x"))
    recording = run(tmp_path, FakeLauncher(events, server), driver)
    assert recording.failure == DEATH
    assert events[-2:] == ["finish", "stop"]


def test_a_death_that_is_seen_a_moment_late_still_explains_the_engine(tmp_path: Path) -> None:
    events: list[str] = []
    server = FakeServer(slow_to_die=3)
    driver = FakeDriver(events, kills=server, error=DriveError("no connection", hint="x"))
    assert run(tmp_path, FakeLauncher(events, server), driver).failure == DEATH


def test_an_engine_that_fails_is_recorded(tmp_path: Path) -> None:
    events: list[str] = []
    driver = FakeDriver(events, error=DriveError("the engine ended with code 1", hint="x"))
    recording = run(tmp_path, FakeLauncher(events), driver)
    assert recording.failure is not None
    assert (recording.failure.stage, recording.failure.kind) == ("load", "engine")
    assert set(recording.stages_ns) == {"launch", "verify", "load", "stop"}


def test_an_engine_that_cannot_ask_is_not_the_fault_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> str:
        raise DriveError("the engine was killed (signal 9) during a check", hint="x")

    monkeypatch.setattr(FakeDriver, "verify", killed)
    recording = run(tmp_path, FakeLauncher([]), FakeDriver([]))
    assert recording.failure is not None
    assert (recording.failure.stage, recording.failure.kind) == ("verify", "engine")
    assert recording.failure.message == "the engine was killed (signal 9) during a check"


def test_an_interrupt_stops_the_server_and_goes_on(tmp_path: Path) -> None:
    events: list[str] = []
    launcher = FakeLauncher(events)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, launcher, FakeDriver(events, error=KeyboardInterrupt()))
    assert launcher.server.stopped
    assert events[-2:] == ["finish", "stop"]


def test_what_the_server_writes_during_the_load_is_counted(tmp_path: Path) -> None:
    log, events = tmp_path / "server.log", list[str]()
    assert run(tmp_path, FakeLauncher(events), FakeDriver(events)).log_bytes is None
    log.write_bytes(b"it is ready\n")

    def write(_interval: Interval) -> None:
        with log.open("ab") as file:
            file.write(b"GET /\n")

    tools = Tools(FakeLauncher(events), FakeDriver(events), lambda _server: (), Placement())
    recording = run_trial(PLANNED, CELL, tools, tmp_path, TrialOptions(write))
    assert recording.traffic is not None
    assert recording.log_bytes == 6 * len(recording.traffic.intervals)


def test_a_perturbing_monitor_marks_the_recording(tmp_path: Path) -> None:
    events: list[str] = []
    assert run(tmp_path, FakeLauncher(events), FakeDriver(events), perturbs=True).perturbed


@pytest.mark.parametrize("kept", [True, False])
def test_logs_arrivals_and_interrupts_are_as_its_caller_wants_them(tmp_path: Path, *, kept: bool) -> None:
    launcher, driver = FakeLauncher([]), FakeDriver([])
    tools = Tools(launcher, driver, lambda _server: (), Placement((0,), (1, 2)))
    options = TrialOptions() if kept else TrialOptions(log_is_kept=False, keep_interrupted=True, workers=1)
    run_trial(PLANNED, CELL, tools, tmp_path, options)
    (launch,), (drive,) = launcher.launches, driver.drives
    assert (launch.seed, drive.seed) == (42 + 7, 42), "compared servers have the same arrivals"
    assert launch.log_is_kept is drive.log_is_kept is kept
    assert drive.keep_interrupted is not kept
    assert drive.workers == (2 if kept else 1)
    assert drive.interval_ns is None


class FakeProfiler(FakeMonitor):
    """A profiler that notes when it begins and ends."""

    env: Mapping[str, str] = {"SYMBOLS": "1"}

    def warm(self) -> None:
        """Nothing is counted."""

    def begin(self) -> None:
        self.events.append("begin")

    def end(self) -> None:
        self.events.append("end")

    def facts(self, traffic: Traffic | None) -> ProfileFacts:
        assert traffic is not None
        self.events.append("facts")
        return ProfileFacts(kind="cpu", subject="server", profiler="p 1", event="e", interval=1, samples=2)


@pytest.mark.parametrize(("seconds", "interval_ms"), [(0.5, 50), (2.0, 50), (4.0, 100), (20.0, 500), (40.0, 500)])
def test_a_profiled_trial_is_twice_as_long_in_eighty_intervals_of_50_to_500_ms(
    tmp_path: Path, seconds: float, interval_ms: int
) -> None:
    events = list[str]()
    launcher, driver = FakeLauncher(events), FakeDriver(events)
    cell = CELL.model_copy(update={"load": CELL.load.lasting(round(seconds * 1e9))})
    options = TrialOptions(profiler=FakeProfiler(events))
    recording = run_trial(PLANNED, cell, Tools(launcher, driver, lambda _server: (), Placement()), tmp_path, options)
    (drive,) = driver.drives
    assert drive.cell.load.duration_ns == round(2 * seconds * 1e9)
    assert drive.interval_ns == interval_ms * 1_000_000
    assert launcher.launches[0].env == {"SYMBOLS": "1"}
    assert recording.profile is not None
    assert recording.profile.samples == 2
    assert events[-2:] == ["stop", "facts"], "its samples are read when the server has ended"


def test_a_trial_without_a_profiler_has_no_profile(tmp_path: Path) -> None:
    launcher, driver = FakeLauncher([]), FakeDriver([])
    assert run(tmp_path, launcher, driver).profile is None
    assert driver.drives[0].cell.load == CELL.load
    assert launcher.launches[0].env == {}


class Clock:
    """A clock that steps pass on, in nanoseconds."""

    now = 1_000

    def monotonic_ns(self) -> int:
        return self.now

    def time_ns(self) -> int:
        return 10**18 + self.now


@pytest.mark.parametrize("starts", [True, False])
def test_stages_are_timed_without_the_commands_around_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, starts: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr(trial, "time", clock)

    class Launcher(FakeLauncher):
        @contextmanager
        def running(self, launch: Launch) -> Iterator[FakeServer]:
            clock.now += 100 + 30
            launch.on_setup(100)
            if not starts:
                raise LaunchError("it ended", hint="")
            yield self.server
            clock.now += 50 + 4
            launch.on_setup(50)

    class Driver(FakeDriver):
        def verify(self, cell: object, endpoint: object) -> str | None:
            clock.now += 7
            return self.wrong

    recording = run(tmp_path, Launcher([]), Driver([]))
    assert recording.stages_ns == ({"launch": 30, "verify": 7, "load": 0, "stop": 4} if starts else {"launch": 30})
    assert recording.setup_ns == (150 if starts else 100)


@pytest.mark.parametrize("measured", ["both", "before alone", "not wanted"])
def test_cores_have_fixed_work_where_both_measurements_are_known(tmp_path: Path, measured: str) -> None:
    asked = list[tuple[int, ...]]()

    def fixed_work_ns(cpus: tuple[int, ...]) -> dict[int, int]:
        asked.append(cpus)
        return {3: 5} if measured == "before alone" and len(asked) == 2 else {1: 4 + len(asked), 3: 8}

    driver = FakeDriver([])
    tools = Tools(FakeLauncher([]), driver, lambda _server: (), Placement((3, 1), (2, 1)), fixed_work_ns=fixed_work_ns)
    recording = run_trial(PLANNED, CELL, tools, tmp_path, TrialOptions(has_fixed_work=measured != "not wanted"))
    assert asked == ([] if measured == "not wanted" else [(1, 2, 3)] * 2)
    assert [(work.cpu, work.before_ns, work.after_ns) for work in recording.fixed_work] == {
        "both": [(1, 5, 6), (3, 8, 8)],
        "before alone": [(3, 8, 5)],
        "not wanted": [],
    }[measured]


def test_a_failure_of_the_load_has_precedence_over_one_of_the_stop(tmp_path: Path) -> None:
    after = LaunchError("`after` ended with exit code 3", hint="run it by hand")
    launcher = FakeLauncher([], stop_errors=[after])
    failure = run(tmp_path, launcher, FakeDriver([])).failure
    assert failure is not None
    assert (failure.stage, failure.message) == ("stop", after.message)
    launcher.stop_errors = [after]
    failure = run(tmp_path, launcher, FakeDriver([], wrong="status 500")).failure
    assert failure is not None
    assert (failure.stage, failure.kind) == ("verify", "wrong_answer")
