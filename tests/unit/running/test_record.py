"""Every load is watched from before it begins to its end; problems of a monitor are reported."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from redline.document.blocks import Items
from redline.errors import DriveError
from redline.limits.search_state import SearchState
from redline.model import (
    Cell,
    Clocks,
    Finding,
    FindingKind,
    Grade,
    Load,
    Open,
    PlannedTrial,
    Recording,
    RuntimeFacts,
    Series,
    Subject,
    Traffic,
)
from redline.model.limits import CellLimit
from redline.model.search import ProbeRecording
from redline.ports import Drive, Endpoint, LoadOptions, Placement, RunningServer
from redline.report.limit import search_findings
from redline.running.record import Tools, record_load
from tests.fakes import limits
from tests.fakes.behaviour import Behaviour
from tests.fakes.plugins import FACTS, FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_cell, simulated_recording
from tests.fakes.searched import plan_of

CELL = simulated_cell(load=Load(name="probe", shape=Open(rate_per_s=1000, connections=64), duration_ns=10**9))


@dataclass
class Replayed(WithoutDuets):
    """Driver and monitor in one: the observations of a trial, again."""

    recording: Recording
    events: list[str] = field(default_factory=list)
    error: DriveError | None = None
    perturbs: bool = False
    watched: tuple[int, ...] = ()

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return "wrong"

    def drive(self, drive: Drive) -> Traffic:
        drive.on_start(99)
        self.watched = drive.pids
        self.events.append("drive")
        if self.error:
            raise self.error
        assert self.recording.traffic is not None
        return self.recording.traffic

    def follow(self, subject: Subject, pid: int) -> None:
        self.events.append(f"follow {subject} {pid}")

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        return self.recording.runtime

    def finish(self) -> tuple[Series, ...]:
        self.events.append("finish")
        return self.recording.series


def recorded(
    replayed: Replayed,
    server: FakeServer | None = None,
    pids: list[int] | None = None,
    processes: Callable[[RunningServer], tuple[int, ...]] = lambda _server: (),
    cell: Cell = CELL,
) -> Recording:
    tools = Tools(FakeLauncher([]), replayed, lambda _server: (replayed,), Placement(), processes)
    planned = PlannedTrial(cell_id=CELL.id, round=0, position=0, seed=1)
    options = LoadOptions(log=Path("unused"), on_start=(pids if pids is not None else []).append)
    return record_load(cell, planned, server or FakeServer(), tools, options)


def replayed(**behaviour: float) -> Replayed:
    return Replayed(simulated_recording(CELL, Behaviour(**behaviour)))  # type: ignore[arg-type]


def test_each_load_is_watched_from_before_its_start_to_its_end() -> None:
    driver, pids = replayed(), list[int]()
    found = recorded(driver, pids=pids)
    assert found.traffic == driver.recording.traffic
    assert found.series == driver.recording.series
    assert found.server == FACTS
    assert driver.events == ["follow server 4321", "follow engine 99", "drive", "finish"]
    assert pids == [99]


@pytest.mark.parametrize("seen_after", [(4321, 4400), (4321, 4401), (4321,)])
def test_the_clock_of_a_server_counts_where_all_of_its_processes_lived_through_the_load(
    seen_after: tuple[int, ...],
) -> None:
    driver, seen = replayed(), [(4400, 4321), seen_after]
    traffic = driver.recording.traffic
    assert traffic is not None
    clocks = Clocks(start_ns=1, end_ns=2, server_cpu_ns=3, steal_ns=4)
    driver.recording = driver.recording.model_copy(update={"traffic": traffic.model_copy(update={"clocks": clocks})})
    found = recorded(driver, processes=lambda _server: seen.pop(0)).traffic
    assert driver.watched == (4321, 4400)
    whole = seen_after == (4321, 4400)
    assert found is not None
    assert found.clocks == (clocks if whole else clocks.model_copy(update={"server_cpu_ns": None}))


REPLAY = Open(arrivals="replayed", replayed_ns=(0, 999_500_000), connections=4)


@pytest.mark.parametrize(
    ("changed", "is_whole"),
    [
        ({"count": 1000, "duration_ns": 10**10}, True),
        ({"count": 1000}, False),
        ({}, False),
        ({"shape": REPLAY}, True),
        ({"shape": REPLAY.model_copy(update={"replayed_ns": (0, 2 * 10**9)})}, False),
    ],
)
def test_a_load_that_ends_as_its_last_request_is_due_is_measured_until_its_last_answer(
    changed: dict[str, object], *, is_whole: bool
) -> None:
    driver = replayed()
    made = driver.recording.traffic
    assert made is not None
    *before, last = made.intervals
    late = last.counts.model_copy(update={"completed": 2})
    drain = last.model_copy(
        update={"phase": "drain", "start_ns": last.end_ns, "end_ns": last.end_ns + 5, "counts": late}
    )
    made = made.model_copy(update={"intervals": (*before, last, drain)})
    driver.recording = driver.recording.model_copy(update={"traffic": made})
    cell = CELL.model_copy(update={"load": CELL.load.model_copy(update=changed)})
    found = recorded(driver, cell=cell).traffic
    assert found is not None
    assert (found.measure_end_ns > made.measure_end_ns) is is_whole


def test_of_a_server_that_is_not_ours_only_the_engine_is_followed() -> None:
    driver = replayed()
    assert recorded(driver, FakeServer(facts=None)).server is None
    assert driver.events[0] == "follow engine 99"


def findings(made: Recording) -> list[Finding]:
    """The findings of a probe with that recording."""
    state = SearchState(plan_of(CELL), CELL)
    state.add(ProbeRecording(phase="search", load=CELL.load, workers=1, retries_left=0, recording=made))
    return state.findings


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [({"steal": 0.4}, "cpu-steal"), ({"lateness_ns": 150_000.0}, "send-lateness")],
)
def test_what_engine_and_machine_did_to_a_probe_is_reported(behaviour: dict[str, float], kind: FindingKind) -> None:
    (found,) = findings(recorded(replayed(**behaviour)))
    assert (found.kind, found.cell_id, found.position) == (kind, CELL.id, 0)


def test_a_probe_that_nothing_was_done_to_has_none_and_neither_has_one_that_could_not_be_made() -> None:
    assert findings(recorded(replayed())) == []
    driver = replayed(steal=0.4)
    driver.error = DriveError("it ended", hint="none")
    failed = recorded(driver)
    assert driver.events[-1] == "finish"
    assert failed.failure is not None
    assert (failed.failure.kind, failed.failure.message, failed.failure.hint) == ("engine", "it ended", "none")
    assert findings(failed) == []


def doubted(*grades: Grade) -> CellLimit:
    found = [
        Finding(kind="cpu-steal", grade=grade, message=f"m{n}.", advice="Do.", cell_id="c", position=n)
        for n, grade in enumerate(grades)
    ]
    return limits.by_hand().cells[0].model_copy(update={"findings": tuple(found)})


def test_a_kind_is_reported_once_by_grade_for_all_cells_and_notes_are_not() -> None:
    def items(*cells: CellLimit) -> list[tuple[str, ...]]:
        sections = [*search_findings(limits.report(*cells))]
        assert len(sections) <= 1
        lists = [block for section in sections for block in section.blocks if isinstance(block, Items)]
        return [
            tuple("".join(span.text for span in text) for text in item.lines) for found in lists for item in found.items
        ]

    assert items(doubted()) == items(doubted(Grade.NOTE)) == []
    cell = doubted(Grade.WARN, Grade.INVALID, Grade.NOTE)
    probes = len(cell.probes)
    assert items(cell) == [
        ("m1.", "→ Do.", f"in 1 of {probes} probes, for example at 500/s"),
        ("m0.", "→ Do.", f"in 1 of {probes} probes, for example at 250/s"),
    ]
    other = cell.model_copy(update={"slug": cell.slug.replace("rust.hyper", "other"), "server": "other"})
    assert items(cell, other) == [
        ("m1.", "→ Do.", f"in 2 of {2 * probes} probes, for example at 500/s of rust.hyper"),
        ("m0.", "→ Do.", f"in 2 of {2 * probes} probes, for example at 250/s of rust.hyper"),
    ]
