"""Trends, levels, groups and neighbours of a series, by hand and as slow libraries find them."""

import math

import numpy as np
import pytest
import ruptures
from hypothesis import given
from hypothesis import strategies as st

from redline.stats import series
from redline.stats.series import (
    WINDOW,
    Groups,
    Plateau,
    _surely,
    clipped,
    critical_gap,
    interval_excess,
    level_ends,
    levels,
    median,
    noise,
    slope,
    switched,
    trend,
    two_groups,
)


@pytest.mark.parametrize("seed", range(40))
def test_levels_are_those_that_pelt_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 120))
    values = rng.normal(0.0, 0.03, n)
    for _ in range(seed % 4):
        values[int(rng.integers(n)) :] += rng.normal(0.0, 0.2)
    scaled = values / noise(values)
    for penalty in (5 * math.log(n), 15 * math.log(n)):
        expected = ruptures.KernelCPD(kernel="linear", min_size=3).fit_predict(scaled[:, None], pen=penalty)
        assert level_ends(scaled, penalty, 3) == expected
    assert level_ends(scaled, 20.0) == ruptures.Pelt(model="l2", min_size=1, jump=1).fit(scaled).predict(pen=20.0)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=24), st.integers(1, 4), st.sampled_from([0.5, 8.0, 40.0]))
def test_the_loop_over_few_points_finds_the_levels_of_the_arrays(
    values: list[float], shortest: int, penalty: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series, "FEW", 0)
        by_arrays = level_ends(np.array(values), penalty, shortest)
    assert level_ends(np.array(values), penalty, shortest) == by_arrays


def test_a_series_too_short_for_two_levels_has_one() -> None:
    assert level_ends(np.array([1.0, 9.0, 1.0, 9.0, 1.0]), 0.1, 3) == [5]
    assert level_ends(np.array([1.0]), 0.1) == [1]


def test_a_lone_disturbance_is_clipped_and_a_step_is_not() -> None:
    steps = np.repeat([0.0, 1.0], 10)
    disturbed = steps.copy()
    disturbed[4] = 5.0
    assert np.array_equal(clipped(steps), steps)
    assert clipped(disturbed)[4] < 0.1


def test_ranks_of_equal_values_do_not_depend_on_their_order() -> None:
    values = [1.0, 1.0, 2.0, 2.0] * 4
    assert interval_excess(values, 1.0) >= 1.0


def test_a_trend_is_the_relative_change_along_the_median_slope() -> None:
    rising = [1.1**at for at in range(7)]
    assert trend(rising, 0.01) == pytest.approx(1.1**6 - 1)
    assert trend(rising[::-1], 0.01) == pytest.approx(1.1**-6 - 1)
    assert trend(rising[:6], 0.01) == 0, "six are too few"
    assert trend([1.0, 3.0, 2.0, 1.5, 2.5, 1.0, 2.0], 0.01) == 0, "it may be chance"
    assert trend([2.0] * 9, 0.01) == 0


def test_one_disturbed_value_does_not_move_a_slope() -> None:
    assert slope([0, 1, 2, 4], [1.0, 3.0, 5.0, 9.0]) == 2
    assert slope(range(7), [0.0, 1, 2, 99, 4, 5, 6]) == 1


def test_neighbours_that_are_alike_widen_an_interval() -> None:
    # Of ranks 1 to 12 around their mean, products of neighbours sum to 107.25, and squares to 143: r = 0.75.
    r = 0.75
    assert interval_excess([*range(12)], 0.001) == pytest.approx(math.sqrt((1 + r) / (1 - r)))
    assert interval_excess([*range(10)], 0.001) > 1
    assert interval_excess([*range(9)], 0.001) == 1, "nine are too few"
    assert interval_excess([0, 11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6], 0.001) == 1, "neighbours that differ narrow nothing"
    assert interval_excess([5.0] * 12, 0.001) == 1
    assert interval_excess([*range(400)], 0.001) == pytest.approx(math.sqrt(1.95 / 0.05)), "r counts as 0.95 at most"


