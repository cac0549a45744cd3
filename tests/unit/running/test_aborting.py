"""A load in which every request fails ends early, with the reason; a load with a right answer continues."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from redline.analysis.load_result import load_result
from redline.limits.search_state import SearchState
from redline.model import (
    Cell,
    Closed,
    Counts,
    DuetBlock,
    DuetSlice,
    DuetTraffic,
    Histogram,
    Interval,
    Load,
    Outcomes,
    PlannedTrial,
    Recording,
    TargetTraffic,
    Traffic,
)
from redline.model.failures import FirstFailure
from redline.model.search import ProbeRecording
from redline.model.traffic import Ended
from redline.ports import Drive, Endpoint, LoadOptions, Placement
from redline.report.load import load_section
from redline.running.aborting import FailingAbort, LoadAbort, RequestedDuetAbort
from redline.running.record import Tools, record_load
from tests.fakes.duets import ENGINE
from tests.fakes.loads import load_of
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording
from tests.fakes.searched import plan_of

S = 1_000_000_000
MALFORMED = FirstFailure(outcome="malformed", reason="a rule was broken", time_ns=9)
CELL = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
EMPTY = Histogram.of([])


@dataclass
class FailingDriver(WithoutDuets):
    """A driver whose engine reports these intervals until an interrupt, which it obeys."""

    intervals: list[Interval]
    engine: subprocess.Popen[bytes]
    failures: tuple[FirstFailure, ...] = (MALFORMED,)
    reported: int = 0
    drives: list[Drive] = field(default_factory=list)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        self.drives.append(drive)
        drive.on_start(self.engine.pid)
        made = []
        for each in self.intervals:
            made.append(each)
            drive.on_interval(each)
            if _has_ended(self.engine):
                break
        self.reported = len(made)
        traffic = simulated_recording(drive.cell, seed=drive.seed).traffic
        assert traffic is not None
        measured = [each for each in made if each.phase == "measure"]
        changed: dict[str, Any] = {
            "ended": "interrupted" if _has_ended(self.engine) else "complete",
            "intervals": tuple(made),
            "counts": Counts.merged(each.counts for each in measured),
            "failures": self.failures,
            "measure_start_ns": measured[0].start_ns if measured else 0,
            "measure_end_ns": measured[-1].end_ns if measured else 0,
            "response": EMPTY,
        }
        return traffic.model_copy(update=changed)


def _has_ended(engine: subprocess.Popen[bytes]) -> bool:
    """Whether the load ended, or does so because of an interrupt just now."""
    try:
        engine.wait(0.2)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when it is interrupted."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def interval(index: int, phase: str = "warmup", **outcomes: int) -> Interval:
    counted = Outcomes(**outcomes)
    counts = Counts(due=counted.total, completed=counted.ok, outcomes=counted)
    times = {"start_ns": index * S, "end_ns": (index + 1) * S}
    empty = {"response": EMPTY, "service": EMPTY, "lateness": EMPTY, "engine_cpu_ns": 1}
    return Interval.model_validate({"phase": phase, "index": index, "counts": counts, **times, **empty})


def recorded(driver: FailingDriver, cell: Cell = CELL) -> Recording:
    tools = Tools(FakeLauncher([], FakeServer()), driver, lambda _server: (), Placement())
    planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=7)
    return record_load(cell, planned, FakeServer(facts=None), tools, LoadOptions(log=Path("unused")))


def test_a_load_whose_every_request_fails_ends_and_says_why(engine: subprocess.Popen[bytes]) -> None:
    driver = FailingDriver([interval(n, malformed=4) for n in range(9)], engine)
    recording = recorded(driver)
    assert driver.reported == 2
    assert recording.failure is not None
    assert recording.failure.message == "all 8 requests of the first 2.00 s failed: malformed: a rule was broken"
    assert recording.traffic is not None
    assert recording.traffic.ended == "failing"
    judged = load_of(CELL, recording)
    result = load_result(judged)
    assert (result.valid, result.ended, result.failures) == (False, "failing", (MALFORMED,))
    assert [each.kind for each in result.findings] == ["trial-failed"]
    assert "a rule was broken" in result.findings[0].message
    assert load_section(judged).blocks


@pytest.mark.parametrize(
    "intervals",
    [
        [interval(0, ok=1), *(interval(n, malformed=4) for n in range(1, 4))],
        [*(interval(n, malformed=1) for n in range(4))],
        [interval(0, malformed=50), interval(1, malformed=50, ok=1), interval(2, malformed=9)],
    ],
    ids=["one right answer", "too few failures", "right in the end"],
)
def test_any_other_load_goes_on(intervals: list[Interval], engine: subprocess.Popen[bytes]) -> None:
    driver = FailingDriver(intervals, engine)
    recording = recorded(driver)
    assert driver.reported == len(intervals)
    assert recording.failure is None


def test_a_warm_up_by_another_load_ends_so_too(engine: subprocess.Popen[bytes]) -> None:
    by = Load(name="few", shape=Closed(users=2), duration_ns=S)
    driver = FailingDriver([interval(n, "measure", timeout=5) for n in range(9)], engine, ())
    recording = recorded(driver, CELL.model_copy(update={"warmup_by": by, "warmup_ns": 9 * S}))
    assert (driver.reported, len(driver.drives)) == (2, 1)
    assert recording.failure is not None
    assert recording.failure.message == "all 10 requests of the first 2.00 s failed: 10 timeout"


@pytest.mark.parametrize(("ok", "broken"), [(0, True), (1, False)])
def test_a_search_does_not_go_on_after_a_warm_up_without_a_right_answer(ok: int, broken: bool) -> None:
    recording = simulated_recording(CELL)
    assert recording.traffic is not None
    made_of = interval(0, malformed=3, ok=ok)
    changed = {"intervals": (made_of,), "counts": made_of.counts, "failures": (MALFORMED,)}
    traffic = recording.traffic.model_copy(update=changed)
    made = ProbeRecording(
        phase="warmup",
        load=CELL.load,
        workers=1,
        retries_left=0,
        recording=recording.model_copy(update={"traffic": traffic}),
    )
    state = SearchState(plan_of(OPEN), OPEN)
    state.add(made)
    expected = "rust.hyper gave no right answer while it was warmed up: malformed: a rule was broken"
    assert state.broken == (expected if broken else "")


def block(index: int, counts: Callable[[int], tuple[int, int]]) -> DuetBlock:
    """A block of three servers, with how many requests to each were answered and failed."""
    slices = tuple(
        DuetSlice(
            target=target,
            start_ns=index * S,
            end_ns=(index + 1) * S,
            measured_ns=S,
            measured=counts(target)[0],
            completed=counts(target)[0],
            failed=counts(target)[1],
            cpu_ns=(),
            engine_cpu_ns=1,
        )
        for target in range(3)
    )
    return DuetBlock(index=index, phase="warmup", slices=slices)


@pytest.mark.parametrize(("failing", "ends"), [((0, 4), True), ((1, 4), False), ((0, 1), False)])
def test_a_duet_ends_where_one_server_only_fails(
    failing: tuple[int, int], ends: bool, engine: subprocess.Popen[bytes]
) -> None:
    abort = RequestedDuetAbort((), ("A", "B", "the second A"))
    abort.started(engine.pid)
    for index in range(3):
        abort.seen(block(index, lambda target: failing if target == 1 else (100, 0)))
    assert abort.done == ends
    assert (engine.wait(10) != 0) if ends else engine.poll() is None
    traffic = duet_traffic("interrupted")
    shown, failure = abort.ended(traffic)
    assert (shown.ended == "failing") == ends
    assert (failure is not None) == ends
    if failure is not None:
        assert failure.message == "all 8 requests to B failed: malformed: a rule was broken"


@pytest.mark.parametrize(
    ("bad", "ends"),
    [({2, 3, 4}, True), ({2}, False), ({2, 4}, False)],
    ids=["from then on", "in one block alone", "with right answers between"],
)
def test_a_duet_ends_where_one_server_goes_wrong_on_the_way(
    bad: set[int], ends: bool, engine: subprocess.Popen[bytes]
) -> None:
    abort = RequestedDuetAbort((), ("A", "B", "the second A"))
    abort.started(engine.pid)
    for index in range(5):
        abort.seen(block(index, lambda target, at=index: (0, 4) if target == 1 and at in bad else (100, 0)))  # type: ignore[misc]
    assert abort.done == ends
    _, failure = abort.ended(duet_traffic("interrupted"))
    assert (failure.message if failure else "") == (
        "the last 8 requests to B, over 2.00 s after 200 right answers, failed: malformed: a rule was broken"
        if ends
        else ""
    )


def duet_traffic(ended: Ended) -> DuetTraffic:
    """Traffic of A, of B, which answered wrongly, and of A again."""
    target = TargetTraffic(counts=Counts(), response=EMPTY, service=EMPTY, lateness=EMPTY, engine_cpu_ns=1)
    targets = (target, target.model_copy(update={"failures": (MALFORMED,)}), target)
    return DuetTraffic(
        engine=ENGINE, connections=3, connect_ns=1, epoch_unix_ns=0, ended=ended, blocks=(), targets=targets
    )


def test_a_duet_whose_slices_wait_for_too_long_failed_and_names_the_server() -> None:
    """The engine ends it, so that the next slice does not begin under the load of an earlier one."""
    abort = RequestedDuetAbort((), ("A", "B", "the second A"))
    traffic, failure = abort.ended(duet_traffic("deadline"))
    assert traffic.ended == "deadline"
    assert failure is not None
    assert (failure.stage, failure.kind) == ("load", "wrong_answer")
    assert failure.message.endswith("so the next would begin under their load: B: malformed: a rule was broken")
    assert abort.ended(duet_traffic("complete"))[1] is None


def test_what_has_no_reason_to_end_a_load_never_does() -> None:
    abort, interrupted = LoadAbort[Interval](), list[str]()
    abort.started_on_hosts(lambda: interrupted.append("now"))
    for _ in range(3):
        abort.seen(simulated_recording(CELL).traffic.intervals[0])  # type: ignore[union-attr]
    assert (abort.done, interrupted) == (False, [])


def test_a_load_is_interrupted_once_and_not_before_its_engine_runs() -> None:
    class Wanted(LoadAbort[str]):
        def _is_enough(self, reported: str) -> bool:
            return reported == "enough"

    abort, interrupted = Wanted(), list[str]()
    abort.seen("enough")
    assert not abort.done
    abort.started_on_hosts(lambda: interrupted.append("now"))
    abort.seen("more")
    assert (abort.done, interrupted) == (False, [])
    abort.seen("enough")
    abort.seen("enough")
    assert (abort.done, interrupted) == (True, ["now"])


@pytest.mark.parametrize(
    ("intervals", "ends"),
    [
        ([interval(0, malformed=2), interval(1, malformed=3)], True),
        ([interval(0, malformed=2), interval(1, malformed=2)], False),
        ([interval(0, malformed=9)], False),
        ([interval(0, malformed=2), interval(1, "drain", malformed=3)], False),
    ],
    ids=["five in two seconds", "four", "one second", "in the drain"],
)
def test_five_failures_in_two_seconds_are_enough(intervals: list[Interval], *, ends: bool) -> None:
    abort, interrupted = FailingAbort(), list[str]()
    abort.started_on_hosts(lambda: interrupted.append("now"))
    for each in intervals:
        abort.seen(each)
    assert abort.done is ends
    assert bool(interrupted) is ends


@pytest.mark.parametrize(("last", "ends"), [(3, True), (2, False)])
def test_five_failures_of_a_server_in_two_seconds_end_a_duet(last: int, *, ends: bool) -> None:
    abort = RequestedDuetAbort((), ("A", "B", "the second A"))
    abort.started_on_hosts(lambda: None)
    for index, failed in enumerate((2, last)):
        abort.seen(block(index, lambda target, failed=failed: (0, failed) if target == 1 else (100, 0)))  # type: ignore[misc]
    assert abort.done is ends
