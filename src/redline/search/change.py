"""Whether a server changed while its limit was searched: early probes, and the same rates once more at the end. Pure.

A search rests on probes of different moments, and two of one rate tell a change from a limit. They are compared by what
they showed: objectives met and missed, answers per second where both were overloaded, or else response times. A single
look may be an accident, so a change takes two that agree, and more than probes of such a machine differ anyway.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot, log, sqrt

import numpy as np

from redline.model import Histogram, Objective
from redline.model.limits import LimitProbe
from redline.search.evidence import SAME_RATE, Evidence, Floats, capacity_of, overloaded, stall_ns
from redline.search.queue_model import BASE, WELL_KNOWN, ProbePoint, diluted
from redline.search.scattered import FEWEST, FEWEST_SETTLED, scale_of
from redline.search.steps import QUANTILES, joint, shows, state_of
from redline.stats.distributions import t_quantile

LOOKS = 4
"""The most probes that look again, beyond those of the search itself."""
BETWEEN = 3
"""The fewest probes between a probe and another look at its rate: a search repeats a rate for other reasons too."""
_TELLING = 0.4
"""The share of the highest rate that it kept up with from which on a probe shows how far it is from its limit."""
_NEAR = 0.5
"""The share of the capacity from which on a probe shows it well: response times change much with the rate there."""
_AGREE, _ALL = 2, 3
"""The looks that agree on a change; and the later probes at a rate that show it together, whatever others differ by."""
_LEAST = 0.06
"""The least difference of answers per second that counts, as a share."""
_LEAST_TIMES = log(1.4)
"""The least difference of response times that counts, as a logarithm: machines warm up and slow down by less."""
_ERRORS = 4.0
_SPREADS = 3.0
"""How many times what probes differ by anyway a change is at least."""
_FULL = 0.95
"""The share of due requests below which a server answered as many as it could."""
_SURE = 0.995
_STRETCHES = 10

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class ServerChange:
    """A server that became slower, or faster: pairs of an early probe and a later one at its rate, by their indices."""

    slower: bool
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _LaterProbe:
    """A probe and a later one at its rate, by their indices, and whether it was slower (-1), faster (1), or alike."""

    first: int
    again: int
    direction: int


def look_again(evidence: Sequence[Evidence], sets: Sets, *, later: int = 0) -> Evidence | None:
    """The probe to repeat before a search ends, or after `later` more probes; None if that is done or tells nothing."""
    bases, looks = _bases(evidence, sets), _looks(evidence, sets)
    recent = [look for look in looks if look.again >= len(evidence) - LOOKS]
    for base in bases:
        if len(evidence) - base - 1 + later >= BETWEEN and all(look.first != base for look in recent):
            return evidence[base]
    if _agreed(recent) is not None:
        return None
    for base in bases:
        of_this = [look for look in recent if look.first == base]
        if len(of_this) == 1 and of_this[0].direction:
            return evidence[base]
    return None


def change_of(evidence: Sequence[Evidence], sets: Sets) -> ServerChange | None:
    """The change that later looks agree on, on one of the server's starts; None if they see none."""
    for start in sorted({probe.start for probe in evidence}):
        ends = max(at for at, probe in enumerate(evidence) if probe.start == start) + 1
        own = evidence[:ends]
        if (change := _agreed(_looks(own, sets)) or _unanimous(own, sets)) is not None:
            return change
    return None


def _unanimous(evidence: Sequence[Evidence], sets: Sets) -> ServerChange | None:
    """The change if an early probe differs from several later ones at its rate, from all of them in the same way."""
    for base in _bases(evidence, sets):
        ways = {at: _direction(evidence[base], evidence[at], sets) for at in _at_its_rate(evidence, base, base + 1)}
        differ = [at for at, way in ways.items() if way]
        if len(differ) >= _ALL and len({ways[at] for at in differ}) == 1 and differ[-1] > base + BETWEEN:
            return ServerChange(ways[differ[0]] < 0, tuple((base, at) for at in differ))
    return None