def test_the_rank_ratio_has_the_chance_that_shuffled_numbers_have() -> None:
    """Bartels' beta distribution, held by simulation: one in ten shuffles is below its tenth."""
    rng = np.random.default_rng(5)
    below = sum(interval_excess(rng.permutation(14).tolist(), 0.1) > 1 for _ in range(2_000))
    assert 150 < below < 250


def test_two_groups_are_found_where_the_gap_is_larger_than_chance() -> None:
    found = two_groups([10.0, 20.0, 10.1, 20.2, 10.2, 20.1])
    assert found == Groups(10.1, 20.1, (False, True, False, True, False, True))
    assert found.sizes == (3, 3)
    assert found.apart == pytest.approx(20.1 / 10.1 - 1)
    assert not found.one_after_the_other
    assert Groups(1.0, 2.0, (False, False, True)).one_after_the_other
    assert not Groups(1.0, 2.0, (False, True, False)).one_after_the_other
    assert two_groups([1.0, 1.0, 1.0, 5.0]) is None, "four are too few"
    assert two_groups([1.0, 1.0, 1.0, 5.0, 5.0]) is not None, "all in two values"
    assert two_groups([1.0, 1.01, 1.02, 1.03, 9.0]) is None, "a single number is an outlier"
    assert two_groups([5.0] * 6) is None


@pytest.mark.parametrize(("ratio", "apart"), [(14.9, False), (15.1, True)])
def test_the_gap_is_measured_by_the_spread_within_the_groups(ratio: float, *, apart: bool) -> None:
    # Each group is -1, 0, 1 times 0.001: 4 squares over 6 - 2 numbers are a spread of 0.001.
    low = [-0.001, 0.0, 0.001]
    values = np.exp([*low, *(0.002 + ratio / 1_000 + one for one in low)])
    assert (two_groups(values.tolist()) is not None) is apart


def test_between_its_counts_the_critical_gap_is_interpolated() -> None:
    assert [critical_gap(n) for n in (5, 6, 11, 20, 99)] == [24.0, 15.0, 6.55, 5.5, 5.5]


def test_noise_is_that_from_point_to_point() -> None:
    # Steps of 0.2 are 1.4826 * 0.2 / sqrt(2) of noise.
    assert noise(np.array([0.0, 0.2, 0.0, 0.2, 9.0, 9.2])) == pytest.approx(1.4826 * 0.2 / math.sqrt(2))
    assert noise(np.array([0.0, 0.001])) == noise(np.array([1.0])) == 0.005


def test_what_is_three_deviations_from_its_neighbours_is_clipped_there() -> None:
    flat = np.zeros(21)
    flat[10] = 1.0
    assert clipped(flat)[10] == pytest.approx(3 * 0.005), "the least noise"
    wide = np.tile([0.1, -0.1, 0.0], 9)
    wide[13] = 9.0
    middle = 0.0
    assert clipped(wide)[13] == pytest.approx(middle + 3 * 1.4826 * 0.1, abs=0.05)


def test_four_in_a_row_are_no_disturbance() -> None:
    values = np.zeros(30)
    values[10:13] = 1.0
    assert clipped(values)[11] < 0.1
    values[13] = 1.0
    assert clipped(values)[11:13].tolist() == [1.0, 1.0]


def test_levels_have_their_medians_and_steady_series_have_one() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0, 0.01, 20), rng.normal(0.5, 0.01, 30)])
    assert [(part.start, part.end, part.n) for part in levels(values, 0.1)] == [(0, 20, 20), (20, 50, 30)]
    assert [part.level for part in levels(values, 0.1)] == [median(values[:20]), median(values[20:])]
    assert levels(values, 0.6) == [Plateau(0, 50, median(values))], "they differ by less than wanted"
    assert len(levels(rng.normal(0, 0.1, 60), 0.01)) == 1
    assert levels(np.zeros(0), 0.1) == []


