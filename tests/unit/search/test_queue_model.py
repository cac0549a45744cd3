"""The model of a queue finds what is known in closed form; its parts hold their textbook values."""

from dataclasses import replace
from itertools import accumulate
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from redline.search.evidence import Capacity
from redline.search.queue_model import (
    Aim,
    Known,
    ProbePoint,
    QueueFit,
    _base_s,
    _bent,
    _FittedLine,
    _settled,
    _tail_chance,
    _weighted_line,
    diluted,
    fit,
    jackknife_error,
    scatter,
    stretch_of,
)
from redline.stats.samples import Floats

COUNTS = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 50)), min_size=1, max_size=30)
PROBES = st.lists(st.tuples(COUNTS, st.floats(1.0, 900.0), st.floats(0.2, 1.0)), min_size=1, max_size=8)


def probe(counted: list[tuple[int, int]]) -> ProbePoint:
    counts = dict(sorted(counted))
    shares = np.array([*counts.values()]) / sum(counts.values())
    return ProbePoint(100.0, 10.0, np.array([*counts]) / 1e3, shares)


@given(PROBES, st.floats(0.0, 0.003), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_the_pooled_quantile_is_that_of_all_values_in_their_order(
    probes: list[tuple[list[tuple[int, int]], float, float]], base_s: float, q: float
) -> None:
    points = [probe(counted) for counted, _, _ in probes]
    gaps = np.array([gap for _, gap, _ in probes])
    signal = gaps * np.array([part for _, _, part in probes])
    weighted = sorted(
        ((value - base_s) * gap, share * point.seconds * own**2)
        for point, gap, own in zip(points, gaps, signal, strict=True)
        for value, share in zip(point.values_s, point.shares, strict=True)
    )
    reached = [*accumulate(weight for _, weight in weighted)]
    found = stretch_of(points, base_s, gaps, signal, q)
    # Within rounding, a share `q` of the weight is at `found` or below it, and less than that below it alone.
    up_to = max(share for share, (value, _) in zip(reached, weighted, strict=True) if value <= found) / reached[-1]
    below = max((share for share, (value, _) in zip(reached, weighted, strict=True) if value < found), default=0.0)
    assert below / reached[-1] - 1e-9 <= q <= up_to + 1e-9
    assert found in [value for value, _ in weighted]


LONG_S = 1e9
"""Probes so long that chance moves nothing."""
RANKS = (np.arange(4000) + 0.5) / 4000


def queue(rate_per_s: float, *, root: float = 1000.0, base_s: float = 0.002, seconds: float = LONG_S) -> ProbePoint:
    """A probe of an M/M/1 queue: response times beyond the base are exponential, with a mean of 1 / (root - rate)."""
    values = base_s - np.log(1 - RANKS) / (root - rate_per_s)
    return ProbePoint(rate_per_s, seconds, values, np.full(len(RANKS), 1 / len(RANKS)))


def fitted(points: list[ProbePoint], aim: Aim, capacity: Capacity | None = None) -> QueueFit:
    found = fit(points, Known(queue(100.0), capacity), aim)
    assert found is not None
    return found


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_the_limit_of_a_queue_in_closed_form_is_found(q: float) -> None:
    # The percentile is 2 ms + ln(1 / (1 - q)) / (1000 - rate): it reaches 22 ms at 1000 - 50 ln(1 / (1 - q)).
    found = fitted([queue(rate) for rate in (500.0, 600.0, 700.0, 800.0)], Aim(q, 0.022))
    assert found.root_per_s == pytest.approx(1000, rel=2e-3)
    assert found.limit_per_s == pytest.approx(1000 + 50 * log(1 - q), rel=3e-3)
    assert found.gap_per_s == pytest.approx(-50 * log(1 - q), rel=2e-2)
    assert found.spread == pytest.approx(1.0, rel=0.02)
    assert found.typical_gap_per_s == pytest.approx(350, rel=0.01)
    assert found.used == (0, 1, 2, 3)
    assert not found.bent
    assert found.chance_per_s < 0.1


def test_a_capacity_is_a_point_of_the_line_where_one_probe_is_too_few() -> None:
    aim = Aim(0.9, 0.022)
    assert fit([queue(700.0)], Known(queue(100.0)), aim) is None
    found = fitted([queue(700.0)], aim, Capacity(1000.0, 0.1, 0.0))
    assert found.root_per_s == pytest.approx(1000, rel=1e-3)
    assert found.limit_per_s == pytest.approx(1000 - 50 * log(10), rel=2e-3)
    assert fit([], Known(queue(100.0), Capacity(1000.0, 0.1, 0.0)), aim) is None


def test_a_surer_capacity_moves_the_root_more() -> None:
    points = [queue(rate, seconds=200.0) for rate in (500.0, 600.0, 700.0)]
    unsure, sure = (fitted(points, Aim(0.9, 0.022), Capacity(1100.0, sd, 0.0)).root_per_s for sd in (300.0, 1.0))
    assert 990 < unsure < 1050 < sure < 1105


def test_no_limit_is_found_below_the_base_or_where_times_fall_with_the_rate() -> None:
    points = [queue(rate) for rate in (500.0, 600.0, 700.0, 800.0)]
    assert fit(points, Known(queue(100.0)), Aim(0.9, 0.0019)) is None
    assert fit(points, Known(queue(100.0)), Aim(0.9, 0.0021)) is not None
    falling = [replace(queue(rate), rate_per_s=1300 - rate) for rate in (500.0, 600.0, 700.0, 800.0)]
    assert fit(falling, Known(queue(100.0)), Aim(0.9, 0.022)) is None


def test_shorter_probes_leave_more_to_chance_by_the_root_of_their_length() -> None:
    rates = (500.0, 600.0, 700.0)
    long, short = (fitted([queue(rate, seconds=s) for rate in rates], Aim(0.9, 0.022)).chance_per_s for s in (1e6, 1e4))
    assert short / long == pytest.approx(10, rel=0.02)


def test_probes_too_short_for_their_distance_from_the_root_do_not_count() -> None:
    near = queue(990.0, seconds=30.0)  # the queue settles at 0.7 sqrt(32 * 1000 / 30) = 23 per second from the root
    found = fitted([*(queue(rate) for rate in (500.0, 600.0, 700.0)), near], Aim(0.9, 0.022))
    assert found.used == (0, 1, 2)


def flat(root: float = 1000.0, spread: float = 1.0) -> QueueFit:
    return QueueFit(900.0, root, spread, 1.0, 100.0)


def test_the_queue_of_a_longer_probe_settles_closer_to_the_root() -> None:
    assert flat().unsettled_per_s(320.0) == pytest.approx(10)  # sqrt(32 * 1000 * 1 / 320)
    assert flat(spread=4.0).unsettled_per_s(320.0) == pytest.approx(20)
    assert flat(root=-1.0).unsettled_per_s(320.0) == 0


@pytest.mark.parametrize(("rate", "settles"), [(992.9, True), (993.1, False)])
def test_a_probe_settles_from_seven_tenths_of_that_distance_on(rate: float, *, settles: bool) -> None:
    points = [queue(rate, seconds=320.0), queue(500.0)]
    assert _settled(points, (0, 1), flat()) == ((0, 1) if settles else (1,))


def test_the_two_slowest_probes_stay_where_none_settled() -> None:
    points = [queue(rate, seconds=0.001) for rate in (800.0, 500.0, 700.0, 600.0)]
    assert _settled(points, (0, 1, 2, 3), flat()) == (1, 3)


def test_the_base_is_that_of_the_calmest_probe_beyond_its_queue() -> None:
    # At 700 of 1000 per second, the p90 is 2 ms + ln(10) / 300, of which the queue explains ln(10) / 300.
    assert _base_s(queue(700.0), 0.9, log(10), 1000.0, 0.001) == pytest.approx(0.002, rel=1e-2)
    assert _base_s(queue(701.0), 0.9, log(10), 1000.0, 0.001) == 0.001
    assert _base_s(queue(500.0), 0.9, 10.0, 1000.0, 0.001) == 0.001, "no request undercuts the first percentile"


def test_the_smaller_the_waiting_part_the_larger_its_relative_error() -> None:
    assert diluted(np.array([3.0, 10.0, 2.0]), 2.0).tolist() == [3.0, 1.25, 5.0]
    assert diluted(np.array([8.0]), 0.0).tolist() == [1.0]


LINE = _FittedLine(np.array([0.0, 10.0, 20.0]), np.zeros(3), np.full(3, 1 / 3), 1000.0, 1.0)


def test_chance_of_a_line_is_least_at_its_middle() -> None:
    # Three points with a standard deviation of 3: 3 / sqrt(3) in the middle, and (10 * 3)^2 / 200 more at the ends.
    assert LINE.chance_at(10.0) == pytest.approx(sqrt(3))
    assert [LINE.chance_at(end) for end in (0.0, 20.0)] == pytest.approx([sqrt(3 + 4.5)] * 2)


def test_equal_rates_show_no_slope() -> None:
    rates, values = np.full(3, 5.0), np.array([1.0, 2.0, 6.0])
    assert replace(LINE, x=rates).chance_at(20.0) == pytest.approx(sqrt(3))
    assert _weighted_line(rates, values, np.full(3, 1 / 3)) == pytest.approx((0.0, 3.0))


def test_chance_of_the_tail_is_that_of_its_excursions() -> None:
    at = replace(LINE, x=np.array([500.0, 500.0]))
    points = [queue(500.0, seconds=100.0)]
    # (1.2 + 0.2 ln 100)^2 - 2 = 2.4995, over 100 s * 50^2 / (2 * 1 * 500) = 250
    assert _tail_chance(points, 0.99, np.array([50.0]), at) == pytest.approx(sqrt(2.4995 / 250), rel=1e-3)
    assert _tail_chance(points * 2, 0.99, np.array([50.0, 50.0]), at) == pytest.approx(sqrt(2.4995 / 500), rel=1e-3)
    assert _tail_chance(points, 0.5, np.array([50.0]), at) == pytest.approx(sqrt(0.3 / 250), rel=1e-3)


def test_a_weighted_line_goes_through_what_is_surest() -> None:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])
    assert _weighted_line(x, y, np.array([1.0, 5.0, 2.0])) == pytest.approx((2.0, 1.0))
    # Of twice the weight counts four times: 0 at 0 four times, 5 at 1 once, 0 at 1 never.
    slope, height = _weighted_line(np.array([0.0, 1.0, 1.0]), np.array([0.0, 5.0, 0.0]), np.array([1.0, 2.0, 1.0]))
    assert (slope, height) == pytest.approx((4.0, 0.0))
    assert _weighted_line(np.ones(3), y, np.ones(3)) == pytest.approx((0.0, 3.0))


