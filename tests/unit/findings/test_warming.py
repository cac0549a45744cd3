"""Warm-up detection: a steady server is measured soon, a changing server is waited for, and reported as such."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.findings import judge, warm_up, warming
from redline.findings.warming import (
    FEWEST_POINTS,
    LEAST_S,
    SAME,
    Timeline,
    WarmupDetector,
    last_stretch,
    segments,
    timeline_of,
)
from redline.model import Cell, Closed, Grade, Load, Open
from redline.schema.types import SHORTEST_DETECTION_NS
from redline.stats import Trial
from redline.stats.series import clipped, noise
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.courses import (
    BUDGET_S,
    INTERVAL_S,
    Noise,
    begun_s,
    compiled,
    course,
    flat,
    restless,
    rising,
    stepped,
)
from tests.fakes.recordings import simulated_cell, simulated_recording

S = 1_000_000_000
SEEDS = st.integers(0, 2**32 - 1)
QUIET = Noise(0.02)
CLOSED = Load(name="saturate", shape=Closed(users=64), duration_ns=5 * S)
OPEN = Load(name="steady", shape=Open(rate_per_s=500, connections=64), duration_ns=5 * S)


def detected(load: Load, at_most_s: float = 10.0) -> Cell:
    cell = simulated_cell(load=load)
    return cell.model_copy(update={"warmup_ns": int(at_most_s * S), "warmup_detect": True})


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0.002, 0.05))
def test_what_is_flat_is_measured_early(seed: int, sigma: float) -> None:
    begun = begun_s(course(flat, Noise(sigma), np.random.default_rng(seed), 30.0))
    assert begun is not None
    assert LEAST_S <= begun <= 5 * LEAST_S


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.floats(1.0, 4.0), st.floats(0.3, 3.0))
def test_a_step_is_waited_for_and_found_where_it_was(seed: int, at_s: float, by: float) -> None:
    whole = course(stepped(at_s, by), QUIET, np.random.default_rng(seed), 40.0)
    begun = begun_s(whole)
    assert begun is not None
    assert at_s + LEAST_S - FEWEST_POINTS * INTERVAL_S <= begun <= at_s + 5 * LEAST_S
    found_s = whole.start_ns(last_stretch(whole).start) / S
    assert abs(found_s - at_s) <= FEWEST_POINTS * INTERVAL_S


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from([rising, restless()]))
def test_what_never_settles_takes_the_whole_budget(seed: int, shape: object) -> None:
    assert begun_s(course(shape, QUIET, np.random.default_rng(seed), BUDGET_S / 2)) is None  # type: ignore[arg-type]


def test_what_is_compiled_slowly_is_nearly_there_when_it_begins() -> None:
    for seed in range(5):
        begun = begun_s(course(compiled(4.0), QUIET, np.random.default_rng(seed)))
        assert begun is not None
        assert compiled(4.0)(np.array([begun]))[0] > -SAME


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=60))
def test_segments_hold_every_point_once_and_clipping_none_too_far(values: list[float]) -> None:
    speeds = np.array(values)
    found = segments(clipped(speeds))
    assert [found[0].start, *(segment.end for segment in found)] == [*(segment.start for segment in found), len(values)]
    assert all(segment.n >= min(FEWEST_POINTS, len(values)) for segment in found)
    assert noise(speeds) > 0
    assert speeds.min() - 1e-9 <= clipped(speeds).min() <= clipped(speeds).max() <= speeds.max() + 1e-9


def test_a_short_disturbance_is_passed_over_and_a_long_one_is_not() -> None:
    rng = np.random.default_rng(1)
    for lasted, steady in ((2, True), (4, True), (30, False)):
        whole = course(flat, QUIET, rng, 40.0)
        whole.speeds[30 : 30 + lasted] -= 0.4
        assert (last_stretch(whole).start == 0) is steady, lasted


def test_the_least_budget_is_what_detection_takes() -> None:
    assert SHORTEST_DETECTION_NS == LEAST_S * S


@pytest.mark.parametrize("load", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_watch_says_when_it_is_warm(load: Load) -> None:
    cell = detected(load)
    watch = WarmupDetector(cell)
    traffic = simulated_recording(cell).traffic
    assert traffic
    said = [watch.is_warm(interval) for interval in traffic.intervals if interval.phase == "warmup"]
    first = said.index(True)
    assert LEAST_S <= traffic.intervals[first].end_ns / S <= 2 * LEAST_S


@pytest.mark.parametrize(
    ("share_until_s", "warm_from_s"),
    [([(0.05, 60)], LEAST_S), ([(0.9, 12), (0.02, 60)], 12), ([(3.0, 8), (0.02, 60)], 8), ([(0.2, 60)], None)],
    ids=["nearly idle", "one thread", "three threads wait for a core", "all the time"],
)
def test_a_level_server_is_not_warm_while_its_compilers_have_work(
    share_until_s: list[tuple[float, int]], warm_from_s: float | None
) -> None:
    """What compilers use and wait for, as shares of a core, until this time."""
    cell, now_s, compiled_ns = detected(CLOSED, at_most_s=30.0), 0.0, 0.0

    def compile_until(end_s: float) -> None:
        nonlocal now_s, compiled_ns
        share = next(each for each, until_s in share_until_s if now_s < until_s)
        compiled_ns, now_s = compiled_ns + share * (end_s - now_s) * S, end_s

    traffic = simulated_recording(cell).traffic
    assert traffic
    watch = WarmupDetector(cell, lambda: round(compiled_ns))
    begun = None
    for interval in (each for each in traffic.intervals if each.phase == "warmup"):
        compile_until(interval.end_ns / S)
        if watch.is_warm(interval):
            begun = now_s
            break
    if warm_from_s is None:
        assert begun is None
    else:
        assert begun is not None
        assert warm_from_s <= begun <= warm_from_s + LEAST_S + 3


def test_what_cannot_keep_up_is_not_warm_however_level() -> None:
    """A cold server's requests all wait until they time out: its p50 is the timeout, and steady."""
    cell = detected(OPEN)
    for achieved, warm in ((1.0, True), (0.97, True), (0.7, False)):
        traffic = simulated_recording(cell, replace(GOOD, achieved=achieved)).traffic
        assert traffic
        watch = WarmupDetector(cell)
        assert any(watch.is_warm(each) for each in traffic.intervals if each.phase == "warmup") is warm


