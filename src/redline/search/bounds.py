"""All conditions of a set of objectives, taken together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from redline.model import Objective
from redline.search.interval import Bounds
from redline.search.queue_model import Fit
from redline.search.steps import QUANTILES, Verdict

NEAR_SHARE = 0.15
"""Of a rate: so far from the edge is near it."""


def high_of(known: Bounds) -> float:
    """The lowest rate that failed; infinite where none is known."""
    if known.high_per_s is not None:
        return known.high_per_s
    return float("inf")


def implies(strict: Objective, loose: Objective) -> bool:
    """Whether whatever meets one meets the other: a percentile at least as deep, below a limit at most as long."""
    if strict.metric not in QUANTILES or loose.metric not in QUANTILES:
        return False
    return QUANTILES[strict.metric] >= QUANTILES[loose.metric] and strict.limit <= loose.limit


def handed_on(found: Sequence[tuple[Objective, Bounds]]) -> dict[str, Bounds]:
    """The bounds of each condition, by its text, as the others allow them.

    What passed a stricter condition passed this one, and what failed a looser one failed this one. Bounds that
    contradict each other stay as they are, and so do those that come from single rates: there that is so already.
    """
    return {condition.text: _allowed(condition, bounds, found) for condition, bounds in found}


def _allowed(condition: Objective, bounds: Bounds, found: Sequence[tuple[Objective, Bounds]]) -> Bounds:
    told = [(other, each) for other, each in found if each.modelled]
    lows = [each.low_per_s for other, each in told if implies(other, condition) and each.low_per_s is not None]
    highs = [each.high_per_s for other, each in told if implies(condition, other) and each.high_per_s is not None]
    if not bounds.modelled or max(lows) >= min(highs):
        return bounds
    return replace(bounds, low_per_s=max(lows), high_per_s=min(highs))


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Of all conditions of a set."""
    if "failed" in verdicts:
        return "failed"
    return "unclear" if "unclear" in verdicts else "passed"


def texts(conditions: Sequence[Objective]) -> str:
    """`p99 < 20ms, errors < 0.1%`."""
    return ", ".join(each.text for each in conditions)


def fits(known: Mapping[str, Bounds]) -> list[Fit]:
    """The models that may tell where the set fails: not those that see their edge where it is known to have failed."""
    high = min(high_of(each) for each in known.values())
    return [each.fit for each in known.values() if each.fit is not None and each.fit.edge_per_s <= high]


def plausible(found: Fit, low: float | None, high: float | None) -> bool:
    """Whether the model's edge lies about where the answer is open."""
    above_low = low is None or found.edge_per_s >= (1 - NEAR_SHARE) * low
    return above_low and (high is None or found.edge_per_s <= high)


def first_to_fail(known: Mapping[str, Bounds]) -> Bounds:
    """The condition that fails first, as far as is known; one with a model before one without."""
    fitted = fits(known)
    if fitted and not any(each.modelled for each in known.values()):
        first = min(fitted, key=lambda each: each.edge_per_s)
        return next(each for each in known.values() if each.fit is first)
    return min(known.values(), key=high_of)


def bracket_of(known: Mapping[str, Bounds]) -> tuple[float | None, float | None]:
    """All conditions together: the lowest of the bounds."""
    lows = [each.low_per_s for each in known.values()]
    highs = [each.high_per_s for each in known.values() if each.high_per_s is not None]
    low = None if any(each is None for each in lows) else min(each for each in lows if each is not None)
    return low, (min(highs) if highs else None)


def ends_of(known: Mapping[str, Bounds]) -> list[tuple[Literal["low", "high"], float]]:
    """Both ends; none while a side is open."""
    low, high = bracket_of(known)
    return [("low", low), ("high", high)] if low is not None and high is not None else []


def width(known: Mapping[str, Bounds]) -> float:
    """Half of it, relative to the middle; infinite while a side is open."""
    low, high = bracket_of(known)
    return float("inf") if low is None or high is None else (high - low) / (high + low)
