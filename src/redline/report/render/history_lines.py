"""What a terminal and Markdown both say of a history: a line of bars, a change in words. Pure."""

import math

from redline.analysis.changes import FEWEST_RUNS
from redline.model import Verdict
from redline.model.history import Change, Followed, History, HistoryPoint
from redline.report import format as fmt

_BARS = "▁▂▃▄▅▆▇█"
_MISSING = "·"
_NEW_ERA = "│"
_MOST = 40
_HASH = 12


def sparkline(one: Followed, history: History, most: int = _MOST) -> str:
    """The last runs as bars on a log scale, lowest to highest; `·` where a run says nothing, `│` where an era begins.

    The scale spans at least four thresholds, so that noise does not look like mountains.
    """
    points = one.points[-most:]
    logs = [math.log(point.estimate.value) for point in points if point.estimate and point.estimate.value > 0]
    if not logs:
        return _MISSING * len(points)
    middle = (min(logs) + max(logs)) / 2
    half = max((max(logs) - min(logs)) / 2, 2 * math.log1p(one.threshold))
    drawn, era = "", None
    for point in points:
        own = history.runs[point.run].era
        drawn += _NEW_ERA if era not in (None, own) else ""
        era = own
        value = point.estimate.value if point.estimate else 0.0
        height = (math.log(value) - middle + half) / (2 * half) if value > 0 else 0.0
        drawn += _BARS[min(len(_BARS) - 1, int(height * len(_BARS)))] if value > 0 else _MISSING
    return drawn


def sign_of(change: Change) -> str:
    """`▲ faster +5.1% [+4.3, +5.9]`: the change and its interval, in percent."""
    parts = (fmt.MARKS[change.verdict], change.verdict.value, fmt.change(change.ratio), fmt.change_bounds(change.ratio))
    return " ".join(part for part in parts if part)


def since(change: Change, history: History) -> str:
    """`since run 20 of 30, 20261110-020000-nightly`."""
    return f"since run {change.run + 1} of {len(history.runs)}, {history.runs[change.run].name}"


def beside(change: Change, history: History) -> tuple[str, ...]:
    """What else changed with that run, and may explain it: the server's build, the machine."""
    before, after = (each[:_HASH] for each in (change.build_before, change.build_after))
    built = (f"build: {before} -> {after}",) if before and after and before != after else ()
    return (*built, *history.runs[change.run].environment_differs)


def last_told(one: Followed) -> str:
    """`91.0 k/s ±0.7%`, or why the last run says nothing."""
    if one.last is None:
        return one.points[-1].missing
    return f"{fmt.amount(one.last.value, one.last.unit)} {fmt.spread(one.last)}".rstrip()


def followed(history: History) -> tuple[Followed, ...]:
    """The cells that more than one run has."""
    return tuple(one for one in history.cells if len(one.points) > 1)


def alone(history: History) -> tuple[str, ...]:
    """The slugs of cells that one run alone has: there is nothing to follow."""
    return tuple(dict.fromkeys(one.slug for one in history.cells if len(one.points) == 1))


def changed(history: History) -> tuple[Followed, ...]:
    """Those with change points: regressions first, then the latest change first."""
    found = [one for one in followed(history) if one.changes]
    return tuple(sorted(found, key=lambda one: (not (one.regressed and one.current), -one.changes[-1].run)))


def main_change(one: Followed) -> Change:
    """The one to tell where there is room for one: the loss that stands, or else the last."""
    return next((each for each in one.changes if each.run == one.regressed_since), one.changes[-1])


def counted(history: History) -> str:
    """`12 metrics followed: 1 changed for the worse, 2 for the better, 9 did not change`: where they stand.

    Only the last era of each counts; where that has too few runs nothing is said of change.
    """
    everything = followed(history)
    told = [one for one in everything if len(_of_last_era(one, history)) >= FEWEST_RUNS]
    last = [verdict for one in told if (verdict := _stands(one, history))]
    worse, better = last.count(Verdict.SLOWER), last.count(Verdict.FASTER)
    parts = [f"{worse} changed for the worse", f"{better} for the better", f"{len(told) - len(last)} did not change"]
    few = len(everything) - len(told)
    parts += [f"{few} with too few runs to tell ({FEWEST_RUNS} of an era)"] if few else []
    return f"{len(everything)} metrics followed: {', '.join(parts)}"


def _of_last_era(one: Followed, history: History) -> tuple[HistoryPoint, ...]:
    era = history.runs[one.points[-1].run].era
    return tuple(point for point in one.known if history.runs[point.run].era == era)


def _stands(one: Followed, history: History) -> Verdict | None:
    """Where its last change left it, if that is in its last era; slower as long as a loss is not made good."""
    if one.regressed:
        return Verdict.SLOWER
    era = history.runs[one.points[-1].run].era
    return next((each.verdict for each in reversed(one.changes) if history.runs[each.run].era == era), None)


def in_words(history: History) -> tuple[str, ...]:
    """What to know before the figures: how many runs, from when to when, and where eras begin."""
    if not history.runs:
        return (f"no run below {history.folder}",)
    first, last = history.runs[0], history.runs[-1]
    if len(history.runs) == 1:
        return (f"one run below {history.folder}, {first.name}: there is nothing yet to hold it against",)
    span = f"{fmt.instant(first.started_unix_ns)} to {fmt.instant(last.started_unix_ns)}"
    begun = [
        f"a new era, not held against what was before, from {history.runs[era.first_run].name} on: "
        f"{'; '.join(era.differs)}"
        for era in history.eras[1:]
    ]
    return (f"{len(history.runs)} runs below {history.folder}, {span}", *begun)
