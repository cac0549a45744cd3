"""Rows of ratios and the Markdown of them. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.cost.pairs import Client, Interval, Samples, ratio

HEADS = (
    "case",
    "Redline",
    "peer",
    "CPU us/request: Redline",
    "peer",
    "ratio [95%]",
    "goal",
    "",
    "requests/s: Redline",
    "peer",
)


@dataclass(frozen=True)
class Row:
    """One comparison. `ours` and `theirs` are names; without `ratio` there was nothing to compare, and `note` says why.

    CPU is in microseconds per request, rates are per second; NaN is unknown.
    """

    case: str
    ours: str
    theirs: str
    ratio: Interval | None
    goal: float | None
    ours_us: float = math.nan
    theirs_us: float = math.nan
    ours_per_s: float = math.nan
    theirs_per_s: float = math.nan
    note: str = ""

    @property
    def verdict(self) -> str:
        """`met`, `missed`, `unclear`, `no goal` or `not run`."""
        return "not run" if self.ratio is None else self.ratio.verdict(self.goal)


@dataclass
class Outcome:
    """What a case gives: rows of the table, and Markdown that stands below it."""

    rows: list[Row] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


def row(case: str, ours: str, theirs: str, goal: float | None, samples: Samples) -> Row:
    """The row for two clients that ran in the same rounds."""
    us, them = samples.of.get(ours, []), samples.of.get(theirs, [])
    together = min(len(us), len(them))
    notes = [f"{name}: {samples.failed[name]}" for name in (ours, theirs) if name in samples.failed]
    for name in (ours, theirs):
        notes += sorted({f"{name}: {sample.ran.faults}" for sample in samples.of.get(name, []) if sample.ran.faults})
    compared = (
        ratio([s.cpu_us_per_request for s in us[:together]], [s.cpu_us_per_request for s in them[:together]])
        if together
        else None
    )
    return Row(
        case=case,
        ours=ours,
        theirs=theirs,
        ratio=compared,
        goal=goal,
        ours_us=samples.mean(ours, lambda sample: sample.cpu_us_per_request),
        theirs_us=samples.mean(theirs, lambda sample: sample.cpu_us_per_request),
        ours_per_s=samples.mean(ours, lambda sample: sample.ran.rate_per_s),
        theirs_per_s=samples.mean(theirs, lambda sample: sample.ran.rate_per_s),
        note="; ".join(notes),
    )


def order(subjects: Sequence[Client], peers: Iterable[Client]) -> list[Client]:
    """First subject, first peer, second subject, the rest: so that the peer with the goal runs next to both."""
    first, *others = [*peers, None]
    return [client for client in (*subjects[:1], first, *subjects[1:], *others) if client is not None]


def number(value: float, form: str = ",.2f") -> str:
    """In that format, or a dash where it is not known."""
    return format(value, form) if math.isfinite(value) else "-"


def interval(found: Interval | None, form: str = ".3f") -> str:
    """`0.712 [0.701, 0.723]`."""
    if found is None:
        return "-"
    if not math.isfinite(found.high):
        return f"{found.value:{form}} [one pair]"
    return f"{found.value:{form}} [{number(found.low, form)}, {number(found.high, form)}]"


def line(cells: Iterable[str]) -> str:
    """A row of Markdown."""
    return f"| {' | '.join(cells)} |"


def heads(names: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [line(names), f"|{'---|' * len(names)}"]


def table(rows: Sequence[Row]) -> list[str]:
    """The table of ratios; what went wrong follows as footnotes."""
    lines, notes = heads(HEADS), []
    for each in rows:
        mark = ""
        if each.note:
            notes.append(each.note)
            mark = f" ({len(notes)})"
        lines.append(
            line(
                (
                    each.case,
                    each.ours,
                    each.theirs,
                    number(each.ours_us),
                    number(each.theirs_us),
                    f"**{interval(each.ratio)}**",
                    "-" if each.goal is None else f"≤ {each.goal:.2f}",
                    each.verdict + mark,
                    number(each.ours_per_s, ",.0f"),
                    number(each.theirs_per_s, ",.0f"),
                )
            )
        )
    return [*lines, *([""] if notes else []), *(f"({n}) {note}  " for n, note in enumerate(notes, 1))]
