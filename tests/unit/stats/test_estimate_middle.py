"""Percentiles are compared by the middle of their trials' ratios: no single trial of nine decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.model import Histogram, Metric, Verdict
from redline.stats import Quantiles, decide, paired, unpaired
from redline.stats.distributions import t_quantile
from redline.stats.estimate import middle, middle_shift, middle_variance

NS = 1_000_000.0
numbers = st.lists(st.floats(-10, 10), min_size=2, max_size=12).map(np.array)


def trials(logs: list[float], requests: int = 2_000) -> Quantiles:
    """Trials whose response times are all alike but for these logs of a factor."""
    spread = np.exp(0.4 * stats.norm.ppf((np.arange(requests) + 0.5) / requests))
    return Quantiles([Histogram.of(NS * np.exp(log) * spread) for log in logs], 0.99)


SCATTER = [0.02, -0.05, 0.11, -0.08, 0.04, 0.0, -0.1, 0.07, -0.03]
BASELINE = [-0.04, 0.06, -0.02, 0.09, -0.07, 0.03, 0.05, -0.06, 0.01]


def stolen(logs: list[float], factor: float = 54.0) -> list[float]:
    return [*logs[:4], logs[4] + float(np.log(factor)), *logs[5:]]


def test_by_hand() -> None:
    assert middle(np.array([1.0, 2.0, 9.0])) == 3.5  # of 1, 1.5, 2, 5, 5.5 and 9
    assert middle_shift(np.array([5.0, 7.0]), np.array([1.0, 2.0, 9.0])) == 3.5  # of -4, -2, 3, 4, 5, 6
    variance, freedom = middle_variance(np.array([0.0, 1.0]))
    assert (variance**0.5, freedom) == (pytest.approx(0.5, rel=1e-3), 1.0), "as of the mean"


@given(numbers, st.floats(-10, 10), st.floats(0.1, 10))
def test_it_moves_and_grows_with_its_values(values: np.ndarray, by: float, times: float) -> None:
    assert middle(times * values + by) == pytest.approx(times * middle(values) + by, abs=1e-9)
    assert middle_variance(times * values + by)[0] == pytest.approx(times**2 * middle_variance(values)[0], abs=1e-9)


@pytest.mark.parametrize("n", [3, 4, 5, 6, 9, 12])
def test_the_interval_of_normal_values_holds_the_truth_as_often_as_it_says(n: int) -> None:
    rng, seeds, held = np.random.default_rng(n), 2_000, 0
    for _ in range(seeds):
        values = rng.normal(size=n)
        variance, freedom = middle_variance(values)
        held += abs(middle(values)) <= t_quantile(0.975, freedom) * variance**0.5
    assert stats.binom.ppf(1e-4, seeds, 0.95) <= held <= stats.binom.ppf(1 - 1e-4, seeds, 0.95)


def test_one_stolen_trial_of_nine_does_not_own_the_ratio_of_the_tails() -> None:
    """Merged, its requests are the p99; the rounds without it know the ratio well."""
    cell, baseline = trials(stolen(SCATTER)), trials(BASELINE)
    assert cell.value / baseline.value > 6
    without = paired(trials(SCATTER[:4] + SCATTER[5:]), trials(BASELINE[:4] + BASELINE[5:]))
    for found in (paired(cell, baseline), unpaired(cell, baseline)):
        assert found is not None
        assert without is not None
        assert found.ratio.value == pytest.approx(without.ratio.value, rel=0.05)
        assert found.ratio.low is not None
        assert found.ratio.high is not None
        assert 0.8 < found.ratio.low < 1 < found.ratio.high < 1.25
        assert decide(found.ratio, 0.02, higher_is_better=Metric.P99.higher_is_better).verdict is Verdict.INCONCLUSIVE
    tenth = paired(trials(stolen([log + 0.2 for log in SCATTER])), baseline)
    assert tenth is not None
    assert decide(tenth.ratio, 0.02, higher_is_better=Metric.P99.higher_is_better).verdict is Verdict.SLOWER


def test_the_level_stays_that_of_all_requests() -> None:
    cell = trials(stolen(SCATTER))
    everything = Histogram.merged(cell.merged.histograms)
    assert cell.value == everything.quantile_ns(0.99)


def test_the_interval_and_the_p_value_agree() -> None:
    for shift in (0.0, 0.08, 0.09, 0.1, 0.2):
        found = paired(trials([log + shift for log in SCATTER]), trials(BASELINE))
        assert found is not None
        assert found.p is not None
        assert found.ratio.low is not None
        assert (found.p < 0.05) == (found.ratio.low > 1)