def _agreed(looks: Sequence[_LaterProbe]) -> ServerChange | None:
    for direction in (-1, 1):
        agree = [look for look in looks if look.direction == direction]
        if len(agree) >= _AGREE and 2 * len(agree) > len(looks):
            return ServerChange(direction < 0, tuple((look.first, look.again) for look in agree))
    return None


def _bases(evidence: Sequence[Evidence], sets: Sets) -> list[int]:
    """The probes to repeat: the first of the running start that tells how far its limit is, the first that missed."""
    own = [at for at, probe in enumerate(evidence) if probe.start == evidence[-1].start and _is_plain(probe)]
    kept_up = max((evidence[at].rate_per_s for at in own if not overloaded(evidence[at])), default=0.0)
    telling = [at for at in own if evidence[at].rate_per_s >= _TELLING * kept_up]
    missed = [at for at in own if any(_state(evidence[at], conditions) == "missed" for conditions in sets.values())]
    return list(dict.fromkeys((*telling[:1], *missed[:1])))


def _looks(evidence: Sequence[Evidence], sets: Sets) -> list[_LaterProbe]:
    levels = _levels(evidence)
    spread = _spread([*levels.values()])

    def direction(first: int, again: int) -> int:
        found = _direction(evidence[first], evidence[again], sets)
        if first not in levels or again not in levels or found in _fails(evidence[first], evidence[again], sets):
            return found
        return found if abs(log(levels[again][0] / levels[first][0])) > _SPREADS * spread else 0

    return [
        _LaterProbe(base, at, direction(base, at))
        for base in (_bases(evidence, sets) if evidence else [])
        for at in _at_its_rate(evidence, base, base + BETWEEN + 1)
    ]


def _at_its_rate(evidence: Sequence[Evidence], base: int, since: int) -> list[int]:
    """The probes from `since` on at the rate of another, on the same start."""
    first = evidence[base]
    return [
        at
        for at in range(since, len(evidence))
        if evidence[at].start == first.start
        and 1 / SAME_RATE <= evidence[at].rate_per_s / first.rate_per_s <= SAME_RATE
    ]


def _is_plain(evidence: Evidence) -> bool:
    """Whether it shows the server alone: no limit of the client, no stall, no rule that ended it."""
    return not evidence.client and not evidence.aborted and evidence.due > 0 and not stall_ns(evidence)


def _state(evidence: Evidence, conditions: Sequence[Objective]) -> str:
    if not shows(evidence, *conditions):
        return "not known"
    return joint([state_of((evidence,), condition) for condition in conditions])


def _direction(first: Evidence, again: Evidence, sets: Sets) -> int:
    """Whether a server was slower (-1), faster (1), or alike (0) when a rate was tried again."""
    if not _is_plain(again):
        return 0
    flips = {_flip(first, again, conditions) for conditions in sets.values()} - {0}
    if len(flips) == 1:
        return flips.pop()
    if overloaded(first) or overloaded(again):
        return _by_answers(first, again)
    return _by_times(first, again)


def _fails(first: Evidence, again: Evidence, sets: Sets) -> set[int]:
    """The flips of conditions that are none on response times: capacity does not tell them from chance."""
    others = {one for conditions in sets.values() for one in conditions if one.metric not in QUANTILES}
    return {_flip(first, again, (one,)) for one in others} - {0}


def _flip(first: Evidence, again: Evidence, conditions: Sequence[Objective]) -> int:
    match _state(first, conditions), _state(again, conditions):
        case "met", "missed":
            return -1
        case "missed", "met":
            return 1
        case _:
            return 0


def is_full(evidence: Evidence | LimitProbe) -> bool:
    """Whether the server answered as much as it could, and not all that fell due."""
    full = evidence.overloaded if isinstance(evidence, LimitProbe) else overloaded(evidence)
    return full or evidence.answered_per_s < _FULL * evidence.offered_per_s


