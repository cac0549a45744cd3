"""Differences of CPU time are divided among functions: planted costs are found, and equal servers have none."""

from collections.abc import Mapping

import numpy as np
import pytest

from redline.stats.accounting import SampledServer, SampledStart, account
from redline.stats.samples import Floats

STARTS, SAMPLES = 8, 1_500
RUNS = 200
NAMES = tuple(f"function {place}" for place in range(60))
SKEWED = 1 / np.arange(1, 61)
COSTS: Floats = 20_000 * SKEWED / SKEWED.sum()
"""CPU time per request: functions from a fifth of it down to a third of a percent."""


def drawn(rng: np.random.Generator, costs: Floats) -> SampledServer:
    """A server of a start whose functions cost as much, with the noise of starts: 1% in all, 2% of each function."""
    true = costs * np.exp(rng.normal(0, 0.02, len(costs)) + rng.normal(0, 0.01))
    counts = rng.multinomial(SAMPLES, true / true.sum())
    return SampledServer(float(true.sum()), {NAMES[at]: int(n) for at, n in enumerate(counts) if n})


def starts_of(rng: np.random.Generator, more: Mapping[int, float] = {}) -> list[SampledStart]:
    """The starts of two servers; the second needs so many nanoseconds more in these functions."""
    after = COSTS.copy()
    for at, ns in more.items():
        after[at] += ns
    return [SampledStart((drawn(rng, COSTS), drawn(rng, COSTS)), drawn(rng, after)) for _ in range(STARTS)]


@pytest.mark.long
def test_equal_servers_have_no_function_that_surely_differs_in_19_of_20() -> None:
    rng = np.random.default_rng(1)
    named = sum(bool(account(starts_of(rng)).parts) for _ in range(RUNS))
    assert named <= RUNS / 20


def test_a_planted_cost_of_five_percent_is_named_first_with_its_size() -> None:
    rng, planted = np.random.default_rng(2), 1_000.0
    made = [account(starts_of(rng, {9: planted})) for _ in range(RUNS)]
    first = [accounting.parts[0] for accounting in made if accounting.parts]
    assert sum(part.name == NAMES[9] for part in first) >= 0.95 * RUNS
    within = [abs(part.difference.value - planted) <= part.difference.half_width for part in first]
    assert np.mean(within) >= 0.9


@pytest.mark.long
def test_a_small_cost_is_found_more_often_where_it_was_expected() -> None:
    rng, planted = np.random.default_rng(4), 160.0
    made = [starts_of(rng, {9: planted}) for _ in range(RUNS // 2)]
    found = {
        expected: sum(any(part.name == NAMES[9] for part in account(starts, expected).parts) for starts in made)
        for expected in (frozenset[str](), frozenset({NAMES[9], NAMES[40]}))
    }
    alone, first = found.values()
    assert first >= 1.5 * alone, found


@pytest.mark.long
def test_equal_servers_have_none_among_expected_functions_either() -> None:
    rng, expected = np.random.default_rng(5), frozenset(NAMES[3:8])
    named = sum(bool(account(starts_of(rng), expected).parts) for _ in range(RUNS))
    assert named <= RUNS / 20


def test_both_families_share_the_error_probability() -> None:
    starts = starts_of(np.random.default_rng(6), {9: 2_000.0, 20: 2_000.0})
    alone = {part.name: part.p_adjusted for part in account(starts).parts}
    made = account(starts, frozenset({NAMES[9], "nowhere"}))
    shared = {part.name: part for part in made.parts}
    assert shared[NAMES[9]].p_adjusted == pytest.approx(account_p(starts, NAMES[9]) / 0.8)
    in_others = alone[NAMES[20]] / 0.2 * (made.tested - 1) / made.tested
    assert shared[NAMES[20]].p_adjusted == pytest.approx(in_others, rel=0.05)
    assert (shared[NAMES[9]].expected, shared[NAMES[20]].expected) == (True, False)
    assert made.expected == 1


def account_p(starts: list[SampledStart], name: str) -> float:
    """The p-value of a function by itself."""
    (part,) = (part for part in account(starts).parts if part.name == name)
    return part.difference.p


def test_what_was_expected_is_tested_however_little_it_costs() -> None:
    before, after = SampledServer(1000.0, {"usual": 50_000}), SampledServer(1000.0, {"usual": 50_000, "rare": 40})
    starts = [SampledStart((before, before), after)] * STARTS
    assert account(starts).parts == ()
    assert [part.name for part in account(starts, frozenset({"rare"})).parts] == ["rare"]


def test_parts_and_others_are_the_whole() -> None:
    made = account(starts_of(np.random.default_rng(3), {4: 2_000.0, 20: -150.0}))
    assert {NAMES[4]} <= {part.name for part in made.parts}
    assert sum(part.difference.value for part in made.parts) + made.others.value == pytest.approx(made.whole.value)


def test_few_samples_in_every_start_are_no_proof() -> None:
    """A sample in each of eight starts of B and none of A: no variance over starts, but eight samples are chance."""
    before, after = SampledServer(1000.0, {"usual": 500}), SampledServer(1000.0, {"usual": 499, "new": 1})
    starts = [SampledStart((before, before), after)] * STARTS
    assert account(starts).parts == ()


def test_the_same_samples_in_every_start_are_no_difference() -> None:
    server = SampledServer(1000.0, {"usual": 500})
    made = account([SampledStart((server, server), server)] * STARTS)
    assert (made.parts, made.whole.value, made.others.p) == ((), 0.0, 1.0)
