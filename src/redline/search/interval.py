"""The rates between which a server stops meeting an objective, from all probes so far, by the model where it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import inf, isfinite, sqrt
from typing import Literal

import numpy as np

from redline.model import Objective
from redline.search.evidence import Capacity, Evidence, capacity_of, overloaded, stall_ns
from redline.search.queue_model import Aim, Known, ProbePoint, QueueFit, fit, scatter
from redline.search.scattered import Scattered, scattered
from redline.search.steps import QUANTILES, TriedRate, bounds, steps, without_stalls
from redline.stats.distributions import chi2_quantile, t_quantile
from redline.stats.objectives import DEPTHS

FEWEST_STARTS = 3
"""The fewest starts that show how starts differ."""

FEWEST_POINTS = 4
"""The fewest settled probes near the limit with which the model gives an interval, not only a direction."""

NEAR_SHARE = 0.15
"""Rates within this share of the limit are near it."""

_REFUSED = 0.8
"""If a smaller share of due requests gets right answers, the server is saturated, not unlucky."""
_SHARES = ("errors", "achieved")
_NEAR = 1.8
_COMPARABLE = 1.5
_MORE_THAN_CHANCE = 0.95
_WORTH = 6
"""The weight of the model's prior knowledge of queues, in probes."""


def between_starts(
    points: Sequence[ProbePoint], known: Known, aim: Aim, whole: QueueFit, tail: float
) -> tuple[float, float] | None:
    """The limit of the typical start, and half the width of its interval; None if starts differ by chance alone.

    All starts have the same weight. `whole` is the model through all points, `tail` the share below the upper end. The
    value of a start is h * whole - (h - 1) * rest, where *h* is the number of all points over that of its own. Source:
    Busing, Meijer and van der Leeden, Delete-m jackknife for unequal m, Statistics and Computing 9, 1999.
    """
    starts = sorted({point.start for point in points})
    if len(starts) < FEWEST_STARTS:
        return None
    alone = []
    for start in starts:
        rest = [point for point in points if point.start != start]
        fitted = fit(rest, known, aim)
        if fitted is not None:  # too few probes may give no model; the other starts then decide
            weight = len(points) / (len(points) - len(rest))
            alone.append(weight * whole.limit_per_s - (weight - 1) * fitted.limit_per_s)
    if len(alone) < FEWEST_STARTS:
        return None
    free, error = len(alone) - 1, float(np.std(alone, ddof=1)) / sqrt(len(alone))
    if (error / whole.chance_per_s) ** 2 <= chi2_quantile(_MORE_THAN_CHANCE, free) / free:
        return None
    return float(np.mean(alone)), t_quantile(tail, free) * error


@dataclass(frozen=True)
class Crossing:
    """A contradiction: a stricter condition passed where a looser one failed. `rate_per_s` is between both answers."""

    strict: str
    loose: str
    rate_per_s: float


@dataclass(frozen=True)
class Bounds:
    """The [highest rate that passed, lowest that failed] of an objective; None where no such rate is known yet.

    `fit`: the model, if any; `modelled`: the bounds come from it. `starts_differ`: starts of the server differ by more
    than chance, so the bounds rest on the number of starts. `crossing`: another condition's bounds contradicted these,
    which are now the hull of both. `scattered`: probes differ by more than chance, and the bounds are those of the
    typical probe. `uneven`: the same, but parts of a probe differ as much, so the bounds are those of single rates.
    """

    low_per_s: float | None
    high_per_s: float | None
    modelled: bool
    fit: QueueFit | None
    steps: tuple[TriedRate, ...]
    starts_differ: bool = False
    crossing: Crossing | None = None
    scattered: Scattered | None = None
    uneven: bool = False


