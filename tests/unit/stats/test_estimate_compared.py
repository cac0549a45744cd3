"""Comparisons: what a verdict means, and that two equal cells are seldom called different."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.compare import unwanted
from redline.model import COMPARED, Estimate, Metric, Verdict
from redline.stats import ALPHA, Decision, Ratios, Sample, decide, paired, unpaired_ratio
from tests.fakes.trials import World
from tests.studies.statistics import THRESHOLD, verdicts

SEEDS = 500
ERROR = 0.05
FALSE = (Verdict.FASTER, Verdict.SLOWER)


def ratio(low: float | None, high: float | None) -> Estimate:
    value = 1.0 if low is None or high is None else (low * high) ** 0.5
    return Estimate(value=value, low=low, high=high, unit="ratio", n=5, method="given")


def paired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    found = paired(cell, baseline)
    return found.ratio if found else None


@pytest.mark.parametrize(
    ("low", "high", "metric", "said", "matters"),
    [
        (0.99, 1.01, Metric.P99, Verdict.EQUIVALENT, None),
        (1.005, 1.015, Metric.P99, Verdict.SLOWER, False),  # significant, but too small to matter
        (0.985, 0.995, Metric.P99, Verdict.FASTER, False),
        (0.985, 0.995, Metric.THROUGHPUT, Verdict.SLOWER, False),
        (1.001, 1.03, Metric.P99, Verdict.SLOWER, True),
        (0.97, 0.999, Metric.P99, Verdict.FASTER, True),
        (0.97, 0.999, Metric.THROUGHPUT, Verdict.SLOWER, True),
        (1.10, 1.20, Metric.THROUGHPUT, Verdict.FASTER, True),
        (0.80, 0.90, Metric.CPU_PER_REQUEST, Verdict.FASTER, True),
        (0.97, 1.01, Metric.P50, Verdict.INCONCLUSIVE, None),
        (0.50, 2.00, Metric.P50, Verdict.INCONCLUSIVE, None),
        (None, None, Metric.P50, Verdict.INCONCLUSIVE, None),
    ],
)
def test_a_verdict_follows_from_the_interval(
    low: float, high: float, metric: Metric, said: Verdict, matters: bool | None
) -> None:
    assert decide(ratio(low, high), 0.02, higher_is_better=metric.higher_is_better) == Decision(said, matters)


bounds = st.tuples(st.floats(0.5, 2), st.floats(0.5, 2)).map(sorted)


@given(bounds, st.floats(0.001, 0.3), st.booleans(), st.none() | st.floats(0, 1))
def test_the_words_never_contradict_the_interval(
    ends: list[float], threshold: float, higher_is_better: bool, p: float | None
) -> None:
    """A difference excludes 1, equivalence is within the threshold, and a difference matters unless all of it is."""
    low, high = ends
    found = decide(ratio(low, high), threshold, higher_is_better=higher_is_better, p_adjusted=p)
    within = 1 / (1 + threshold) <= low and high <= 1 + threshold
    significant = not low <= 1 <= high and (p is None or p < ALPHA)
    if found.verdict in FALSE:
        assert significant
        assert found.matters is not within
        assert (found.verdict is Verdict.FASTER) == ((low > 1) == higher_is_better)
    else:
        assert not significant
        assert found == Decision(Verdict.EQUIVALENT if within else Verdict.INCONCLUSIVE)


def test_a_gate_fails_on_no_difference_that_does_not_matter() -> None:
    @dataclass(frozen=True)
    class Said:
        verdict: Verdict | None
        matters: bool | None

    slower, small = Said(Verdict.SLOWER, True), Said(Verdict.SLOWER, False)
    open_, none = Said(Verdict.INCONCLUSIVE, None), Said(None, None)
    said = (small, slower, open_, none, Said(Verdict.FASTER, True), Said(Verdict.EQUIVALENT, None))
    assert unwanted(said, {Verdict.SLOWER}) == (slower,)
    assert unwanted(said, {Verdict.INCONCLUSIVE}) == (open_,)
    assert unwanted(said, ()) == ()


def test_the_threshold_is_the_same_both_ways() -> None:
    edge = 1 / 1.02
    assert decide(ratio(edge, 1.02), 0.02, higher_is_better=Metric.P50.higher_is_better).verdict is Verdict.EQUIVALENT
    assert (
        decide(ratio(edge - 1e-6, 1.02), 0.02, higher_is_better=Metric.P50.higher_is_better).verdict
        is Verdict.INCONCLUSIVE
    )


def test_pairing_by_round_cancels_the_drift_of_the_machine() -> None:
    drift = np.array([1.0, 1.2, 1.5, 1.9, 2.4])
    noise = np.array([1.0, 1.002, 0.999, 1.001, 0.998])
    cell, baseline = Ratios(1.1 * drift * noise, np.ones(5)), Ratios(drift, np.ones(5))
    by_round, unpaired = paired_ratio(cell, baseline), unpaired_ratio(cell, baseline)
    assert by_round is not None
    assert unpaired is not None
    assert by_round.value == unpaired.value == pytest.approx(1.1, rel=1e-2)
    assert decide(by_round, 0.02, higher_is_better=Metric.THROUGHPUT.higher_is_better).verdict is Verdict.FASTER
    assert decide(unpaired, 0.02, higher_is_better=Metric.THROUGHPUT.higher_is_better).verdict is Verdict.INCONCLUSIVE


def test_a_ratio_and_its_inverse_say_the_same() -> None:
    world = World()
    rng = np.random.default_rng(5)
    a, b = world.cell(rng, 1.3)[Metric.P50], world.cell(rng)[Metric.P50]
    for compare in (paired_ratio, unpaired_ratio):
        there, back = compare(a, b), compare(b, a)
        assert there is not None
        assert back is not None
        assert there.value == pytest.approx(1 / back.value)
        assert there.low == pytest.approx(1 / (back.high or 0))


def test_unpaired_freedom_is_that_of_welch() -> None:
    ours, theirs = np.array([1.0, 1.01, 0.99, 1.02, 0.98]), np.array([2.0, 2.3, 1.7])
    made = unpaired_ratio(Ratios(ours, np.ones(5)), Ratios(theirs, np.ones(3)))
    welch = stats.ttest_ind(np.log(ours), np.log(theirs), equal_var=False).confidence_interval(0.95)
    assert made is not None
    assert made.low is not None
    assert made.high is not None
    # Logs of means against means of logs: alike to first order of a spread of 15%.
    assert np.log(made.high / made.low) == pytest.approx(welch.high - welch.low, rel=0.05)


def test_zero_is_compared_with_nothing() -> None:
    zero, one = Ratios(np.zeros(3), np.ones(3)), Ratios(np.ones(3), np.ones(3))
    assert paired_ratio(zero, one) is None
    assert unpaired_ratio(one, zero) is None


def test_single_trials_give_a_ratio_and_no_verdict() -> None:
    one, two = Ratios(np.ones(1), np.ones(1)), Ratios(2 * np.ones(1), np.ones(1))
    for compare in (paired_ratio, unpaired_ratio):
        made = compare(two, one)
        assert made is not None
        assert (made.value, made.low) == (2.0, None)
        assert decide(made, 0.02, higher_is_better=Metric.P50.higher_is_better).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(drift=0.1), id="drift"),
        pytest.param(World(effect=0.02, slow_share=0.1), id="slow trials", marks=pytest.mark.long),
    ],
)
def test_two_equal_cells_are_seldom_called_different(world: World) -> None:
    """A/A: the error rate is the stated 5%, up to what chance adds in so many seeds once in 10,000."""
    shares = verdicts(world, SEEDS)
    bound = stats.binom.ppf(1 - 1e-4, SEEDS, ERROR) / SEEDS
    assert {metric: round(sum(said[v] for v in FALSE), 3) for metric, said in shares.items()} == {
        metric: pytest.approx(0, abs=bound) for metric in COMPARED if metric is not Metric.MEMORY
    }


@pytest.mark.long
def test_unpaired_equal_runs_are_seldom_called_different() -> None:
    said: Counter[Verdict] = Counter()
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 9])
        cell, baseline = World().cell(rng)[Metric.THROUGHPUT], World(trials=8).cell(rng)[Metric.THROUGHPUT]
        made = unpaired_ratio(cell, baseline)
        assert made is not None
        said[decide(made, THRESHOLD, higher_is_better=Metric.THROUGHPUT.higher_is_better).verdict] += 1
    assert sum(said[v] for v in FALSE) <= stats.binom.ppf(1 - 1e-4, SEEDS, ERROR)


def test_a_planted_tenth_is_found() -> None:
    """Power: 10% slower, trials that differ by 1%, five rounds, 10% drift; the docs say how often it is detected."""
    shares = verdicts(World(effect=0.01, drift=0.1), 200, ratio=1.1)
    for metric, least in ((Metric.THROUGHPUT, 0.99), (Metric.P50, 0.99), (Metric.CPU_PER_REQUEST, 0.99)):
        assert shares[metric][Verdict.SLOWER] >= stats.binom.ppf(1e-4, 200, least) / 200
    assert shares[Metric.P99][Verdict.SLOWER] >= stats.binom.ppf(1e-4, 200, 0.80) / 200
    assert all(said[Verdict.FASTER] == 0 for said in shares.values())
