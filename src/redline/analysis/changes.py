"""Where a cell changed from one run to the next: change points that noise does not explain. Pure.

A change is one of level, not noise, which the trials confirm and which matters: docs/guide/history.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from redline.model import Estimate, Metric, Verdict
from redline.stats import Sample, decide, pooled, unpaired_ratio
from redline.stats.distributions import t_quantile
from redline.stats.samples import Floats
from redline.stats.series import level_ends

PENALTY = 20.0
"""What one more change point has to explain, in variances of the noise: a lone last run must be off by 4.5 sigma.

Flat histories of 4 to 12 runs were then split in 2.5% to 5% of simulations, of 20 and more in at most 1.5%.
"""

FEWEST_RUNS = 4
"""Three differences are the fewest whose median one step cannot spoil."""

_MEDIAN_OF_NORMAL = 0.6745


@dataclass(frozen=True)
class Level:
    """One metric of a cell in one run."""

    estimate: Estimate
    sample: Sample


@dataclass(frozen=True)
class Step:
    """From the `at`-th of the runs on, up to the `until`-th, the level is another than from `since` on."""

    since: int
    at: int
    until: int
    ratio: Estimate
    verdict: Verdict
    matters: bool | None


def steps(levels: Sequence[Level], metric: Metric, threshold: float) -> tuple[Step, ...]:
    """The changes in a sequence of runs, in order; none in fewer than `FEWEST_RUNS`.

    A change point whose trials do not confirm it, or that is too small to matter, is dropped, the smallest first, and
    its neighbours are asked again with the longer levels that this gives them.
    """
    values = np.array([level.estimate.value for level in levels])
    if len(levels) < FEWEST_RUNS or np.any(values <= 0):
        return ()
    logs: Floats = np.log(values)
    ends = [0, *level_ends(logs, PENALTY * noise(logs, levels) ** 2)]
    known: dict[tuple[int, int, int], Step] = {}
    while len(ends) > 2:
        candidates = []
        for place in zip(ends, ends[1:], ends[2:], strict=False):
            if place not in known:
                known[place] = _step(levels, place, metric, threshold)
            candidates.append(known[place])
        doubtful = [step for step in candidates if not step.matters]
        if not doubtful:
            return tuple(candidates)
        ends.remove(min(doubtful, key=lambda step: abs(float(np.log(step.ratio.value)))).at)
    return ()


def standing(levels: Sequence[Level], made: Sequence[Step], metric: Metric, threshold: float) -> Step | None:
    """The last change for the worse that nothing mended: the present level is still slower than the level before it.

    An improvement by less than what was lost mends nothing. `made` are the `steps` of `levels`.
    """
    for step in reversed(made):
        if step.verdict is Verdict.SLOWER:
            ratio = _ratio(levels[made[-1].at :], levels[step.since : step.at])
            present = decide(ratio, threshold, higher_is_better=metric.higher_is_better)
            if present.verdict is Verdict.SLOWER and present.matters:
                return step
    return None


def noise(logs: Floats, levels: Sequence[Level]) -> float:
    """The standard deviation of the log from run to run, where nothing changes.

    From the median of the differences between neighbours, of which a change spoils only one (for normal noise it is
    0.6745 * sqrt(2) sigma); but not less than what the trials of the median run say of its own error.
    """
    steps_between = np.abs(np.diff(logs))
    between = float(np.median(steps_between)) / (_MEDIAN_OF_NORMAL * 2**0.5)
    return max(between, float(np.median([_error(level) for level in levels])), 1e-9)


def _error(level: Level) -> float:
    """The standard error of the log, as far as its trials show it; at least that of a histogram's slot."""
    estimate, slot = level.estimate, level.sample.resolution / 12**0.5
    if not estimate.low or not estimate.high or estimate.n < 2:
        return slot
    half = float(np.log(estimate.high / estimate.low)) / 2
    return max(slot, half / t_quantile((1 + estimate.confidence) / 2, estimate.n - 1))


def _step(levels: Sequence[Level], place: tuple[int, int, int], metric: Metric, threshold: float) -> Step:
    since, at, until = place
    ratio = _ratio(levels[at:until], levels[since:at])
    return Step(since, at, until, ratio, *decide(ratio, threshold, higher_is_better=metric.higher_is_better))


def _ratio(after: Sequence[Level], before: Sequence[Level]) -> Estimate:
    ratio = unpaired_ratio(*(pooled([level.sample for level in part]) for part in (after, before)))
    if ratio is None:
        raise ValueError("a level of zero has no ratio")  # `steps` asks for positive values only
    return ratio