def bounds_of(evidence: Sequence[Evidence], objective: Objective, confidence: float) -> Bounds:
    """The bounds of an objective, with two-sided confidence.

    A recording has rushes of its own, the same in each probe, and users wait for their answers, so no model of a queue
    says how far chance reaches.
    """
    tried = steps(evidence, objective)
    low, high = bounds(tried)
    by_steps = Bounds(low, high, modelled=False, fit=None, steps=tried)
    if objective.metric not in QUANTILES or objective.request is not None or not _are_queues(evidence):
        return by_steps  # the model is of the queue of all requests
    usable = sorted(filter(_is_usable, evidence), key=lambda probe: probe.rate_per_s)
    points = [ProbePoint.of(probe) for probe in usable]
    aim = Aim(QUANTILES[objective.metric], objective.limit / 1e9)
    # With several starts, the starts are the sample, not the probes.
    few_starts = len({probe.start for probe in evidence}) < FEWEST_STARTS
    differing = scattered(evidence, aim, (1 + confidence) / 2) if few_starts else None
    if differing is not None and (differing.uneven or differing.half_per_s < differing.limit_per_s):
        return replace(by_steps, uneven=True) if differing.uneven else _of_typical_probe(differing, tried)
    near = _near(points, best_capacity(evidence), aim) if points else None
    if near is None:
        return by_steps
    fitted, kept, known = near
    used = [kept[i] for i in fitted.used]
    by_steps = replace(by_steps, fit=fitted)
    if fitted.bent or len(used) < FEWEST_POINTS:
        return by_steps
    below, above, starts_differ = _interval(used, known, aim, fitted, confidence)
    if below <= 0 or above == inf:
        return by_steps
    low, high = _held_to(tried, below, above)
    return Bounds(low, high, modelled=True, fit=fitted, steps=tried, starts_differ=starts_differ)


def _of_typical_probe(found: Scattered, tried: tuple[TriedRate, ...]) -> Bounds:
    low, high = found.limit_per_s - found.half_per_s, found.limit_per_s + found.half_per_s
    return Bounds(low, high, modelled=True, fit=None, steps=tried, scattered=found)


def best_capacity(evidence: Sequence[Evidence]) -> Capacity | None:
    """The capacity from the least overloaded probes, weighted by the inverse of their variances.

    None if the server answered more at a lower rate: overload made it slower, and its capacity is not known.
    """
    over = [probe for probe in evidence if overloaded(probe) and not probe.client and not stall_ns(probe)]
    capacities = [capacity for capacity in map(capacity_of, over) if capacity is not None]
    if not capacities:
        return None
    surest = min(capacity.sd_per_s for capacity in capacities)
    comparable_per_s = _COMPARABLE * min(capacity.tolerance_per_s for capacity in capacities)
    near = [capacity for capacity in capacities if capacity.tolerance_per_s <= comparable_per_s]
    weights = [1 / capacity.chance_per_s**2 for capacity in near]
    per_s = sum(w * capacity.per_s for w, capacity in zip(weights, near, strict=True)) / sum(weights)
    kept_up = max((probe.answered_per_s for probe in evidence if not overloaded(probe)), default=0.0)
    if per_s + 2 * surest < kept_up:
        return None
    # More probes reduce chance, but all of them share the tolerance.
    return Capacity(per_s, sum(weights) ** -0.5, max(capacity.tolerance_per_s for capacity in near))


def capped(
    low: float | None, high: float | None, conditions: Sequence[Objective], evidence: Sequence[Evidence]
) -> tuple[float | None, float | None]:
    """The ends for a set of conditions, capped by the rate of right answers, which no limit exceeds.

    The cap is the most that the server answered while it could not answer everything, with two standard deviations each
    way, over the share that the conditions on errors and on the achieved rate demand. Nothing is capped without such
    conditions, or if the server kept up with a rate at which it answered more: overload then made it slower. What it
    answered to a client that was late or busy, it answered; what it answered while it stood still is no capacity.
    """
    if not _are_queues(evidence):  # answers per second depend on when a recording's requests fall due, or on users
        return low, high
    shares = [condition for condition in conditions if condition.metric in _SHARES and condition.request is None]
    share = max((1 - share.limit if share.below else share.limit for share in shares), default=0)
    saturated = [probe for probe in evidence if _saturated(probe) and not probe.client and not stall_ns(probe)]
    capacities = [capacity for capacity in map(capacity_of, saturated) if capacity is not None]
    if not capacities or high is None or share <= 0:
        return low, high
    most = max(capacities, key=lambda capacity: capacity.per_s)
    least_per_s, most_per_s = ((most.per_s + sign * 2 * most.sd_per_s) / share for sign in (-1, 1))
    if any(probe.answered_per_s > share * most_per_s for probe in evidence if not _saturated(probe)):
        return low, high
    return low if low is None or low < most_per_s else least_per_s, min(high, most_per_s)


def _are_queues(evidence: Sequence[Evidence]) -> bool:
    return all(probe.is_queue for probe in evidence)


def _saturated(evidence: Evidence) -> bool:
    """Whether the server could not answer everything: its backlog grew, or it refused many requests."""
    return overloaded(evidence) or evidence.answered_per_s < _REFUSED * evidence.offered_per_s


