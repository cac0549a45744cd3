"""Statistics of trials by their weights, held by sums that a reader can do, and by whole enumerations."""

import math
from itertools import product

import numpy as np
import pytest

from redline.model import Histogram
from redline.stats.distributions import quantile_ranks
from redline.stats.samples import (
    DRAWS,
    LogRatios,
    Merged,
    Quantiles,
    Ratios,
    batch_sums,
    log_variances,
    pooled,
    resamples,
)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_trials_have_all_their_resamples_with_their_chances(n: int) -> None:
    resamples.cache_clear()
    drawn = resamples(n)
    assert len(drawn.weights) == math.comb(2 * n - 1, n)
    assert set(drawn.weights.sum(axis=1)) == {n}
    assert drawn.probability.sum() == pytest.approx(1)
    if n == 3:
        counts = {
            tuple(int(place) for place in row): p for row, p in zip(drawn.weights, drawn.probability, strict=True)
        }
        every = [tuple(order.count(at) for at in range(3)) for order in product(range(3), repeat=3)]
        assert counts == pytest.approx({each: every.count(each) / 27 for each in every})


def test_many_trials_have_a_fixed_draw_of_them() -> None:
    resamples.cache_clear()
    drawn = resamples(8)
    assert drawn.weights.shape == (DRAWS, 8)
    assert set(drawn.weights.sum(axis=1)) == {8}
    assert drawn.probability.sum() == pytest.approx(1)
    assert drawn.weights.mean(axis=0) == pytest.approx(np.ones(8), abs=0.05)


def test_a_ratio_is_one_of_sums() -> None:
    ratio = Ratios(np.array([1.0, 9.0]), np.array([1.0, 3.0]))
    assert ratio.value == 2.5
    assert ratio.by_trial.tolist() == [1, 3]
    assert ratio.at(np.array([[2.0, 0.0], [1.0, 3.0]])) == pytest.approx([1.0, 2.8])
    assert sorted(ratio.resampled) == pytest.approx([1.0, 2.5, 3.0])
    assert ratio.scores is None
    assert ratio.held is None


def test_a_batch_counts_by_its_excess_over_its_share() -> None:
    over, under = np.array([[3.0, 5.0], [4.0, 8.0]]), np.array([[1.0, 1.0], [1.0, 1.0]])
    ratio = Ratios(over.sum(axis=1), under.sum(axis=1), batches=(over, under))
    assert ratio.scores is not None
    assert ratio.scores.tolist() == [[-0.1, 0.0], [-0.05, 0.15]]
    assert Ratios(np.zeros(2), under.sum(axis=1), batches=(0 * over, under)).scores is None


def test_log_ratios_have_a_geometric_mean() -> None:
    both = LogRatios(np.log([2.0, 8.0]))
    assert both.value == pytest.approx(4)
    assert both.at(np.array([[2.0, 0.0], [1.0, 3.0]])) == pytest.approx([2.0, 2.0 ** (10 / 4)])


def test_samples_of_a_kind_are_pooled_and_of_several_kinds_are_not() -> None:
    one, other = Ratios(np.ones(2), np.ones(2), 0.1), Ratios(np.full(1, 4.0), np.ones(1), 0.2)
    both = pooled([one, other])
    assert (both.n, both.value, both.resolution) == (3, 2, 0.2)
    logs = pooled([LogRatios(np.log([2.0])), LogRatios(np.log([8.0]))])
    assert logs.value == pytest.approx(4)
    quantiles = pooled([Quantiles([Histogram.of([1e6] * 9)], 0.9), Quantiles([Histogram.of([3e6] * 9)], 0.9)])
    assert quantiles.n == 2
    assert quantiles.value == pytest.approx(3e6, rel=0.01)
    with pytest.raises(TypeError):
        pooled([one, logs])


def test_sums_of_batches_are_of_nearly_equal_lengths() -> None:
    assert batch_sums([1, 2, 3, 4, 5, 6], 3).tolist() == [3, 7, 11]
    assert batch_sums([1, 2, 3, 4, 5], 2).tolist() == [3, 12]
    assert batch_sums([[1, 10], [2, 20]], 1).tolist() == [[3, 30]]


def parts(seed: int, trials: int = 3) -> list[Histogram]:
    rng = np.random.default_rng(seed)
    return [Histogram.of(rng.exponential(1e6 * (1 + at), 500)) for at in range(trials)]


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_a_quantile_is_that_of_the_merged_histograms(q: float) -> None:
    histograms = parts(1)
    quantile = Quantiles(histograms, q)
    assert quantile.value == Histogram.merged(histograms).quantile_ns(q)
    assert quantile.by_trial.tolist() == [one.quantile_ns(q) for one in histograms]
    first, last = histograms[0], histograms[2]
    rows = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    expected = [Histogram.merged([first, first, last]).quantile_ns(q), *quantile.by_trial[1:]]
    assert quantile.at(rows).tolist() == expected


def test_a_trial_without_requests_moves_no_quantile() -> None:
    histograms = [*parts(2, 2), Histogram()]
    quantile = Quantiles(histograms, 0.9)
    assert quantile.value == Histogram.merged(histograms[:2]).quantile_ns(0.9)
    assert quantile.at(np.array([[1.0, 0.0, 2.0]])).tolist() == [histograms[0].quantile_ns(0.9)]


def test_a_quantile_is_held_by_the_order_statistics_around_it() -> None:
    quantile = Quantiles([Histogram.of([at * 1e6 for at in range(1, 101)])], 0.5)
    assert quantile.held is not None
    # Of 100 requests, the 40th and 61st enclose the median with 95%.
    assert quantile.held == pytest.approx((40e6, 61e6), rel=0.03)
    assert Quantiles([Histogram.of([1e6])], 0.99).held is None


