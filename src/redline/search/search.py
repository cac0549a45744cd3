"""The search for the highest rate that meets an objective: it proposes loads and takes in their evidence until it ends.

Pure: no clock, no I/O, no randomness. Proposals follow from the evidence alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor, inf, log10

from redline.model import Objective
from redline.quantities import paced, significant, users
from redline.search.change import LOOKS, ServerChange, change_of, look_again
from redline.search.ends import Checks, End, EndCheck
from redline.search.evidence import Evidence, stall_ns
from redline.search.interval import (
    NEAR_SHARE,
    Bounds,
    best_capacity,
    bounds_of,
    bracket_of,
    capped,
    ends_of,
    first_to_fail,
    fits,
    half_width,
    high_of,
    plausible,
    propagate_bounds,
    texts,
    width,
)
from redline.search.queue_model import CALM
from redline.search.steps import TriedRate, bounds, contradicted, joint, shows, state_of, steps

_OFFSETS = (0.3, 1.3, 0.7, 1.6, 0.0, 1.0, 0.5, 1.4, 0.2, 0.8)
_SPREAD = (1.35, 1.35, 0.65)
"""Shares of the capacity to probe in turn: overload shows the capacity, a calm probe the limit's distance from it."""
_OVERLOAD = 1.12
_MOST_OVERLOAD = 2.0
_AT_EASE = 0.6
_WELL_KNOWN = 0.012
_BELOW_CAPACITY = 0.6
_SAME_RATE = 0.995
LOOKS_AGAIN = "an early probe once more, to see whether the server changed"


@dataclass(frozen=True)
class Settings:
    """Where the search begins, and when it may end.

    `precision`: half the width of an interval relative to its middle; `confidence`: of both sides together. `trials`:
    the fresh starts on which both ends of every answer are probed, beyond `probes`; 0: once more on the running server.
    `recorded_per_s`: of a recording, whose speeds are rates over this one; None: requests have a rate. `lower` and
    `higher`: what would let rates be tried that lie beyond the lowest and the highest, for users. `looks`: early rates
    are tried once more at the end, to see whether the server changed. `by_users`: all rates of the search are whole
    numbers of users: its steps are those of rates.
    """

    start_per_s: float = 1000.0
    lowest_per_s: float = 1.0
    highest_per_s: float = 10_000_000.0
    probes: int = 12
    precision: float = 0.03
    confidence: float = 0.95
    repeats: int = 3
    trials: int = 0
    recorded_per_s: float | None = None
    lower: str = ""
    higher: str = ""
    looks: bool = True
    by_users: bool = False

    def most_probes(self, sets: int) -> int:
        """The most probes of a search for this many sets of objectives, with those at the ends of its answers.

        Those that look again are among them.
        """
        return self.probes + 2 * self.trials * sets + LOOKS * self.looks

    def said(self, rate_per_s: float) -> str:
        """A rate in words: `950/s`; of a recording `4.2x (950/s)`; by users `40 users`."""
        if self.by_users:
            return users(rate_per_s)
        if self.recorded_per_s is None:
            return f"{rate_per_s:g}/s"
        return paced(f"{rate_per_s:,.0f}/s", rate_per_s / self.recorded_per_s)


@dataclass(frozen=True)
class Proposal:
    """The rate to try next; `why` is a message for users. `whole`: run the probe to its end, even if it is hopeless.

    `fresh_start`: the number of the fresh start to use, from 1; 0 for the server that is running.
    """

    rate_per_s: float
    why: str
    whole: bool = False
    fresh_start: int = 0


@dataclass(frozen=True)
class Limit:
    """The limit for a set of objectives: [highest rate that passed, lowest that failed], and how it is known.

    `confidence`: None for single rates, and where probes differ: their coverage is unknown. `decided`: as narrow as
    wanted. `binding`: the condition that fails first. `reason`: why more probes would give no better answer.
    `starts_differ`: starts differ by more than chance, and the interval rests on them. `probes_differ`: probes of the
    same start differ by more than chance. `binds_alone`: no other condition is known to fail at so low a rate.
    `recorded_per_s`, `by_users`: as in Settings.
    """

    name: str
    low_per_s: float | None
    high_per_s: float | None
    confidence: float | None
    decided: bool
    modelled: bool
    binding: str
    reason: str = ""
    starts_differ: bool = False
    probes_differ: bool = False
    binds_alone: bool = False
    recorded_per_s: float | None = None
    by_users: bool = False


