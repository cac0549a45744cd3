"""Trials and what is within them: an interval is no narrower than chance within trials or among requests makes it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from redline.model import Histogram, HistogramTable, Metric
from redline.stats import Quantiles, Ratios, Trial, paired, requests_needed, unpaired
from redline.stats.distributions import quantile_ranks
from redline.stats.estimate import estimate, over_trials, within_trials
from redline.stats.samples import Merged, batch_sums
from redline.stats.trials import enough_beyond, sample_of
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording
from tests.studies.levels import Levels, coverage

positive = st.floats(0.5, 2.0)
blocked = st.integers(2, 5).flatmap(
    lambda trials: st.lists(st.lists(positive, min_size=6, max_size=6), min_size=trials, max_size=trials)
)


def rates(batches: list[list[float]]) -> Ratios:
    over = np.array(batches)
    return Ratios(over.sum(axis=1), np.full(len(over), 6.0), batches=(over, np.ones_like(over)))


@given(blocked)
def test_an_interval_holds_its_value_and_is_no_narrower_than_either_level(batches: list[list[float]]) -> None:
    sample = rates(batches)
    made = estimate(sample, Metric.THROUGHPUT)
    assert made.low is not None
    assert made.high is not None
    assert made.low <= made.value <= made.high
    for spread in (over_trials(sample), within_trials(sample)):
        assert spread is not None
        assert math.log(made.high / made.value) >= spread.reach(0) - 1e-9


@given(blocked)
def test_a_p_value_is_a_chance_and_agrees_with_the_interval(batches: list[list[float]]) -> None:
    cell, baseline = rates(batches), rates([row[::-1] for row in batches[::-1]])
    for compare in (paired, unpaired):
        found = compare(cell, baseline)
        assert found is not None
        assert found.p is not None
        assert 0 <= found.p <= 1
        assert found.ratio.low is not None
        assert found.ratio.high is not None
        # Of the same trials in another order, only what rounding leaves is left to be distinguished.
        if abs(found.p - 0.05) > 1e-6 and abs(found.ratio.value - 1) > 1e-12:
            assert (found.p < 0.05) == (not found.ratio.low <= 1 <= found.ratio.high)
        equal = found.p_equivalent(0.02)
        assert equal is not None
        if abs(equal - 0.025) > 1e-6:
            assert (equal < 0.025) == (found.ratio.low >= 1 / 1.02 and found.ratio.high <= 1.02)


def test_fewer_trials_of_the_same_scatter_make_a_wider_interval() -> None:
    pattern = [0.98, 1.02]
    halves = []
    for trials in (2, 4, 8):
        made = estimate(Ratios(np.array(pattern * (trials // 2)), np.ones(trials)), Metric.THROUGHPUT)
        halves.append(made.relative_half_width or 0.0)
    assert halves == sorted(halves, reverse=True)


def test_trials_that_agree_by_luck_are_no_certainty() -> None:
    rng = np.random.default_rng(3)
    batches = 1 + rng.normal(0, 0.05, (3, 10))
    over = batches / batches.mean(axis=1, keepdims=True)  # all three trials come out at the very same rate
    lucky = Ratios(over.sum(axis=1), np.full(3, 10.0), batches=(over, np.ones((3, 10))))
    made = estimate(lucky, Metric.THROUGHPUT)
    assert "batches within trials" in made.method
    assert made.relative_half_width == pytest.approx(2.1 * 0.05 / math.sqrt(30), rel=0.3)
    alone = estimate(Ratios(lucky.over, lucky.under), Metric.THROUGHPUT)
    assert (alone.relative_half_width or 0.0) < 1e-9


def test_what_every_trial_does_is_no_chance() -> None:
    ramp = np.linspace(0.5, 1.5, 10) * np.array([[1.0], [1.01], [0.99]])
    sample = Ratios(ramp.sum(axis=1), np.full(3, 10.0), batches=(ramp, np.ones((3, 10))))
    made = estimate(sample, Metric.THROUGHPUT)
    assert "over trials" in made.method
    assert made == estimate(Ratios(sample.over, sample.under), Metric.THROUGHPUT).model_copy(
        update={"method": made.method}
    )


def test_what_both_cells_of_a_round_do_cancels() -> None:
    """The same arrivals reach both, so they answer as many in every batch: their ratio is one, for certain."""
    arrivals = np.random.default_rng(1).poisson(100, (4, 10)).astype(float)
    cell = Ratios(arrivals.sum(axis=1), np.full(4, 10.0), batches=(arrivals, np.ones((4, 10))))
    together, apart = paired(cell, cell), unpaired(cell, cell)
    assert together is not None
    assert apart is not None
    assert (together.ratio.low, together.ratio.high, together.p) == (1.0, 1.0, 1.0)
    assert apart.ratio.high is not None
    assert apart.ratio.high > 1.01


def test_trials_that_were_not_cut_alike_rest_on_trials_alone() -> None:
    short, long = (
        rates([[1.0] * 6, [1.1] * 6]),
        Ratios(np.array([1.0, 1.2]), np.ones(2), batches=(np.ones((2, 3)),) * 2),
    )
    assert within_trials(short, long) is None
    assert within_trials(rates([[1.0] * 6])) is None
    assert within_trials(Ratios(np.ones(3), np.ones(3))) is None


@given(st.integers(1, 5_000), st.floats(0.01, 0.9999), st.sampled_from([0.9, 0.95, 0.99]))
@settings(max_examples=50)
def test_order_statistics_hold_the_quantile_as_often_as_they_say(count: int, q: float, confidence: float) -> None:
    found = quantile_ranks(count, q, confidence)
    if found is None:
        assert stats.binom.cdf(0, count, q) + stats.binom.pmf(count, count, q) > (1 - confidence) / 2
        return
    low, high = found
    assert 1 <= low < high <= count
    assert low <= math.ceil(count * q) <= high
    assert stats.binom.cdf(high - 1, count, q) - stats.binom.cdf(low - 1, count, q) >= confidence - 1e-9


def test_order_statistics_by_hand() -> None:
    """The median of 31 values lies from the 10th to the 22nd; five values do not hold it at 95%."""
    assert quantile_ranks(31, 0.5, 0.95) == (10, 22)
    assert quantile_ranks(5, 0.5, 0.95) is None


def test_a_deep_percentile_of_trials_that_agree_has_the_interval_of_its_requests() -> None:
    rng = np.random.default_rng(8)
    same = Histogram.of(rng.lognormal(13, 0.5, 20_000))
    sample = Quantiles((same,) * 3, 0.999)
    made = estimate(sample, Metric.P999)
    held = sample.held
    assert held is not None
    assert "order statistics" in made.method
    assert (made.low, made.high) == held


def test_the_requests_that_a_percentile_needs() -> None:
    assert [requests_needed(q) for q in (0.5, 0.9, 0.99, 0.999, 0.9999)] == [1, 100, 1_000, 10_000, 100_000]
    for q in (0.5, 0.9, 0.99, 0.999, 0.9999):
        needed = requests_needed(q)
        assert enough_beyond(needed, q)
        assert not enough_beyond(needed - 1, q)


def test_recordings_are_cut_into_batches() -> None:
    cell = simulated_cell(load=STEADY)
    recordings = [simulated_recording(cell, GOOD, seed=seed) for seed in (1, 2, 3)]
    for metric in (Metric.THROUGHPUT, Metric.P50, Metric.P99):
        scores = sample_of([Trial(one).numbers for one in recordings], metric).scores
        assert scores is not None
        assert scores.shape == (3, 10)
        assert scores.sum() == pytest.approx(0, abs=1e-9)
    for metric in (Metric.CPU_PER_REQUEST, Metric.MEMORY):
        assert sample_of([Trial(one).numbers for one in recordings], metric).scores is None


@pytest.mark.parametrize("q", [0.5, 0.99])
def test_batches_show_how_much_a_quantile_varies_where_trials_do_not_differ(q: float) -> None:
    """The variance estimated from a cell's batches is, on average, the quantile's variance from cell to cell."""
    logs, variances = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        parts = tuple(tuple(Histogram.of(rng.lognormal(13, 0.5, 300)) for _ in range(10)) for _ in range(3))
        sample = Quantiles(Merged(tuple(map(Histogram.merged, parts)), parts), q)
        spread = within_trials(sample)
        assert spread is not None
        logs.append(math.log(sample.value))
        variances.append(spread.variance)
    assert np.mean(variances) == pytest.approx(np.var(logs, ddof=1), rel=0.5)


def _trials_in_parts(trials: int) -> Merged:
    rng = np.random.default_rng(trials)
    parts = tuple(tuple(Histogram.of(rng.lognormal(13, 0.5, 300)) for _ in range(11)) for _ in range(trials))
    return Merged(tuple(map(Histogram.merged, parts)), parts)


@pytest.mark.parametrize("trials", [1, 2, 5, 9])
def test_quantiles_computed_together_are_those_of_each_by_itself(trials: int) -> None:
    qs = (0.0, 0.5, 0.9, 0.99, 0.9999)
    for sample, q in zip(Quantiles.several(_trials_in_parts(trials), qs), qs, strict=True):
        alone = Quantiles(_trials_in_parts(trials), q)
        assert np.array_equal(sample.by_trial, alone.by_trial)
        if q:
            assert estimate(sample, Metric.P50) == estimate(alone, Metric.P50)
            ours, theirs = sample.scores, alone.scores
            assert (ours is None) == (theirs is None)
            assert ours is None or theirs is None or np.array_equal(ours, theirs)


def test_released_quantiles_are_computed_again() -> None:
    merged = _trials_in_parts(3)
    (before,) = Quantiles.several(merged, (0.9,))
    resampled = before.resampled
    merged.release()
    (again,) = Quantiles.several(merged, (0.9,))
    assert again is not before
    assert np.array_equal(before.resampled, resampled)
    assert np.array_equal(again.resampled, resampled)


@given(
    st.lists(st.lists(st.integers(1, 10**9), max_size=20), max_size=4),
    st.lists(st.floats(0, 10**13), max_size=5),
)
def test_counts_up_to_many_values_are_those_up_to_each(values: list[list[int]], at: list[float]) -> None:
    table = HistogramTable([Histogram.of(part) for part in values])
    found = table.counts_up_to_each(at)
    assert found.shape == (len(at), len(values))
    assert [row.tolist() for row in found] == [table.counts_up_to(ns).tolist() for ns in at]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50), st.integers(1, 10**9))
def test_counts_up_to_a_value_are_those_of_its_slot(values: list[int], at: int) -> None:
    made = Histogram.of(values)
    bucket_ns, counts = made.buckets()
    slot = Histogram.of([at]).max_ns
    table = HistogramTable([made, Histogram()])
    found = np.column_stack((table.counts_up_to(at), table.counts))
    assert found.tolist() == [[int(counts[bucket_ns <= slot].sum()), len(values)], [0, 0]]
    assert table.counts_up_to(0)[0] == values.count(1)
    assert HistogramTable([]).counts_up_to(at).shape == (0,)


@pytest.mark.parametrize("lengths", [(10, 10), (10, 23, 11), (3, 40), (2, 2), (1, 5)])
def test_batches_of_merged_trials_are_those_of_each_trial(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    parts = [[Histogram.of(rng.lognormal(13, 0.5, int(rng.integers(0, 40)))) for _ in range(n)] for n in lengths]
    merged = Merged([Histogram.merged(own) for own in parts], parts)
    assert merged.batches == min(10, *lengths)
    expected = [batch_sums([part.count for part in own], merged.batches) for own in parts]
    assert np.array_equal(merged.batch_totals, expected)
    assert Merged([Histogram.of([1])]).batches == 0


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.data())
def test_batches_lose_nothing_and_are_of_equal_length(values: list[float], data: st.DataObject) -> None:
    batches = data.draw(st.integers(1, len(values)))
    assert batch_sums(values, batches).sum() == pytest.approx(sum(values))
    lengths = batch_sums([1] * len(values), batches)
    assert len(lengths) == batches
    assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("trials", [2, 3])
@pytest.mark.parametrize("world", [Levels(0.01, 0.003), Levels(0.0, 0.01)], ids=["between", "within"])
def test_intervals_hold_the_truth_with_and_without_differences_between_trials(world: Levels, trials: int) -> None:
    seeds = 200
    share, lucky, _ = coverage(world, trials, seeds)["in use"]
    assert share >= stats.binom.ppf(1e-4, seeds, 0.95) / seeds
    if not world.between:
        assert lucky >= stats.binom.ppf(1e-4, seeds // 3, 0.95) / (seeds // 3)
