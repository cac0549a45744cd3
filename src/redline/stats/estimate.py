"""Estimates with intervals, and comparisons of two of them. The method is taught in docs/concepts/statistics.md."""

import math
from dataclasses import dataclass

from redline.model import Estimate, Metric, Verdict
from redline.stats.samples import CONFIDENCE, Sample, plain
from redline.stats.spread import Spread, both, over_trials, within_trials

ALPHA = 1 - CONFIDENCE
METHOD = "t interval with the bootstrap standard error of the log, over trials"
METHOD_WITHIN = "t interval with the standard error of blocks within trials, wider than over trials"
METHOD_ORDER = "order statistics of all requests, wider than over trials"
METHOD_NONE = "too few trials for an interval"
PAIRED = "paired by round"
UNPAIRED = "of two independent runs"


@dataclass(frozen=True)
class Contrast:
    """The ratio of two cells, and what tests of it rest on: the spread over trials, then that within them.

    `spreads` is empty when there are too few trials. What a test says holds by each of them, so it is never at odds
    with the interval, which is the widest that any of them makes.
    """

    ratio: Estimate
    spreads: tuple[Spread, ...]
    resolution: float

    @property
    def p(self) -> float | None:
        """How likely chance alone takes equal cells as far apart, to either side; None with too few trials.

        It is below 5% exactly when the 95% interval does not hold 1.
        """
        return self._most(2.0, abs(math.log(self.ratio.value)))

    def p_equivalent(self, threshold: float) -> float | None:
        """The larger p-value of two one-sided tests (TOST): that the ratio is past either end of the threshold.

        It is below 2.5% exactly when the 95% interval lies within 1 / (1 + threshold) to 1 + threshold. Source: D. J.
        Schuirmann, J. of Pharmacokinetics and Biopharmaceutics 15, 1987.
        """
        return self._most(1.0, math.log1p(threshold) - abs(math.log(self.ratio.value)))

    def _most(self, sides: float, distance: float) -> float | None:
        chances = [spread.chance_of(distance, self.resolution) for spread in self.spreads]
        return min(1.0, sides * max(chances)) if chances else None


def estimate(sample: Sample, metric: Metric) -> Estimate:
    """The metric of these trials put together, with its interval; without one when n < 2 or it may be zero."""
    value = plain(sample)
    trials = over_trials(sample)
    if trials is None:
        return _estimate(value, None, metric.unit, sample.n, METHOD_NONE)
    ends = {METHOD: _around(value, trials.reach(sample.resolution))}
    within = within_trials(sample)
    if within is not None:
        ends[METHOD_WITHIN] = _around(value, within.reach(sample.resolution))
    held = sample.held(CONFIDENCE)
    if held is not None:
        ends[METHOD_ORDER] = min(held[0], value), max(held[1], value)
    reached, method = _widest(ends)
    return _estimate(value, reached, metric.unit, sample.n, method)


def paired(cell: Sample, baseline: Sample) -> Contrast | None:
    """Cell against baseline, where trial i of both ran in the same round; None when either is zero."""
    return _contrast(cell, baseline, over_trials(cell, baseline), within_trials(cell, baseline), PAIRED)


def unpaired(cell: Sample, baseline: Sample) -> Contrast | None:
    """Cell against baseline of two runs; None when either is zero."""
    trials = both(over_trials(cell), over_trials(baseline))
    return _contrast(cell, baseline, trials, both(within_trials(cell), within_trials(baseline)), UNPAIRED)


def paired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    """The ratio of `paired`."""
    found = paired(cell, baseline)
    return found.ratio if found else None


def unpaired_ratio(cell: Sample, baseline: Sample) -> Estimate | None:
    """The ratio of `unpaired`."""
    found = unpaired(cell, baseline)
    return found.ratio if found else None


def verdict(ratio: Estimate, metric: Metric, threshold: float, p_adjusted: float | None = None) -> Verdict:
    """What the interval of a ratio allows to say; `threshold` is the smallest relative difference that matters.

    `p_adjusted` is the p-value when all comparisons of a family count: a difference needs that it is below 5%, too.
    """
    if ratio.low is None or ratio.high is None:
        return Verdict.INCONCLUSIVE
    if 1 / (1 + threshold) <= ratio.low and ratio.high <= 1 + threshold:
        return Verdict.EQUIVALENT
    if ratio.low <= 1 <= ratio.high or (p_adjusted is not None and p_adjusted >= ALPHA):
        return Verdict.INCONCLUSIVE
    return Verdict.FASTER if (ratio.low > 1) == metric.higher_is_better else Verdict.SLOWER


def _contrast(
    cell: Sample, baseline: Sample, trials: Spread | None, within: Spread | None, pairing: str
) -> Contrast | None:
    over, under = plain(cell), plain(baseline)
    if over <= 0 or under <= 0:
        return None
    value, n = over / under, min(cell.n, baseline.n)
    resolution = math.hypot(cell.resolution, baseline.resolution)
    if trials is None:
        return Contrast(_estimate(value, None, "ratio", n, METHOD_NONE), (), resolution)
    told = {METHOD: trials} if within is None else {METHOD: trials, METHOD_WITHIN: within}
    reached, method = _widest({name: _around(value, one.reach(resolution)) for name, one in told.items()})
    made = _estimate(value, reached, "ratio", n, f"{method}, {pairing}")
    return Contrast(made, tuple(told.values()), resolution)


def _estimate(value: float, ends: tuple[float, float] | None, unit: str, n: int, method: str) -> Estimate:
    low, high = ends or (None, None)
    return Estimate(value=value, low=low, high=high, confidence=CONFIDENCE, unit=unit, n=n, method=method)


def _widest(ends: dict[str, tuple[float, float]]) -> tuple[tuple[float, float], str]:
    """The lowest and the highest end of all, and the name of the interval that reaches farthest by itself."""
    method = max(ends, key=lambda name: ends[name][1] - ends[name][0])
    return (min(low for low, _ in ends.values()), max(high for _, high in ends.values())), method


def _around(value: float, half_width: float) -> tuple[float, float]:
    # Two trials that differ wildly give a half width whose exponential is past a double; it then says "anything".
    reach = math.exp(min(half_width, 300.0))
    return value / reach, value * reach
