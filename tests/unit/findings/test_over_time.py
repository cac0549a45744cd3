"""Findings about the course of a measurement: levels, trends and stalls of planted servers, and none of steady ones."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.findings import at_each_time, judge, touched_by
from redline.findings.courses import LEAST_STEP, RATE, course
from redline.findings.over_time import explains
from redline.model import Cell, Finding, Grade, Load, Open
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import Plateau, levels
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

S = 1_000_000_000
CLOSED = simulated_cell(load=Load(name="l", shape=simulated_cell().load.shape, duration_ns=2 * S))
OPEN = simulated_cell(
    load=Load(name="l", shape=Open(rate_per_s=2000, connections=64, arrivals="uniform"), duration_ns=2 * S)
)
COURSE = ("unsteady", "rate-changed", "latency-changed", "stalled")


def said(cell: Cell, *course: float, seed: int = 1, **fields: float) -> dict[str, Finding]:
    behaviour = replace(GOOD, course=course, **fields)  # type: ignore[arg-type]
    findings = judge(cell, simulated_recording(cell, behaviour, seed=seed))
    return {finding.kind: finding for finding in findings if finding.kind in COURSE}


def test_a_server_that_falls_in_the_middle_has_two_levels_with_their_time() -> None:
    found = said(CLOSED, 1.0, 0.7)
    assert list(found) == ["rate-changed"]
    assert found["rate-changed"].message == "The rate was 20.0 k/s until 1.00 s, then 14.0 k/s: it was not steady."
    assert found["rate-changed"].grade is Grade.WARN


def test_a_server_that_halves_describes_no_state() -> None:
    assert said(CLOSED, 1.0, 0.4)["rate-changed"].grade is Grade.INVALID


def test_a_server_that_recovers_has_three_levels() -> None:
    message = said(CLOSED, 1, 1, 1, 0.7, 0.7, 1, 1, 1)["rate-changed"].message
    assert "20.0 k/s until 800 ms, then 13.9 k/s until 1.30 s, then 20.0 k/s" in message


def test_a_server_that_goes_up_and_down_is_said_by_its_range() -> None:
    message = said(CLOSED, *[1] * 4, *[0.6] * 4, *[1] * 4, *[0.6] * 4, *[1] * 4)["rate-changed"].message
    assert "and changed 3 more times between 11.9 k/s and 20.0 k/s" in message


def test_latency_that_jumps_leaves_no_percentile() -> None:
    found = said(OPEN, 1.0, 0.004)
    assert list(found) == ["latency-changed"]
    assert found["latency-changed"].message.startswith("The p50 response time was 182 µs until 1.00 s, then 46")
    assert found["latency-changed"].grade is Grade.INVALID


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_steady_rise_is_a_trend_and_no_staircase(cell: Cell) -> None:
    found = said(cell, trend=0.8)
    assert list(found) == ["unsteady"]
    assert found["unsteady"].grade is (Grade.INVALID if cell is CLOSED else Grade.WARN)


def test_a_stall_is_said_with_its_time_and_its_cost() -> None:
    found = said(CLOSED, *[1] * 10, 0.01, *[1] * 10)
    assert list(found) == ["stalled"]
    expected = "For 100 ms from 1.00 s on, the rate fell from 20.0 k/s to 200 /s: 5% of the answers are missing."
    assert found["stalled"].message == expected


def test_a_stall_of_an_open_load_delays_what_falls_due_in_it() -> None:
    message = said(OPEN, *[1] * 10, 0.1, *[1] * 10)["stalled"].message
    assert message.startswith("For 100 ms from 1.00 s on, the p90 response time rose from ")
    assert message.endswith("5% of the requests fell into it.")


def test_stalls_that_come_back_are_said_with_their_period() -> None:
    found = said(CLOSED, *[1, 1, 1, 0.1] * 5)["stalled"]
    assert found.message.startswith("Every 400 ms from 300 ms on, 5 times")
    assert found.grade is Grade.WARN


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_stall_of_three_intervals_is_no_level(cell: Cell) -> None:
    """It takes 15% of the measurement: what is usual stays known."""
    found = said(cell, *[1] * 10, *[0.1] * 3, *[1] * 7)
    assert list(found) == ["stalled"]
    assert found["stalled"].message.startswith("For 300 ms from 1.00 s on, ")


@pytest.mark.parametrize(("slow", "kind"), [(4, "stalled"), (5, "rate-changed")])
def test_a_quarter_of_the_measurement_is_a_level(slow: int, kind: str) -> None:
    assert list(said(CLOSED, *[1] * 8, *[0.1] * slow, *[1] * (12 - slow))) == [kind]


def cell_of(**changes: object) -> Cell:
    return simulated_cell(load=Load.model_validate({**CLOSED.load.model_dump(), **changes}))


@pytest.mark.parametrize(("duration_ms", "intervals"), [(2_040, 20), (2_060, 21)])
def test_a_much_shorter_last_interval_is_left_out(duration_ms: int, intervals: int) -> None:
    cell = cell_of(duration_ns=duration_ms * 1_000_000)
    trial = Trial(simulated_recording(cell, GOOD))
    assert trial.traffic is not None
    seen = course(trial, trial.traffic, RATE)
    assert len(seen.speeds) == intervals
    assert (seen.starts_s[0], seen.ends_s[0]) == (0.0, 0.1)


@pytest.mark.parametrize(
    ("cell", "known"),
    [
        (cell_of(duration_ns=600_000_000), False),
        (cell_of(duration_ns=700_000_000), True),
        (cell_of(shape=Open(rate_per_s=190, connections=64, arrivals="uniform")), False),  # 19 in each interval
        (cell_of(shape=Open(rate_per_s=200, connections=64, arrivals="uniform")), True),
    ],
)
def test_seven_intervals_of_enough_requests_can_be_judged(cell: Cell, known: bool) -> None:
    found = judge(cell, simulated_recording(cell, GOOD))
    assert ("steadiness-unknown" in {finding.kind for finding in found}) is not known


@pytest.mark.parametrize(
    ("values", "many"),
    [
        ([0.0] * 10 + [0.03] * 10, 1),  # less than 5%
        ([0.0] * 10 + [0.06] * 10, 2),
        ([0.0] * 10 + [-1.0] * 2, 1),  # two intervals are outliers
        ([0.0] * 10 + [-1.0] * 3, 2),
    ],
)
def test_a_level_lasts_and_is_apart(values: list[float], many: int) -> None:
    assert len(levels(np.array(values), LEAST_STEP)) == many


def test_neighbours_that_are_much_alike_make_hardly_a_level() -> None:
    """A speed that wanders: each interval keeps four fifths of what the last was off."""
    rng, many = np.random.default_rng(13), 0
    for _ in range(500):
        values = rng.normal(0, 0.03, 60)
        for i in range(1, 60):
            values[i] = 0.8 * values[i - 1] + 0.6 * values[i]
        many += len(levels(values, LEAST_STEP)) > 1
    assert many <= 5


def test_noisy_lines_are_no_staircases() -> None:
    rng, stairs = np.random.default_rng(14), 0
    for _ in range(200):
        values = np.linspace(0, 0.5, 20) + rng.normal(0, 0.02, 20)
        found = levels(values, LEAST_STEP)
        stairs += len(found) > 1 and explains(found, values)
    assert stairs <= 2


def test_a_stall_after_a_step_is_told_from_both_levels() -> None:
    found = said(CLOSED, *[1] * 8, *[0.7] * 8, 0.01, *[0.7] * 3)
    assert found["rate-changed"].message.startswith("The rate was 20.0 k/s until 800 ms, then 14.0 k/s")
    assert "For 100 ms from 1.60 s on, the rate fell from 14.0 k/s to 200 /s" in found["stalled"].message


def test_stalls_without_a_period_are_counted() -> None:
    course = [1.0] * 20
    for slow in (2, 3, 9, 17):
        course[slow] = 0.1
    message = said(CLOSED, *course)["stalled"].message
    assert message.startswith("3 times, first at 200 ms and last at 1.70 s, for 200 ms at most, the rate fell")


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
def test_nothing_is_said_of_steady_servers(cell: Cell) -> None:
    assert not any(said(cell, seed=seed, noise=0.03) for seed in range(20))


def noisy(kind: str, n: int, sigma: float, rng: np.random.Generator) -> Floats:
    """A steady course: normal, with long tails, with neighbours that are alike, or with outliers."""
    if kind == "t3":
        return np.asarray(rng.standard_t(3, n) * sigma / 3**0.5)
    if kind == "alike":
        values = rng.normal(0, sigma, n)
        for i in range(1, n):
            values[i] = 0.5 * values[i - 1] + values[i] * 0.75**0.5
        return values
    return rng.normal(0, sigma, n) - np.where(rng.random(n) < 0.03 * (kind == "outliers"), 0.7, 0.0)


@pytest.mark.parametrize(
    ("n", "kind", "most"),
    [
        *((n, kind, 2) for n in (10, 60) for kind in ("normal", "t3", "outliers")),
        (60, "alike", 2),
        (10, "alike", 15),  # so few intervals do not show that neighbours are alike
    ],
)
def test_a_thousand_steady_courses_have_one_level(n: int, kind: str, most: int) -> None:
    rng = np.random.default_rng(11)
    assert sum(len(levels(noisy(kind, n, 0.03, rng), LEAST_STEP)) > 1 for _ in range(1_000)) <= most


@pytest.mark.parametrize(("step", "least"), [(0.1, 0.9), (0.3, 0.99)])
def test_steps_between_levels_are_seen(step: float, least: float) -> None:
    """Anywhere from the third interval on, in ten intervals with noise of 1%."""
    seen, rng = 0, np.random.default_rng(12)
    for _ in range(300):
        values, at = rng.normal(0, 0.01, 10), int(rng.integers(3, 8))
        values[at:] -= math.log1p(step)
        ends = [level.start for level in levels(values, LEAST_STEP)][1:]
        seen += len(ends) == 1 and abs(ends[0] - at) <= 1
    assert seen >= least * 300


@given(st.lists(st.floats(-30, 30), max_size=60))
def test_levels_have_all_points_in_order_and_differ(values: list[float]) -> None:
    found = levels(np.array(values), LEAST_STEP)
    assert [level.start for level in found] == [0, *(level.end for level in found)][: len(found)]
    assert (found[-1].end if found else 0) == len(values)
    assert all(abs(a.level - b.level) >= LEAST_STEP for a, b in pairwise(found))
    assert all(level.n >= 3 for level in found) or len(found) == 1


def test_a_line_is_no_staircase_and_a_staircase_no_line() -> None:
    line, stairs = np.linspace(0, 1, 20), np.repeat([0.0, 1.0], 10)
    parts = [Plateau(0, 10, 0.25), Plateau(10, 20, 0.75)]
    assert not explains(parts, line)
    assert explains([Plateau(0, 10, 0.0), Plateau(10, 20, 1.0)], stairs)


def test_what_changes_is_drawn_as_it_changed() -> None:
    found = [said(CLOSED, 1.0, 0.4)["rate-changed"]]
    assert "throughput" in touched_by(CLOSED, found)
    assert not touched_by(CLOSED, at_each_time(found))
