"""The CPU time of a mix, divided among its requests, with what its sum leaves open."""

import math

import numpy as np
import pytest

from redline.stats.mixes import Costs, MixStart, divided

WEIGHTS = np.array([0.6, 0.3, 0.1])
COSTS_NS = np.array([20_000.0, 40_000.0, 240_000.0])
SHARES = WEIGHTS * COSTS_NS / (WEIGHTS @ COSTS_NS)


def costs(rng: np.random.Generator, cost_ns: float, slices: int = 40) -> Costs:
    """A load whose slices, and the core that it ran on, differ in speed."""
    of_slices = cost_ns * np.exp(rng.normal(0, 0.03) + rng.normal(0, 0.1, slices))
    answered = np.floor(5e6 / of_slices) + 1
    return Costs(answered * of_slices, answered)


def starts(seed: int, number: int = 5, mix: float = 1.0) -> list[MixStart]:
    """Starts of a server whose mix costs `mix` times what its requests cost by themselves."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(number):
        own = COSTS_NS * np.exp(rng.normal(0, 0.01, len(COSTS_NS)))
        alone = tuple(costs(rng, float(cost)) for cost in own)
        made.append(MixStart(alone, costs(rng, mix * float(own @ WEIGHTS)), 10_000 * WEIGHTS))
    return made


def test_the_shares_of_exact_costs_are_exact() -> None:
    exact = [Costs(cost * np.ones(30), np.ones(30)) for cost in COSTS_NS]
    mix = Costs(float(WEIGHTS @ COSTS_NS) * np.ones(30), np.ones(30))
    found = divided([MixStart(tuple(exact), mix, 1000 * WEIGHTS)] * 3, WEIGHTS)
    assert found.parts_over_mix.value == pytest.approx(0, abs=1e-12)
    for at, truth in enumerate(SHARES):
        share = found.share(at)
        assert share is not None
        assert (share.value, share.low, share.high) == pytest.approx((truth, truth, truth))


@pytest.mark.long
@pytest.mark.parametrize("mix", [1.0, 1.03, 0.97])
def test_intervals_hold_the_shares_and_the_sum(mix: float) -> None:
    """Those of shares hold more often than 95%: they allow for what the sum leaves open."""
    held, sums, seeds = np.zeros(len(SHARES)), 0, 200
    for seed in range(seeds):
        found = divided(starts(seed, mix=mix), WEIGHTS)
        low, high = found.parts_over_mix.interval
        sums += low <= -math.log(mix) <= high
        for at, truth in enumerate(SHARES):
            share = found.share(at)
            assert share is not None
            held[at] += (share.low or 0) <= truth <= (share.high or 1)
    assert sums / seeds >= 0.92
    assert held.min() / seeds >= 0.95


def test_what_is_missing_from_the_sum_may_belong_to_any_request() -> None:
    """The third request costs 10% of the mix more in it than by itself; the interval holds its share in the mix."""
    rng = np.random.default_rng(1)
    whole = float(WEIGHTS @ COSTS_NS)
    made = [
        MixStart(
            tuple(costs(rng, float(cost), 4000) for cost in COSTS_NS), costs(rng, 1.1 * whole, 4000), 1000 * WEIGHTS
        )
        for _ in range(6)
    ]
    share = divided(made, WEIGHTS).share(2)
    assert share is not None
    assert share.high is not None
    assert share.value == pytest.approx(SHARES[2], abs=0.02)
    assert share.high >= (SHARES[2] + 0.1) / 1.1


def test_a_single_start_with_few_slices_has_no_interval() -> None:
    rng = np.random.default_rng(1)
    made = MixStart(tuple(costs(rng, float(cost), 5) for cost in COSTS_NS), costs(rng, 5e4, 5), WEIGHTS)
    assert divided([made], WEIGHTS).share(0) is None


@pytest.mark.parametrize("missing", [1.1, 1.0, 0.9, 0.4])
def test_the_ends_of_a_share_allow_for_what_the_sum_leaves_open(missing: float) -> None:
    """The mix costs so many times what its requests do by themselves, exactly."""
    exact = [Costs(cost * np.ones(30), np.ones(30)) for cost in COSTS_NS]
    mix = Costs(missing * float(WEIGHTS @ COSTS_NS) * np.ones(30), np.ones(30))
    found = divided([MixStart(tuple(exact), mix, 1000 * WEIGHTS)] * 3, WEIGHTS)
    total = 1 / missing
    assert found.whole.value == pytest.approx(total)
    for at, own in enumerate(SHARES):
        share = found.share(at)
        assert share is not None
        low = max(0.0, min(own, own * total - max(0.0, total - 1)))
        high = min(1.0, max(own, own * total + max(0.0, 1 - total)))
        assert (share.value, share.low, share.high) == pytest.approx((own, low, high))
