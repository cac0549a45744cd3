"""Answers within the measurement to requests that were due before it."""

import pytest

from redline.findings import judge
from redline.model import Cell, Finding, Grade, Metric, Recording
from redline.stats import Trial, sample_of
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

OPEN, CLOSED = simulated_cell(load=STEADY), simulated_cell(load=SATURATE)


def with_backlog(cell: Cell, waiting: int, left: int = 0) -> Recording:
    """A good trial in whose first measured interval this many earlier requests are answered too.

    `left` of its own requests are answered after the window instead.
    """
    recording = simulated_recording(cell, GOOD)
    seen = recording.traffic
    assert seen is not None
    intervals = list(seen.intervals)
    first = next(i for i, each in enumerate(intervals) if each.phase == "measure")
    last, drain = len(intervals) - 2, len(intervals) - 1
    for at, completed, ok in ((first, waiting, 0), (last, -left, -left), (drain, 0, left)):
        counts = intervals[at].counts
        outcomes = counts.outcomes.model_copy(update={"ok": counts.outcomes.ok + ok})
        update = {"completed": counts.completed + completed, "outcomes": outcomes}
        intervals[at] = intervals[at].model_copy(update={"counts": counts.model_copy(update=update)})
    counts = seen.counts.model_copy(update={"completed": seen.counts.completed + waiting - left})
    return recording.model_copy(
        update={"traffic": seen.model_copy(update={"intervals": tuple(intervals), "counts": counts})}
    )


def backlogs(findings: tuple[Finding, ...]) -> list[Finding]:
    return [each for each in findings if each.kind == "backlog"]


@pytest.mark.parametrize(("waiting", "grade"), [(890, Grade.INVALID), (200, Grade.WARN)])
def test_a_backlog_of_the_warm_up_is_reported_and_is_no_part_of_the_rate(waiting: int, grade: Grade) -> None:
    recording = with_backlog(OPEN, waiting)
    traffic = recording.traffic
    assert traffic is not None
    assert traffic.counts.completed == 5_000 + waiting
    assert traffic.rate_per_s == pytest.approx(5_000)
    (finding,) = backlogs(judge(OPEN, recording))
    assert finding.grade is grade
    assert finding.message.startswith(f"{waiting} requests that were due before the measurement were answered in it")
    assert sample_of([Trial(recording).numbers], Metric.THROUGHPUT).value == pytest.approx(5_000)


@pytest.mark.parametrize(("waiting", "left"), [(0, 0), (40, 0), (900, 900), (500, 900), (0, 900)])
def test_what_is_carried_in_is_no_backlog_where_as_much_is_left_or_it_is_chance(waiting: int, left: int) -> None:
    """A slow server has as many requests in flight at both ends of the window, an overloaded server more at its end."""
    recording = with_backlog(OPEN, waiting, left)
    assert not backlogs(judge(OPEN, recording))
    assert recording.traffic is not None
    assert recording.traffic.answered == recording.traffic.counts.completed - max(0, waiting - left)


def test_users_who_wait_for_their_answers_have_no_backlog() -> None:
    assert not backlogs(judge(CLOSED, with_backlog(CLOSED, 64)))


def test_a_load_that_shrinks_carries_more_into_its_measurement_than_out() -> None:
    """A ramp down, or users who leave: neither is a backlog, and no answer is lost."""
    recording = with_backlog(OPEN, 500)
    assert recording.traffic is not None
    measured = [each for each in recording.traffic.intervals if each.phase == "measure"]
    falling = {
        id(each): each.counts.model_copy(update={"due": int(each.counts.due * (1.5 - at / len(measured)))})
        for at, each in enumerate(measured)
    }
    intervals = tuple(
        each.model_copy(update={"counts": falling.get(id(each), each.counts)}) for each in recording.traffic.intervals
    )
    traffic = recording.traffic.model_copy(update={"intervals": intervals})
    assert recording.traffic.backlog == 500
    assert (traffic.backlog, traffic.answered) == (0, traffic.counts.completed)