def _is_usable(evidence: Evidence) -> bool:
    ended = any(slice_.ended for slice_ in evidence.timed)
    shows = not overloaded(evidence) and not evidence.client and not evidence.aborted
    return ended and shows and evidence.response.count > 0


def _near(
    points: Sequence[ProbePoint], capacity: Capacity | None, aim: Aim
) -> tuple[QueueFit, list[ProbePoint], Known] | None:
    """The model through the probes near the limit, where the line is nearly straight for any server.

    If it is bent there, the model is fitted without the capacity that an overload showed.
    """
    kept, known = list(points), Known(points[0], capacity)
    fitted = fit(kept, known, aim)
    for _ in range(3):
        local = kept if fitted is None else _around(points, fitted)
        again = None if local == kept else fit(local, known, aim)
        if again is None:
            break
        kept, fitted = local, again
    if fitted is not None and fitted.bent and capacity is not None:
        alone = Known(points[0])
        again = fit(kept, alone, aim)
        if again is not None and not again.bent:
            return again, kept, alone
    return None if fitted is None else (fitted, kept, known)


def _around(points: Sequence[ProbePoint], fitted: QueueFit) -> list[ProbePoint]:
    reach = max(min(abs(fitted.gap_per_s), NEAR_SHARE * fitted.limit_per_s), fitted.unsettled_per_s(points[0].seconds))
    near = [point for point in points if point.rate_per_s >= fitted.limit_per_s - _NEAR * reach]
    return near if len(near) > FEWEST_POINTS else list(points[-FEWEST_POINTS - 1 :])


def _interval(
    points: Sequence[ProbePoint], known: Known, aim: Aim, fitted: QueueFit, confidence: float
) -> tuple[float, float, bool]:
    """The ends by Student's t, and whether they rest on how starts differ.

    A few probes may agree or differ by luck. Unless their scatter exceeds what chance makes of a queue, it is pooled
    with chance and never counts as less than chance; otherwise it counts alone. If starts of the server differ by more
    than chance, the starts are the sample, not the probes. Errors are multiplicative in the distance to the root, so
    the lower side is longer.
    """
    tail, free, least = (1 + confidence) / 2, len(points) - 1, fitted.chance_per_s
    scattered = scatter(points, known, aim)
    if (scattered / least) ** 2 > chi2_quantile(_MORE_THAN_CHANCE, free) / free:
        half = t_quantile(tail, free) * scattered
    else:
        both = sqrt((free * scattered**2 + _WORTH * least**2) / (free + _WORTH))
        half = t_quantile(tail, free + _WORTH) * max(both, least)
    starts, limit = between_starts(points, known, aim, fitted, tail), fitted.limit_per_s
    differ = starts is not None and starts[1] > half
    if starts is not None and differ:
        limit, half = starts
    skew = min(half / fitted.typical_gap_per_s, 1.0) / 2
    return limit - half * (1 + skew), limit + half, differ


def _held_to(tried: Sequence[TriedRate], low: float, high: float) -> tuple[float, float]:
    """The interval, widened to single rates that surely contradict it."""
    counted = without_stalls(tried)
    passed = [step.rate_per_s for step in counted if step.state == "met"]
    failed = [step.rate_per_s for step in counted if step.state == "missed"]
    return min([low, *failed]), max([high, *passed])


def low_of(known: Bounds) -> float:
    """The highest rate that passed; 0 if none is known."""
    return known.low_per_s or 0.0


def high_of(known: Bounds) -> float:
    """The lowest rate that failed; infinite if none is known."""
    return inf if known.high_per_s is None else known.high_per_s


def implies(strict: Objective, loose: Objective) -> bool:
    """Whether meeting `strict` implies meeting `loose`, such as a deeper percentile with the same limit."""
    if strict.request != loose.request:
        return False
    if strict.metric in DEPTHS and loose.metric in DEPTHS and strict.times == loose.times:
        return DEPTHS[strict.metric] >= DEPTHS[loose.metric] and strict.limit <= loose.limit
    if strict.metric != loose.metric or strict.below != loose.below:
        return False
    return strict.limit <= loose.limit if strict.below else strict.limit >= loose.limit


