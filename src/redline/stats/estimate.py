"""Estimates with intervals, and comparisons of two estimates. docs/concepts/statistics.md explains the method."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from redline.lazily import dataclass
from redline.model import Estimate, Metric, Verdict
from redline.stats.distributions import pairs_of, t_quantile, t_tail
from redline.stats.samples import (
    CONFIDENCE,
    Floats,
    LogRatios,
    Quantiles,
    Sample,
    batch_variances,
    bootstrap_variances,
)
from redline.stats.series import median

ALPHA = 1 - CONFIDENCE
METHOD = "t interval with the bootstrap standard error of the log, over trials"
METHOD_WITHIN = "t interval with the standard error of batches within trials, wider than over trials"
METHOD_ORDER = "order statistics of all requests, wider than over trials"
METHOD_DIFFERENCE = "t interval with the bootstrap standard error of the difference, over trials paired by round"
METHOD_MIDDLE = "t interval of the Hodges-Lehmann estimate, over trials"
METHOD_HOSTS = "t interval with hosts as a random effect, wider than over trials"
METHOD_BUILDS = "t interval with builds as a random effect, wider than over starts"
METHOD_NONE = "too few trials for an interval"
METHOD_ZERO = "no interval: a trial is zero"
METHOD_COLD = "servers were not warm, and how far their ratio may yet move is not known"
PAIRED = "paired by round"
UNPAIRED = "of two independent runs"

_FEW = {2: (0.707, 1.0), 3: (0.732, 2.0), 4: (0.872, 3.0)}
_FACTOR, _FACTOR_LESS, _FREEDOM = 1.073, 0.76, 0.765
"""For `middle_variance`: the factor and degrees of freedom for few values, and the terms of those for more."""

_MOST = 10_000
"""The most rounds that are ever suggested."""


@dataclass(frozen=True)
class Spread:
    """The variance of a logarithm by chance, and its degrees of freedom."""

    variance: float
    freedom: float

    def reach(self, resolution: float) -> float:
        """Half of the 95% interval on the log scale.

        A value lies anywhere in its histogram's slot of relative width `resolution`. Trials that all fall into the same
        slot do not cancel that error, so its variance is added whole.
        """
        return t_quantile((1 + CONFIDENCE) / 2, self.freedom) * self._error(resolution)

    def chance_of(self, distance: float, resolution: float) -> float:
        """The one-sided p-value: how likely chance alone puts the logarithm at least `distance` above the truth."""
        error = self._error(resolution)
        if error == 0:
            return 0.5 if distance == 0 else float(distance < 0)
        return t_tail(distance / error, self.freedom)

    def _error(self, resolution: float) -> float:
        return math.sqrt(self.variance + resolution**2 / 12)


def over_trials(sample: Sample, against: Sample | None = None) -> Spread | None:
    """The bootstrap variance of a statistic's log, or of the log ratio of two statistics.

    Both are of the same resampled rounds. None for fewer than two trials, or if the statistic may be zero. The
    bootstrap takes the trials for the population; n/(n-1) corrects that ("narrowness bias" in Hesterberg, What Teachers
    Should Know About the Bootstrap, 2015).
    """
    if sample.n < 2:
        return None
    if isinstance(sample, LogRatios) and against is None:  # the closed form of the bootstrap of a mean
        return Spread(float(sample.logs.var(ddof=1)) / sample.n, sample.n - 1)
    if against is None:
        variance = sample.log_variance
        return None if variance is None else Spread(variance, sample.n - 1)
    values, others = sample.resampled, against.resampled
    if np.minimum.reduce(values) <= 0 or np.minimum.reduce(others) <= 0:
        return None
    logs = np.log(values) - np.log(others)
    return Spread(bootstrap_variances(logs[np.newaxis], sample.n)[0], sample.n - 1)


def within_trials(sample: Sample, against: Sample | None = None) -> Spread | None:
    """The variance of a statistic's log, or of the log ratio of two paired by round, from batches within trials.

    It is a floor for the variance over trials, since few trials may agree by luck (docs/decisions/0015-two-levels.md).
    It is the limit of a bootstrap of each trial's batches for many draws, which has a closed form for sums (Carlstein
    1986, blocks that do not overlap). Changes common to all trials, such as a ramp or a warm-up, are not chance and are
    removed, and so are those common to both cells of a round, which get the same arrivals. None for fewer than two
    trials or batches, or if the two were cut differently.
    """
    scores, theirs = sample.scores, against.scores if against else None
    if scores is None or min(scores.shape) < 2:
        return None
    if against is not None:
        if theirs is None or theirs.shape != scores.shape:
            return None
        scores = scores - theirs
        variance = batch_variances(scores[np.newaxis])[0]
    else:
        variance = sample.batch_variance
    freedom = (scores.shape[0] - 1) * (scores.shape[1] - 1)
    return None if variance is None else Spread(variance, freedom)


def over_groups(logs: Floats, groups_of: Sequence[str]) -> Spread | None:
    """The spread of the mean of these values, one per trial, with hosts (or builds) as a sample of many.

    One-way analysis of variance with random effects; degrees of freedom by Satterthwaite. None if hosts differ by no
    more than their trials do, for a single host, and for a single trial per host. Source: Searle, Casella and
    McCulloch, Variance Components, 1992, chapter 3; docs/decisions/0027-host-pairs.md has a study.
    """
    numbers = np.unique(np.array(groups_of), return_inverse=True)[1]
    counts = np.bincount(numbers) if len(numbers) else np.zeros(0, dtype=np.int64)
    n, groups = len(logs), len(counts)
    if len(numbers) < n or groups < 2 or n == groups:
        return None
    means = np.bincount(numbers, weights=logs) / counts
    between = float(np.square(means - logs.mean()) @ counts) / (groups - 1)
    within = float(np.square(logs - means[numbers]).sum()) / (n - groups)
    if between <= within:
        return None
    squares = float(np.square(counts).sum())
    typical = (n - squares / n) / (groups - 1)
    of_between = squares / n**2 / typical
    parts = of_between * between, (1 / n - of_between) * within
    variance = sum(parts)
    freedom = variance**2 / (parts[0] ** 2 / (groups - 1) + parts[1] ** 2 / (n - groups))
    return Spread(variance, freedom)


def both_spreads(ours: Spread | None, theirs: Spread | None) -> Spread | None:
    """The spread of the difference of two independent values; degrees of freedom by Welch and Satterthwaite."""
    if ours is None or theirs is None:
        return None
    variance = ours.variance + theirs.variance
    parts = ours.variance**2 / ours.freedom + theirs.variance**2 / theirs.freedom
    return Spread(variance, variance**2 / parts if parts > 0 else min(ours.freedom, theirs.freedom))


@dataclass(frozen=True)
class Contrast:
    """The ratio of two cells, and the spreads for tests of it: over trials, then within; empty for too few trials.

    A test must hold by every spread, as the interval is their widest. `bias`: how far the log ratio may be off for
    reasons other than chance; interval and tests allow for it.
    """

    ratio: Estimate
    spreads: tuple[Spread, ...]
    resolution: float
    bias: float = 0.0

    @property
    def p(self) -> float | None:
        """The two-sided p-value of equal cells; None with too few trials.

        It is below 5% exactly if the 95% interval excludes 1.
        """
        return self._most(2.0, abs(math.log(self.ratio.value)) - self.bias)

    def p_equivalent(self, threshold: float) -> float | None:
        """The larger p-value of two one-sided tests (TOST): that the ratio is past either end of the threshold.

        It is below 2.5% exactly if the 95% interval lies within 1 / (1 + threshold) to 1 + threshold. Source: D. J.
        Schuirmann, J. of Pharmacokinetics and Biopharmaceutics 15, 1987.
        """
        return self._most(1.0, math.log1p(threshold) - abs(math.log(self.ratio.value)) - self.bias)

    def _most(self, sides: float, distance: float) -> float | None:
        chances = [spread.chance_of(distance, self.resolution) for spread in self.spreads]
        return min(1.0, sides * max(chances)) if chances else None


def estimate(sample: Sample, metric: Metric) -> Estimate:
    """The metric over these trials together, with its interval; without an interval if n < 2 or it may be zero."""
    ends, method = interval(sample)
    return _estimate(sample.value, ends, metric.unit, sample.n, method)


def interval(sample: Sample) -> tuple[tuple[float, float] | None, str]:
    """The ends of its 95% interval, and the method; no ends if n < 2 or it may be zero."""
    value = sample.value
    trials = over_trials(sample)
    if trials is None:
        return None, METHOD_NONE if sample.n < 2 else METHOD_ZERO
    ends = {METHOD: _around(value, trials.reach(sample.resolution))}
    for method, spread in ((METHOD_WITHIN, within_trials(sample)), (METHOD_HOSTS, _over_hosts(sample))):
        if spread is not None:
            ends[method] = _around(value, spread.reach(sample.resolution))
    held = sample.held
    if held is not None:
        ends[METHOD_ORDER] = min(held[0], value), max(held[1], value)
    return _widest(ends)


def paired(cell: Sample, baseline: Sample) -> Contrast | None:
    """Compare a cell with its baseline, where trial i of both ran in the same round; None if either is zero."""
    hosts = _over_hosts(cell, baseline)
    if isinstance(cell, Quantiles):
        logs = _logs(cell, baseline)
        return _of_middles(logs[0] - logs[1], None, cell, baseline, hosts) if logs else None
    known = {METHOD: over_trials(cell, baseline), METHOD_WITHIN: within_trials(cell, baseline), METHOD_HOSTS: hosts}
    return _contrast(cell, baseline, known, PAIRED)


def unpaired(cell: Sample, baseline: Sample) -> Contrast | None:
    """Compare a cell with its baseline in another run; None if either is zero."""
    if isinstance(cell, Quantiles):
        logs = _logs(cell, baseline)
        return _of_middles(*logs, cell, baseline) if logs else None
    trials = both_spreads(over_trials(cell), over_trials(baseline))
    known = {METHOD: trials, METHOD_WITHIN: both_spreads(within_trials(cell), within_trials(baseline))}
    return _contrast(cell, baseline, known, UNPAIRED)


def unpaired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    """The ratio of `unpaired`."""
    contrast = unpaired(cell, baseline)
    return contrast.ratio if contrast else None


def paired_difference(cell: Sample, baseline: Sample, metric: Metric) -> Estimate:
    """The cell minus its baseline, where trial i of both ran in the same round; without an interval if n < 2.

    As `paired`, but with the difference in place of the log ratio, so a baseline of zero is allowed.
    """
    value, ends, method = cell.value - baseline.value, None, METHOD_NONE
    if cell.n > 1:
        # A value lies anywhere in its histogram's slot.
        slots = (cell.resolution * cell.value) ** 2 + (baseline.resolution * baseline.value) ** 2
        variance = bootstrap_variances((cell.resampled - baseline.resampled)[np.newaxis], cell.n)[0] + slots / 12
        halves = {METHOD_DIFFERENCE: Spread(variance, cell.n - 1).reach(0)}
        if cell.hosts == baseline.hosts and (over := over_groups(cell.by_trial - baseline.by_trial, cell.hosts)):
            halves[f"{METHOD_HOSTS}, {PAIRED}"] = Spread(over.variance + slots / 12, over.freedom).reach(0)
        ends, method = _widest({name: (value - half, value + half) for name, half in halves.items()})
    return _estimate(value, ends, metric.unit, min(cell.n, baseline.n), method)


class Decision(NamedTuple):
    """The verdict on a ratio, and whether a significant difference matters; None if there is no such difference."""

    verdict: Verdict
    matters: bool | None = None


def decide(ratio: Estimate, threshold: float, *, higher_is_better: bool, p_adjusted: float | None = None) -> Decision:
    """The verdict that a ratio with its interval allows; `threshold` is the smallest relative difference that matters.

    A difference is significant if the interval excludes 1 and, where the comparison belongs to a family, the adjusted
    p-value is below 5%. It does not matter if the whole interval is within the threshold. Without a significant
    difference, such an interval means equivalent.
    """
    if ratio.low is None or ratio.high is None:
        return Decision(Verdict.INCONCLUSIVE)
    within = ratio.is_within(threshold)
    if ratio.low <= 1 <= ratio.high or (p_adjusted is not None and p_adjusted >= ALPHA):
        return Decision(Verdict.EQUIVALENT if within else Verdict.INCONCLUSIVE)
    better = (ratio.low > 1) == higher_is_better
    return Decision(Verdict.FASTER if better else Verdict.SLOWER, not within)


def middle(values: Floats) -> float:
    """The Hodges-Lehmann estimate: the median of the averages of all pairs, including each value with itself.

    It and Shamos' measure of spread withstand 29% of outliers, and lose 5% and 14% of the precision without any.
    Sources: Hodges and Lehmann, Annals of Mathematical Statistics 34, 1963; Shamos, Geometry and Statistics, 1976.
    docs/decisions/0019-tails.md has the study.
    """
    rows, columns = pairs_of(len(values), 0)
    return median((values[rows] + values[columns]) / 2)


def middle_variance(values: Floats) -> tuple[float, float]:
    """The variance of the `middle` of two values or more, and its degrees of freedom.

    It rests on the median distance of all pairs. Factor and degrees of freedom are fitted so that the middle over its
    error has Student's distribution for normal values (tests/studies/tails.py); for many values the factor is 1.0484 *
    sqrt(pi / 3).
    """
    n = len(values)
    rows, columns = pairs_of(n)
    factor, freedom = _FEW.get(n) or (_FACTOR - _FACTOR_LESS / n, _FREEDOM * (n - 1))
    return (factor * median(np.abs(values[rows] - values[columns]))) ** 2 / n, freedom


def middle_shift(ours: Floats, theirs: Floats) -> float:
    """The shift from theirs to ours: the median of all pairwise differences."""
    return float(np.median(ours[:, np.newaxis] - theirs))


def scatter_of(ratio: Estimate, bias: float | None = 0.0) -> float | None:
    """The standard deviation of the log ratio between rounds, from the interval over `n` rounds.

    None if the interval rests on hosts or builds, which more rounds do not narrow, or on its `bias` alone.
    """
    if ratio.low is None or ratio.high is None or ratio.low <= 0 or ratio.n < 2:
        return None
    if bias is None or ratio.method.startswith((METHOD_HOSTS, METHOD_BUILDS)):
        return None
    half = math.log(ratio.high / ratio.low) / 2 - bias
    if half <= 0:
        return None
    return half * math.sqrt(ratio.n) / _t(ratio.n)


def shown_by(scatter: float, rounds: int) -> float:
    """The smallest relative difference that this many rounds show: half the width of their interval."""
    return math.expm1(min(_t(rounds) * scatter / math.sqrt(rounds), 100.0))


def scatter_showing(difference: float, rounds: int) -> float:
    """The largest scatter with which this many rounds, at least two, show the difference."""
    return math.log1p(difference) * math.sqrt(rounds) / _t(rounds)


def rounds_for(scatter: float, difference: float) -> int | None:
    """The fewest rounds that show this difference; None if they are more than are ever suggested."""
    if shown_by(scatter, _MOST) > difference:
        return None
    low, high = 2, _MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if shown_by(scatter, middle) <= difference else (middle + 1, high)
    return low


def _t(rounds: int) -> float:
    return t_quantile((1 + CONFIDENCE) / 2, rounds - 1)


def _logs(cell: Sample, baseline: Sample) -> tuple[Floats, Floats] | None:
    """The logarithms of the trials' own values; None if any is zero."""
    ours, theirs = cell.by_trial, baseline.by_trial
    return (np.log(ours), np.log(theirs)) if min(ours.min(), theirs.min()) > 0 else None


