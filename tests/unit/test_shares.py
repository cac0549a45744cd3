"""Shares of samples: their intervals hold the truth as often as they say, whatever the samples have in common."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from redline.model import Estimate
from redline.stats import holm_adjust
from redline.stats.distributions import t_quantile, t_tail
from redline.stats.duets import METHOD_BLOCKS as METHOD_WITHIN_STARTS
from redline.stats.estimate import METHOD, Spread
from redline.stats.shares import (
    METHOD_BLOCKS,
    METHOD_COUNT,
    METHOD_NONE,
    METHOD_TRIALS,
    MeasuredShare,
    TrialWeights,
    error_of,
    share,
)

TRUTH = 0.2


def drawn(rng: Generator, slices: int, each: int, *, between: float = 0.0, lasting: int = 1) -> TrialWeights:
    """A part of 20% of the samples; its chance differs by `between` between stretches of `lasting` slices."""
    stretches = rng.normal(0, between, -(-slices // lasting))
    chances = np.clip(TRUTH + np.repeat(stretches, lasting)[:slices], 0, 1)
    whole = rng.poisson(each, slices)
    return TrialWeights(rng.binomial(whole, chances).astype(float), whole.astype(float))


@pytest.mark.parametrize(
    ("trials", "slices", "between", "lasting", "method"),
    [
        (1, 100, 0.0, 1, METHOD_BLOCKS),
        (1, 100, 0.05, 1, METHOD_BLOCKS),
        (1, 200, 0.05, 4, METHOD_BLOCKS),
        (1, 1, 0.0, 1, METHOD_COUNT),
        (4, 20, 0.05, 20, METHOD_TRIALS),
    ],
)
def test_intervals_hold_the_truth(trials: int, slices: int, between: float, lasting: int, method: str) -> None:
    rng = np.random.default_rng(7)
    held, methods = 0, set()
    for _ in range(400):
        parts = [drawn(rng, slices, 200, between=between, lasting=lasting) for _ in range(trials)]
        found = share(parts, int(sum(part.whole.sum() for part in parts))).estimate()
        assert found.low is not None
        assert found.high is not None
        held += found.low <= TRUTH <= found.high
        methods.add(found.method)
    assert held >= 0.92 * 400
    assert method in methods


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30), min_size=1, max_size=4
    )
)
def test_a_share_is_that_of_the_sums_and_within_its_interval(trials: list[list[tuple[int, int]]]) -> None:
    parts = [
        TrialWeights(np.array([float(a) for a, _ in one]), np.array([float(a + b) for a, b in one])) for one in trials
    ]
    part, whole = (sum(float(getattr(each, name).sum()) for each in parts) for name in ("part", "whole"))
    found = share(parts, int(whole)).estimate()
    if whole == 0:
        assert found.method == METHOD_NONE
        assert found.low is None
    else:
        assert found.value == pytest.approx(part / whole)
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.value + 1e-12
        assert found.value - 1e-12 <= found.high <= 1


def test_a_part_and_the_rest_add_up_with_equal_intervals() -> None:
    part = drawn(np.random.default_rng(1), 50, 100)
    rest = TrialWeights(part.whole - part.part, part.whole)
    ours, theirs = share([part], 5000), share([rest], 5000)
    assert ours.value + theirs.value == pytest.approx(1)
    assert ours.variance == pytest.approx(theirs.variance)


def test_differences_and_products_keep_their_errors() -> None:
    rng = np.random.default_rng(3)
    ours, theirs = (share([drawn(rng, 100, 200)], 0) for _ in range(2))
    grown = ours.scaled(1.24, Spread((0.01 / 1.24) ** 2, 2))
    assert grown.value == pytest.approx(1.24 * ours.value)
    assert grown.variance == pytest.approx(1.24**2 * ours.variance + ours.value**2 * 0.01**2)
    added = grown.minus(theirs)
    assert added.value == pytest.approx(grown.value - theirs.value)
    assert added.variance == pytest.approx(grown.variance + theirs.variance)
    assert added.minus(share([], 0)).estimate().low is None


def ratio_of(value: float, error: float, n: int, method: str = METHOD, freedom: int = 0) -> Estimate:
    """A ratio with the interval that a logarithm with that standard error has."""
    reach = math.exp(t_quantile(0.975, freedom or n - 1) * error)
    return Estimate(value=value, low=value / reach, high=value * reach, unit="ratio", n=n, method=method)


def test_the_error_of_a_ratio_is_that_which_made_its_interval() -> None:
    for made, freedom in (
        (ratio_of(1.2, 0.03, 3), 2),
        (ratio_of(0.8, 0.03, 5), 4),
        (ratio_of(1.2, 0.03, 3, METHOD_WITHIN_STARTS, 27), 27),
    ):
        found = error_of(made)
        assert found is not None
        assert found.freedom == freedom
        assert math.sqrt(found.variance) == pytest.approx(0.03)
    assert error_of(ratio_of(1.2, 0.03, 3).model_copy(update={"low": None})) is None


def test_a_ratio_of_three_trials_is_as_uncertain_in_points_as_by_itself() -> None:
    """t = 9.9 with two degrees of freedom is p = 1%, whatever is known of the shares."""
    whole = MeasuredShare(1.0, (Spread(1e-12, 19),), 1, METHOD_BLOCKS)
    points = whole.scaled(1.1, error_of(ratio_of(1.1, 0.1 / 1.1 / 9.925, 3))).minus(whole)
    assert points.p == pytest.approx(0.01, rel=0.01)
    estimate = points.estimate(-1.0, 1.0)
    assert estimate.low == pytest.approx(0.1 - 0.1 * 4.303 / 9.925, rel=0.01)


def test_where_the_shares_are_all_that_is_uncertain_few_trials_cost_nothing() -> None:
    part = MeasuredShare(0.2, (Spread(1e-4, 19),), 1, METHOD_BLOCKS)
    points = part.scaled(1.0, error_of(ratio_of(1.0, 1e-9, 3))).minus(MeasuredShare(0.1, (), 1, METHOD_BLOCKS))
    assert points.p == pytest.approx(2 * t_tail(10, 19), rel=0.01)


@pytest.mark.parametrize("trials", [2, 3, 5])
@pytest.mark.parametrize("error", [0.002, 0.03, 0.3])
def test_few_trials_name_no_library_by_chance_in_more_than_one_of_twenty_profiles(trials: int, error: float) -> None:
    """Two servers that are the same: shares of 19 degrees of freedom, and a ratio of so many trials."""
    rng, profiles, named = np.random.default_rng(11), 400, 0
    shares = np.array([0.35, 0.2, 0.15, 0.12, 0.08, 0.05, 0.03, 0.02])
    errors = 0.01 * np.sqrt(shares * (1 - shares))

    def seen() -> list[MeasuredShare]:
        values, spreads = rng.normal(shares, errors), errors**2 * rng.chisquare(19, len(shares)) / 19
        return [
            MeasuredShare(float(value), (Spread(float(variance), 19),), 1, METHOD_BLOCKS)
            for value, variance in zip(values, spreads, strict=True)
        ]

    for _ in range(profiles):
        value, scatter = math.exp(rng.normal(0, error)), error * math.sqrt(rng.chisquare(trials - 1) / (trials - 1))
        ratio = ratio_of(value, scatter, trials)
        points = [one.scaled(value, error_of(ratio)).minus(other) for one, other in zip(seen(), seen(), strict=True)]
        named += min(holm_adjust([one.p or 0.0 for one in points])) < 0.05
    assert named <= 0.06 * profiles