def propagate_bounds(bounded: Sequence[tuple[Objective, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each condition, by its text, tightened by those of the other conditions.

    A rate that passed a stricter condition passed this one, and a rate that failed a looser one failed this one. If two
    bounds contradict each other, one is wrong, and nothing says which: both become the hull of the two.
    """
    known = {condition.text: bounds for condition, bounds in bounded}
    conditions = permutations([condition for condition, _ in bounded], 2)
    pairs = [(strict.text, loose.text) for strict, loose in conditions if implies(strict, loose)]
    while crossings := [(strict, loose) for strict, loose in pairs if _cross(known[strict], known[loose])]:
        known = {text: _hull(own, [pair for pair in crossings if text in pair], known) for text, own in known.items()}
    return {
        text: _tightened(
            own,
            [own, *(known[strict] for strict, loose in pairs if loose == text)],
            [own, *(known[loose] for strict, loose in pairs if strict == text)],
        )
        for text, own in known.items()
    }


def _cross(strict: Bounds, loose: Bounds) -> bool:
    """Whether the stricter condition passed where the looser one failed, and their bounds are not yet their hull."""
    return low_of(strict) >= high_of(loose) and (low_of(strict), high_of(strict)) != (low_of(loose), high_of(loose))


def _hull(own: Bounds, crossings: Sequence[tuple[str, str]], known: Mapping[str, Bounds]) -> Bounds:
    """The bounds of a condition, widened to those of the pairs of conditions that it crosses, the stricter first."""
    if not crossings:
        return own
    strict, loose = crossings[0]
    joined = [known[text] for pair in crossings for text in pair]
    low, high = _rates(min(map(low_of, joined)), max(map(high_of, joined)))
    crossing = Crossing(strict, loose, sqrt(high_of(known[loose]) * low_of(known[strict])))
    modelled = all(bounds.modelled for bounds in joined)
    return replace(own, low_per_s=low, high_per_s=high, modelled=modelled, crossing=crossing)


def _rates(low: float, high: float) -> tuple[float | None, float | None]:
    """The ends as rates, with None for a lower end of 0 and an infinite upper end: these are not known."""
    return low if low > 0 else None, high if isfinite(high) else None


def _tightened(own: Bounds, stricter: Sequence[Bounds], looser: Sequence[Bounds]) -> Bounds:
    """The bounds of a condition: the highest lower end of the stricter, and the lowest upper end of the looser."""
    low, high = max(stricter, key=low_of), min(looser, key=high_of)
    modelled = own.modelled and low.modelled and high.modelled
    return replace(own, low_per_s=low.low_per_s, high_per_s=high.high_per_s, modelled=modelled)


def texts(conditions: Sequence[Objective]) -> str:
    """`p99 < 20ms, errors < 0.1%`."""
    return ", ".join(condition.text for condition in conditions)


def fits(known: Mapping[str, Bounds]) -> list[QueueFit]:
    """The models that may show where the set fails, without those whose limit contradicts the known bounds."""
    high = min(map(high_of, known.values()))
    return [bounds.fit for bounds in known.values() if bounds.fit and bounds.fit.limit_per_s <= high]


def plausible(fitted: QueueFit, low: float | None, high: float | None) -> bool:
    """Whether the model's limit lies roughly within the open interval."""
    least = -inf if low is None else (1 - NEAR_SHARE) * low
    return least <= fitted.limit_per_s <= (inf if high is None else high)


def first_to_fail(known: Mapping[str, Bounds]) -> Bounds:
    """The condition that fails first, as far as is known; conditions with a model come before those without."""
    fitted = fits(known)
    if fitted and not any(bounds.modelled for bounds in known.values()):
        first = min(fitted, key=lambda fit: fit.limit_per_s)
        return next(bounds for bounds in known.values() if bounds.fit is first)
    return min(known.values(), key=high_of)


def bracket_of(known: Mapping[str, Bounds]) -> tuple[float | None, float | None]:
    """The bracket of all conditions together: the lowest of their bounds."""
    return _rates(min(map(low_of, known.values())), min(map(high_of, known.values())))


def ends_of(known: Mapping[str, Bounds]) -> list[tuple[Literal["low", "high"], float]]:
    """The ends of the bracket; empty while a side is open."""
    low, high = bracket_of(known)
    return [("low", low), ("high", high)] if low is not None and high is not None else []


def width(known: Mapping[str, Bounds]) -> float:
    """Half the width of the bracket, relative to its middle; infinite while a side is open."""
    return half_width(*bracket_of(known))


def half_width(low: float | None, high: float | None) -> float:
    """Half the width of an interval, relative to its middle; infinite while a side is open."""
    return inf if low is None or high is None else (high - low) / (high + low)
