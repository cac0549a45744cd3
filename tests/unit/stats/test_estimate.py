"""Estimates over trials: the laws of merging and resampling, and intervals with the promised coverage."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.model import Estimate, Histogram, Metric, Verdict
from redline.stats import Quantiles, Ratios
from redline.stats.estimate import (
    METHOD_BUILDS,
    METHOD_COLD,
    METHOD_HOSTS,
    METHOD_MIDDLE,
    METHOD_NONE,
    METHOD_ZERO,
    PAIRED,
    UNPAIRED,
    Contrast,
    Spread,
    _over_hosts,
    both_spreads,
    contrast_of,
    decide,
    estimate,
    interval,
    middle,
    middle_shift,
    middle_variance,
    over_groups,
    over_trials,
    paired,
    paired_difference,
    rounds_for,
    scatter_of,
    scatter_showing,
    shown_by,
    unpaired,
    within_trials,
)
from redline.stats.samples import DRAWS, Floats, LogRatios, Merged, Sample, resamples
from tests.fakes.trials import World

Compare = Callable[[Sample, Sample], Contrast | None]
SEEDS = 300

trials = st.lists(
    st.lists(st.integers(1_000, 100_000_000), min_size=1, max_size=30).map(Histogram.of), min_size=1, max_size=5
)


@given(trials, st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_that_of_the_merged_histograms(histograms: list[Histogram], q: float) -> None:
    assert Quantiles(tuple(histograms), q).value == Histogram.merged(histograms).quantile_ns(q)


@given(trials, st.data())
def test_weights_count_trials_as_often(histograms: list[Histogram], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(histograms), max_size=len(histograms)).filter(any))
    repeated = [h for h, times in zip(histograms, weights, strict=True) for _ in range(times)]
    found = Quantiles(tuple(histograms), 0.9).at(np.array([weights], dtype=float))
    assert found.tolist() == [Histogram.merged(repeated).quantile_ns(0.9)]


@given(trials, st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0]), max_size=7))
def test_several_quantiles_are_resampled_as_each_by_itself(histograms: list[Histogram], qs: list[float]) -> None:
    for sample, q in zip(Quantiles.several(Merged(histograms), qs), qs, strict=True):
        alone = Quantiles(histograms, q)
        assert sample.q == q
        assert sample.value == alone.value
        assert not 0 < q < 1 or estimate(sample, Metric.P50) == estimate(alone, Metric.P50)
        assert len(histograms) < 2 or np.array_equal(sample.resampled, alone.resampled)


def test_several_quantiles_of_many_trials_are_searched_in_groups() -> None:
    histograms = [Histogram.of(np.random.default_rng(seed).lognormal(13, 0.5, 200)) for seed in range(9)]
    qs = (0.1, 0.5, 0.75, 0.9, 0.95)
    for sample, q in zip(Quantiles.several(Merged(histograms), qs), qs, strict=True):
        assert np.array_equal(sample.resampled, Quantiles(histograms, q).resampled)


def test_a_merged_p99_is_not_the_mean_of_p99s() -> None:
    quiet, slow = Histogram.of([1_000_000] * 990 + [2_000_000] * 10), Histogram.of([50_000_000] * 1000)
    merged = Quantiles((quiet, slow), 0.99).value
    assert merged == pytest.approx(50_000_000, rel=1e-3)
    assert merged > 1.5 * (quiet.quantile_ns(0.99) + slow.quantile_ns(0.99)) / 2


def test_a_ratio_is_of_sums() -> None:
    assert Ratios(np.array([100.0, 900.0]), np.array([1.0, 3.0])).value == 250.0


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_few_trials_are_resampled_in_every_way_there_is(n: int) -> None:
    drawn = resamples(n)
    by_hand: dict[tuple[int, ...], float] = {}
    for chosen in itertools.product(range(n), repeat=n) if n <= 5 else ():
        key = tuple(chosen.count(i) for i in range(n))
        by_hand[key] = by_hand.get(key, 0.0) + n**-n
    assert len(drawn.weights) == math.comb(2 * n - 1, n)
    assert np.all(drawn.weights.sum(axis=1) == n)
    assert drawn.probability.sum() == pytest.approx(1.0)
    for weights, probability in zip(drawn.weights, drawn.probability, strict=True) if by_hand else ():
        assert probability == pytest.approx(by_hand[tuple(int(w) for w in weights)])


def test_many_trials_are_drawn_with_a_fixed_seed() -> None:
    resamples.cache_clear()
    first = resamples(12).weights
    resamples.cache_clear()
    assert np.array_equal(first, resamples(12).weights)
    assert first.shape == (DRAWS, 12)
    assert np.all(first.sum(axis=1) == 12)


def test_the_bootstrap_error_of_a_mean_is_the_textbook_one() -> None:
    values = np.array([0.98, 1.0, 1.01, 1.03, 0.99])
    made = estimate(Ratios(values, np.ones(5)), Metric.THROUGHPUT)
    error = stats.sem(values) / values.mean()
    half = stats.t.ppf(0.975, 4) * error
    assert made.low == pytest.approx(values.mean() * np.exp(-half), rel=1e-3)
    assert made.high == pytest.approx(values.mean() * np.exp(half), rel=1e-3)
    assert (made.n, made.confidence, made.unit) == (5, 0.95, "1/s")


def test_one_trial_has_a_value_but_no_interval() -> None:
    made = estimate(Ratios(np.array([500.0]), np.array([2.0])), Metric.THROUGHPUT)
    assert (made.value, made.low, made.high, made.n) == (250.0, None, None, 1)
    assert "too few" in made.method


def test_what_may_be_zero_has_no_interval_on_a_log_scale() -> None:
    made = estimate(Ratios(np.array([0.0, 5.0]), np.ones(2)), Metric.THROUGHPUT)
    assert (made.value, made.low, made.high) == (2.5, None, None)


def test_trials_in_one_bucket_are_not_certain_beyond_the_bucket() -> None:
    same = Quantiles((Histogram.of([1_000_000] * 100),) * 5, 0.5)
    made = estimate(same, Metric.P50)
    assert made.relative_half_width is not None
    assert made.relative_half_width == pytest.approx(2.776 / 1024 / math.sqrt(12), rel=0.01)


def test_an_estimate_is_deterministic() -> None:
    sample = World(trials=9).cell(np.random.default_rng(3))[Metric.P99]
    assert estimate(sample, Metric.P99) == estimate(sample, Metric.P99)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize(("metric", "q"), [(Metric.P50, 0.5), (Metric.P99, 0.99)])
def test_intervals_hold_the_truth_as_often_as_they_say(n: int, metric: Metric, q: float) -> None:
    world = World(trials=n)
    truth = world.true_quantile_ns(q)
    held = 0
    for seed in range(SEEDS):
        made = estimate(world.cell(np.random.default_rng([seed, n]))[metric], metric)
        assert made.low is not None
        assert made.high is not None
        held += made.low <= truth <= made.high
    # Too low by chance alone once in 10,000; the plain percentile bootstrap holds the truth in 50 to 85%.
    assert held >= stats.binom.ppf(1e-4, SEEDS, 0.95)


def of_sums(values: list[float], hosts: tuple[str, ...] = ()) -> Ratios:
    """Trials whose statistic is the mean of these values."""
    made = Ratios(np.array(values), np.ones(len(values)))
    made.hosts = hosts
    return made


@given(st.floats(1e-8, 1.0), st.floats(1.0, 50.0), st.floats(0.0, 0.3), st.floats(-1.0, 1.0))
def test_reach_and_p_value_are_those_of_student(variance: float, freedom: float, slot: float, away: float) -> None:
    spread, error = Spread(variance, freedom), math.sqrt(variance + slot**2 / 12)
    assert spread.reach(slot) == pytest.approx(stats.t.ppf(0.975, freedom) * error, rel=1e-6)
    assert spread.chance_of(away, slot) == pytest.approx(stats.t.sf(away / error, freedom), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("away", "chance"), [(-0.1, 1.0), (0.0, 0.5), (0.1, 0.0)])
def test_without_an_error_there_is_no_chance(away: float, chance: float) -> None:
    assert Spread(0.0, 4).chance_of(away, 0.0) == chance


def test_the_variance_over_trials_is_that_of_every_resample() -> None:
    ours, theirs = [3.0, 5.0, 4.0], [1.0, 2.0, 2.0]
    logs = [
        math.log(sum(ours[at] for at in drawn) / sum(theirs[at] for at in drawn))
        for drawn in itertools.product(range(3), repeat=3)
    ]
    spread = over_trials(of_sums(ours), of_sums(theirs))
    assert spread is not None
    assert spread.variance == pytest.approx(np.var(logs) * 3 / 2)
    assert spread.freedom == 2


def test_of_starts_it_is_the_variance_of_their_mean() -> None:
    logs = np.array([0.1, 0.3, 0.2, 0.6])
    spread = over_trials(LogRatios(logs))
    assert spread is not None
    assert spread.variance == pytest.approx(float(logs.var(ddof=1)) / 4)
    assert spread.freedom == 3


@pytest.mark.parametrize(
    ("ours", "theirs"), [([1.0], [1.0]), ([0.0, 0.0, 1.0], [1.0, 1.0, 1.0]), ([1.0, 1.0, 1.0], [0.0, 0.0, 1.0])]
)
def test_a_trial_or_a_zero_has_no_variance_over_trials(ours: list[float], theirs: list[float]) -> None:
    assert over_trials(of_sums(ours), of_sums(theirs)) is None


def test_hosts_are_a_random_effect() -> None:
    """One-way analysis of variance by hand: two hosts of two trials each."""
    logs, hosts = np.array([1.0, 1.2, 2.0, 2.2]), ("a", "a", "b", "b")
    spread = over_groups(logs, hosts)
    between, within = 2 * (0.5**2 + 0.5**2) / 1, 4 * 0.1**2 / 2
    of_between = 4 * 4 / 2 / 16 / (4 - 8 / 4) * 1  # squares / n² / typical
    parts = (of_between * between, (1 / 4 - of_between) * within)
    assert spread is not None
    assert spread.variance == pytest.approx(sum(parts))
    assert spread.freedom == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 1 + parts[1] ** 2 / 2))


@pytest.mark.parametrize(
    ("logs", "hosts"),
    [
        ([1.0, 2.0, 1.0, 2.0], "aabb"),  # hosts differ by no more than their trials
        ([1.0, 2.0, 3.0], "aaa"),
        ([1.0, 2.0, 3.0], "abc"),
        ([1.0, 1.1, 2.0, 2.1], "aab"),
    ],
)
def test_hosts_that_say_nothing_have_no_spread(logs: list[float], hosts: str) -> None:
    assert over_groups(np.array(logs), tuple(hosts)) is None


def test_two_independent_spreads_add_up_with_the_freedom_of_welch() -> None:
    both = both_spreads(Spread(0.02, 4), Spread(0.01, 9))
    assert both is not None
    assert both.variance == 0.03
    assert both.freedom == pytest.approx(0.03**2 / (0.02**2 / 4 + 0.01**2 / 9))
    assert both_spreads(Spread(0.0, 4), Spread(0.0, 9)) == Spread(0.0, 4)
    assert both_spreads(None, Spread(0.01, 9)) is both_spreads(Spread(0.01, 9), None) is None


def test_a_contrast_is_as_wide_and_as_unlikely_as_its_widest_spread() -> None:
    narrow, wide = Spread(0.0001, 8), Spread(0.0004, 3)
    contrast = contrast_of(1.1, {"narrow": narrow, "wide": wide}, 4, resolution=0.01, bias=0.02)
    half = wide.reach(0.01) + 0.02
    assert contrast.ratio.low == pytest.approx(1.1 * math.exp(-half))
    assert contrast.ratio.high == pytest.approx(1.1 * math.exp(half))
    assert (contrast.ratio.method, contrast.ratio.n) == ("wide", 4)
    away = math.log(1.1) - 0.02
    assert contrast.p == pytest.approx(2 * wide.chance_of(away, 0.01))
    inside = math.log1p(0.2) - math.log(1.1) - 0.02
    assert contrast.p_equivalent(0.2) == pytest.approx(wide.chance_of(inside, 0.01))


def test_a_zero_in_a_trial_is_why_there_is_no_interval() -> None:
    some, zero, once = (Ratios(np.array(of), np.ones(len(of))) for of in ([1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [1.0]))
    assert interval(zero) == (None, METHOD_ZERO)
    assert interval(once) == (None, METHOD_NONE)
    for compare in (paired, unpaired):
        contrast = compare(some, zero)
        assert contrast is not None
        assert (contrast.ratio.low, contrast.ratio.method) == (None, METHOD_ZERO)


@pytest.mark.parametrize(
    ("spreads", "bias", "method"),
    [({}, 0.0, METHOD_NONE), ({"x": Spread(0.1, 2)}, math.inf, METHOD_COLD)],
)
def test_a_contrast_without_a_known_error_has_no_interval(spreads: dict[str, Spread], bias: float, method: str) -> None:
    contrast = contrast_of(1.1, spreads, 2, bias=bias)
    assert (contrast.ratio.interval, contrast.ratio.method) == (None, method)
    assert contrast.p is None
    assert contrast.p_equivalent(0.1) is None


@pytest.mark.parametrize("compare", [paired, unpaired])
def test_a_contrast_of_sums_is_the_ratio_of_their_values(compare: Compare) -> None:
    contrast = compare(of_sums([3.0, 5.0, 4.0]), of_sums([1.0, 2.0, 3.0]))
    assert contrast is not None
    assert contrast.ratio.value == 2.0
    assert contrast.ratio.interval is not None
    assert compare(of_sums([0.0, 0.0]), of_sums([1.0, 2.0])) is None
    assert compare(of_sums([1.0, 2.0]), of_sums([0.0, 0.0])) is None


def test_percentiles_are_compared_by_the_middle_of_rounds_and_of_runs() -> None:
    ours, theirs = ([Histogram.of([at * 1_000] * 100) for at in values] for values in ((40, 44, 48), (20, 20, 20)))
    rounds, runs = (compare(Quantiles(ours, 0.5), Quantiles(theirs, 0.5)) for compare in (paired, unpaired))
    assert rounds is not None
    assert runs is not None
    assert rounds.ratio.value == pytest.approx(2.2, rel=0.01)
    assert runs.ratio.value == pytest.approx(2.2, rel=0.01)
    assert rounds.ratio.method.endswith(PAIRED)
    assert runs.ratio.method.endswith(UNPAIRED)


def ratio_of(low: float | None, high: float | None, n: int = 5, method: str = METHOD_MIDDLE) -> Estimate:
    value = 1.0 if low is None or high is None else math.sqrt(low * high)
    return Estimate(value=value, low=low, high=high, unit="ratio", n=n, method=method)


@pytest.mark.parametrize(
    ("low", "high", "p", "verdict", "matters"),
    [
        (None, None, None, Verdict.INCONCLUSIVE, None),
        (None, 1.5, None, Verdict.INCONCLUSIVE, None),
        (1.5, None, None, Verdict.INCONCLUSIVE, None),
        (1.1, 1.2, None, Verdict.FASTER, True),
        (0.8, 0.9, 0.04, Verdict.SLOWER, True),
        (1.005, 1.015, 0.01, Verdict.FASTER, False),
        (1.005, 1.015, 0.051, Verdict.EQUIVALENT, None),
        (0.99, 1.01, None, Verdict.EQUIVALENT, None),
        (1.0, 1.01, None, Verdict.EQUIVALENT, None),
        (0.99, 1.0, None, Verdict.EQUIVALENT, None),
        (0.9, 1.1, None, Verdict.INCONCLUSIVE, None),
    ],
)
def test_the_verdict_on_a_ratio(
    low: float | None, high: float | None, p: float | None, verdict: Verdict, matters: bool | None
) -> None:
    assert decide(ratio_of(low, high), 0.02, higher_is_better=True, p_adjusted=p) == (verdict, matters)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_the_scatter_of_rounds_is_read_back_from_their_interval(n: int) -> None:
    half = stats.t.ppf(0.975, n - 1) * 0.05 / math.sqrt(n)
    ratio = ratio_of(math.exp(-half), math.exp(half), n)
    assert scatter_of(ratio) == pytest.approx(0.05, rel=1e-6)
    assert shown_by(0.05, n) == pytest.approx(math.expm1(half), rel=1e-6)
    assert scatter_showing(math.expm1(half), n) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    "ratio",
    [
        ratio_of(None, None),
        ratio_of(0.0, 1.5),
        ratio_of(0.5, 1.5, 1),
        ratio_of(0.5, 1.5, 4, f"{METHOD_HOSTS}, {PAIRED}"),
    ],
)
def test_no_scatter_of_rounds_is_read_from_other_intervals(ratio: Estimate) -> None:
    assert scatter_of(ratio) is None


def test_what_rounds_do_not_narrow_is_no_scatter_of_rounds() -> None:
    assert scatter_of(ratio_of(0.5, 1.5, 4, METHOD_BUILDS)) is None
    half = stats.t.ppf(0.975, 3) * 0.05 / 2
    wide = ratio_of(math.exp(-half - 0.01), math.exp(half + 0.01), 4)
    assert scatter_of(wide, 0.01) == pytest.approx(0.05, rel=1e-6)
    assert scatter_of(wide, half + 0.02) is None
    assert scatter_of(wide, None) is None


@given(st.floats(0.001, 0.3), st.floats(0.005, 0.5))
def test_the_rounds_for_a_difference_are_the_fewest_that_show_it(scatter: float, difference: float) -> None:
    rounds = rounds_for(scatter, difference)
    if rounds is None:
        assert shown_by(scatter, 10_000) > difference
    else:
        assert shown_by(scatter, rounds) <= difference
        assert rounds == 2 or shown_by(scatter, rounds - 1) > difference


@pytest.mark.parametrize(
    ("n", "factor", "freedom"),
    [
        (2, 0.707, 1.0),
        (3, 0.732, 2.0),
        (4, 0.872, 3.0),
        (5, 1.073 - 0.76 / 5, 0.765 * 4),
        (9, 1.073 - 0.76 / 9, 0.765 * 8),
    ],
)
def test_the_variance_of_a_middle_is_fitted_to_few_values(n: int, factor: float, freedom: float) -> None:
    values = np.array([0.3, 0.1, 0.9, 0.4, 0.8, 0.2, 0.6, 0.5, 0.7][:n])
    distances = [abs(one - other) for one, other in itertools.combinations(values.tolist(), 2)]
    averages = [(one + other) / 2 for one, other in itertools.combinations_with_replacement(values.tolist(), 2)]
    assert middle(values) == pytest.approx(float(np.median(averages)))
    variance, degrees = middle_variance(values)
    assert variance == pytest.approx((factor * float(np.median(distances))) ** 2 / n)
    assert degrees == pytest.approx(freedom)
    assert middle_shift(values, values - 0.25) == pytest.approx(0.25)


def test_hosts_are_a_spread_where_both_ran_on_the_same() -> None:
    def rates(*values: float, hosts: tuple[str, ...] = ()) -> Ratios:
        made = Ratios(np.array(values), np.ones(len(values)))
        made.hosts = hosts
        return made

    on, other = ("a", "a", "b", "b"), ("b", "b", "a", "a")
    ours, theirs = rates(1.0, 1.1, 2.0, 2.1, hosts=on), rates(1.0, 1.0, 1.0, 1.0, hosts=on)
    alone, both = _over_hosts(ours), _over_hosts(ours, theirs)
    assert alone is not None
    assert both is not None
    assert both.variance == pytest.approx(alone.variance), "the baseline is the same everywhere"
    assert _over_hosts(rates(1.0, 1.1, 2.0, 2.1)) is None
    assert _over_hosts(rates(1.0, 1.1, 2.0, 2.1), rates(1.0, 1.0, 1.0, 1.0)) is None
    assert _over_hosts(ours, rates(1.0, 1.0, 1.0, 1.0, hosts=other)) is None
    assert _over_hosts(rates(0.0, 1.1, 2.0, 2.1, hosts=on)) is None
    assert _over_hosts(rates(0.0, 1.1, 2.0, 2.1, hosts=on), theirs) is None
    assert _over_hosts(ours, rates(0.0, 1.0, 1.0, 1.0, hosts=on)) is None


class Scored(LogRatios):
    """A sample whose batches have these scores."""

    def __init__(self, *scores: list[float]) -> None:
        super().__init__(np.zeros(len(scores)))
        self._scores = np.array(scores)

    @property
    def scores(self) -> Floats | None:
        return self._scores


def within(sample: Sample, against: Sample | None = None) -> tuple[float, float]:
    found = within_trials(sample, against)
    assert found is not None
    return found.variance, found.freedom


def test_the_variance_within_trials_is_that_of_their_batches_without_what_all_share() -> None:
    """Batches have means of 2 and 5, trials of 1.5, 4 and 5, all 3.5: the squares left over are 7 of 2 degrees."""
    sample = Scored([1.0, 2.0], [3.0, 5.0], [2.0, 8.0])
    assert within(sample) == pytest.approx((7 / 2 * 3 * 2, 2))
    assert within_trials(sample, sample) == Spread(0.0, 2), "of the same scores nothing is left"
    against = Scored([1.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    without = within_trials(Scored([0.0, 2.0], [3.0, 5.0], [2.0, 8.0]))
    assert without is not None
    assert within(sample, against) == pytest.approx((without.variance, 2))


def test_a_single_trial_or_batch_or_another_cut_has_no_variance_within() -> None:
    sample = Scored([1.0, 2.0], [3.0, 5.0])
    assert within(sample) == pytest.approx((0.25 / 1 * 4, 1))
    assert within_trials(Scored([1.0, 2.0, 4.0])) is None
    assert within_trials(Scored([1.0], [2.0])) is None
    assert within_trials(sample, Scored([1.0, 2.0], [3.0, 5.0], [2.0, 8.0])) is None
    assert within_trials(sample, LogRatios(np.zeros(2))) is None
    assert within_trials(LogRatios(np.zeros(2))) is None


def test_hosts_that_differ_just_as_their_trials_do_are_no_spread() -> None:
    """Means of 0 and 5, trials 3 and 4 around them: 25 between hosts, and 25 within."""
    assert over_groups(np.array([-3.0, 3.0, 1.0, 9.0]), list("aabb")) is None
    assert over_groups(np.array([-3.0, 3.0, 1.01, 9.01]), list("aabb")) is not None


def test_a_difference_is_as_wide_as_its_trials_and_its_slots() -> None:
    def half(resolution: float, other: float) -> float:
        cell = Ratios(np.array([4.0, 6.0]), np.ones(2), resolution)
        found = paired_difference(cell, Ratios(np.array([2.0, 2.0]), np.ones(2), other), Metric.P99)
        assert found.value == 3
        assert found.low is not None
        return 3 - found.low

    t = stats.t.ppf(0.975, 1)
    exact = (half(0.0, 0.0) / t) ** 2
    assert exact == pytest.approx(1.0), "the trials differ by 2, so their mean has a variance of 1"
    assert (half(0.1, 0.0) / t) ** 2 == pytest.approx(exact + (0.1 * 5) ** 2 / 12)
    assert (half(0.1, 0.2) / t) ** 2 == pytest.approx(exact + ((0.1 * 5) ** 2 + (0.2 * 2) ** 2) / 12)
    once = Ratios(np.array([4.0]), np.ones(1))
    alone = paired_difference(once, once, Metric.P99)
    assert (alone.value, alone.low, alone.high, alone.method) == (0, None, None, METHOD_NONE)


def test_a_contrast_allows_for_a_bias_only_where_there_is_one() -> None:
    ratio = Estimate(value=1.1, low=None, high=None, unit="ratio", n=3, method=METHOD_NONE)
    spreads = (Spread(0.0004, 8.0),)
    plain, biased = Contrast(ratio, spreads, 0.0), Contrast(ratio, spreads, 0.0, bias=0.05)
    assert plain.p == Contrast(ratio, spreads, 0.0, bias=0.0).p
    assert plain.p == pytest.approx(2 * stats.t.sf(math.log(1.1) / 0.02, 8))
    assert plain.p is not None
    assert biased.p is not None
    assert biased.p > plain.p
