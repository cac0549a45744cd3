"""Findings about stalls: by ticks of 50 ms and by intervals, and none of steady servers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from redline.findings import judge
from redline.findings.courses import RATE, SpeedCourse, ticks
from redline.findings.stalls import (
    FEWEST_TICKS,
    PER_TICK,
    Stalls,
    few_answers,
    regular,
    stalled,
    standstills,
    usual_of_ticks,
    wide_ticks,
)
from redline.model import Cell, Closed, Finding, Load, Open, Recording, Traffic
from redline.model.traffic import TICK_NS
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

S = 1_000_000_000
CLOSED = simulated_cell(load=Load(name="l", shape=Closed(users=8), duration_ns=10 * S))
OPEN = simulated_cell(
    load=Load(name="l", shape=Open(rate_per_s=2000, connections=64, arrivals="uniform"), duration_ns=10 * S)
)


def traffic_of(recording: Recording) -> Traffic:
    assert recording.traffic is not None
    return recording.traffic


def ticking(cell: Cell, counts: Sequence[int], in_an_interval: int = 20) -> Recording:
    """A recording of a steady server whose measured intervals have these right answers by tick."""
    recording = simulated_recording(cell, GOOD)
    traffic, taken = traffic_of(recording), 0
    intervals = []
    for interval in traffic.intervals:
        if interval.phase == "measure":
            n = min(interval.lasts_ns // TICK_NS, in_an_interval)
            intervals.append(interval.with_steps(tuple(counts[taken : taken + n])))
            taken += n
        else:
            intervals.append(interval)
    assert taken == len(counts)
    return recording.model_copy(update={"traffic": traffic.model_copy(update={"intervals": tuple(intervals)})})


def said(cell: Cell, counts: Sequence[int]) -> Finding | None:
    findings = judge(cell, ticking(cell, counts))
    return next((finding for finding in findings if finding.kind == "stalled"), None)


def counts_of(n: int = 200, usual: int = 1_000, **at: Sequence[int]) -> list[int]:
    """Equal counts but for `few`: at these ticks none come."""
    return [0 if i in at.get("few", ()) else usual for i in range(n)]


def message(cell: Cell, counts: Sequence[int]) -> str:
    found = said(cell, counts)
    assert found is not None
    return found.message


def test_a_flush_every_two_seconds_is_said_with_its_period_and_its_cost() -> None:
    few = [start + i for start in range(20, 200, 40) for i in range(6)]
    expected = "Every 2.00 s from 1.00 s on, 5 times, for 300 ms at most, the rate fell from 20.0 k/s to 0: "
    assert message(CLOSED, counts_of(few=few)) == expected + "15% of the answers are missing."
    assert message(OPEN, counts_of(few=few)) == expected + "15% of the answers came later."


def test_short_stalls_are_said_if_they_are_regular() -> None:
    assert message(CLOSED, counts_of(few=range(5, 200, 20))).startswith("Every 1.00 s from 250 ms on, 10 times, for 50")
    assert said(CLOSED, counts_of(few=(5, 33, 90, 100, 141, 190))) is None


def test_a_long_stall_is_said_once() -> None:
    found = message(CLOSED, counts_of(few=(5, 33, 100, 101, 102, 141)))
    assert found.startswith("For 150 ms from 5.00 s on, the rate fell from 20.0 k/s to 0: 1.5% of")
    assert said(CLOSED, counts_of(few=(100, 101))) is None


def test_a_stall_to_a_tenth_of_the_rate_is_one() -> None:
    counts = counts_of()
    counts[100:104] = [100] * 4
    assert message(CLOSED, counts).startswith(
        "For 200 ms from 5.00 s on, the rate fell from 20.0 k/s to 2.00 k/s: 1.8%"
    )


def test_a_load_of_few_answers_has_wider_ticks() -> None:
    quiet = traffic_of(ticking(OPEN, counts_of(usual=5)))
    course = wide_ticks(OPEN, quiet)
    assert course is not None
    assert (course.ends_s[0], course.requests[0], len(course.requests)) == (0.2, 20, 50)
    assert wide_ticks(OPEN, traffic_of(ticking(OPEN, counts_of(usual=1)))) is None


@pytest.mark.parametrize(("usual", "width"), [(PER_TICK, 1), (PER_TICK - 1, 2)])
def test_a_tick_has_enough_answers(usual: int, width: int) -> None:
    course = wide_ticks(OPEN, traffic_of(ticking(OPEN, counts_of(usual=usual))))
    assert course is not None
    assert len(course.requests) == 200 // width


def test_waves_of_answers_are_no_stalls() -> None:
    """Eight users whose answers all come after 40 ms: a tick has one wave or two, and now and then none."""
    waves = traffic_of(simulated_recording(CLOSED, replace(GOOD, rate_per_s=200))).response
    traffic = traffic_of(ticking(CLOSED, counts_of())).model_copy(update={"response": waves})
    course = wide_ticks(CLOSED, traffic)
    assert course is not None
    assert course.ends_s[0] == 0.2


def test_users_who_think_are_not_judged_by_ticks() -> None:
    thinking = CLOSED.load.model_copy(update={"shape": Closed(users=8, pace_per_s=10.0)})
    cell = CLOSED.model_copy(update={"load": thinking})
    assert wide_ticks(cell, traffic_of(ticking(CLOSED, counts_of()))) is None


def test_intervals_without_all_their_ticks_are_not_judged_by_them() -> None:
    assert ticks(traffic_of(simulated_recording(CLOSED, GOOD)), 1, 0) is None
    short = traffic_of(ticking(CLOSED, counts_of(n=100), 1))
    assert ticks(short, 1, 0) is None


def test_ticks_narrower_than_asked_are_not_taken() -> None:
    traffic = traffic_of(ticking(CLOSED, counts_of()))
    assert ticks(traffic, 2, 2 * TICK_NS) is not None
    assert ticks(traffic, 2, 2 * TICK_NS + 1) is None


def steady(kind: str, usual: float, rng: np.random.Generator, n: int = 200) -> SpeedCourse:
    """Random counts of a steady server: plain, noisy, with alike neighbours, or with turns of other processes."""
    speed = np.ones(n)
    if kind == "noisy":
        speed = np.exp(0.1 * rng.standard_t(3, n) / 3**0.5)
    if kind == "alike":
        logs = rng.normal(0, 0.1, n)
        for i in range(1, n):
            logs[i] = 0.7 * logs[i - 1] + logs[i] * (1 - 0.7**2) ** 0.5
        speed = np.exp(logs)
    if kind == "turns":
        speed[rng.random(n) < 0.04] = 0.1
    return course_of(rng.poisson(usual * speed).tolist())


def course_of(counts: Sequence[int]) -> SpeedCourse:
    n = len(counts)
    starts = tuple((0.05 * np.arange(n)).tolist())
    ends = tuple((0.05 * np.arange(1, n + 1)).tolist())
    return SpeedCourse(RATE, starts, ends, np.log(np.maximum(counts, 0.5) / 0.05), tuple(counts))


def by_tick(seen: SpeedCourse) -> Stalls:
    usual = usual_of_ticks(seen.speeds)
    found = Stalls(seen, usual, few_answers(seen, usual))
    return found if found.period_s else found.long()


@pytest.mark.parametrize("usual", [16, pytest.param(200, marks=pytest.mark.long), 5_000])
@pytest.mark.parametrize(("kind", "most"), [("plain", 1), ("noisy", 1), ("alike", 1), ("turns", 15)])
def test_a_thousand_steady_servers_have_no_stalls(kind: str, usual: int, most: int) -> None:
    """Turns of other processes are real: three of them in a row, which come by chance, are a stall."""
    rng = np.random.default_rng(5)
    assert sum(bool(by_tick(steady(kind, usual, rng)).made) for _ in range(1_000)) <= most


@pytest.mark.parametrize("usual", [50, 5_000])
@pytest.mark.parametrize("kind", ["plain", "noisy", "alike"])
@pytest.mark.parametrize(("every", "length"), [(40, 6), (20, 2), (200, 4)])
def test_planted_stalls_are_seen_at_their_times(kind: str, usual: int, every: int, length: int) -> None:
    rng, seen = np.random.default_rng(6), 0
    for _ in range(100):
        course = steady(kind, usual, rng)
        first = int(rng.integers(0, min(every, 190)))
        counts = list(course.requests)
        for start in range(first, 200, every):
            counts[start : start + length] = [0] * len(counts[start : start + length])
        found = by_tick(course_of(counts))
        starts = [round(stall.start_s / 0.05) for stall in found.made]
        regularly = every == 200 or (found.period_s is not None and abs(found.period_s - every * 0.05) < 0.01)
        seen += starts == list(range(first, 200, every)) and regularly
    assert seen >= 90


def test_a_step_is_no_stall() -> None:
    assert not by_tick(course_of([1_000] * 100 + [300] * 100)).made


def test_fewer_ticks_than_needed_are_not_judged() -> None:
    short = simulated_cell(load=Load(name="l", shape=Open(rate_per_s=2000, connections=64), duration_ns=S))
    one = wide_ticks(short, traffic_of(ticking(short, counts_of(n=FEWEST_TICKS), in_an_interval=2)))
    assert one is not None
    sparse = traffic_of(ticking(short, counts_of(n=FEWEST_TICKS, usual=PER_TICK - 1), in_an_interval=2))
    assert wide_ticks(short, sparse) is None


def flat(*slow: int, n: int = 50) -> SpeedCourse:
    speeds = np.zeros(n)
    speeds[list(slow)] = -2.0
    return SpeedCourse("rate", tuple(map(float, range(n))), tuple(map(float, range(1, n + 1))), speeds, (100,) * n)


def made_of(seen: SpeedCourse) -> list[tuple[float, float]]:
    return [(stall.start_s, stall.end_s) for stall in standstills(seen, stalled(seen))]


def test_neighbouring_intervals_are_one_stall() -> None:
    assert made_of(flat(3, 4, 20)) == [(3.0, 5.0), (20.0, 21.0)]


@pytest.mark.parametrize(
    ("slow", "period"),
    [
        ((5, 15, 25, 35, 45), 10.0),
        ((5, 15, 26, 36, 46), 10.0),  # within a tenth
        ((5, 10, 16, 21, 26), 5.0),  # within an interval
        ((5, 15, 25, 35), None),  # too few
        ((5, 12, 25, 35, 45), None),
        ((5, 7, 9, 11, 13), None),  # every other interval is noise
    ],
)
def test_a_period_needs_five_stalls_at_equal_distances(slow: tuple[int, ...], period: float | None) -> None:
    seen = flat(*slow)
    assert regular(standstills(seen, stalled(seen)), 1.0) == period


@pytest.mark.parametrize(("usual", "few", "stall"), [(36, 10, False), (36, 8, True), (100, 49, True), (100, 50, False)])
def test_a_stall_has_fewer_answers_than_chance_and_at_most_half(usual: int, few: int, *, stall: bool) -> None:
    """Twice the root of a count falls by more than six; and without any noise, to less than a half."""
    counts = [usual] * 40
    counts[20] = few
    seen = course_of(counts)
    assert few_answers(seen, usual_of_ticks(seen.speeds)).tolist() == [stall and at == 20 for at in range(40)]
