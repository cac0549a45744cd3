"""Shares of samples: their intervals hold the truth as often as they promise, whatever samples have in common."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from redline.model import Estimate
from redline.stats import holm_adjust
from redline.stats.distributions import t_quantile, t_tail
from redline.stats.duets import METHOD_WITHIN_STARTS
from redline.stats.estimate import METHOD, Spread
from redline.stats.samples import Floats
from redline.stats.shares import (
    METHOD_BATCHES,
    METHOD_COUNT,
    METHOD_NONE,
    METHOD_TRIALS,
    PROFILE_BATCHES,
    CostChange,
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
        (1, 100, 0.0, 1, METHOD_BATCHES),
        (1, 100, 0.05, 1, METHOD_BATCHES),
        (1, 200, 0.05, 4, METHOD_BATCHES),
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


def test_differences_keep_their_errors() -> None:
    rng = np.random.default_rng(3)
    ours, theirs = (share([drawn(rng, 100, 200)], 0) for _ in range(2))
    added = ours.minus(theirs)
    assert added.value == pytest.approx(ours.value - theirs.value)
    assert added.variance == pytest.approx(ours.variance + theirs.variance)
    assert added.minus(share([], 0)).estimate().low is None


def test_what_was_never_seen_is_rare_and_not_known_to_be_absent() -> None:
    never = TrialWeights(np.zeros(50), np.full(50, 200.0))
    found = share([never], 10_000).estimate()
    assert found.value == 0.0
    assert found.high is not None
    assert 2 / 10_000 < found.high < 10 / 10_000


def ratio_of(value: float, error: float, n: int, method: str = METHOD, freedom: int = 0) -> Estimate:
    """A ratio with the interval of a logarithm with that standard error."""
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


def change(ours: MeasuredShare, theirs: MeasuredShare, ratio: Estimate) -> CostChange:
    error = error_of(ratio)
    assert error is not None
    return CostChange(ours, theirs, ratio.value, error)


def test_a_ratio_of_three_trials_is_as_uncertain_in_points_as_by_itself() -> None:
    """t = 9.925 with two degrees of freedom is p = 1%, whatever is known of the shares."""
    whole = MeasuredShare(1.0, (Spread(1e-12, 19),), 1, METHOD_BATCHES)
    ratio = ratio_of(1.1, math.log(1.1) / 9.925, 3)
    points = change(whole, whole, ratio)
    assert points.p == pytest.approx(0.01, rel=0.01)
    found = points.estimate()
    assert ratio.low is not None
    assert ratio.high is not None
    assert (found.low, found.high) == pytest.approx((ratio.low - 1, ratio.high - 1), rel=0.01)


def test_where_the_shares_are_all_that_is_uncertain_few_trials_cost_nothing() -> None:
    part = MeasuredShare(0.2, (Spread(1e-4, 19),), 1, METHOD_BATCHES)
    points = change(part, MeasuredShare(0.1, (), 1, METHOD_BATCHES), ratio_of(1.0, 1e-9, 3))
    assert points.p == pytest.approx(2 * t_tail(10, 19), rel=0.01)
    found = points.estimate()
    assert found.low == pytest.approx(0.1 - t_quantile(0.975, 19) * 0.01, rel=1e-3)


@pytest.mark.parametrize("error", [0.01, 0.36, 1.0])
def test_what_only_one_of_two_has_differs_however_little_the_ratio_is_known(error: float) -> None:
    """27.1% ±1.6 of one server and none of the other: no ratio makes that nothing."""
    ours = MeasuredShare(0.271, (Spread((0.016 / t_quantile(0.975, 19)) ** 2, 19),), 1, METHOD_BATCHES)
    absent = share([TrialWeights(np.zeros(50), np.full(50, 200.0))], 10_000)
    for points, sign in (
        (change(ours, absent, ratio_of(1.88, error, 5)), 1),
        (change(absent, ours, ratio_of(1.88, error, 5)), -1),
    ):
        found = points.estimate()
        assert points.p is not None
        assert points.p < 1e-6
        assert found.low is not None
        assert found.high is not None
        assert min(sign * found.low, sign * found.high) > 0
        assert found.low < found.value < found.high


def test_the_interval_of_points_holds_what_the_ratio_may_be() -> None:
    """With 1.88 [0.89, 3.98] a share of 27.1% is 24 to 108 points, of which the symmetric error said -6 to 108."""
    ours = MeasuredShare(0.271, (Spread(1e-8, 19),), 1, METHOD_BATCHES)
    ratio = Estimate(value=1.88, low=0.888, high=3.98, unit="ratio", n=5, method=METHOD)
    found = change(ours, MeasuredShare(0.0, (), 1, METHOD_BATCHES), ratio).estimate()
    assert (found.low, found.high) == pytest.approx((0.271 * 0.888, 0.271 * 3.98), rel=0.01)


SHARES = np.array([0.35, 0.2, 0.15, 0.12, 0.08, 0.05, 0.03, 0.0197, 0.0002, 0.0001])
"""Shares of libraries; the last are so rare that a profile may see none of them."""


def profile_of(rng: Generator, shares: Floats, *, slices: int = 50, each: int = 100) -> list[MeasuredShare]:
    drawn = rng.multinomial(each, shares / shares.sum(), slices).astype(float)
    whole = np.full(slices, float(each))
    return [share([TrialWeights(drawn[:, at], whole)], slices * each) for at in range(len(shares))]


def measured_ratio(rng: Generator, truth: float, error: float, trials: int) -> Estimate:
    value, scatter = truth * math.exp(rng.normal(0, error)), math.sqrt(rng.chisquare(trials - 1) / (trials - 1))
    return ratio_of(value, error * scatter, trials)


@pytest.mark.parametrize(
    ("trials", "error"),
    [
        *((2, 0.03), (3, 0.3), (5, 0.002)),
        *(pytest.param(*pair, marks=pytest.mark.long) for pair in product((2, 3, 5), (0.002, 0.03, 0.3))),
    ],
)
def test_few_trials_name_no_library_by_chance_in_more_than_one_of_twenty_profiles(trials: int, error: float) -> None:
    """Two equal servers: points and shares of all libraries are one family."""
    rng, profiles, named = np.random.default_rng(11), 400, 0
    for _ in range(profiles):
        pairs = list(zip(profile_of(rng, SHARES), profile_of(rng, SHARES), strict=True))
        ratio = measured_ratio(rng, 1.0, error, trials)
        ps = [*(change(*pair, ratio).p for pair in pairs), *(one.minus(other).p for one, other in pairs)]
        named += min(holm_adjust([p or 0.0 for p in ps])) < 0.05
    assert named <= 0.06 * profiles


@pytest.mark.parametrize("error", [0.03, 0.3])
def test_libraries_that_cost_the_same_are_not_named_where_another_one_is_added(error: float) -> None:
    """All shares shrink beside the addition, and the ratio grows: costs are the same. Only the new share differs."""
    rng, profiles, wrong, right, held = np.random.default_rng(5), 200, 0, 0, 0
    added = np.append(SHARES, 0.37)
    for _ in range(profiles):
        ours, theirs = profile_of(rng, added / added.sum()), profile_of(rng, np.append(SHARES, 0.0))
        ratio = measured_ratio(rng, float(added.sum()), error, 5)
        found = [change(*pair, ratio) for pair in zip(ours, theirs, strict=True)]
        ps = holm_adjust([one.p or 0.0 for one in found])
        wrong += min(ps[:-1]) < 0.05
        right += ps[-1] < 0.05
        last = found[-1].estimate()
        assert last.low is not None
        assert last.high is not None
        held += last.low <= 0.37 <= last.high
    assert wrong <= 0.06 * profiles
    assert right == profiles
    assert held >= 0.92 * profiles


def weights(part: list[float], whole: list[float]) -> TrialWeights:
    return TrialWeights(np.array(part), np.array(whole))


def test_within_trials_the_variance_is_that_of_stretches() -> None:
    """Two slices of ten: a share of 0.3, from which the slices are one sample off each."""
    found = share([weights([2.0, 4.0], [10.0, 10.0])], 20)
    assert (found.value, found.method, found.n) == (0.3, METHOD_BATCHES, 1)
    (spread,) = found.spreads
    assert (spread.variance, spread.freedom) == pytest.approx((2 * 1.0**2 * 2 / 1 / 20**2, 1))
    many = share([weights([1.0, 3.0] * 20, [10.0] * 40)], 400)
    assert many.variance == pytest.approx(0, abs=1e-12), "stretches of two slices are alike"
    assert many.spreads[0].freedom == PROFILE_BATCHES - 1


def test_over_trials_the_variance_is_that_of_their_sums() -> None:
    found = share([weights([1.0] * 4, [10.0] * 4), weights([5.0] * 4, [10.0] * 4)], 80)
    assert (found.value, found.method, found.n) == (0.3, METHOD_TRIALS, 2)
    (spread,) = found.spreads
    assert (spread.variance, spread.freedom) == pytest.approx((2 * 8.0**2 * 2 / 1 / 80**2, 1))


def test_a_single_slice_counts_as_half_as_many_draws() -> None:
    found = share([weights([3.0], [10.0])], 10)
    assert (found.value, found.method) == (0.3, METHOD_COUNT)
    near = (0.3 * 5 + 2) / 9
    assert found.variance == pytest.approx(near * (1 - near) / 9)
    never = share([weights([0.0] * 4, [10.0] * 4)], 40)
    assert (never.value, never.method) == (0.0, METHOD_COUNT)
    assert never.variance == pytest.approx(2 / 24 * (1 - 2 / 24) / 24)
    none = share([weights([0.0], [0.0])], 0)
    assert (none.value, none.spreads, none.method, none.n) == (0.0, (), METHOD_NONE, 1)
    assert share([weights([1.0], [1.0])], 0).variance == pytest.approx(share([weights([1.0], [1.0])], 1).variance)


@pytest.mark.parametrize(("method", "freedom"), [(METHOD, 4), (METHOD_WITHIN_STARTS, 45)])
def test_the_error_of_a_ratio_is_that_of_its_interval(method: str, freedom: int) -> None:
    ratio = Estimate(value=1.0, low=0.9, high=1 / 0.9, unit="ratio", n=5, method=method)
    found = error_of(ratio)
    assert found is not None
    assert found.freedom == freedom
    assert math.sqrt(found.variance) == pytest.approx(-math.log(0.9) / t_quantile(0.975, freedom))
    assert error_of(ratio.model_copy(update={"low": None})) is None
    assert error_of(ratio.model_copy(update={"low": 0.0})) is None
    one = error_of(ratio.model_copy(update={"n": 1, "method": METHOD}))
    assert one is not None
    assert one.freedom == 1


def test_the_p_value_of_a_share_is_weighted_by_variances() -> None:
    both = MeasuredShare(0.3, (Spread(0.01, 3), Spread(0.03, 9)), 4, METHOD_TRIALS)
    t = 0.3 / math.sqrt(0.04)
    assert both.p == pytest.approx(2 * (0.25 * t_tail(t, 3) + 0.75 * t_tail(t, 9)))
    assert both.half_width == pytest.approx(0.2 * (0.25 * t_quantile(0.975, 3) + 0.75 * t_quantile(0.975, 9)))
    assert MeasuredShare(0.3, (), 1, METHOD_NONE).p is None
    assert MeasuredShare(0.0, (), 1, METHOD_COUNT).p == 1.0
    assert MeasuredShare(0.1, (Spread(0.0, 3),), 1, METHOD_COUNT).p == 0.0
    less = both.minus(MeasuredShare(0.1, (Spread(0.02, 5),), 2, METHOD_TRIALS))
    assert (less.value, less.n, less.variance) == pytest.approx((0.2, 2, 0.06))
    clipped = both.estimate()
    assert clipped.low == 0.0
    assert clipped.high == pytest.approx(0.3 + both.half_width)
    assert both.estimate(-1.0).low == pytest.approx(0.3 - both.half_width)
    assert MeasuredShare(0.9, both.spreads, 4, METHOD_TRIALS).estimate().high == 1.0
