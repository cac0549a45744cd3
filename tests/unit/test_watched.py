"""The loads of a search are watched like those of trials, and what was wrong with a probe is told."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from redline.errors import DriveError
from redline.model import Cell, Finding, FindingKind, Grade, Load, Open, Recording, Series, Subject, Traffic
from redline.model.limits import CellLimit
from redline.ports import Drive, Endpoint
from redline.report.sections import limit as words
from redline.running.recording_driver import WatchedDriver
from tests.fakes import limits
from tests.fakes.behaviour import Behaviour
from tests.fakes.plugins import FACTS
from tests.fakes.recordings import simulated_cell, simulated_recording

CELL = simulated_cell(load=Load(name="probe", shape=Open(rate_per_s=1000, connections=64), duration_ns=10**9))


@dataclass
class Replayed:
    """Driver and probe in one: what a trial had seen, again."""

    recording: Recording
    events: list[str] = field(default_factory=list)
    error: DriveError | None = None
    perturbs: bool = False

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return "wrong"

    def drive(self, drive: Drive) -> Traffic:
        drive.on_start(99)
        self.events.append("drive")
        if self.error:
            raise self.error
        assert self.recording.traffic is not None
        return self.recording.traffic

    def follow(self, subject: Subject, pid: int) -> None:
        self.events.append(f"follow {subject} {pid}")

    def finish(self) -> tuple[Series, ...]:
        self.events.append("finish")
        return self.recording.series


def drive_of(pids: list[int]) -> Drive:
    endpoint = Endpoint("127.0.0.1", 1)
    return Drive(cell=CELL, endpoint=endpoint, seed=1, cpus=(), workers=1, log=Path("unused"), on_start=pids.append)


def watched(**behaviour: float) -> tuple[WatchedDriver, Replayed]:
    replayed = Replayed(simulated_recording(CELL, Behaviour(**behaviour)))  # type: ignore[arg-type]
    return WatchedDriver(replayed, lambda: (replayed,), FACTS), replayed


def test_each_load_is_watched_from_before_its_start_to_its_end() -> None:
    driver, replayed = watched()
    pids: list[int] = []
    assert driver.drive(drive_of(pids)) is replayed.recording.traffic
    assert replayed.events == ["follow server 4321", "follow engine 99", "drive", "finish"]
    assert pids == [99]
    assert driver.verify(CELL, Endpoint("127.0.0.1", 1)) == "wrong"


def test_of_a_server_that_is_not_ours_only_the_engine_is_followed() -> None:
    driver, replayed = watched()
    driver.server = None
    driver.drive(drive_of([]))
    assert replayed.events[0] == "follow engine 99"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [({"steal": 0.4}, FindingKind.CPU_STEAL), ({"lateness_ns": 150_000.0}, FindingKind.SEND_LATENESS)],
)
def test_what_engine_and_machine_did_to_a_probe_is_told_of_it(behaviour: dict[str, float], kind: FindingKind) -> None:
    driver, _ = watched(**behaviour)
    assert driver.findings("x", 0) == ()
    driver.drive(drive_of([]))
    (found,) = driver.findings("cell", 3)
    assert (found.kind, found.cell_id, found.position) == (kind, "cell", 3)


def test_a_probe_that_nothing_was_done_to_has_none_and_neither_has_one_that_could_not_be_made() -> None:
    driver, replayed = watched()
    driver.drive(drive_of([]))
    assert driver.findings("cell", 0) == ()
    driver, replayed = watched(steal=0.4)
    driver.drive(drive_of([]))
    replayed.error = DriveError("it ended", hint="none")
    with pytest.raises(DriveError):
        driver.drive(drive_of([]))
    assert replayed.events[-1] == "finish"
    assert driver.findings("cell", 0) == ()


def doubted(*grades: Grade) -> CellLimit:
    found = [
        Finding(kind=FindingKind.CPU_STEAL, grade=grade, message=f"m{n}.", advice="Do.", cell_id="c", position=n)
        for n, grade in enumerate(grades)
    ]
    return limits.by_hand().cells[0].model_copy(update={"findings": tuple(found)})


def test_the_gravest_of_a_kind_is_told_once_and_notes_are_not() -> None:
    assert words.finding_texts(doubted()) == words.finding_texts(doubted(Grade.NOTE)) == ()
    probes = len(doubted().probes)
    (told,) = words.finding_texts(doubted(Grade.WARN, Grade.INVALID, Grade.NOTE))
    assert told == f"cpu-steal in 2 of {probes} probes, for example at 500/s: m1. Do."
