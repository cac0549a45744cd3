"""The parts of warm-up detection: points of a timeline, joined levels, and compilers; counted by hand."""

import math
from typing import Any

import numpy as np
import pytest

from redline.findings.warming import (
    Timeline,
    TimelineBuilder,
    WarmupDetector,
    _joined,
    compiler_cores,
    last_stretch,
    still_compiling,
    timeline_of,
)
from redline.model import Histogram, Interval, Outcomes
from redline.stats import Trial
from redline.stats.series import Plateau
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_recording
from tests.fakes.series import counting
from tests.unit.findings.test_load import CLOSED, OPEN, interval

S, MS = 1_000_000_000, 1_000_000


def of(index: int, requests: int, ms: float = 10.0, *, completed: int | None = None, **changed: Any) -> Interval:
    done = requests if completed is None else completed
    made = interval(index, index * S, (index + 1) * S, due=requests, completed=done, outcomes=Outcomes(ok=requests))
    return made.model_copy(update={"response": Histogram.of([ms * MS] * requests), **changed})


def built(builder: TimelineBuilder, *intervals: Interval) -> Timeline:
    for one in intervals:
        builder.add(one)
    return builder.timeline()


def test_the_speed_of_a_closed_load_is_its_rate() -> None:
    seen = built(TimelineBuilder(CLOSED), of(0, 100), of(1, 0), of(2, 1))
    assert seen.ends_ns == (S, 2 * S, 3 * S)
    assert seen.speeds == pytest.approx(np.log(np.array([100, 0.5, 1]) / S))
    assert seen.kept_up is None


def test_the_speed_of_another_load_is_that_of_its_median() -> None:
    seen = built(TimelineBuilder(OPEN), of(0, 20, 10.0), of(1, 19, 5.0), of(2, 1, 5.0), of(3, 40, 20.0, completed=30))
    assert seen.ends_ns == (S, 3 * S, 4 * S), "nineteen requests are too few for a point"
    assert seen.speeds == pytest.approx(-np.log([10 * MS, 5 * MS, 20 * MS]), abs=0.001)
    assert seen.kept_up is not None
    assert seen.kept_up.tolist() == [1.0, 1.0, 0.75]


def test_a_median_that_is_known_is_not_read_again() -> None:
    builder = TimelineBuilder(OPEN)
    builder.add(of(0, 20), p50_ns=7)
    builder.add(of(1, 10), p50_ns=7)
    builder.add(of(2, 10), p50_ns=7)
    seen = builder.timeline()
    assert seen.speeds[0] == pytest.approx(-math.log(7))
    assert seen.speeds[1] == pytest.approx(-math.log(10 * MS), abs=0.001), "two intervals have a median of their own"
    zero = TimelineBuilder(OPEN)
    zero.add(of(0, 20), p50_ns=0)
    assert zero.timeline().speeds.tolist() == [0.0]


def test_a_drain_or_an_interval_without_length_is_no_point() -> None:
    instant = of(1, 50, start_ns=S, end_ns=S)
    assert built(TimelineBuilder(CLOSED), of(0, 50, phase="drain"), instant).n == 0


def test_the_timeline_of_a_trial_is_that_of_its_intervals() -> None:
    for cell in (CLOSED, OPEN):
        trial = Trial(simulated_recording(cell, GOOD))
        expected = built(TimelineBuilder(cell), *trial.intervals)
        found = timeline_of(cell, trial)
        assert found.ends_ns == expected.ends_ns
        assert found.speeds == pytest.approx(expected.speeds)


def levels(*parts: tuple[int, float]) -> list[Plateau]:
    made, at = list[Plateau](), 0
    for length, level in parts:
        made.append(Plateau(at, at + length, level))
        at += length
    return made


