"""Distributions, compared with a library that is too large, and too slow to import."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.stats.distributions import (
    _binomial_quantile,
    _stirling,
    beta_below,
    chi2_quantile,
    chi2_tails,
    f_tail,
    kendall_p,
    normal_quantile,
    poisson_two_sided,
    quantile_ranks,
    t_quantile,
    t_tail,
)


@pytest.mark.parametrize("seed", range(60))
def test_kendalls_p_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=int(rng.integers(2, 60))) + rng.choice([0.0, 0.05, 0.5]) * seed / 60
    if seed % 3 == 0:
        values = np.round(values, 1)
    expected = stats.kendalltau(np.arange(len(values)), values).pvalue
    assert kendall_p(values) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_of_equal_values_kendalls_p_is_not_defined() -> None:
    assert math.isnan(kendall_p(np.ones(9)))


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99, 0.999, 0.9999])
def test_the_ranks_around_a_quantile_are_those_of_the_binomial(q: float) -> None:
    counts = [*range(1, 200), *np.random.default_rng(1).integers(200, 5_000_000, 200).tolist()]
    for count in counts:
        low, high = int(stats.binom.ppf(0.025, count, q)), int(stats.binom.isf(0.025, count, q)) + 1
        assert quantile_ranks(count, q, 0.95) == ((low, high) if low >= 1 and high <= count else None)


@given(st.floats(0.3, 1e5), st.floats(-60, 60))
def test_the_tail_of_t_is_that_of_scipy(freedom: float, value: float) -> None:
    assert t_tail(value, freedom) == pytest.approx(stats.t.sf(value, freedom), rel=1e-10)


@given(st.floats(0.3, 1e5), st.floats(1e-6, 1 - 1e-6))
def test_the_quantile_of_t_is_that_of_scipy(freedom: float, p: float) -> None:
    assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-9, abs=1e-12)


@given(st.floats(0.5, 1e5), st.floats(0.5, 1e5), st.floats(0, 1))
def test_the_beta_distribution_is_that_of_scipy(a: float, b: float, share: float) -> None:
    at = float(stats.beta.ppf(share, a, b))
    assert beta_below(at, a, b) == pytest.approx(stats.beta.cdf(at, a, b), rel=1e-10)


@given(st.integers(1, 2000), st.floats(1e-6, 1 - 1e-6))
def test_the_quantile_of_chi_square_is_that_of_scipy(freedom: int, p: float) -> None:
    assert chi2_quantile(p, freedom) == pytest.approx(stats.chi2.ppf(p, freedom), rel=1e-9)


@given(st.integers(1, 30), st.integers(1, 300), st.floats(0, 1e4))
def test_the_tail_of_f_is_that_of_scipy(over: int, under: int, value: float) -> None:
    assert f_tail(value, over, under) == pytest.approx(stats.f.sf(value, over, under), rel=1e-10)


@pytest.mark.parametrize("p", [1e-9, 0.025, 0.5, 0.8, 0.975, 1 - 1e-9])
def test_the_quantile_of_the_normal_distribution_is_that_of_scipy(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-15)


def test_at_the_ends_and_without_a_degree_of_freedom() -> None:
    assert (t_tail(math.inf, 3), t_tail(-math.inf, 3), t_tail(0.0, 3)) == (0.0, 1.0, 0.5)
    assert (f_tail(0.0, 2, 3), f_tail(math.inf, 2, 3)) == (1.0, 0.0)
    assert (chi2_tails(0.0, 4), chi2_tails(math.inf, 4)) == ((0.0, 1.0), (1.0, 0.0))
    assert math.isnan(t_tail(math.nan, 3))
    assert math.isnan(beta_below(math.nan, 1.0, 2.0))
    assert math.isnan(t_quantile(0.975, 0))
    assert math.isnan(chi2_quantile(0.975, 0))


def test_tails_and_quantiles_are_those_of_scipy() -> None:
    for freedom in (1, 2, 3.7, 14, 126, 980):
        assert t_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-13)
        for value in (-3.0, 0.0, 1e-4, 0.5, 1.0, 2.1, 40.0):
            assert t_tail(value, freedom) == pytest.approx(stats.t.sf(value, freedom), rel=1e-12)
    for count, mean in ((0, 0.1), (0, 10.0), (5, 10.0), (900, 1000.0), (5100, 5000.5), (2_003_000, 2e6)):
        expected = 2 * min(stats.poisson.cdf(count, mean), stats.poisson.sf(count - 1, mean))
        assert poisson_two_sided(count, mean) == pytest.approx(expected, rel=1e-12)
    for freedom in (1, 2, 9, 10, 301):
        for value in (0.0, 0.7 * freedom, 1.2 * freedom, 5.0 * freedom):
            tails = stats.chi2.cdf(value, freedom), stats.chi2.sf(value, freedom)
            assert chi2_tails(value, freedom) == pytest.approx(tails, rel=1e-12)
    for value, a, b in ((0.0, 1.0, 2.0), (0.3, 5.0, 6.0), (0.6, 5.0, 6.0), (0.4, 40.5, 40.5), (1.0, 2.0, 1.0)):
        assert beta_below(value, a, b) == pytest.approx(stats.beta.cdf(value, a, b), rel=1e-12)


def test_no_values_hold_no_quantile() -> None:
    assert quantile_ranks(0, 0.5, 0.95) is None


@pytest.mark.parametrize("q", [0.001, 0.1, 0.37, 0.9, 0.999])
@pytest.mark.parametrize("share", [1e-9, 1.1e-6, 1e-3, 0.2, 0.31, 0.9, 0.999, 1 - 1e-6])
def test_a_quantile_of_the_binomial_is_found_where_the_normal_distribution_is_far_from_it(
    share: float, q: float
) -> None:
    for count in (1, 2, 5, 17, 100, 1000):
        assert _binomial_quantile(share, count, q) == int(stats.binom.ppf(share, count, q)), count


def test_a_tail_that_is_just_the_confidence_is_enough() -> None:
    assert quantile_ranks(3, 0.5, 0.75) == (1, 3), "of three values, the first and the last by three quarters"
    assert quantile_ranks(3, 0.5, 0.76) is None


def test_as_many_rises_as_falls_are_no_trend() -> None:
    assert kendall_p(np.array([0.0, 1.0, 1.0, 0.0])) == 1.0


def test_of_very_many_values_the_chance_of_one_order_is_none() -> None:
    assert kendall_p(np.arange(170.0)) == pytest.approx(2 / math.factorial(170))
    assert kendall_p(np.arange(171.0)) == kendall_p(np.arange(172.0)) == 0.0


def test_stirlings_remainder_is_exact() -> None:
    """Half of the logarithm of 2 pi, and logarithms of factorials, by 50 digits."""
    with localcontext() as digits:
        digits.prec = 50
        pi = Decimal("3.14159265358979323846264338327950288419716939937511")
        for n in (1, 2, 14, 15, 16, 20, 60):
            whole = Decimal(math.factorial(n)).ln()
            formula = (n + Decimal("0.5")) * Decimal(n).ln() - n + (2 * pi).ln() / 2
            assert _stirling(n) == pytest.approx(float(whole - formula), abs=3e-16 if n >= 15 else 1e-13)
