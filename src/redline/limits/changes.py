"""How a server changed while its limit was searched: what its probes showed before, and what they show since. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from redline.model.judged import ObjectiveState
from redline.model.limits import FAR_BELOW, LimitChange, LimitProbe
from redline.quantities import duration
from redline.search.change import ServerChange, is_full

_FEWEST = 2
"""The fewest probes on each side of a change: one may be an accident."""


@dataclass(frozen=True)
class _Between:
    """The last probe before a change, and the first after it, by their indices."""

    before: int
    since: int
    slower: bool


def limit_change(probes: Sequence[LimitProbe], name: str, change: ServerChange | None) -> LimitChange | None:
    """How the server changed, as a set of objectives shows it; None if nothing says that it did.

    `change` is what probes showed that looked again at earlier rates.
    """
    if (flipped := _flipped(probes, name)) is not None:
        return _published(probes, name, flipped, answers=True)
    if change is None:
        return None
    between = _dated(probes, change)
    flips = any(_flips(probes, name, pair, slower=change.slower) for pair in change.pairs)
    found = _published(probes, name, between, answers=flips, shown=_change_text(probes, change))
    return found if not flips or _is_of_all(probes, name, found) else found.without_answers


def change_text(change: LimitChange) -> str:
    """The change as a clause of a sentence."""
    if change.answers:
        return f"its answers changed: {change.text}"
    became, limit = ("slower", "was higher before") if change.slower else ("faster", "may be higher since")
    return f"it became {became} while it was searched: {change.text}; its limit {limit}"


def _flipped(probes: Sequence[LimitProbe], name: str) -> _Between | None:
    """The change if all that met far above what was missed came before it, or all of them after it."""
    met, missed = _having(probes, name, "met"), _having(probes, name, "missed")
    if not met or not missed:
        return None
    best, worst = max(probes[at].tried for at in met), min(probes[at].tried for at in missed)
    met = [at for at in met if FAR_BELOW * probes[at].tried >= worst]
    missed = [at for at in missed if probes[at].tried <= FAR_BELOW * best]
    if not met or len(missed) < _FEWEST:
        return None
    if max(met) < min(missed):
        return _Between(max(met), min(missed), slower=True)
    if max(missed) < min(met) and len(met) >= _FEWEST:
        return _Between(max(missed), min(met), slower=False)
    return None


def _flips(probes: Sequence[LimitProbe], name: str, pair: tuple[int, int], *, slower: bool) -> bool:
    """Whether a set of objectives was met and then missed at a rate, or for a faster server the other way round."""
    states = tuple(_state(probes[at], name) for at in pair)
    return states == (("met", "missed") if slower else ("missed", "met"))


def _is_of_all(probes: Sequence[LimitProbe], name: str, change: LimitChange) -> bool:
    """Whether what met at most, and what was missed at least, lie on the sides of the change that make it one."""
    best = max((probes[at].tried for at in _having(probes, name, "met")), default=None)
    worst = min((probes[at].tried for at in _having(probes, name, "missed")), default=None)
    if change.slower:
        return (change.at("met_before"), change.at("missed_since")) == (best, worst)
    return (change.at("missed_before"), change.at("met_since")) == (worst, best)


def _dated(probes: Sequence[LimitProbe], change: ServerChange) -> _Between:
    """Between which probes it changed: those between the pairs count where they were overloaded, as the later pair was.

    An overloaded server answers as much as it can, whatever the rate.
    """
    before, since = max(first for first, _ in change.pairs), min(again for _, again in change.pairs)
    pair = next((pair for pair in change.pairs if all(is_full(probes[at]) for at in pair)), None)
    if pair is not None:
        middle = sqrt(probes[pair[0]].answered_per_s * probes[pair[1]].answered_per_s)
        full = [at for at in range(before + 1, since) if is_full(probes[at]) and not probes[at].client]
        after = [at for at in full if (probes[at].answered_per_s < middle) == change.slower]
        since = min(after, default=since)
        before = max([before, *(at for at in full if at < since)])
    return _Between(before, since, change.slower)


def _published(
    probes: Sequence[LimitProbe], name: str, between: _Between, *, answers: bool, shown: str = ""
) -> LimitChange:
    early, late = range(between.before + 1), range(between.since, len(probes))
    met, missed = _having(probes, name, "met"), _having(probes, name, "missed")

    def tried(of: Iterable[int], within: range) -> list[float]:
        return [probes[at].tried for at in of if at in within]

    known = {
        "met_before": max(tried(met, early), default=None),
        "missed_before": min(tried(missed, early), default=None),
        "met_since": max(tried(met, late), default=None),
        "missed_since": min(tried(missed, late), default=None),
    }
    by_users = probes[between.before].users is not None
    found = LimitChange(
        slower=between.slower,
        answers=answers,
        until_s=probes[between.before].began_s,
        since_s=probes[between.since].began_s,
        when=_when(probes, between),
        text="",
        **{f"{which}_per_s": None if by_users else number for which, number in known.items()},
        **{f"{which}_users": number if by_users else None for which, number in known.items()},
    )
    return found.shown(shown or _answered(probes, name, between, found))


def _answered(probes: Sequence[LimitProbe], name: str, between: _Between, change: LimitChange) -> str:
    """`it met 4,000/s until 90 s, and missed 2,800/s from 95 s on`."""
    until, since = (_moment(probes, at) for at in (between.before, between.since))
    if change.slower:
        met, missed = (_probe_text(probes, name, change.at(which)) for which in ("met_before", "missed_since"))
        return f"it met {met} until {until}, and missed {missed} from {since} on"
    missed, met = (_probe_text(probes, name, change.at(which)) for which in ("missed_before", "met_since"))
    return f"it missed {missed} until {until}, and met {met} from {since} on"


def _change_text(probes: Sequence[LimitProbe], change: ServerChange) -> str:
    """`of 1,600/s it answered 1,007/s at 14 s, and 763/s at 75 s`, or how its median response time changed."""
    full = [pair for pair in change.pairs if any(is_full(probes[at]) for at in pair)]
    first, again = max(full or change.pairs, key=lambda pair: pair[1])
    paces, (begin, end) = probes[first].said, (_moment(probes, at) for at in (first, again))
    before, after = probes[first], probes[again]
    if full:
        answered = f"{before.answered_per_s:,.0f}/s at {begin}, and {after.answered_per_s:,.0f}/s at {end}"
        return f"of {paces} it answered {answered}"
    if before.p50_ns is None or after.p50_ns is None:
        return f"{paces} took it another time at {begin} than at {end}"
    times = f"{duration(before.p50_ns)} at {begin}, and {duration(after.p50_ns)} at {end}"
    return f"at {paces} its median response took {times}"


def _when(probes: Sequence[LimitProbe], between: _Between) -> str:
    """`20 s into the search`, or `some moment between 12 s and 60 s …` where the probes between do not say it."""
    since, is_timed = _moment(probes, between.since), probes[between.since].began_s is not None
    into = " into the search" if is_timed else ""
    if between.since - between.before == 1:
        return f"{since}{into}"
    return f"some moment between {_moment(probes, between.before)} and {since}{into}"


def _moment(probes: Sequence[LimitProbe], at: int) -> str:
    """`95 s`, since the search began; `probe 7` where that is not known."""
    began_s = probes[at].began_s
    return f"probe {at + 1}" if began_s is None else f"{began_s:.0f} s"


def _probe_text(probes: Sequence[LimitProbe], name: str, tried: float | None) -> str:
    probe = next(probe for probe in probes if probe.tried == tried and _state(probe, name) != "not known")
    return probe.said


def _having(probes: Sequence[LimitProbe], name: str, state: ObjectiveState) -> list[int]:
    """The probes with this state of a set of objectives, by their indices."""
    return [at for at, probe in enumerate(probes) if _state(probe, name) == state]


def _state(probe: LimitProbe, name: str) -> ObjectiveState | None:
    return next((verdict.state for verdict in probe.counts if verdict.name == name), None)