@pytest.mark.parametrize(
    ("parts", "start", "level", "left"),
    [
        ([(10, 0.0)], 0, 0.0, 0),
        ([(10, 0.0), (10, 0.1)], 0, 0.05, 0),
        ([(30, 0.0), (10, 0.1)], 0, 0.025, 0),
        ([(10, 0.0), (10, 0.11)], 10, 0.11, 1),
        ([(10, 0.0), (2, 5.0), (20, 0.0)], 0, 0.0, 0),
        ([(10, 0.0), (3, 5.0), (20, 0.0)], 13, 0.0, 2),
        ([(10, 0.2), (2, 5.0), (20, 0.0)], 12, 0.0, 2),
        ([(2, 5.0), (20, 0.0)], 2, 0.0, 1),
        ([(5, 9.0), (10, 0.0), (10, 0.0), (2, 5.0), (20, 0.0)], 5, 0.0, 1),
    ],
)
def test_the_last_level_reaches_back_over_equal_levels_and_short_disturbances(
    parts: list[tuple[int, float]], start: int, level: float, left: int
) -> None:
    last, before = _joined(levels(*parts), 0.1)
    assert (last.start, last.end) == (start, sum(length for length, _ in parts))
    assert last.level == pytest.approx(level)
    assert len(before) == left


def test_a_hasty_look_sees_smaller_changes() -> None:
    rng = np.random.default_rng(3)
    speeds = np.concatenate((np.zeros(20), np.full(12, 0.15))) + rng.normal(0, 0.05, 32)
    ends = tuple((at + 1) * S for at in range(32))
    hasty, patient = (last_stretch(Timeline(ends, speeds), hasty=hasty) for hasty in (True, False))
    assert hasty.start >= patient.start
    assert hasty.tolerance == patient.tolerance >= math.log(1.05)


@pytest.mark.parametrize(
    ("compiled", "still"),
    [
        ([], False),
        ([(10 * S, 0)], False),
        ([(0, 0), (5 * S, S // 2 - 1)], False),
        ([(0, 0), (5 * S, S // 2)], False),
        ([(0, 0), (5 * S, S // 2 + 1)], True),
        ([(0, 0), (S, 9 * S), (6 * S, 9 * S + S // 2)], False),
        ([(0, 0), (2 * S, 9 * S), (6 * S, 9 * S)], True),
        ([(0, 0), (2 * S, S // 5 + 1)], True),
    ],
)
def test_compilers_are_seen_over_the_last_five_seconds(compiled: list[tuple[int, int]], *, still: bool) -> None:
    assert still_compiling(compiled) is still


def test_the_cores_of_compilers_are_those_that_they_used_and_waited_for() -> None:
    recording = counting(simulated_recording(CLOSED, GOOD), "server", compiler_cpu_ns=0.3 * S, compiler_wait_ns=0.1 * S)
    assert recording.traffic is not None
    cores = compiler_cores(Trial(recording), recording.traffic)
    assert cores == pytest.approx((0.3, 0.1), rel=0.01)
    half = counting(simulated_recording(CLOSED, GOOD), "server", compiler_cpu_ns=0.3 * S)
    assert compiler_cores(Trial(half), recording.traffic) is None
    instant = recording.traffic.model_copy(update={"measure_end_ns": recording.traffic.measure_start_ns})
    assert compiler_cores(Trial(recording), instant) is None


def test_a_detector_judges_from_five_seconds_on_and_not_after_each_interval() -> None:
    judged = list[int]()

    detector = WarmupDetector(CLOSED)

    builder_of = detector._seen

    def timeline() -> Timeline:
        judged.append(builder_of._ends[-1])
        return Timeline(tuple(builder_of._ends), np.array(builder_of._speeds))

    builder_of.timeline = timeline  # type: ignore[method-assign]
    step = 2 * 10**8
    for at in range(30):
        one = interval(at, at * step, (at + 1) * step, "warmup", due=100, completed=100, outcomes=Outcomes(ok=100))
        detector.is_warm(one)
    assert judged == [5 * S, 5_400_000_000, 5_800_000_000]
