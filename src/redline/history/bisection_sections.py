"""A search for the commit that made a metric worse, as sections: what it found, and the commits that it measured."""

from collections.abc import Iterator

from redline.document import format as fmt
from redline.document.blocks import Column, Prose, Section, Table, TextCell, words
from redline.model.bisection import BisectedCommit, Bisection

_LIKELY = 0.001
"""Commits that were not measured, and are less likely, have no row."""
_MOST_ROWS = 40
_SMALL = 0.02
"""A difference that is surely smaller is none."""


def sections(told: Bisection) -> Iterator[Section]:
    """The answer, and the table of commits."""
    columns = (Column("commit"), Column("against the oldest", "right"), Column("probability", "right"), Column(""))
    known = [one for one in told.commits if one.duets or one.broken or one.probability >= _LIKELY]
    most = {one.commit for one in sorted(known, key=lambda one: one.probability, reverse=True)[:_MOST_ROWS]}
    if most:
        left = [one.probability for one in told.commits if one.commit not in most]
        said = [f"{fmt.count(len(left), 'other commit')}, {chances(sum(left))} in all"] if left else []
        said += ["; ".join(likelier)] if (likelier := likelier_answers(told)) else []
        rest = (Prose.of(said, "dim"),) if said else ()
        rows = tuple(_row(one) for one in told.commits if one.commit in most)
        yield Section("Commits, the oldest first", (Table(columns, rows), *rest))
    yield Section("The answer, in words", (Prose.of(answer(told)),))


def _row(commit: BisectedCommit) -> tuple[TextCell, ...]:
    level = words() if commit.level is None else words(change(commit.level))
    chance = words() if commit.broken else words(chances(commit.probability))
    note = f"skipped: {commit.broken}" if commit.broken else f"not measured: {commit.failed}" if commit.failed else ""
    note = note if commit.comparable else "does not contain the oldest commit: not measured"
    if commit.duets and commit.duets[-1].is_same:
        note = "the same bytes as the oldest: not measured"
    return words(commit.name), level, chance, words(note, look="dim")


def change(ratio: tuple[float, float, float]) -> str:
    """`+3.2% [+2.6, +3.9]`."""
    value, low, high = ratio
    places = fmt.end_places(1 + low, 1 + high, 1)
    return f"{fmt.signed(100 * value, places)}% [{', '.join(fmt.change_ends(1 + low, 1 + high, places))}]"


def chances(probability: float) -> str:
    """`97%`; never quite 0 or 1."""
    if probability > 0.99:
        return ">99%" if probability > 0.995 else "99%"
    return "<1%" if probability < 0.01 else f"{100 * probability:.0f}%"


def likelier_answers(told: Bisection) -> list[str]:
    """Several changes and no change, with their probabilities, if one of them is likelier than the best commits."""
    if max(told.several, told.none) <= max(told.probability, *(commit.probability for commit in told.commits)):
        return []
    return [f"several changes: {chances(told.several)}", f"no change: {chances(told.none)}"]


def answer(told: Bisection) -> list[str]:
    """What was found, in sentences."""
    cost = f"{fmt.count(told.built, 'commit')} built, {fmt.duration(told.took_ns)}"
    match told.ending:
        case "found":
            return [f"{_culprit_text(told)}; probability {chances(told.probability)}; {cost}", *_ask_why(told)]
        case "several":
            first = f"no single commit made {told.metric} {_worse(told)}: it changed in several steps; {cost}"
            return [first, *_ranges(told)]
        case "none":
            level = told.commits[-1].level or (0.0, 0.0, 0.0)
            sure = "" if max(map(abs, level)) < _SMALL else "sure "
            return [f"no {sure}difference in {told.metric}: {_ends(told)}; {cost}"]
        case "opposite":
            swapped = f"redline bisect {told.bad.name} {told.good.name}, with the same flags"
            return [
                f"{told.bad.name} is the better one in {told.metric}: {_ends(told)}; {cost}",
                f"to find the commit that made it so: {swapped}",
            ]
        case "undecided" if told.culprits:
            likely = ", ".join(_name(told, commit) for commit in told.culprits)
            known = [*likelier_answers(told), f"the most likely, by {chances(told.probability)}: {likely}"]
            return ["; ".join(("no commit is sure enough", *known, cost)), *_ranges(told)]
        case _:
            best = max(told.commits, key=lambda commit: commit.probability)
            known = likelier_answers(told) or [f"the most likely, by {chances(best.probability)}: {best.name}"]
            so_far = [f"so far {'; '.join(known)}"] if best.probability else []
            return ["; ".join(("not finished", *so_far, cost))]


def _culprit_text(told: Bisection) -> str:
    if len(told.culprits) == 1:
        return f"{_name(told, told.culprits[0])} made {told.metric} {_by(told)}"
    broken = {commit.commit for commit in told.commits if commit.broken or not commit.comparable}
    names = ", ".join(_name(told, commit) for commit in told.culprits)
    skipped = len(broken & {*told.culprits})
    which = f"one of {len(told.culprits)} commits" + (f", of which {skipped} cannot be measured," if skipped else "")
    return f"{which} made {told.metric} {_by(told)}: {names}"


def _ask_why(told: Bisection) -> Iterator[str]:
    """How to learn in which functions the commit differs from its parent, if it is one, and servers were measured."""
    if told.parent is not None and told.printed is None:
        yield f"why: redline ab --git {told.parent[:9]}..{told.culprits[0][:9]} --why, with the same requests"


def _by(told: Bisection) -> str:
    """`3.2% higher [2.6, 3.9]`, `3.2% lower [2.6, 3.9]`: the interval is in the direction that the word says."""
    value, low, high = told.change or (0.0, 0.0, 0.0)
    ends = (low, high) if value > 0 else (-high, -low)
    places = fmt.end_places(1 + ends[0], 1 + ends[1], 1)
    shown = ", ".join(fmt.change_ends(1 + ends[0], 1 + ends[1], places)).replace("+", "")
    return f"{abs(100 * value):.{places}f}% {'higher' if value > 0 else 'lower'} [{shown}]"


def _worse(told: Bisection) -> str:
    return "better" if told.is_fix else "worse"


def _ends(told: Bisection) -> str:
    level = told.commits[-1].level
    return f"{told.newest.name} against {told.oldest.name} {'not measured' if level is None else change(level)}"


def _ranges(told: Bisection) -> Iterator[str]:
    """The ranges in which the level surely changes, and how to search in each."""
    for one in told.ranges:
        rises = (one.change[0] > 0) != told.higher_is_better
        good, bad = (one.after, one.until) if rises else (one.until, one.after)
        name = _name(told, one.until)
        where = name if one.commits == 1 else f"{one.commits} commits up to {name}"
        more = "" if one.commits == 1 else f"; redline bisect {good[:9]} {bad[:9]}, with the same flags"
        yield f"{where}: {change(one.change)}{more}"


def _name(told: Bisection, commit: str) -> str:
    return next(one.name for one in told.commits if one.commit == commit)