def test_a_watch_looks_at_each_interval_once_and_does_not_judge_after_each_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, judged = list[int](), list[int]()
    speed = warming.TimelineBuilder._speed

    def look(builder: warming.TimelineBuilder, p50_ns: int | None) -> float:
        looked.extend(each.index for each in builder._waiting)
        return speed(builder, p50_ns)

    def judge_it(timeline: Timeline) -> bool:
        judged.append(timeline.n)
        return False

    monkeypatch.setattr(warming.TimelineBuilder, "_speed", look)
    monkeypatch.setattr(warming, "is_warm", judge_it)
    short = detected(OPEN.model_copy(update={"duration_ns": S // 2}))
    traffic = simulated_recording(short).traffic
    assert traffic
    warm_up_of = [interval for interval in traffic.intervals if interval.phase == "warmup"]
    watch = WarmupDetector(short)
    assert not any(watch.is_warm(interval) for interval in warm_up_of)
    assert len(warm_up_of) == 100
    assert looked == [interval.index for interval in warm_up_of]
    assert 10 <= len(judged) <= (10 - LEAST_S) / 0.4 + 1


def test_few_requests_make_few_points() -> None:
    slow = simulated_cell(load=Load(name="slow", shape=Open(rate_per_s=20, connections=4), duration_ns=5 * S))
    ends = timeline_of(slow, Trial(simulated_recording(slow))).ends_ns
    assert 3 <= len(ends) <= 6  # 20 requests a point, of 105 in all


KINDS: list[tuple[Load, dict[str, object], str]] = [
    (CLOSED, {}, "flat"),
    (OPEN, {}, "flat"),
    (CLOSED, {"cold_s": 3.0, "cold_share": 0.3}, "warmed up"),
    (OPEN, {"cold_s": 3.0, "cold_share": 0.3}, "warmed up"),
    (CLOSED, {"cold_s": 3.0, "cold_share": 1.5}, "slowing down"),
    (CLOSED, {"trend": 0.6}, "never steady"),
    (CLOSED, {"cold_s": 12.0, "cold_share": 0.5}, "never steady"),
]


@pytest.mark.parametrize(("load", "change", "kind"), KINDS)
def test_a_trial_is_judged_by_its_whole_course(load: Load, change: dict[str, object], kind: str) -> None:
    cell = detected(load)
    recording = simulated_recording(cell, replace(GOOD, **change))  # type: ignore[arg-type]
    seen = warm_up(cell, Trial(recording))
    assert seen is not None
    assert (seen.kind, seen.measured_from_ns) == (kind, 10 * S)
    if kind == "warmed up":
        assert seen.steady_from_ns is not None
        assert abs(seen.steady_from_ns / S - 3.0) < 0.5
    found = {finding.kind: finding for finding in judge(cell, recording)}
    assert ("never-steady" in found) is (kind == "never steady")
    assert ("slowing-down" in found) is (kind == "slowing down")
    if kind == "slowing down":
        assert found["slowing-down"].grade is Grade.WARN
        assert "33% slower" in found["slowing-down"].message


def test_that_the_budget_was_used_in_vain_is_reported_from_a_late_change() -> None:
    late = replace(GOOD, cold_s=12.0, cold_share=0.5)
    whole = detected(CLOSED)
    assert "taken all of 10.0 s" in message(whole, late)
    # It began to measure before its budget was used up.
    more = whole.model_copy(update={"warmup_ns": 20 * S})
    recording = simulated_recording(whole, late)
    (found,) = [each for each in judge(more, recording) if each.kind == "never-steady"]
    assert "measured after 10.0 s, and changed again" in found.message


def message(cell: Cell, behaviour: Behaviour) -> str:
    recording = simulated_recording(cell, behaviour)
    (found,) = [each for each in judge(cell, recording) if each.kind == "never-steady"]
    assert found.grade is Grade.WARN
    return found.message


def test_a_fixed_warm_up_is_reported_and_not_judged() -> None:
    cell = detected(CLOSED).model_copy(update={"warmup_detect": False})
    recording = simulated_recording(cell, replace(GOOD, cold_s=3.0, cold_share=1.5))
    seen = warm_up(cell, Trial(recording))
    assert seen is not None
    assert seen.kind == "slowing down"
    assert judge(cell, recording) == ()


@pytest.mark.parametrize("change", [{"ended": "interrupted", "measured": 0.7}, {}], ids=["cut", "short"])
def test_of_what_was_cut_or_is_short_nothing_is_reported(change: dict[str, object]) -> None:
    cell = detected(CLOSED) if change else simulated_cell()
    assert warm_up(cell, Trial(simulated_recording(cell, replace(GOOD, **change)))) is None  # type: ignore[arg-type]
