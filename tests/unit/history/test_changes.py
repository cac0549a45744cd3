"""Change points: a planted step is detected where it is, and a flat history seldom has a change."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redline.history.changes import FEWEST_RUNS, noise, steps
from redline.model import Metric, Verdict
from redline.stats import Quantiles, Ratios
from redline.stats.samples import pooled
from tests.fakes.histories import level_series

FLAT = [1000.0] * 30
STEPPED = [1000.0] * 20 + [950.0] * 10


def found(
    speeds: list[float], seed: int, *, between: float = 0.01, trials: int = 5, trial_effect: float = 0.01
) -> list[tuple[int, Verdict]]:
    series = level_series(speeds, seed, between=between, trials=trials, trial_effect=trial_effect)
    return [(one.at, one.verdict) for one in steps(series, Metric.THROUGHPUT, 0.02)]


@pytest.mark.parametrize("seed", range(10))
def test_a_planted_step_is_found_where_it_is(seed: int) -> None:
    changes = found(STEPPED, seed)
    assert Verdict.SLOWER in {verdict for at, verdict in changes if 19 <= at <= 21}, changes


def test_a_flat_history_seldom_changes() -> None:
    """With a random effect of the machine per day, which trials of a run do not show; see the table in the guide."""
    changed = sum(bool(found(FLAT, seed)) for seed in range(60))
    assert changed <= 4


def test_a_step_below_the_threshold_is_none() -> None:
    assert found([1000.0] * 15 + [985.0] * 15, 1, between=0.0, trial_effect=0.001) == []


def test_one_step_has_one_direction_and_its_size() -> None:
    (step,) = steps(level_series(STEPPED, 3, between=0.002, trial_effect=0.002), Metric.THROUGHPUT, 0.02)
    assert (step.since, step.at, step.until, step.verdict) == (0, 20, 30, Verdict.SLOWER)
    assert step.ratio.value == pytest.approx(0.95, rel=0.005)
    assert step.ratio.n == 50
    (up,) = steps(level_series(STEPPED[::-1], 3, between=0.002, trial_effect=0.002), Metric.CPU_PER_REQUEST, 0.02)
    assert (up.at, up.verdict) == (10, Verdict.SLOWER), "more CPU per request is worse"


def test_the_last_run_alone_is_reported_when_it_is_far_off() -> None:
    assert (29, Verdict.SLOWER) in found([*FLAT[:29], 850.0], 1)
    assert found([*FLAT[:29], 990.0], 1) == []


def test_it_goes_and_comes_again() -> None:
    speeds = [1000.0] * 10 + [900.0] * 10 + [1000.0] * 10
    assert found(speeds, 4) == [(10, Verdict.SLOWER), (20, Verdict.FASTER)]


@pytest.mark.parametrize("runs", range(FEWEST_RUNS))
def test_too_few_runs_change_nothing(runs: int) -> None:
    assert found([1000.0, 500.0, 100.0][:runs], 1) == []


def test_a_single_trial_has_no_interval_and_no_change() -> None:
    assert found([*FLAT[:9], 500.0], 1, trials=1) == []
    assert found([1000.0] * 5 + [500.0] * 5, 1, trials=1) == [(5, Verdict.SLOWER)]


def test_equal_values_are_no_certainty() -> None:
    assert found(FLAT, 1, between=0.0, trial_effect=0.0) == []


def test_one_step_does_not_pass_for_noise() -> None:
    series = level_series(STEPPED, 5, trial_effect=0.001)
    logs = np.log([one.estimate.value for one in series])
    assert noise(logs, series) == pytest.approx(0.01, rel=0.5)


def test_one_wild_run_does_not_hide_a_step() -> None:
    series = level_series(STEPPED, 6, between=0.003, trial_effect=0.003)
    (wild,) = level_series([1000.0], 6, trial_effect=0.5)
    assert noise(np.log([one.estimate.value for one in series]), [wild, *series[1:]]) < 0.01
    assert 20 in {one.at for one in steps([*series[:5], wild, *series[6:]], Metric.THROUGHPUT, 0.02)}


@settings(max_examples=30)
@example([900.0] * 4, 445)  # 1.9% [1.0, 2.7]: it may matter
@given(st.lists(st.sampled_from([900.0, 1000.0, 1100.0]), min_size=0, max_size=12), st.integers(0, 1000))
def test_changes_cut_the_runs_and_matter(speeds: list[float], seed: int) -> None:
    made = steps(level_series(speeds, seed, trials=3), Metric.THROUGHPUT, 0.02)
    assert [one.at for one in made] == sorted({one.at for one in made})
    for one, after in pairwise(made):
        assert (one.until, one.at) == (after.at, after.since)
    for one in made:
        assert one.since < one.at < one.until <= len(speeds)
        assert one.verdict in (Verdict.FASTER, Verdict.SLOWER)
        assert not one.ratio.is_within(0.02)


def test_trials_of_several_runs_are_pooled() -> None:
    one, two = Ratios(np.array([1.0, 2.0]), np.ones(2)), Ratios(np.array([3.0]), np.ones(1))
    assert pooled([one, two]).at(np.ones((1, 3)))[0] == pytest.approx(2.0)
    with pytest.raises(TypeError):
        pooled([one, Quantiles((), 0.5)])
