"""Shares of samples: their intervals hold the truth as often as they say, whatever the samples have in common."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from redline.stats.shares import METHOD_BLOCKS, METHOD_COUNT, METHOD_NONE, METHOD_TRIALS, TrialWeights, share

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
    grown = ours.scaled(1.24, 0.01)
    assert grown.value == pytest.approx(1.24 * ours.value)
    assert grown.variance == pytest.approx(1.24**2 * ours.variance + ours.value**2 * 0.01**2)
    added = grown.minus(theirs)
    assert added.value == pytest.approx(grown.value - theirs.value)
    assert added.variance == pytest.approx(grown.variance + theirs.variance)
    assert added.minus(share([], 0)).estimate().low is None
