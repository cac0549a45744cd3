"""The search for the highest rate that meets an objective: proposes a load, takes in what it showed, and ends.

Pure: no clock, no I/O, nothing random. What it proposes follows from what it saw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from redline.model import Objective
from redline.search.answer import Bounds, best_capacity, bounds_of
from redline.search.evidence import Evidence
from redline.search.steps import Step, verdict
from redline.search.waiting import CALM

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class Settings:
    """Where the search begins, and when it is content.

    `precision` is the half width of an interval relative to its middle, `confidence` that of its two sides together.
    """

    start_per_s: float = 1000.0
    lowest_per_s: float = 1.0
    highest_per_s: float = 10_000_000.0
    probes: int = 12
    precision: float = 0.03
    confidence: float = 0.95
    repeats: int = 3


@dataclass(frozen=True)
class Proposal:
    """Try this rate next; `why` is for people. `whole`: to its end, even when it is hopeless."""

    rate_per_s: float
    why: str
    whole: bool = False


@dataclass(frozen=True)
class Limit:
    """Of one set of objectives: [highest rate that passed, lowest that failed], and how that is known.

    `confidence` is None where the interval comes from single rates: nobody has studied how often those hold the truth.
    `decided` when it is as narrow as was asked. `binding` is the condition that fails first. `reason` says why the set
    has no better answer, where more probes would not give one.
    """

    name: str
    low_per_s: float | None
    high_per_s: float | None
    confidence: float | None
    decided: bool
    modelled: bool
    binding: str
    reason: str = ""


@dataclass(frozen=True)
class Converged:
    """The search is over; a limit that is not `decided` is as narrow as the probes allowed."""

    limits: tuple[Limit, ...]
    confirmed: bool


@dataclass(frozen=True)
class Exhausted:
    """The probes are used up while a side of some set is not known; `limits` hold what is."""

    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Doomed:
    """No set has an answer, and why; `limits` hold what is known all the same."""

    reason: str
    limits: tuple[Limit, ...]


_OFFSETS = (0.3, 1.3, 0.7, 1.6, 0.0, 1.0, 0.5, 1.4, 0.2, 0.8)
_NEAR_SHARE = 0.15
_OVERLOAD = 1.12
_AT_EASE = 0.6
_WELL_KNOWN = 0.012
_BELOW_CAPACITY = 0.6


@dataclass
class Search:
    """Give it what each proposed load showed, until it proposes no more.

    Several sets of objectives share all probes: each is judged from all of them.
    """

    sets: Sets
    settings: Settings = field(default_factory=Settings)
    evidence: list[Evidence] = field(default_factory=list)
    _confirming: list[float] | None = None
    _overloads: int = 0
    _aimed: int = 0

    def saw(self, evidence: Evidence) -> None:
        """What the load that was proposed last, or any other, showed."""
        self.evidence.append(evidence)

    def next(self) -> Proposal | Converged | Exhausted | Doomed:
        """The next load to try, or the end."""
        if not self.evidence:
            return Proposal(self._within(self.settings.start_per_s), "to begin with")
        known = {name: self._bounds(name) for name in self.sets}
        if reason := self._doom():
            return Doomed(reason, self._limits(known))
        open_sets = [name for name in self.sets if not self._decided(known[name])]
        if len(self.evidence) >= self.settings.probes:
            return self._end(known)
        if not open_sets:
            return self._confirm(known)
        name = max(open_sets, key=lambda each: _width(known[each]))
        return (
            self._bracket(name) or self._calm(known[name]) or self._overload(known[name]) or self._narrow(known[name])
        )

    def limits(self) -> tuple[Limit, ...]:
        """What is known now."""
        return self._limits({name: self._bounds(name) for name in self.sets})

    def _bounds(self, name: str) -> dict[str, Bounds]:
        confidence = self.settings.confidence
        return {each.text: bounds_of(self.evidence, each, confidence) for each in self.sets[name]}

    def _doom(self) -> str | None:
        highest = max(self.evidence, key=lambda each: each.rate_per_s)
        failed = [each for each in self.evidence if self._fails(each)]
        if failed and len(failed) == len(self.evidence):
            lowest = min(each.rate_per_s for each in failed)
            if lowest <= self.settings.lowest_per_s:
                return f"even {lowest:g}/s does not meet the objective"
        if highest.client and not failed:
            got = highest.answered_per_s
            return f"the load generator is the limit: asked for {highest.rate_per_s:g}/s it came to {got:,.0f}/s"
        if not failed and highest.rate_per_s >= self.settings.highest_per_s:
            return f"even {highest.rate_per_s:g}/s, the highest rate allowed, meets the objective"
        return None

    def _fails(self, evidence: Evidence) -> bool:
        if evidence.client:
            return False
        return any(verdict((evidence,), each) == "failed" for one in self.sets.values() for each in one)

    def _bracket(self, name: str) -> Proposal | None:
        """Double until something fails, halve until something does not; None when both are known."""
        told = [each for each in self.evidence if not each.client]
        failed = [each for each in told if any(verdict((each,), one) == "failed" for one in self.sets[name])]
        kept_up = [each for each in told if each not in failed]
        if not failed:
            return Proposal(self._within(2 * max(each.rate_per_s for each in kept_up)), "doubled: nothing failed yet")
        if kept_up:
            return None
        lowest = min(each.rate_per_s for each in failed)
        capacity = best_capacity(self.evidence)
        if capacity is not None and _BELOW_CAPACITY * capacity.per_s < lowest:
            return Proposal(self._within(_BELOW_CAPACITY * capacity.per_s), "below what it answered when overloaded")
        return Proposal(self._within(lowest / 2), "halved: nothing passed yet")

    def _calm(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """One probe far below the edge: what of a response time is not waiting."""
        fitted = [each.fit for each in known.values() if each.fit is not None]
        if not fitted:
            return None
        root = min(each.root_per_s for each in fitted)
        if _tried_least(self.evidence) <= CALM * root:
            return None
        return Proposal(self._within(_AT_EASE * root), "at ease, to see what is not waiting")

    def _overload(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """Past the end, at full length: what it answers there is one end of the model's line.

        Once where nothing is known of that end, and twice where the answer lies next to it.
        """
        fitted = [each.fit for each in known.values() if each.fit is not None and len(each.fit.used) >= 2]
        if not fitted:
            return None
        found = min(fitted, key=lambda each: each.root_per_s)
        unsettled = found.unsettled_per_s(max(each.seconds for each in self.evidence))
        if self._overloads >= (2 if found.gap_per_s < unsettled else 1):
            return None
        capacity = best_capacity(self.evidence)
        if capacity is not None and capacity.sd_per_s < _WELL_KNOWN * capacity.per_s:
            return None
        self._overloads += 1
        return Proposal(
            self._within(_OVERLOAD * found.root_per_s), "overloaded, to see what it can do at most", whole=True
        )

    def _narrow(self, known: Mapping[str, Bounds]) -> Proposal:
        binding = _binding(known)
        low, high = _bracket_of(known)
        if binding.fit is None or binding.fit.bent:
            return self._bisect(binding, low, high)
        seconds = max(each.seconds for each in self.evidence)
        found = binding.fit
        apart = min(max(found.gap_per_s, 0.0), _NEAR_SHARE * found.edge_per_s)
        offset = _OFFSETS[self._aimed % len(_OFFSETS)]
        self._aimed += 1
        nearest = found.root_per_s - found.unsettled_per_s(seconds) * (1 + max(offset, 0.0) / 2)
        rate = min(found.edge_per_s - offset * apart, nearest)
        if not _tried_least(self.evidence) * 0.5 < rate < found.root_per_s:
            return self._bisect(binding, low, high)
        return Proposal(self._within(rate), "near where the model sees the edge")

    def _bisect(self, binding: Bounds, low: float | None, high: float | None) -> Proposal:
        """The middle of what is open; a rate in it that is unclear is repeated first, until it is undecidable."""
        low = low if low is not None else self.settings.lowest_per_s
        high = high if high is not None else 2 * max(each.rate_per_s for each in self.evidence)
        unclear = [step for step in binding.steps if step.verdict == "unclear" and low < step.rate_per_s < high]
        again = [step for step in unclear if step.probes < self.settings.repeats]
        if again:
            return Proposal(_nearest(again, low, high).rate_per_s, "repeated: too near to tell")
        edges = [low, *(step.rate_per_s for step in unclear), high]
        wide = max(pairwise(edges), key=lambda pair: pair[1] / pair[0])
        return Proposal(self._within((wide[0] * wide[1]) ** 0.5), "half way between what passed and what failed")

    def _confirm(self, known: Mapping[str, Mapping[str, Bounds]]) -> Proposal | Converged:
        """Fresh probes at both ends of every answer; they may widen it again."""
        if self._confirming is None:
            ends = [end for each in known.values() for end in _bracket_of(each) if end is not None]
            self._confirming = sorted(ends)
        if self._confirming:
            return Proposal(self._within(self._confirming.pop(0)), "fresh, at an end of the answer")
        return self._end(known)

    def _end(self, known: Mapping[str, Mapping[str, Bounds]]) -> Converged:
        return Converged(self._limits(known), confirmed=self._confirming == [])

    def _decided(self, known: Mapping[str, Bounds]) -> bool:
        return _width(known) <= self.settings.precision

    def _limits(self, known: Mapping[str, Mapping[str, Bounds]]) -> tuple[Limit, ...]:
        return tuple(
            Limit(
                name,
                *_bracket_of(each),
                confidence=self.settings.confidence,
                decided=self._decided(each),
                modelled=_binding(each).modelled,
                binding=min(each, key=lambda text: _high(each[text])),
            )
            for name, each in known.items()
        )

    def _within(self, rate_per_s: float) -> float:
        return min(max(rate_per_s, self.settings.lowest_per_s), self.settings.highest_per_s)


def _high(known: Bounds) -> float:
    if known.high_per_s is not None:
        return known.high_per_s
    return float("inf")


def _binding(known: Mapping[str, Bounds]) -> Bounds:
    """The condition that fails first, as far as is known; one with a model before one without."""
    with_fit = [each for each in known.values() if each.fit is not None]
    if with_fit and not any(each.modelled for each in known.values()):
        return min(with_fit, key=lambda each: each.fit.edge_per_s if each.fit else 0.0)
    return min(known.values(), key=_high)


def _bracket_of(known: Mapping[str, Bounds]) -> tuple[float | None, float | None]:
    """All conditions together: the lowest of the bounds."""
    lows = [each.low_per_s for each in known.values()]
    highs = [each.high_per_s for each in known.values() if each.high_per_s is not None]
    low = None if any(each is None for each in lows) else min(each for each in lows if each is not None)
    return low, (min(highs) if highs else None)


def _width(known: Mapping[str, Bounds]) -> float:
    low, high = _bracket_of(known)
    return float("inf") if low is None or high is None else (high - low) / (high + low)


def _tried_least(evidence: Sequence[Evidence]) -> float:
    return min(each.rate_per_s for each in evidence)


def _nearest(found: Sequence[Step], low: float, high: float) -> Step:
    middle = (low * high) ** 0.5
    return min(found, key=lambda step: abs(step.rate_per_s - middle))