def test_points_are_bent_where_a_parabola_fits_surely_better() -> None:
    x, noise = np.arange(8.0), np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    weights = np.ones(8)

    def p_of(y: Floats) -> float:
        """The chance of so large a last coefficient, by the textbook's covariance."""
        solved, covariance = np.polyfit(x, y, 2, cov=True)
        return float(2 * t.sf(abs(solved[0]) / sqrt(covariance[0, 0]), len(x) - 3))

    grown = [x + noise + curve * x**2 for curve in np.linspace(0, 1.5, 60)]
    verdicts = [_bent(x, y, weights) for y in grown]
    assert verdicts == [p_of(y) < 0.001 for y in grown]
    assert 5 < sum(verdicts) < 55
    assert not _bent(x[:4], x[:4] ** 2 + 0.01 * noise[:4], weights[:4]), "four points are too few"
    assert _bent(x[:5], x[:5] ** 2 + 0.001 * noise[:5], weights[:5])
    assert not _bent(np.ones(8), x, weights)
    assert not _bent(np.repeat([0.0, 1.0], 4), x, weights), "two rates show no bend"


def test_an_unsure_point_does_not_hide_a_bend() -> None:
    x = np.arange(8.0)
    y = x**2 + np.array([0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1, -60.0])
    assert _bent(x, y, np.array([*np.ones(7), 1e-3]))
    assert not _bent(x, y, np.ones(8))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.array([1.0, 2.0, 6.0, 7.0])
    left_out = np.array([values[np.arange(4) != at].mean() for at in range(4)])
    assert jackknife_error(left_out) == pytest.approx(values.std(ddof=1) / 2)


def test_the_scatter_of_a_limit_is_unknown_where_leaving_one_probe_out_leaves_no_estimate() -> None:
    aim, known = Aim(0.9, 0.022), Known(queue(100.0))
    points = [queue(rate) for rate in (500.0, 600.0, 700.0)]
    assert scatter(points, known, aim) < 1
    assert scatter(points[:2], known, aim) == inf
    apart = [*points[:2], queue(700.0, root=1020.0)]
    limits = np.array([fitted([*apart[:i], *apart[i + 1 :]], aim).limit_per_s for i in range(3)])
    assert scatter(apart, known, aim) == pytest.approx(jackknife_error(limits))


def test_quantiles_and_parts_of_a_probe_are_those_of_its_values() -> None:
    four = ProbePoint(1.0, 1.0, np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.25))
    assert [four.quantile_s(q) for q in (0.1, 0.25, 0.26, 0.75, 1.0)] == [1.0, 1.0, 2.0, 3.0, 4.0]
    part = four.between(2.0, 3.0)
    assert (part.below, part.values_s.tolist(), part.shares.tolist()) == (0.25, [2.0, 3.0], [0.25, 0.25])
    assert four.between(0.5, 1.0).below == 0
