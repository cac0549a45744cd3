"""What grows with each answer, and not what fills up, steps or swings. Bounds are held on either side."""

import numpy as np
import pytest

from redline.stats.accumulation import Accumulation, accumulation
from redline.stats.samples import Floats

ANSWERED = np.arange(0.0, 1001.0, 10.0)
CHANCE = 0.001


def of(values: Floats, answered: Floats = ANSWERED) -> Accumulation | None:
    return accumulation(answered, values, CHANCE)


def test_what_each_answer_leaves_is_its_slope() -> None:
    found = of(500 + 3 * ANSWERED)
    assert found is not None
    assert (found.by_request, found.first, found.last) == pytest.approx((3, 500, 3500))
    assert found.share == pytest.approx(6)
    assert Accumulation(0.0, 5.0, 1.0).share == 5, "of one at least"
    assert of(500 - 3 * ANSWERED) is None


def test_what_swings_is_seen_at_its_lowest() -> None:
    swings = 500 + 3 * ANSWERED
    swings[1::2] += 5_000
    found = of(swings)
    assert found is not None
    assert found.by_request == pytest.approx(3)


def test_ten_answers_in_eight_parts_are_enough() -> None:
    assert of(np.arange(11.0), np.arange(11.0)) is not None
    assert of(np.arange(10.0), np.arange(10.0)) is None
    assert of(np.zeros(0), np.zeros(0)) is None
    eight = np.array([0.0, 100, 200, 300, 500, 600, 800, 1000])
    assert of(eight, eight) is not None
    seven = np.array([0.0, 100, 200, 400, 600, 800, 1000])
    assert of(seven, seven) is None


def bent(late: float) -> Floats:
    """A value whose second half grows `late` times as fast as its first."""
    return np.asarray(100 + np.minimum(ANSWERED, 500.0) + late * np.maximum(ANSWERED - 500.0, 0.0))


@pytest.mark.parametrize(("late", "grows"), [(0.7, False), (0.85, True), (2.5, True), (3.4, False)])
def test_the_second_half_grows_about_as_fast_as_the_first(late: float, *, grows: bool) -> None:
    assert (of(bent(late)) is not None) is grows


@pytest.mark.parametrize(("step", "grows"), [(100.0, True), (500.0, False)])
def test_a_step_is_no_growth_by_request(step: float, *, grows: bool) -> None:
    stepped = 100 + ANSWERED + np.where(ANSWERED >= 400, step, 0.0)
    assert (of(stepped) is not None) is grows


@pytest.mark.parametrize(("step", "grows"), [(750.0, True), (825.0, False)])
def test_no_part_grows_by_three_tenths_of_all(step: float, *, grows: bool) -> None:
    """Two steps, in both halves alike: 850 of 2,875 by the slope, which is 0.296 of it; or 925 of 3,063, 0.302."""
    stepped = 100 + ANSWERED + np.where(ANSWERED >= 300, step, 0.0) + np.where(ANSWERED >= 700, step, 0.0)
    assert (of(stepped) is not None) is grows
