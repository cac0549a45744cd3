"""Between which rates a server stops to meet an objective, from all probes so far: by the model where it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import scipy

from redline.model import Objective
from redline.search.evidence import Capacity, Evidence, capacity_of
from redline.search.growth import overloaded
from redline.search.queue_model import Aim, Fit, Known, Point, fit, scatter
from redline.search.starts import between_starts
from redline.search.steps import QUANTILES, Step, bounds, steps

FEWEST_POINTS = 4
"""Settled probes near the edge below which the model gives a direction, not an interval."""

_NEAR = 1.8
_NEAR_SHARE = 0.15
_COMPARABLE = 1.5
_MORE_THAN_CHANCE = 0.95
_WORTH = 6
"""Of what is known of queues, in probes."""


@dataclass(frozen=True)
class Bounds:
    """[highest rate that passed, lowest that failed] of one objective; None where no such rate is known yet.

    `fit` is the model's direction, where there is one; `modelled` says that the bounds come from it, and
    `starts_differ` that starts of the server did by more than chance, so that the bounds are those of so few draws.
    """

    low_per_s: float | None
    high_per_s: float | None
    modelled: bool
    fit: Fit | None
    steps: tuple[Step, ...]
    starts_differ: bool = False

    @property
    def half_width(self) -> float:
        """Relative to the middle; infinite while one side is open."""
        if self.low_per_s is None or self.high_per_s is None:
            return float("inf")
        return (self.high_per_s - self.low_per_s) / (self.high_per_s + self.low_per_s)


def bounds_of(evidence: Sequence[Evidence], objective: Objective, confidence: float) -> Bounds:
    """Of one objective, with two-sided confidence."""
    tried = steps(evidence, objective)
    low, high = bounds(tried)
    if objective.metric not in QUANTILES:
        return Bounds(low, high, modelled=False, fit=None, steps=tried)
    told = sorted((each for each in evidence if _tells(each)), key=lambda each: each.rate_per_s)
    points = [Point.of(each) for each in told]
    aim = Aim(QUANTILES[objective.metric], objective.limit / 1e9)
    found = _near(points, best_capacity(evidence), aim) if points else None
    if found is None:
        return Bounds(low, high, modelled=False, fit=None, steps=tried)
    fitted, kept, known = found
    used = [kept[i] for i in fitted.used]
    if fitted.bent or len(used) < FEWEST_POINTS:
        return Bounds(low, high, modelled=False, fit=fitted, steps=tried)
    below, above, starts_differ = _interval(used, known, aim, fitted, confidence)
    if below <= 0 or above == float("inf"):
        return Bounds(low, high, modelled=False, fit=fitted, steps=tried)
    low, high = _held_to(tried, below, above)
    return Bounds(low, high, modelled=True, fit=fitted, steps=tried, starts_differ=starts_differ)


def best_capacity(evidence: Sequence[Evidence]) -> Capacity | None:
    """Of the overloaded probes, those whose overload was least: together, by the inverse of their variances.

    None where more was answered at a lower rate: then overload made the server slower, and its capacity is not known.
    """
    over = [each for each in evidence if overloaded(each) and not each.client]
    found = [each for each in map(capacity_of, over) if each is not None]
    if not found:
        return None
    surest = min(each.sd_per_s for each in found)
    near = [each for each in found if each.tolerance_per_s <= _COMPARABLE * min(one.tolerance_per_s for one in found)]
    weights = [1 / each.chance_per_s**2 for each in near]
    per_s = sum(w * each.per_s for w, each in zip(weights, near, strict=True)) / sum(weights)
    kept_up = max((each.answered_per_s for each in evidence if not overloaded(each)), default=0.0)
    if per_s + 2 * surest < kept_up:
        return None
    # Many probes tell more of chance, but the tolerance is the same for all of them.
    return Capacity(per_s, sum(weights) ** -0.5, max(each.tolerance_per_s for each in near))


def _tells(evidence: Evidence) -> bool:
    ended = any(each.ended for each in evidence.timed)
    return ended and not overloaded(evidence) and not evidence.client and evidence.response.count > 0


def _near(points: Sequence[Point], capacity: Capacity | None, aim: Aim) -> tuple[Fit, list[Point], Known] | None:
    """The model through the probes near the edge, where a line is nearly straight whatever the server.

    Where it is bent all the same, without what an overload showed.
    """
    kept, known = list(points), Known(points[0], capacity)
    found = fit(kept, known, aim)
    for _ in range(3):
        local = kept if found is None else _around(points, found)
        again = None if local == kept else fit(local, known, aim)
        if again is None:
            break
        kept, found = local, again
    if found is not None and found.bent and capacity is not None:
        alone = Known(points[0])
        again = fit(kept, alone, aim)
        if again is not None and not again.bent:
            return again, kept, alone
    return None if found is None else (found, kept, known)


def _around(points: Sequence[Point], found: Fit) -> list[Point]:
    reach = max(min(abs(found.gap_per_s), _NEAR_SHARE * found.edge_per_s), found.unsettled_per_s(points[0].seconds))
    near = [point for point in points if point.rate_per_s >= found.edge_per_s - _NEAR * reach]
    return near if len(near) > FEWEST_POINTS else list(points[-FEWEST_POINTS - 1 :])


def _interval(
    points: Sequence[Point], known: Known, aim: Aim, found: Fit, confidence: float
) -> tuple[float, float, bool]:
    """Both ends, and whether they are by how starts differ.

    Student's t, with the scatter of the probes and with what chance alone would do to a queue.

    Few probes agree by luck now and then, or differ by luck: unless they differ by more than chance allows, the two are
    taken together, and never less than chance. Probes that differ by more speak for themselves.
    Where starts of the server differ by more than chance, they are what was drawn, and not the probes.
    What errs are distances to the root, by a factor: so the lower side is the longer one.
    """
    tail, free, least = (1 + confidence) / 2, len(points) - 1, found.chance_per_s
    scattered = scatter(points, known, aim)
    if (scattered / least) ** 2 > scipy.stats.chi2.ppf(_MORE_THAN_CHANCE, free) / free:
        half = float(scipy.stats.t.ppf(tail, free)) * scattered
    else:
        both = sqrt((free * scattered**2 + _WORTH * least**2) / (free + _WORTH))
        half = float(scipy.stats.t.ppf(tail, free + _WORTH)) * max(both, least)
    starts, edge = between_starts(points, known, aim, found, tail), found.edge_per_s
    differ = starts is not None and starts.half_per_s > half
    if starts is not None and differ:
        edge, half = starts.edge_per_s, starts.half_per_s
    skew = min(half / found.typical_gap_per_s, 1.0) / 2
    return edge - half * (1 + skew), edge + half, differ


def _held_to(tried: Sequence[Step], low: float, high: float) -> tuple[float, float]:
    """The interval, widened to what single rates surely said against it."""
    for step in tried:
        if step.verdict == "passed":
            high = max(high, step.rate_per_s)
        elif step.verdict == "failed":
            low = min(low, step.rate_per_s)
    return low, high
