"""Find the runs at which a cell changed: change points that noise does not explain. Pure.

A change is a change of level that the trials confirm and that matters: docs/guide/history.md.
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
"""The penalty per change point, in variances of the noise: a single last run must be off by 4.5 sigma.

It split flat histories of 4 to 12 runs in 2.5% to 5% of simulations, and of 20 or more runs in at most 1.5%.
"""

FEWEST_RUNS = 4
"""Three differences are the fewest whose median survives a single step."""

_MEDIAN_OF_NORMAL = 0.6745


@dataclass(frozen=True)
class Level:
    """A metric of a cell in a run. `bias`: how far the logarithm of its value may be off beyond chance."""

    estimate: Estimate
    sample: Sample
    bias: float = 0.0


@dataclass(frozen=True)
class Step:
    """A change of level: runs `at` to `until` (exclusive) differ from the runs from `since` to `at`."""

    since: int
    at: int
    until: int
    ratio: Estimate
    verdict: Verdict
    matters: bool | None


def steps(levels: Sequence[Level], metric: Metric, threshold: float) -> tuple[Step, ...]:
    """The changes in a sequence of runs, in order; none in fewer than `FEWEST_RUNS`.

    A change point that its trials do not confirm, or that is too small to matter, is dropped, the smallest first, and
    its neighbours are judged again with the longer levels that result.
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
    """The last change for the worse that still stands: the present level is slower than the level before it.

    A smaller improvement does not undo it. `made` are the `steps` of `levels`.
    """
    for step in reversed(made):
        if step.verdict is Verdict.SLOWER:
            ratio = _ratio(levels[made[-1].at :], levels[step.since : step.at])
            present = decide(ratio, threshold, higher_is_better=metric.higher_is_better)
            if present.verdict is Verdict.SLOWER and present.matters:
                return step
    return None


def noise(logs: Floats, levels: Sequence[Level]) -> float:
    """The standard deviation of the log from run to run without changes.

    It follows from the median difference between neighbours, since a change affects only one difference (for normal
    noise the median is 0.6745 * sqrt(2) sigma), and is at least the error of the median run by its trials.
    """
    steps_between = np.abs(np.diff(logs))
    between = float(np.median(steps_between)) / (_MEDIAN_OF_NORMAL * 2**0.5)
    return max(between, float(np.median([_error(level) for level in levels])), 1e-9)


def _error(level: Level) -> float:
    """The standard error of the log by the trials; at least that of a histogram's slot."""
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
    return ratio.biased(sum(float(np.mean([level.bias for level in part])) for part in (after, before)))