def _levels(evidence: Sequence[Evidence]) -> dict[int, tuple[float, float]]:
    """The capacity that each probe near it shows, as in scattered.py, and its error by chance as a share, by index.

    Empty if too few probes show it.
    """
    plain = [at for at, probe in enumerate(evidence) if _is_plain(probe) and probe.response.count]
    full = {at: known for at in plain if is_full(evidence[at]) and (known := capacity_of(evidence[at]))}
    if not full:
        return {}
    least_per_s = _NEAR * float(np.median([known.per_s for known in full.values()]))
    near = [
        at for at in plain if at in full or (not is_full(evidence[at]) and evidence[at].offered_per_s >= least_per_s)
    ]
    settled = [at for at in near if at not in full]
    if len(near) < FEWEST or len(settled) < FEWEST_SETTLED:
        return {}
    base_s = ProbePoint.of(min((evidence[at] for at in plain), key=lambda probe: probe.rate_per_s)).quantile_s(BASE)
    took_s = np.array([ProbePoint.of(evidence[at]).quantile_s(WELL_KNOWN) for at in near])
    at_per_s = np.array([evidence[at].offered_per_s for at in near])
    is_settled = np.array([at not in full for at in near])
    inverse = np.where(is_settled, 1 / np.maximum(took_s - base_s, took_s * 1e-3), 0.0)
    shown = np.array([full[at].per_s if at in full else evidence[at].offered_per_s for at in near])
    if (scale := scale_of(at_per_s, shown, inverse)) <= 0:
        return {}
    levels = shown + scale * inverse
    chance = np.sqrt(4 * at_per_s / np.array([evidence[at].seconds for at in near])) * diluted(took_s, base_s)
    chance[~is_settled] = [full[at].chance_per_s for at in near if at in full]
    return {at: (float(level), float(by / level)) for at, level, by in zip(near, levels, chance, strict=True)}


def _spread(levels: Sequence[tuple[float, float]]) -> float:
    """How far levels differ by more than chance, in their order, as a share, if they changed once; 0 of too few.

    A change that explains how they differ is none of their scatter.
    """
    if len(levels) < FEWEST:
        return 0.0
    logs, chance = np.log([level for level, _ in levels]), np.array([chance for _, chance in levels])
    sides = ((logs[:at], logs[at:]) for at in range(1, len(logs) + 1))
    least = min(_squares(early) + _squares(late) for early, late in sides)
    return sqrt(max(least / (len(logs) - 2) - float((chance**2).mean()), 0.0))


def _squares(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0


def _by_answers(first: Evidence, again: Evidence) -> int:
    """What the answers per second show, of which an overloaded server gives as many as it can."""
    before, after = capacity_of(first), capacity_of(again)
    if before is None or after is None:
        return 0
    differ = log(after.per_s / before.per_s)
    chance = hypot(before.chance_per_s / before.per_s, after.chance_per_s / after.per_s)
    return _sign(differ) if abs(differ) > max(_LEAST, _ERRORS * chance) else 0


@lru_cache(maxsize=1024)
def _by_times(first: Evidence, again: Evidence) -> int:
    """What the medians show of the same stretches of both probes: of a recording these sent the same requests."""
    logs = np.log(_medians(again)) - np.log(_medians(first))
    logs = logs[np.isfinite(logs)]
    if len(logs) < _STRETCHES // 2:
        return 0
    differ, error = float(logs.mean()), float(logs.std(ddof=1)) / len(logs) ** 0.5
    sure = t_quantile(_SURE, len(logs) - 1) * error
    return -_sign(differ) if abs(differ) > max(_LEAST_TIMES, sure) else 0


def _medians(evidence: Evidence) -> Floats:
    """The median response times of stretches of a probe; not a number where nothing ended."""
    slices = evidence.timed
    parts = np.array_split(np.arange(len(slices)), _STRETCHES)
    seen = [Histogram.merged(slices[at].response for at in part) for part in parts]
    return np.array([part.quantile_ns(0.5) if part.count else np.nan for part in seen], dtype=np.float64)


def _sign(value: float) -> int:
    return 1 if value > 0 else -1