def test_a_level_shorter_than_three_points_is_an_outlier() -> None:
    def lasting(points: int) -> int:
        values = np.zeros(40)
        values[20 : 20 + points] = 1.0
        return len(levels(values, 0.1))

    assert (lasting(2), lasting(5)) == (1, 3)


def test_a_level_may_stray_by_a_tenth_of_its_points() -> None:
    def strays(points: int) -> int:
        values = np.repeat([0.0, 1.0], 20)
        values[[25, 28, 31, 34][:points]] = 0.0
        return len(levels(values, 0.1))

    assert (strays(2), strays(3)) == (2, 1)


def test_what_is_switched_on_rises_by_its_effect_along_a_trend() -> None:
    at = np.arange(12.0)
    on = np.array([False, True] * 6)
    exact = switched(3 + 0.5 * at + 2.0 * on, at, on)
    assert exact.value == pytest.approx(2.0)
    assert exact.error == pytest.approx(0.0, abs=1e-9)
    assert exact.freedom == 9


def test_the_error_of_what_is_switched_is_that_of_least_squares() -> None:
    at, on = np.arange(12.0), np.array([False, True, True, False] * 3)
    values = 2.0 * on + np.array([1.0, -1, 1, -1, 1, -1, -1, 1, -1, 1, -1, 1])
    columns = np.column_stack([np.ones(12), at, on])
    fitted, squares, *_ = np.linalg.lstsq(columns, values)
    variance = squares[0] / 9 * np.linalg.inv(columns.T @ columns)[2, 2]
    residuals = values - columns @ fitted
    alike = residuals[1:] @ residuals[:-1] / (residuals @ residuals) + 3 / 12
    assert alike < 0, "neighbours differ, which narrows nothing"
    assert switched(values, at, on).error == pytest.approx(math.sqrt(variance))
    slow = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], 2)
    found = switched(slow, at, on)
    fitted, squares, *_ = np.linalg.lstsq(columns, slow)
    residuals = slow - columns @ fitted
    alike = residuals[1:] @ residuals[:-1] / (residuals @ residuals) + 3 / 12
    assert 0 < alike < 0.8
    wider = squares[0] / 9 * np.linalg.inv(columns.T @ columns)[2, 2] * (1 + alike) / (1 - alike)
    assert found.error == pytest.approx(math.sqrt(wider))


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_the_quick_median_is_that_of_numpy(values: list[float]) -> None:
    assert median(np.array(values)) == np.median(values)


def test_the_median_of_what_is_no_number_is_none() -> None:
    assert math.isnan(median(np.array([1.0, math.nan, 2.0])))


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=40))
def test_a_clipped_series_is_near_its_running_median(values: list[float]) -> None:
    padded = np.pad(values, WINDOW // 2, mode="edge")
    middle = np.array([np.median(padded[at : at + WINDOW]) for at in range(len(values))])
    off = np.abs(clipped(np.array(values)) - middle)
    assert np.all(off <= np.abs(np.array(values) - middle))
    assert np.all(np.sign(clipped(np.array(values)) - middle) * np.sign(np.array(values) - middle) >= 0)


def test_a_value_just_between_two_levels_strays_from_neither() -> None:
    values = np.array([0.0] * 10 + [2.0] * 8 + [1.0] * 2)
    levels = Plateau(0, 10, 0.0), Plateau(10, 20, 2.0)
    sure = _surely(values, *levels, 0.1, 0.5)
    assert sure > 0
    assert _surely(-values, Plateau(0, 10, -0.0), Plateau(10, 20, -2.0), 0.1, 0.5) == sure
    assert _surely(values, *levels, 0.1, 2.0) == sure, "the least difference is enough"
    assert _surely(values, *levels, 0.1, 2.01) == 0
    values[-2:] = 0.9
    assert _surely(values, *levels, 0.1, 0.5) == 0, "two of ten are more than a tenth"
    values[-1] = 2.0
    assert _surely(values, *levels, 0.1, 0.5) == sure, "one of ten is not"