@pytest.mark.parametrize("trials", [2, 3, 5])
def test_several_quantiles_at_once_are_each_by_itself(trials: int) -> None:
    histograms = parts(4, trials)
    qs = (0.5, 0.9, 0.99)
    for sample, q in zip(Quantiles.several(Merged(histograms), qs), qs, strict=True):
        alone = Quantiles(histograms, q)
        assert sample.value == alone.value
        assert sample.by_trial.tolist() == alone.by_trial.tolist()
        assert sample.resampled.tolist() == alone.resampled.tolist()


def with_parts(seed: int, trials: int = 3, batches: int = 4) -> Merged:
    """Trials of so many intervals, whose requests slow down from one to the next."""
    rng = np.random.default_rng(seed)
    made = [[Histogram.of(rng.exponential(1e6 * (1 + at), 400)) for at in range(batches)] for _ in range(trials)]
    return Merged([Histogram.merged(own) for own in made], made)


@pytest.mark.parametrize("trials", [2, 3, 5])
def test_several_quantiles_vary_as_each_by_itself(trials: int) -> None:
    qs = (0.5, 0.9, 0.99)
    for sample, q in zip(Quantiles.several(with_parts(5, trials), qs), qs, strict=True):
        alone = Quantiles(with_parts(5, trials), q)
        assert sample.log_variance == alone.log_variance
        assert sample.batch_variance == pytest.approx(alone.batch_variance)
        assert sample.held == alone.held


def test_a_statistic_that_may_be_zero_has_no_variance_of_its_log() -> None:
    some, none = log_variances(np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 2.0]]), 2)
    assert some == pytest.approx(math.log(2) ** 2), (
        "a quarter of the resamples is a step away on either side, and n / (n - 1) is 2"
    )
    assert none is None


def test_a_batch_of_a_quantile_counts_by_its_excess_below_it() -> None:
    merged = with_parts(1)
    quantile = Quantiles(merged.histograms, 0.5)
    assert quantile.scores is None, "without intervals there are no batches"
    quantile = merged.sample(0.5)
    scores = quantile.scores
    assert scores is not None
    assert scores.shape == (3, 4)
    assert scores.sum() == pytest.approx(0, abs=1e-9)
    low, high = quantile_ranks(4800, 0.5, 0.95) or (0, 1)
    assert quantile.held is not None
    worth = math.log(quantile.held[1] / quantile.held[0]) / (high - low)
    below = merged.by_batch(merged.intervals.counts_up_to(quantile.value))
    assert below.sum() == merged.sample(0.5).merged.intervals.counts_up_to(quantile.value).sum()
    assert scores == pytest.approx((below.sum() / 4800 * 400 - below) * worth)
    (both,) = Quantiles.several(with_parts(1), (0.5,))
    assert both.scores == pytest.approx(scores)
    (alone,) = Quantiles.several(with_parts(1, trials=1), (0.5,))
    assert alone.scores is not None


def test_a_quantile_at_an_end_has_no_scores() -> None:
    for q in (0.0, 1.0):
        (sample,) = Quantiles.several(with_parts(2), (q,))
        assert "scores" not in vars(sample)


def test_trials_without_requests_have_no_quantile_of_their_own_in_several() -> None:
    merged = Merged([*parts(3, 2), Histogram()])
    (sample,) = Quantiles.several(merged, (0.9,))
    alone = Quantiles([*parts(3, 2), Histogram()], 0.9)
    assert sample.value == alone.value
    assert sample.resampled.tolist() == alone.resampled.tolist()
    assert "by_trial" not in vars(sample)


def test_a_quantile_is_searched_between_those_of_its_trials() -> None:
    spread = [[*[1e6 * at] * 4, *[2e6 * at] * 4, *[3e6 * at] * 4] for at in (1, 4, 10)]
    quantile = Quantiles([Histogram.of(times) for times in spread], 0.5)
    values = quantile.merged.table[0]
    _, low, high = quantile._rows(np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 3.0]]))
    assert values[low] == pytest.approx([2e6] * 3, rel=0.01)
    assert values[high] == pytest.approx([20e6] * 3, rel=0.01)


@pytest.mark.parametrize(("batches", "scored"), [(1, False), (2, True)])
def test_two_batches_show_what_varies_within_a_trial(batches: int, *, scored: bool) -> None:
    merged = with_parts(5, batches=batches)
    assert (merged.sample(0.5).scores is not None) is scored
    (several,) = Quantiles.several(with_parts(5, batches=batches), (0.5,))
    assert (several.scores is not None) is scored
    assert merged.batches == batches
    assert with_parts(5, batches=14).batches == 10
    assert Merged(merged.histograms).batches == 0


def test_batches_of_trials_of_other_lengths_are_cut_alike() -> None:
    times = [[Histogram.of([1e6] * count) for count in counts] for counts in ((1, 2, 3, 4, 5), (6, 7))]
    merged = Merged([Histogram.merged(own) for own in times], times)
    assert merged.batches == 2
    assert merged.batch_totals.tolist() == [[3, 12], [6, 7]]


def test_what_is_released_is_made_again() -> None:
    merged = Merged(parts(6))
    (before,) = Quantiles.several(merged, (0.9,))
    assert merged.sample(0.9) is before
    merged.release()
    assert "resampled" not in vars(before)
    (after,) = Quantiles.several(merged, (0.9,))
    assert after is not before
    assert after.resampled.tolist() == Quantiles(parts(6), 0.9).resampled.tolist()
