"""Factors and their main effects, as the textbook codes and fits them."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from redline.stats.factorial import aliases, coded, contrasts, interaction, main_effects, resolution

CUBE = [*product((0, 1), repeat=3)]


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_contrasts_are_orthogonal_with_mean_0_and_mean_square_1(levels: int) -> None:
    coding = contrasts(levels)
    assert coding.shape == (levels, levels - 1)
    assert coding.sum(axis=0) == pytest.approx(np.zeros(levels - 1))
    assert coding.T @ coding == pytest.approx(levels * np.eye(levels - 1))
    assert coding[0, 0] == -coding[1, 0] == pytest.approx(np.sqrt(levels / 2)), "each level against those before it"
    assert coding[2:, 0].tolist() == [0.0] * (levels - 2)


def test_a_full_cube_mixes_nothing_and_half_of_it_each_axis_with_two_others() -> None:
    full = coded(CUBE, (2, 2, 2))
    assert aliases(full) == [[], [], []]
    assert resolution(full) == "V"
    half = coded([run for run in CUBE if sum(run) % 2 == 0], (2, 2, 2))
    assert aliases(half) == [[(1, 2)], [(0, 2)], [(0, 1)]]
    assert resolution(half) == "III"
    of_four = [run for run in product((0, 1), repeat=4) if sum(run) % 2 == 0]
    assert resolution(coded(of_four, (2,) * 4)) == "IV"
    assert interaction(full[0], full[1]).shape == (8, 1)


def test_effects_and_their_intervals_are_those_of_least_squares() -> None:
    factors = coded(CUBE, (2, 2, 2))
    noise = np.array([0.1, -0.2, 0.3, 0.0, -0.1, 0.2, -0.3, 0.0])
    values = np.array([10 + 4 * a + 1 * b for a, b, _ in CUBE]) + noise
    found = main_effects(values.tolist(), [0] * 8, factors)
    assert found is not None
    model = np.column_stack([np.ones(8), *factors])
    fitted, squares, *_ = np.linalg.lstsq(model, values)
    variance = squares[0] / 4
    for at, effect in enumerate(found):
        assert effect is not None
        ((difference, half),) = effect.differences
        assert difference == pytest.approx(-2 * fitted[1 + at])
        assert half == pytest.approx(stats.t.ppf(0.975, 4) * np.sqrt(variance / 2))
        assert effect.p == pytest.approx(stats.f.sf(8 * fitted[1 + at] ** 2 / variance, 1, 4))


def test_each_level_is_compared_with_the_first() -> None:
    runs = [(level,) for level in (0, 1, 2)] * 2
    (effect,) = main_effects([1.0, 3.0, 8.0, 1.2, 3.2, 8.2], [0, 0, 0, 1, 1, 1], coded(runs, (3,))) or (None,)
    assert effect is not None
    assert [difference for difference, _ in effect.differences] == pytest.approx([2.0, 7.0])
    assert effect.p == pytest.approx(0.0, abs=1e-9), "rounds explain all of the rest"


def test_without_a_run_left_over_no_error_is_known() -> None:
    factors = coded(CUBE[:4], (2, 2, 2))
    assert main_effects([1.0, 2.0], [0, 0], [np.array([[-1.0], [1.0]])]) is None
    assert main_effects([1.0, 2.0, 3.0], [0, 0, 0], [np.array([[-1.0], [1.0], [1.0]])]) is not None
    # The first factor never changes: the runs do not show its effect.
    found = main_effects([1.0, 2.0, 4.0, 8.0], [0] * 4, factors)
    assert found is not None
    assert found[0] is None
    assert found[1] is not None


def test_values_that_are_all_equal_have_no_effect() -> None:
    found = main_effects([5.0] * 8, [0] * 8, coded(CUBE, (2, 2, 2)))
    assert found is not None
    assert all(effect is not None and effect.differences[0][0] == pytest.approx(0, abs=1e-9) for effect in found)