def _over_hosts(cell: Sample, baseline: Sample | None = None) -> Spread | None:
    """The spread over the hosts of the trials, or of the rounds in which both ran on the same host."""
    if baseline is None:
        ours = cell.by_trial
        return over_groups(np.log(ours), cell.hosts) if cell.hosts and ours.min() > 0 else None
    logs = _logs(cell, baseline) if cell.hosts and cell.hosts == baseline.hosts else None
    return over_groups(logs[0] - logs[1], cell.hosts) if logs else None


def _of_middles(
    ours: Floats, theirs: Floats | None, cell: Sample, baseline: Sample, hosts: Spread | None = None
) -> Contrast:
    """The ratio of percentiles from the middle of the trials' own: of the rounds' log ratios, or between two runs."""
    value = math.exp(middle(ours) if theirs is None else middle_shift(ours, theirs))
    n, resolution = min(cell.n, baseline.n), math.hypot(cell.resolution, baseline.resolution)
    spread = _of_middle(ours) if theirs is None else both_spreads(_of_middle(ours), _of_middle(theirs))
    if spread is None:
        return Contrast(_estimate(value, None, "ratio", n, METHOD_NONE), (), resolution)
    pairing = PAIRED if theirs is None else UNPAIRED
    spreads = {f"{METHOD_MIDDLE}, {pairing}": spread} | ({f"{METHOD_HOSTS}, {pairing}": hosts} if hosts else {})
    return contrast_of(value, spreads, n, resolution)


