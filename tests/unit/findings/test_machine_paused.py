"""An engine that stood still: what is reported of its load, and that nothing else is blamed."""

from dataclasses import replace

import pytest

from redline.driving import intervals
from redline.driving.intervals import KeptIntervals
from redline.extras.hosts.parts import merged
from redline.findings import judge, judge_probe
from redline.model import Cell, Finding, Grade, Interval, Recording, Traffic
from redline.model.traffic import sums
from redline.search.client import disturbed
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD
from tests.fakes.probed import evidence_of, traffic
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

MS = 1_000_000
CLOSED, OPEN = simulated_cell(load=SATURATE), simulated_cell(load=STEADY)


def with_pause(cell: Cell, ms: int, *, phase: str = "measure", workers: int = 1) -> Recording:
    """A good trial of a second whose workers each stood still for this long, in an interval of that phase."""
    recording = simulated_recording(cell, GOOD)
    assert recording.traffic is not None
    seen = recording.traffic
    at = next(i for i, each in enumerate(seen.intervals) if each.phase == phase)
    paused_ns = workers * ms * MS
    intervals = [each.model_copy(update={"paused_ns": paused_ns * (i == at)}) for i, each in enumerate(seen.intervals)]
    update = {
        "intervals": tuple(intervals),
        "paused_ns": 0 if phase == "warmup" else paused_ns,
        "engine": seen.engine.model_copy(update={"workers": workers}),
    }
    return recording.model_copy(update={"traffic": seen.model_copy(update=update)})


def paused(findings: tuple[Finding, ...]) -> list[Finding]:
    return [each for each in findings if each.kind == "engine-paused"]


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize(("ms", "grade"), [(400, Grade.INVALID), (20, Grade.INVALID), (5, Grade.WARN), (1, Grade.NOTE)])
def test_a_pause_is_reported_by_its_share_of_the_measurement(cell: Cell, workers: int, ms: int, grade: Grade) -> None:
    for found in (
        judge(cell, with_pause(cell, ms, workers=workers)),
        judge_probe(cell, with_pause(cell, ms, workers=workers)),
    ):
        (finding,) = paused(found)
        assert finding.grade is grade
        assert finding.message.startswith(f"The engine stood still for {ms}")
        assert ("of its 4 workers" in finding.message) is (workers == 4)


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_load_without_a_pause_is_not_doubted_for_one(cell: Cell) -> None:
    assert not paused(judge(cell, simulated_recording(cell, GOOD)))


def test_a_pause_of_the_warm_up_is_a_note_since_nothing_of_it_is_a_result() -> None:
    (finding,) = paused(judge(CLOSED, with_pause(CLOSED, 200, phase="warmup")))
    assert finding.grade is Grade.NOTE
    assert "of its warm-up of 250 ms" in finding.message


def test_pauses_add_up_over_intervals_and_over_hosts() -> None:
    one, other = (with_pause(CLOSED, ms).traffic for ms in (300, 50))
    assert one is not None
    assert other is not None
    whole: Traffic = merged([one, other], one.intervals[0].lasts_ns)
    assert whole.paused_ns == 350 * MS
    assert sum(each.paused_ns for each in whole.intervals) == 350 * MS
    assert whole.paused_share == pytest.approx(0.35 / whole.engine.workers / whole.seconds)
    assert sums(one.intervals)["paused_ns"] == 300 * MS


def test_intervals_that_are_merged_keep_their_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST_INTERVALS", 120)
    kept = KeptIntervals(MS)
    one = with_pause(CLOSED, 1).traffic
    assert one is not None
    for i in range(300):
        changed = {"phase": "measure", "index": i, "start_ns": i * MS, "end_ns": (i + 1) * MS, "paused_ns": 1}
        interval: Interval = one.intervals[0].model_copy(update=changed)
        kept.add(interval)
    assert len(kept.all()) < 300
    assert sum(each.paused_ns for each in kept.all()) == 300


def test_a_probe_during_which_the_engine_stood_still_blames_no_server() -> None:
    limits = parse_objectives("p99 < 20ms")
    missed = evidence_of(traffic(replace(GOOD, response_ns=30e6)))
    (finding,) = paused(judge_probe(OPEN, with_pause(OPEN, 400)))
    evidence = disturbed(missed, [finding], limits)
    assert evidence.passing
    assert evidence.client.startswith("the engine stood still")


def test_a_recording_without_pauses_is_written_as_before() -> None:
    plain = simulated_recording(CLOSED, GOOD)
    assert "paused" not in plain.model_dump_json()
    again = Recording.model_validate_json(with_pause(CLOSED, 400).model_dump_json())
    assert again.traffic is not None
    assert again.traffic.paused_ns == 400 * MS