@dataclass(frozen=True)
class Converged:
    """The search is over; a limit that is not `decided` is as narrow as the probes allowed, or has a reason.

    `confirmed`: all limits are decided, and fresh probes at their ends did not contradict them.
    """

    limits: tuple[Limit, ...]
    confirmed: bool


@dataclass(frozen=True)
class Exhausted:
    """The probes are used up, but a side of some set is unknown; `limits` holds what is known."""

    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Doomed:
    """No set has an answer, for this reason; `limits` holds what is known."""

    reason: str
    limits: tuple[Limit, ...]


Sets = Mapping[str, tuple[Objective, ...]]


_MOST_STARTS = 40
"""The most fresh starts worth suggesting, with a probe or two on each."""
_LONGEST_S = 3600.0
"""The most time of probes worth suggesting, in seconds."""


@dataclass
class Search:
    """A search: add the evidence of each proposed load until it proposes no more.

    Several sets of objectives share all probes: every set is judged from all of them.
    """

    sets: Sets
    settings: Settings = field(default_factory=Settings)
    evidence: list[Evidence] = field(default_factory=list)
    _reasons: dict[str, str] = field(default_factory=dict)
    _checks: Checks = field(init=False)
    _crossings: int = 0
    _overloads: int = 0
    _aimed: int = 0
    _bounds: "tuple[int, dict[str, dict[str, Bounds]]]" = (0, {})
    """The number of probes, and the bounds of every condition of every set that follow from them."""

    def __post_init__(self) -> None:
        self._checks = Checks(self.settings.precision, self.settings.trials)

    def add(self, evidence: Evidence) -> None:
        """Take in the evidence of a load, whether it was proposed or not."""
        self.evidence.append(evidence)

    def next(self) -> Proposal | Converged | Exhausted | Doomed:
        """The next load to try, or the end of the search."""
        if not self.evidence:
            return self._first()
        known = self._known()
        open_sets = [name for name in self.sets if not self._decided(known[name])]
        for name in sorted(open_sets, key=lambda name: width(known[name]), reverse=True):
            if reason := self._ended(name) or self._reasons.get(name):
                self._reasons[name] = reason
            elif len(self.evidence) < self.settings.probes:
                step = self._step(name, known[name])
                if not (limited := self.client_limited(step.rate_per_s, name)):
                    return step
                if len(self._at(limited.rate_per_s)) == 1:
                    return Proposal(limited.rate_per_s, "once more: that may have been by chance")
                if below := self._below(name):
                    return below
                self._reasons[name] = (
                    f"the client is the limit, not the server, at {self.settings.said(limited.rate_per_s)}: "
                    f"{limited.client}"
                )
        return self._close(known)

    def _first(self) -> Proposal:
        wanted, rate = self.settings.start_per_s, self._within(self.settings.start_per_s)
        if rate <= wanted:
            return Proposal(rate, "to begin with")
        return Proposal(rate, f"to begin with, not at {self.settings.said(wanted)}: {self.settings.lower}")

    def limits(self) -> tuple[Limit, ...]:
        """The limits as they are known now."""
        return tuple(self._limit(name, bounds) for name, bounds in self._known().items())

    def _known(self) -> dict[str, dict[str, Bounds]]:
        """The bounds of every condition of every set; cached until the next probe, because they need a fit."""
        if self._bounds[0] == len(self.evidence):
            return self._bounds[1]
        conditions = {objective.text: objective for of_set in self.sets.values() for objective in of_set}
        confidence = self.settings.confidence
        allowed = propagate_bounds(
            [(objective, bounds_of(self.evidence, objective, confidence)) for objective in conditions.values()]
        )
        known = {
            name: {objective.text: allowed[objective.text] for objective in of_set}
            for name, of_set in self.sets.items()
        }
        self._bounds = len(self.evidence), known
        return known

    def _ended(self, name: str) -> str | None:
        """Why there is nothing left to try for this set, if so."""
        tried = self._tried(name)
        failed = [step.rate_per_s for step in tried if step.state == "missed"]
        settings, wanted = self.settings, texts(self.sets[name])
        missed = sum(step.probes for step in tried if step.state == "missed")
        if missed > 1 and len(failed) == len(tried) and min(failed) <= settings.lowest_per_s:
            return _not_even(f"{settings.said(min(failed))} does not meet {wanted}", settings.lower)
        if settings.by_users and (unclear := self._unclear_between(name)):
            return f"with {' and '.join(map(users, unclear))} it is too near to tell"
        if not tried or failed or tried[-1].rate_per_s < settings.highest_per_s:
            return None
        what = "number" if settings.by_users else "rate" if settings.recorded_per_s is None else "speed"
        meets, does = ("meet", "do") if settings.by_users else ("meets", "does")
        most = f"{settings.said(tried[-1].rate_per_s)}, the highest {what} allowed"
        if tried[-1].state == "met":
            return _not_even(f"{most}, {meets} {wanted}", settings.higher)
        if tried[-1].probes < settings.repeats:
            return None
        return _not_even(f"{most}, {does} not surely miss {wanted}", settings.higher)

    def _unclear_between(self, name: str) -> list[float]:
        """All whole numbers between the ends of an answer, if each was tried often enough and none is clear."""
        tried = self._tried(name)
        low, high = bounds(tried)
        if high is None:
            return []
        low = self.settings.lowest_per_s - 1 if low is None else low
        between = [step for step in tried if low < step.rate_per_s < high]
        spent = all(step.probes >= self.settings.repeats for step in between)
        return [step.rate_per_s for step in between] if spent and len(between) >= high - low - 1 else []

    def client_limited(self, rate_per_s: float, *names: str) -> Evidence | None:
        """The lowest probe at this rate or below it that shows nothing because the client was the limit each time.

        For the sets of these names, or for any set.
        """
        conditions = [objective for name in names or self.sets for objective in self.sets[name]]
        spoilt = [evidence for evidence in self.evidence if not shows(evidence, *conditions)]
        limited = [evidence for evidence in spoilt if rate_per_s >= _SAME_RATE * evidence.rate_per_s]
        always = [evidence for evidence in limited if all(other in spoilt for other in self._at(evidence.rate_per_s))]
        return min(always, key=lambda evidence: evidence.rate_per_s, default=None)

    def _below(self, name: str) -> Proposal | None:
        """Where no higher rate can be tried: repeat unclear rates, then look for a rate that passes."""
        tried = self._tried(name)
        if any(step.state == "missed" for step in tried):
            return None
        passed = max((step.rate_per_s for step in tried if step.state == "met"), default=0.0)
        unclear = [step for step in tried if step.state == "not known" and step.rate_per_s > passed]
        if again := [step for step in unclear if step.probes < self.settings.repeats]:
            return Proposal(again[-1].rate_per_s, "repeated: it is not clear whether that is met")
        rate = self._within(_tried_least(self.evidence) / 2)
        if passed or rate >= _tried_least(self.evidence):
            return None
        return Proposal(rate, "halved: nothing passed yet, and no more can be tried")

    def _at(self, rate_per_s: float) -> list[Evidence]:
        """The probes at about this rate."""
        return [
            evidence for evidence in self.evidence if _SAME_RATE <= evidence.rate_per_s / rate_per_s <= 1 / _SAME_RATE
        ]

    def _tried(self, name: str) -> tuple[TriedRate, ...]:
        """The rates that were tried, ascending, with whether the whole set is met there."""
        return steps(self.evidence, *self.sets[name])

    def _step(self, name: str, known: Mapping[str, Bounds]) -> Proposal:
        return (
            self._bracket(name)
            or self._stalled(name)
            or self._crossing(known)
            or self._spread(known)
            or self._again(known)
            or self._calm(known)
            or self._overload(known)
            or self._narrow(known)
        )

    def _bracket(self, name: str) -> Proposal | None:
        """Double until a rate fails, halve until a rate passes; None when both are known."""
        tried = self._tried(name)
        if not tried:
            return Proposal(self._within(_tried_least(self.evidence) / 2), "halved: nothing is known yet")
        failed = [step.rate_per_s for step in tried if step.state == "missed"]
        kept_up = [step.rate_per_s for step in tried if step.state != "missed"]
        if not failed:
            return Proposal(self._within(2 * max(kept_up)), "doubled: nothing failed yet")
        passed = max((step.rate_per_s for step in tried if step.state == "met"), default=0.0)
        if self.settings.highest_per_s > passed > max(failed):
            return Proposal(self._within(2 * max(kept_up)), "doubled: what failed lies below what passed")
        if kept_up:
            return None
        capacity = best_capacity(self.evidence)
        below = self._within(_BELOW_CAPACITY * capacity.per_s) if capacity else inf
        if below < min(failed) and not self.client_limited(below, name):
            return Proposal(below, "below what it answered when overloaded")
        return Proposal(self._within(_tried_least(self.evidence) / 2), "halved: nothing passed yet")

    def _stalled(self, name: str) -> Proposal | None:
        """Repeat the lowest rate that failed if its only probe stood still: once may be an accident of the machine."""
        failed = next((step for step in self._tried(name) if step.state == "missed"), None)
        if failed is None or failed.probes > 1 or not any(map(stall_ns, self._at(failed.rate_per_s))):
            return None
        return Proposal(failed.rate_per_s, "repeated: the server stood still, perhaps by accident")

    def _crossing(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """Probe between two answers that contradict each other, on a fresh start.

        The running server's history may be why. Once the ends are being confirmed, the running server is already a
        fresh one.
        """
        crossing = next((bounds.crossing for bounds in known.values() if bounds.crossing), None)
        if crossing is None or self._crossings >= self.settings.repeats:
            return None
        self._crossings += 1
        fresh = 0 if self._checks.made else min(self.settings.trials, 1)
        why = f"{crossing.strict} passed above where {crossing.loose} failed"
        return Proposal(self._within(crossing.rate_per_s), why, fresh_start=fresh)

    def _again(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """Repeat a rate that another rate contradicts: the server may have been cold, or the probe unlucky."""
        tried = [step for bounds in known.values() for step in contradicted(bounds.steps)]
        again = next((step for step in tried if step.probes < self.settings.repeats), None)
        return None if again is None else Proposal(again.rate_per_s, "repeated: another probe contradicts it")

    def _spread(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """If probes differ by more than chance, probe far from the capacity: near it, a probe is overloaded or not."""
        scattered = next((bounds.scattered for bounds in known.values() if bounds.scattered), None)
        if scattered is None:
            return None
        rate = self._within(_SPREAD[self._aimed % len(_SPREAD)] * scattered.root_per_s)
        if self.client_limited(rate):
            return None
        self._aimed += 1
        return Proposal(rate, "above and below, since probes differ by more than chance")

    def _calm(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """Probe once far below the limit, for the part of the response time that is not waiting."""
        root = min((bounds.fit.root_per_s for bounds in known.values() if bounds.fit), default=inf)
        if _tried_least(self.evidence) <= CALM * root:
            return None
        return Proposal(self._within(_AT_EASE * root), "far below the limit, to see what is not waiting")

    def _overload(self, known: Mapping[str, Bounds]) -> Proposal | None:
        """Probe past the end, at full length: the answers per second there are one end of the model's line.

        Once if nothing is known of that end, and twice if the answer lies next to it.
        """
        fitted = [fit for fit in fits(known) if len(fit.used) >= 2]
        if not fitted:
            return None
        first = min(fitted, key=lambda fit: fit.root_per_s)
        unsettled = first.unsettled_per_s(max(evidence.seconds for evidence in self.evidence))
        if self._overloads >= (2 if first.gap_per_s < unsettled else 1):
            return None
        capacity = best_capacity(self.evidence)
        if capacity is not None and capacity.sd_per_s < _WELL_KNOWN * capacity.per_s:
            return None
        most = _MOST_OVERLOAD * max(evidence.rate_per_s for evidence in self.evidence)
        rate = self._within(min(_OVERLOAD * first.root_per_s, most))
        if self.client_limited(rate):
            return None
        self._overloads += 1
        return Proposal(rate, "overloaded, to see what it can do at most", whole=True)

    def _narrow(self, known: Mapping[str, Bounds]) -> Proposal:
        binding = first_to_fail(known)
        low, high = bracket_of(known)
        if binding.fit is None or binding.fit.bent or not plausible(binding.fit, low, high):
            return self._bisect(binding, low, high)
        seconds = max(evidence.seconds for evidence in self.evidence)
        fit = binding.fit
        apart = min(max(fit.gap_per_s, 0.0), NEAR_SHARE * fit.limit_per_s)
        offset = _OFFSETS[self._aimed % len(_OFFSETS)]
        self._aimed += 1
        nearest = fit.root_per_s - fit.unsettled_per_s(seconds) * (1 + max(offset, 0.0) / 2)
        rate = min(fit.limit_per_s - offset * apart, nearest)
        if not _tried_least(self.evidence) * 0.5 < rate < fit.root_per_s:
            return self._bisect(binding, low, high)
        return Proposal(self._within(rate), "near where the model sees the limit")

    def _bisect(self, binding: Bounds, low: float | None, high: float | None) -> Proposal:
        """Probe the middle of the open interval; unclear rates in it are repeated first, until they are undecidable."""
        low = low if low is not None else self.settings.lowest_per_s
        high = high if high is not None else 2 * max(evidence.rate_per_s for evidence in self.evidence)
        unclear = [step for step in binding.steps if step.state == "not known" and low < step.rate_per_s < high]
        again = [step for step in unclear if step.probes < self.settings.repeats]
        if again:
            middle = (low * high) ** 0.5
            nearest = min(again, key=lambda step: abs(step.rate_per_s - middle))
            return Proposal(nearest.rate_per_s, "repeated: too near to tell")
        pairs = [*pairwise([low, *(step.rate_per_s for step in unclear), high])]
        if self.settings.by_users:  # between neighbours there is no number to try
            pairs = [pair for pair in pairs if pair[1] - pair[0] > 1] or pairs
        wide = max(pairs, key=lambda pair: pair[1] / pair[0])
        return Proposal(self._within((wide[0] * wide[1]) ** 0.5), "half way between what passed and what failed")

    def last_look(self, later: int = 0) -> Proposal | None:
        """Once more what an early probe showed, if the search ends now, or after `later` more probes."""
        if not self.settings.looks or len(self.evidence) + later >= self.settings.most_probes(len(self.sets)):
            return None
        if (early := look_again(self.evidence, self.sets, later=later)) is None:
            return None
        return Proposal(early.rate_per_s, LOOKS_AGAIN)

    @property
    def change(self) -> ServerChange | None:
        """How the server changed since an early probe; None if it did not, as far as is known."""
        return change_of(self.evidence, self.sets)

    def _close(self, known: Mapping[str, Mapping[str, Bounds]]) -> Proposal | Converged | Exhausted | Doomed:
        """Confirm the ends, and look again before the search ends, or leaves the start on which it was made."""
        trials = self.settings.trials
        if trials and not self._checks.made and (look := self.last_look()):
            return look
        step = self._confirm(known)
        return step if trials or isinstance(step, Proposal) else self.last_look() or step

    def _confirm(self, known: Mapping[str, Mapping[str, Bounds]]) -> Proposal | Converged | Exhausted | Doomed:
        """Make fresh probes at both ends of every answer; they may widen it again."""
        check = self._checks.next(self._checked(known), len(self.evidence))
        if check is None or len(self.evidence) >= self.settings.most_probes(len(self.sets)):
            return self._end(known)
        self._checks.made.append(check)
        return Proposal(self._within(check.end.rate_per_s), "fresh, at an end of the answer", fresh_start=check.start)

    def _checked(self, known: Mapping[str, Mapping[str, Bounds]]) -> list[End]:
        """The ends that get fresh probes. Fresh starts are worthwhile even if the answer is wider than wanted."""
        checked = [name for name in known if self.settings.trials or self._decided(known[name])]
        return [End(name, side, rate) for name in checked for side, rate in ends_of(known[name])]

    def _stands(self, check: EndCheck) -> bool:
        """Whether the fresh probe agrees with the end that it was made for."""
        fresh = self.evidence[check.probe]
        conditions = self.sets[check.end.name]
        state = joint([state_of((fresh,), condition) for condition in conditions])
        return shows(fresh, *conditions) and state != ("missed" if check.end.side == "low" else "met")

    def _end(self, known: Mapping[str, Mapping[str, Bounds]]) -> Converged | Exhausted | Doomed:
        limits = tuple(self._limit(name, bounds) for name, bounds in known.items())
        unknown = [limit for limit in limits if limit.low_per_s is None or limit.high_per_s is None]
        if len(unknown) == len(limits) and all(limit.reason for limit in unknown):
            return Doomed("; ".join(dict.fromkeys(limit.reason for limit in unknown)), limits)
        if any(not limit.reason for limit in unknown):
            return Exhausted(limits)
        made = self._checks.settled(self._checked(known))
        decided = all(map(self._decided, known.values()))
        stands = made is not None and all(self._stands(check) for check in made)
        confirmed = decided and stands and self.change is None
        return Converged(limits, confirmed=confirmed)

    def _decided(self, known: Mapping[str, Bounds]) -> bool:
        return self._is_narrow(*bracket_of(known))

    def _is_narrow(self, low: float | None, high: float | None) -> bool:
        """Whether an interval is as narrow as wanted, or as users are: between 40 of them and 41 there is nothing."""
        if self.settings.by_users and low is not None and high is not None and high - low <= 1:
            return True
        return half_width(low, high) <= self.settings.precision

    def _limit(self, name: str, known: Mapping[str, Bounds]) -> Limit:
        low, high = bracket_of(known)
        ends = [bounds for bounds in known.values() if low == bounds.low_per_s or high == bounds.high_per_s]
        modelled, probes_differ = all(bounds.modelled for bounds in ends), any(bounds.scattered for bounds in ends)
        low, high = capped(low, high, self.sets[name], self.evidence)
        decided = self._decided(known) or self._is_narrow(low, high)
        binding = min(known, key=lambda text: high_of(known[text]))
        lowest = high_of(known[binding])
        return Limit(
            name,
            low,
            high,
            confidence=self.settings.confidence if modelled and not probes_differ else None,
            decided=decided,
            modelled=modelled,
            binding=binding,
            reason="" if decided else self._reasons.get(name) or _contradiction(known) or self._wanting(known, ends),
            starts_differ=any(bounds.starts_differ for bounds in ends),
            probes_differ=probes_differ,
            binds_alone=lowest < min([high_of(other) for text, other in known.items() if text != binding], default=inf),
            recorded_per_s=self.settings.recorded_per_s,
            by_users=self.settings.by_users,
        )

    def _wanting(self, known: Mapping[str, Bounds], ends: Sequence[Bounds]) -> str:
        """What would decide an interval that is wider than wanted, if that follows from how its probes differ.

        Its width is inversely proportional to the square root of the number of probes, or of starts.
        """
        if self.change is not None:
            return "the server changed while it was searched"
        if any(bounds.uneven for bounds in ends):
            return "the server was slow in parts of some probes, as by pauses: probe for longer, with -d"
        times = (width(known) / self.settings.precision) ** 2
        if times == inf or not all(bounds.modelled for bounds in ends):
            return ""
        differ = max((bounds.scattered.spread for bounds in ends if bounds.scattered), default=0.0)
        if any(bounds.starts_differ for bounds in ends):
            starts = _round_up(times * len({evidence.start for evidence in self.evidence}))
            if starts > _MOST_STARTS:
                return f"starts differ too much: {_MOST_STARTS} of them would not decide it"
            return f"starts differ: about --trials {starts} would decide it"
        probes = f"about --probes {_round_up(times * len(self.evidence))} would decide it"
        longer = "" if differ else f", or probes {significant(times, 2)} times as long"
        if times * sum(evidence.seconds for evidence in self.evidence) > _LONGEST_S:
            probes, longer = "to decide it would take more than an hour of probes", ""
        return f"probes differ by {differ:.0%}, however long they are: {probes}" if differ else f"{probes}{longer}"

    def _within(self, rate_per_s: float) -> float:
        if self.settings.by_users:
            rate_per_s = round(rate_per_s)
        return min(max(rate_per_s, self.settings.lowest_per_s), self.settings.highest_per_s)


def _not_even(said: str, advice: str) -> str:
    """Why no other rate is tried, and what would help."""
    return f"even {said}; {advice}" if advice else f"even {said}"


def _round_up(number: float) -> int:
    """The number, rounded up to two digits."""
    step = int(10 ** max(0, floor(log10(number)) - 1))
    return ceil(number / step) * step


def _contradiction(known: Mapping[str, Bounds]) -> str:
    """A message that names two answers which contradict each other; empty if there are none."""
    crossing = next((bounds.crossing for bounds in known.values() if bounds.crossing), None)
    if crossing is None:
        return ""
    return f"the answers for {crossing.strict} and {crossing.loose} contradict each other: the interval spans both"


def _tried_least(evidence: Sequence[Evidence]) -> float:
    return min(probe.rate_per_s for probe in evidence)