def _of_middle(values: Floats) -> Spread | None:
    return Spread(*middle_variance(values)) if len(values) > 1 else None


def _contrast(cell: Sample, baseline: Sample, by_method: Mapping[str, Spread | None], pairing: str) -> Contrast | None:
    over, under = cell.value, baseline.value
    if over <= 0 or under <= 0:
        return None
    n, resolution = min(cell.n, baseline.n), math.hypot(cell.resolution, baseline.resolution)
    if by_method[METHOD] is None:
        return Contrast(
            _estimate(over / under, None, "ratio", n, METHOD_NONE if n < 2 else METHOD_ZERO), (), resolution
        )
    spreads = {f"{method}, {pairing}": spread for method, spread in by_method.items() if spread is not None}
    return contrast_of(over / under, spreads, n, resolution)


def contrast_of(
    value: float, spreads: Mapping[str, Spread], n: int, resolution: float = 0.0, bias: float = 0.0
) -> Contrast:
    """A ratio whose spread is known by these methods; without an interval if there are none.

    `bias` as in `Contrast`; if it is infinite, there is no interval either.
    """
    if not spreads:
        return Contrast(_estimate(value, None, "ratio", n, METHOD_NONE), (), resolution)
    if math.isinf(bias):
        return Contrast(_estimate(value, None, "ratio", n, METHOD_COLD), (), resolution)
    reached, method = _widest(
        {name: _around(value, spread.reach(resolution) + bias) for name, spread in spreads.items()}
    )
    return Contrast(_estimate(value, reached, "ratio", n, method), tuple(spreads.values()), resolution, bias)


def _estimate(value: float, ends: tuple[float, float] | None, unit: str, n: int, method: str) -> Estimate:
    low, high = ends or (None, None)
    return Estimate(value=value, low=low, high=high, confidence=CONFIDENCE, unit=unit, n=n, method=method)


def _widest(ends: dict[str, tuple[float, float]]) -> tuple[tuple[float, float], str]:
    """The lowest and the highest of all ends, and the name of the widest interval."""
    lows, highs = zip(*ends.values(), strict=True)
    widths = [high - low for low, high in ends.values()]
    return (min(lows), max(highs)), [*ends][widths.index(max(widths))]


def _around(value: float, half_width: float) -> tuple[float, float]:
    # Two trials that differ wildly give a half width whose exponential overflows; the interval is then unbounded.
    reach = math.exp(min(half_width, 300.0))
    return value / reach, value * reach
