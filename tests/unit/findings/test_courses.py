"""The speed of a server by interval and by tick, from intervals of which a reader knows every count."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.findings.courses import MEDIAN, RATE, SpeedCourse, course, ticks, time_of
from redline.model import Interval, Traffic
from redline.model.traffic import TICK_NS
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording

RECORDING = simulated_recording(simulated_cell(load=STEADY), GOOD)


def measured() -> list[Interval]:
    assert RECORDING.traffic is not None
    return [interval for interval in RECORDING.traffic.intervals if interval.phase == "measure"]


def with_intervals(intervals: list[Interval]) -> tuple[Trial, Traffic]:
    assert RECORDING.traffic is not None
    traffic = RECORDING.traffic.model_copy(update={"intervals": tuple(intervals)})
    return Trial(RECORDING.model_copy(update={"traffic": traffic})), traffic


def test_a_rate_is_right_answers_per_second_of_an_interval() -> None:
    found = course(*with_intervals(measured()), RATE)
    first = measured()[0]
    assert math.exp(found.speeds[0]) == pytest.approx(first.counts.completed / first.lasts_ns * 1e9)
    assert found.starts_s[0] == pytest.approx(0)
    assert found.ends_s[0] == pytest.approx(first.lasts_ns / 1e9)
    assert found.requests[0] == first.counts.outcomes.total
    second, since_ns = measured()[1], first.start_ns
    assert found.starts_s[1] == pytest.approx((second.start_ns - since_ns) / 1e9)
    assert found.ends_s[1] == pytest.approx((second.end_ns - since_ns) / 1e9)


def test_an_interval_without_answers_has_half_an_answer() -> None:
    first, *rest = measured()
    none = first.model_copy(update={"counts": first.counts.model_copy(update={"completed": 0})})
    found = course(*with_intervals([none, *rest]), RATE)
    assert math.exp(found.speeds[0]) == pytest.approx(0.5 / first.lasts_ns * 1e9)


@pytest.mark.parametrize(("share", "counts"), [(0.49, False), (0.51, True)])
def test_a_last_interval_of_less_than_half_the_length_is_left_out(share: float, *, counts: bool) -> None:
    *rest, last = measured()
    short = last.model_copy(update={"end_ns": last.start_ns + round(share * last.lasts_ns)})
    assert len(course(*with_intervals([*rest, short]), RATE).speeds) == len(rest) + counts


def test_a_course_of_response_times_is_that_of_intervals_with_twenty_requests() -> None:
    found = course(*with_intervals(measured()), MEDIAN)
    assert math.exp(-found.speeds[0]) == pytest.approx(measured()[0].response.quantile_ns(0.5))
    assert len(found.speeds) == len(measured())


def test_intervals_are_left_out_of_all_of_a_course() -> None:
    whole = SpeedCourse(RATE, (0.0, 1.0, 2.0), (1.0, 2.0, 3.0), np.array([5.0, 6.0, 7.0]), (8, 9, 10))
    found = whole.without(np.array([False, True, False]))
    assert (found.starts_s, found.ends_s, found.requests) == ((0.0, 2.0), (1.0, 3.0), (8, 10))
    assert found.speeds.tolist() == [5.0, 7.0]
    assert whole.without(np.zeros(3, dtype=np.bool_)) is whole
    assert whole.written(math.log(1000.0)) == "1.00 k/s"
    assert SpeedCourse(MEDIAN, (), (), np.zeros(0), ()).written(-math.log(2e6)) == "2.00 ms"


def test_ticks_are_taken_together_by_their_width() -> None:
    first = measured()[0]
    number = 13
    ticked = first.model_copy(update={"ticks": tuple(range(number)), "end_ns": first.start_ns + number * TICK_NS})
    _, traffic = with_intervals([ticked])
    found = ticks(traffic, 3, 3 * TICK_NS)
    assert found is not None
    assert len(found.speeds) == number // 3
    assert found.requests[:3] == (3, 12, 21)
    assert np.exp(found.speeds[1]) == pytest.approx(12 / (3 * TICK_NS / 1e9))
    assert (found.starts_s[1], found.ends_s[1]) == pytest.approx((3 * TICK_NS / 1e9, 6 * TICK_NS / 1e9))
    assert ticks(traffic, 3, 3 * TICK_NS + 1) is None
    assert ticks(with_intervals([first.model_copy(update={"ticks": (1, 2, 3)})])[1], 1, 1) is None
    assert ticks(with_intervals([])[1], 1, 1) is None


def test_the_beginning_has_a_name() -> None:
    assert (time_of(0.0), time_of(2.0)) == ("its beginning", "2.00 s")


def ticked(*counts: tuple[int, ...], last_ns: int | None = None, phase: str = "measure") -> Any:
    """Traffic from 2 s on, whose intervals have these ticks."""
    intervals, at = [], 2_000_000_000
    for number, ticks_ in enumerate(counts):
        own_ns = last_ns if last_ns is not None and number == len(counts) - 1 else len(ticks_) * TICK_NS
        one = {"phase": phase, "start_ns": at, "end_ns": at + own_ns, "lasts_ns": own_ns, "ticks": ticks_}
        intervals.append(SimpleNamespace(**one))
        at += own_ns
    return SimpleNamespace(intervals=intervals, measure_start_ns=2_000_000_000)


def test_ticks_are_taken_together_and_what_is_left_over_is_left_out() -> None:
    course = ticks(ticked((1, 2, 3), (4, 5)), 2, 2 * TICK_NS)
    assert course is not None
    width_s = 2 * TICK_NS / 1e9
    assert course.requests == (3, 7)
    assert course.starts_s == pytest.approx((0, width_s))
    assert course.ends_s == pytest.approx((width_s, 2 * width_s))
    assert np.exp(course.speeds) == pytest.approx([3 / width_s, 7 / width_s])
    empty = ticks(ticked((0, 0, 4, 0)), 2, TICK_NS)
    assert empty is not None
    assert np.exp(empty.speeds) == pytest.approx([0.5 / width_s, 4 / width_s]), "half an answer in place of none"


def test_ticks_that_are_too_short_or_missing_make_no_course() -> None:
    assert ticks(ticked((1, 2, 3)), 2, 2 * TICK_NS + 1) is None
    assert ticks(ticked((1, 2), ()), 1, 0) is not None
    assert ticks(ticked(), 1, 0) is None
    assert ticks(ticked((1, 2), phase="warmup"), 1, 0) is None
    cut = ticks(ticked((1, 2), (3,), last_ns=TICK_NS // 2), 1, 0)
    assert cut is not None
    assert cut.requests == (1, 2), "the last interval ends within a tick"
    assert ticks(ticked((1, 2), (3,), last_ns=2 * TICK_NS), 1, 0) is None
