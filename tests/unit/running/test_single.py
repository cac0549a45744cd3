"""A load is a session of one trial: its recording is kept, whatever becomes of it, unless its server never ran."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from redline.driving.engine import EngineDriver
from redline.errors import DriveError, LaunchError
from redline.model import Cell, Interval, Traffic
from redline.ports import Drive, Driver, Endpoint, Placement
from redline.running.assembly import Workbench
from redline.running.manifests import Source
from redline.running.record import Tools
from redline.running.single import LoadFollower, SingleTrial
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.plugins import FACTS, FakeDriver, FakeLauncher
from tests.fakes.recordings import STEADY, simulated_run

MANIFEST = simulated_run({"rust.hyper": GOOD}, trials=1, loads=(STEADY,), ceiling=None, baseline=None).manifest
SUITE = MANIFEST.plan.suite.model_copy(update={"seed": 17})
CORES = Placement((0,), (1,))


@dataclass
class Session:
    """A load in a folder, with what its follower and its tools saw, in order."""

    folder: Path
    events: list[str] = field(default_factory=list)

    def of(self, launcher: FakeLauncher, driver: Driver) -> SingleTrial:
        def fixed_work_ns(cpus: tuple[int, ...]) -> dict[int, int]:
            raise AssertionError(f"a load does not measure how fast {cpus} are")

        tools = Tools(launcher, driver, lambda _server: (), CORES, fixed_work_ns=fixed_work_ns)
        source = Source("redline load URL", kind="load")
        return SingleTrial.create(SUITE, source, RunStore(self.folder), Workbench(tools, MANIFEST.environment))

    def follower(self) -> LoadFollower:
        return LoadFollower(self._seen, lambda names: self.events.append(f"cookies {', '.join(names)}"))

    def _seen(self, interval: Interval) -> None:
        if f"first {interval.phase}" not in self.events:
            self.events.append(f"first {interval.phase}")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "kept")


def test_a_load_is_kept_with_what_was_measured(session: Session) -> None:
    launcher, driver = FakeLauncher(session.events), FakeDriver(session.events)
    recording = session.of(launcher, driver).execute(1, session.follower(), is_kept=False)
    store = RunStore(session.folder)
    assert store.manifest().kind == "load"
    assert store.recordings() == (recording,)
    assert (recording.seed, recording.position, recording.server) == (17, 0, FACTS)
    assert recording.fixed_work == ()
    assert (recording.checks, recording.asked_again) == (0, "")
    assert [event for event in session.events if not event.startswith("first")] == ["start", "verify", "drive", "stop"]
    (launch,), (drive,) = launcher.launches, driver.drives
    assert (launch.log_is_kept, drive.log_is_kept) == (False, False)
    assert (drive.workers, drive.keep_interrupted) == (1, True)
    assert drive.log.parent == launch.log.parent == session.folder / "logs"


def test_a_load_that_nobody_reads_again_is_not_stored(session: Session) -> None:
    kept = session.of(FakeLauncher([]), FakeDriver([]))
    passing = SingleTrial.passing(SUITE, RunStore(session.folder.parent / "passing"), kept.tools)
    recording = passing.execute(1, session.follower(), is_kept=False)
    assert recording.traffic is not None
    assert (passing.cell, passing.seed) == (kept.cell, kept.seed)
    assert [path.name for path in passing.store.folder.iterdir()] == ["logs"]


def test_a_server_that_does_not_start_leaves_no_recording(session: Session) -> None:
    error = LaunchError("it exited with 1", hint="see its log", kind="not_ready", log_tail="no port")
    load = session.of(FakeLauncher([], error=error), FakeDriver([]))
    with pytest.raises(LaunchError, match="it exited with 1") as raised:
        load.execute(1, session.follower(), is_kept=True)
    assert (raised.value.hint, raised.value.kind, raised.value.log_tail) == ("see its log", "not_ready", "no port")
    assert RunStore(session.folder).recordings() == ()


def test_a_wrong_answer_is_kept_and_raised(session: Session) -> None:
    load = session.of(FakeLauncher(session.events), FakeDriver(session.events, wrong="status 500 in place of 200"))
    with pytest.raises(DriveError, match="status 500 in place of 200"):
        load.execute(1, session.follower(), is_kept=True)
    (recording,) = RunStore(session.folder).recordings()
    assert recording.failure is not None
    assert recording.failure.kind == "wrong_answer"
    assert session.events == ["start", "verify", "stop"]


def test_a_server_that_does_not_end_well_leaves_its_measurement(session: Session) -> None:
    launcher = FakeLauncher([], stop_errors=[LaunchError("it ended with 3", hint="see its log")])
    recording = session.of(launcher, FakeDriver([])).execute(1, session.follower(), is_kept=True)
    assert recording.traffic is not None
    assert recording.failure is not None
    assert (recording.failure.stage, recording.failure.message) == ("stop", "it ended with 3")
    assert RunStore(session.folder).recordings() == (recording,)


class Verifying(EngineDriver):
    """An engine that finds two cookies by three requests, and loads nothing."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(Path("engine"))
        self._fake = FakeDriver(events)

    def verify(self, cell: Cell, endpoint: Endpoint, rows: object = None) -> str | None:
        self.asked, self.cookies = 3, ("id", "lang")
        return self._fake.verify(cell, endpoint)

    def drive(self, drive: Drive) -> Traffic:
        return self._fake.drive(drive)


def test_the_requests_before_a_load_are_counted_and_their_cookies_told_before_it(session: Session) -> None:
    load = session.of(FakeLauncher(session.events), Verifying(session.events))
    recording = load.execute(1, session.follower(), is_kept=True)
    assert recording.checks == 3
    assert session.events[:4] == ["start", "verify", "cookies id, lang", "drive"]
