"""A difference of two statistics has laws: it changes sign with its sides, and common effects of a round cancel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import Estimate, Histogram, Metric
from redline.stats import Quantiles, Ratios, paired_difference
from redline.stats.estimate import METHOD_HOSTS, PAIRED

CPU = Metric.CPU_PER_REQUEST
VALUES = st.floats(1e2, 1e7)


def sample(values: list[float], requests: float = 1000.0) -> Ratios:
    under = np.full(len(values), requests)
    return Ratios(np.array(values) * under, under)


def bounds(found: Estimate) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    n = draw(st.integers(2, 9))
    return draw(st.lists(VALUES, min_size=n, max_size=n)), draw(st.lists(VALUES, min_size=n, max_size=n))


@given(pairs())
def test_it_is_the_difference_of_the_values_and_lies_in_its_interval(both: tuple[list[float], list[float]]) -> None:
    cell, baseline = both
    found = paired_difference(sample(cell), sample(baseline), CPU)
    assert found.value == pytest.approx(np.mean(cell) - np.mean(baseline), rel=1e-9, abs=1e-3)
    low, high = bounds(found)
    assert low <= found.value <= high
    assert (found.unit, found.n) == ("ns", len(cell))
    assert found.method.endswith("paired by round")


@given(pairs())
def test_it_changes_sign_with_its_sides(both: tuple[list[float], list[float]]) -> None:
    one, other = sample(both[0]), sample(both[1])
    there, back = paired_difference(one, other, CPU), paired_difference(other, one, CPU)
    assert there.value == -back.value
    assert bounds(there) == pytest.approx(tuple(-end for end in reversed(bounds(back))), abs=1e-6)


@given(pairs(), st.floats(0, 1e6))
def test_what_every_round_adds_to_both_changes_nothing(both: tuple[list[float], list[float]], more: float) -> None:
    cell, baseline = both
    plain = paired_difference(sample(cell), sample(baseline), CPU)
    moved = paired_difference(sample([v + more for v in cell]), sample([v + more for v in baseline]), CPU)
    assert moved.value == pytest.approx(plain.value, abs=1e-2)
    assert bounds(moved) == pytest.approx(bounds(plain), abs=1e-1)


def test_hosts_that_differ_are_the_sample() -> None:
    cell, baseline = sample([110.0, 111.0, 120.0, 121.0, 105.0, 106.0]), sample([100.0] * 6)
    alone = paired_difference(cell, baseline, CPU)
    cell.hosts = baseline.hosts = ("a", "a", "b", "b", "c", "c")
    found = paired_difference(cell, baseline, CPU)
    assert found.method == f"{METHOD_HOSTS}, {PAIRED}"
    assert bounds(found)[0] < bounds(alone)[0] < bounds(alone)[1] < bounds(found)[1]
    cell.hosts = baseline.hosts = ("a", "b", "a", "b", "a", "b")
    assert paired_difference(cell, baseline, CPU) == alone, "they differ by no more than trials do"


def test_for_two_trials_it_is_the_t_interval_of_their_differences() -> None:
    found = paired_difference(sample([11.0, 13.0]), sample([10.0, 10.0]), CPU)
    assert found.value == pytest.approx(2.0)
    # Differences 1 and 3: mean 2, standard error 1, t of one degree of freedom 12.706.
    assert bounds(found) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-3)


def test_one_trial_has_no_interval_and_a_baseline_of_zero_is_no_obstacle() -> None:
    alone = paired_difference(sample([3.0]), sample([1.0]), CPU)
    assert (alone.value, alone.low, alone.high) == (2.0, None, None)
    assert alone.method == "too few trials for an interval"
    assert paired_difference(sample([3.0, 3.0]), sample([0.0, 0.0]), CPU).value == 3.0


def test_the_slots_of_histograms_are_in_the_interval() -> None:
    def quantiles(ns: float) -> Quantiles:
        return Quantiles(tuple(Histogram.of([ns] * 100) for _ in range(3)), 0.5)

    low, high = bounds(paired_difference(quantiles(2e6), quantiles(1e6), Metric.P50))
    assert high - low > 2e6 * 1e-4


@pytest.mark.parametrize("trials", [3, 5, 10])
def test_intervals_hold_the_planted_difference(trials: int) -> None:
    """As often as promised, while the machine drifts by more than the difference over the rounds."""
    rng = np.random.default_rng(trials)
    made, held = 600, 0
    drift = np.linspace(0.0, 800.0, trials)
    for _ in range(made):
        baseline = 10_000 + drift + rng.normal(0, 100, trials)
        cell = 10_500 + drift + rng.normal(0, 100, trials)
        low, high = bounds(paired_difference(sample(list(cell)), sample(list(baseline)), CPU))
        held += low <= 500 <= high
    assert 0.92 < held / made < 0.98
