"""A cost that grows with what was served: its line, and what may be chance. Values are by hand."""

import numpy as np
import pytest

from redline.stats.growth import CostGrowth, ServedCosts, growth


def start(*costs: float, step: float = 100.0) -> ServedCosts:
    return ServedCosts(np.array([at * step for at in range(len(costs))]), np.array(costs))


def line(n: int = 10, rise: float = 0.01) -> ServedCosts:
    return start(*(1 + rise * at for at in range(n)))


def test_a_start_is_divided_into_stretches_of_a_fifth_of_a_second() -> None:
    whole = start(*map(float, range(100)))
    assert len(whole.in_stretches(1e9).costs) == 5
    assert len(whole.in_stretches(99e9).costs) == 10
    assert len(whole.in_stretches(1.0).costs) == 4
    assert whole.in_stretches(1e9).costs.tolist() == [9.5, 29.5, 49.5, 69.5, 89.5]
    assert whole.in_stretches(1e9).served.tolist() == [950, 2950, 4950, 6950, 8950]
    few = start(1.0, 2.0, 3.0, 4.0)
    assert few.in_stretches(1.0) is few


def test_a_growth_is_its_line_and_the_rise_of_what_was_measured() -> None:
    found = growth([line()], 0.001)
    assert found is not None
    assert (found.first, found.per_request) == pytest.approx((1.0, 0.0001))
    assert (found.share, found.requests, found.usual) == pytest.approx((0.09, 900, 1.045))
    later = growth([ServedCosts(line().served + 10_000, line().costs)], 0.001)
    assert later is not None
    assert later.first == pytest.approx(0, abs=1e-9), "the line begins before the measurement"
    assert later.share == pytest.approx(0.09)


def test_a_rise_of_less_than_two_percent_is_no_growth() -> None:
    assert growth([line(rise=0.0021)], 0.001) is None
    assert growth([line(rise=0.0023)], 0.001) is not None
    assert growth([line(rise=-0.01)], 0.001) is None


def test_a_start_of_fewer_than_four_stretches_does_not_count() -> None:
    assert growth([line(3)] * 20, 0.05) is None
    assert growth([line(4)] * 20, 0.05) is not None
    assert growth([], 0.05) is None


def test_the_ranks_of_several_starts_are_summed() -> None:
    # Four points that rise: 6 of variance 4 * 3 * 13 / 18 = 8.67 in each start; 2 starts have (12 - 1) / 4.16 = 2.64.
    assert growth([line(4, 0.1)] * 2, 0.0084) is not None
    assert growth([line(4, 0.1)] * 2, 0.0081) is None
    assert growth([line(4, 0.1), line(4, -0.1)], 0.5) is None


def test_the_line_is_not_extended_below_a_tenth_of_the_usual_cost() -> None:
    falls = CostGrowth(first=1.0, per_request=-0.001, share=0.1, requests=1, usual=2.0)
    assert falls.at(np.array([0.0, 500.0, 900.0])).tolist() == pytest.approx([1.0, 0.5, 0.2])


def test_a_line_that_begins_near_zero_has_a_share_of_a_tenth_of_the_usual_cost() -> None:
    """Ten costs from 0.01 on by 1 each: the usual one is 4.51, of which a tenth is 0.451."""
    found = growth([start(*(0.01 + at for at in range(10)))], 0.001)
    assert found is not None
    assert found.usual == pytest.approx(4.51)
    assert found.share == pytest.approx(9 / 0.451)
