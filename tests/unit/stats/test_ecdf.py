"""Shares of requests that two servers answered by a time: laws, the truth behind simulated rounds, and curves."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.analysis.curves import grid
from redline.model import Histogram, Metric
from redline.stats import enough_beyond
from redline.stats.ecdf import share_differences, times_between
from tests.fakes.compared import compared_run
from tests.fakes.recordings import simulated_run

TIMES = st.lists(st.integers(1, 10**10), min_size=1, max_size=40)
ROUNDS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(ROUNDS)
def test_a_difference_is_that_of_the_requests_and_turns_with_its_sides(
    rounds: list[tuple[list[int], list[int]]],
) -> None:
    ours, theirs = ([Histogram.of(pair[side]) for pair in rounds] for side in (0, 1))
    times = times_between([*ours, *theirs], 50)
    assert 0 < len(times) <= 50
    assert list(times) == sorted(set(times))
    there, back = share_differences(ours, theirs, times), share_differences(theirs, ours, times)
    assert np.allclose(there.differences, -back.differences)
    merged = Histogram.merged(ours)
    values, counts = merged.buckets()
    for ns, share in zip(times, there.ours, strict=True):
        edge = Histogram.of([ns]).max_ns  # a time stands for its slot of the histogram
        assert share == pytest.approx(counts[values <= edge].sum() / merged.count)
    if len(rounds) < 2:
        assert there.interval is None
        return
    assert there.interval is not None
    assert back.interval is not None
    low, high = there.interval
    assert np.all((low >= -1) & (high <= 1) & (low <= there.differences) & (there.differences <= high))
    assert np.allclose(low, -back.interval[1])


def test_a_server_against_itself_differs_nowhere_but_is_known_no_better_than_by_chance() -> None:
    parts = [Histogram.of(np.random.default_rng(seed).lognormal(14, 1, 500)) for seed in range(3)]
    same = share_differences(parts, parts, times_between(parts, 40))
    assert not same.differences.any()
    assert same.interval is not None
    assert np.all(same.interval[1] - same.interval[0] > 0)


@pytest.mark.parametrize("starts_sd", [0.0, 0.1])
def test_its_interval_holds_the_truth_as_often_as_it_says(starts_sd: float) -> None:
    """Log-normal times whose median differs by 10%, and in each start by chance; the share is known in closed form."""
    rng, ns, held, tried = np.random.default_rng(7), (800_000, 1_000_000, 1_600_000), 0, 0
    sd = math.hypot(0.5, starts_sd)
    logs = [math.log(time / 1e6) for time in ns]
    truth = [_normal((log - math.log(1.1)) / sd) - _normal(log / sd) for log in logs]
    for _ in range(200):
        sides = [
            [Histogram.of(1e6 * np.exp(rng.normal(shift + rng.normal(0, starts_sd), 0.5, 400))) for _ in range(5)]
            for shift in (math.log(1.1), 0.0)
        ]
        interval = share_differences(sides[0], sides[1], ns).interval
        assert interval is not None
        held += sum(low <= true <= high for low, high, true in zip(*interval, truth, strict=True))
        tried += len(ns)
    assert held / tried > 0.92


def _normal(value: float) -> float:
    return 0.5 * (1 + math.erf(value / math.sqrt(2)))


def test_a_round_without_requests_is_refused() -> None:
    some = Histogram.of([5])
    for ours, theirs in (([some], [Histogram()]), ([], []), ([some, some], [some])):
        with pytest.raises(ValueError, match="every round needs requests of both"):
            share_differences(ours, theirs, (1, 5))
    assert times_between([Histogram()], 9) == ()


def test_a_curve_has_the_percentiles_and_intervals_of_the_report() -> None:
    report = build_report(simulated_run(trials=3))
    for cell in report.cells:
        points = {point.q: point for point in cell.response_curve}
        known = {point.q: point.ns for point in cell.response_percentiles}
        for q in points.keys() & known.keys():
            assert points[q].ns == known[q]
        estimate, middle = cell.estimates[Metric.P50], points[0.5]
        assert middle.ns == estimate.value
        assert estimate.low == pytest.approx(middle.low_ns, abs=1)
        assert estimate.high == pytest.approx(middle.high_ns, abs=1)
        assert points[0.0].low_ns is None
        assert all(enough_beyond(cell.response.count, q) for q in points)
    (first, *_) = report.shares
    assert first.n == 3
    assert {(part.cell_id, part.baseline_id) for part in report.shares} <= {
        (one.cell_id, one.baseline_id) for one in report.comparisons
    }


def test_a_single_trial_has_no_interval() -> None:
    report = build_report(simulated_run(trials=1))
    assert all(point.low_ns is None for cell in report.cells for point in cell.response_curve)
    assert all(point.low is None for part in report.shares for point in part.points)
    assert "too few" in report.shares[0].method


def test_duets_have_the_difference_of_their_starts() -> None:
    report = build_report(compared_run(starts=4))
    (part,) = report.shares
    servers = {cell.cell_id: cell.server for cell in report.cells}
    assert (servers[part.cell_id], servers[part.baseline_id], part.n, part.in_duets) == ("B", "A", 4, True)
    assert abs(part.farthest.difference) == max(abs(point.difference) for point in part.points)
    for cell in report.cells:
        points = {point.q: point for point in cell.response_curve}
        ends = {q: (point.low_ns, point.ns, point.high_ns) for q, point in points.items()}
        known = {q: (low, ns, high) for q, (low, ns, high) in ends.items() if low is not None and high is not None}
        assert 0.5 in known
        assert all(low <= ns <= high for low, ns, high in known.values())
        assert max(points) not in known, "each start has too few requests beyond it"


def test_a_grid_ends_at_six_nines_or_where_ten_requests_are_beyond() -> None:
    assert grid(10**9)[-1] == 0.999999
    assert grid(10_000)[-1] == 0.999
    assert grid(0) == ()
    assert list(grid(10**9)) == sorted(set(grid(10**9)))


def counted(fast: int, slow: int) -> Histogram:
    return Histogram.of([1e6] * fast + [9e6] * slow)


def test_shares_that_agree_leave_the_chance_of_independent_requests() -> None:
    ours, theirs = [counted(9, 1)] * 2, [counted(8, 2)] * 2
    found = share_differences(ours, theirs, [2_000_000])
    assert (found.ours[0], found.theirs[0], found.differences[0]) == pytest.approx((0.9, 0.8, 0.1))
    # Agresti and Caffo: (18 + 1) / 22 and (16 + 1) / 22.
    p, q = 19 / 22, 17 / 22
    half = 1.959964 * ((p * (1 - p) + q * (1 - q)) / 22) ** 0.5
    assert found.interval is not None
    assert (found.interval[0][0], found.interval[1][0]) == pytest.approx((0.1 - half, 0.1 + half))


def test_rounds_that_differ_widen_the_interval() -> None:
    ours, theirs = [counted(1000, 0), counted(500, 500)], [counted(500, 500)] * 2
    found = share_differences(ours, theirs, [2_000_000])
    assert found.interval is not None
    # Two rounds of 0.5 and 0: a standard error of 0.25, and t = 12.7 for one degree of freedom.
    assert found.interval[0][0] == -1.0
    assert found.interval[1][0] == 1.0
    assert share_differences(ours[:1], theirs[:1], [2_000_000]).interval is None
