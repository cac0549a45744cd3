"""What the page draws on one time axis: panels of lines, dots, spans and a heat map. All of it is plain JSON."""

from collections.abc import Iterable, Sequence
from typing import Literal, NotRequired, TypedDict

Unit = Literal["rate", "count", "ns", "cores", "bytes", "ratio"]


class TimeLine(TypedDict):
    """Values of a panel by name, with the token of their colour.

    `steps`: `x` are the ends of steps, one more than `y`. `dots`, `rings`: points, each with a text in `says`.
    `spans`: `y` from each `x` to the `until` of the same place. `band`: steps from `y` up to `high`. A value of None is
    a gap.
    """

    kind: Literal["steps", "dots", "rings", "spans", "band"]
    name: str
    colour: str
    x: list[float]
    y: list[float | None]
    dash: NotRequired[bool]
    until: NotRequired[list[float]]
    high: NotRequired[list[float | None]]
    says: NotRequired[list[str]]


class TimeHeat(TypedDict):
    """Requests by step and row, of which there are `per` in a decade: columns are a first row and counts upward."""

    x: list[float]
    per: int
    columns: list[list[int]]


class TimeRule(TypedDict):
    """A dashed line across a panel, such as a limit."""

    y: float
    text: str


class TimePanel(TypedDict):
    """Values of one unit. `label` says in words what is drawn."""

    title: str
    unit: Unit
    log: bool
    label: str
    lines: list[TimeLine]
    heat: NotRequired[TimeHeat]
    rules: NotRequired[list[TimeRule]]
    zones: NotRequired[list["TimeZone"]]


class TimeZone(TypedDict):
    """A band across a panel between two values, such as the interval of a limit."""

    low: float
    high: float
    colour: str


class TimeStretch(TypedDict):
    """A stretch of time that is shaded in all panels."""

    start: float
    end: float
    name: str
    colour: str


class TimeItem(TypedDict):
    """All panels that share an axis: seconds from 0 to `end`. `says` is a summary, `notes` are further texts.

    `links` is the place of the curve that shows the rate under the pointer.
    """

    subject: str
    name: str
    end: float
    says: str
    notes: list[str]
    stretches: list[TimeStretch]
    panels: list[TimePanel]
    links: NotRequired[int]


def stretch(start: float, end: float, name: str, colour: str = "--shade") -> TimeStretch:
    """A shaded stretch."""
    return {"start": at(start), "end": at(end), "name": name, "colour": colour}


def steps(name: str, colour: str, edges: Sequence[float], values: Iterable[float | None], **more: bool) -> TimeLine:
    """A line of steps; `dash=True` dashes it."""
    made: TimeLine = {"kind": "steps", "name": name, "colour": colour, "x": ats(edges), "y": rounded(values)}
    if more.get("dash"):
        made["dash"] = True
    return made


def points(
    kind: Literal["dots", "rings"],
    name: str,
    colour: str,
    where: Iterable[tuple[float, float]],
    says: Iterable[str] = (),
) -> TimeLine:
    """Single points, each with a text for the pointer or without texts."""
    known = [*where]
    made: TimeLine = {
        "kind": kind,
        "name": name,
        "colour": colour,
        "x": ats(x for x, _ in known),
        "y": rounded(y for _, y in known),
    }
    if texts := [*says]:
        made["says"] = texts
    return made


def at(seconds: float) -> float:
    """Seconds to the millisecond."""
    return whole(round(seconds, 3))


def ats(seconds: Iterable[float]) -> list[float]:
    """Seconds to the millisecond."""
    return [at(value) for value in seconds]


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Values to four significant digits, so that a page stays small."""
    return [None if value is None else whole(float(f"{value:.3e}")) if value else 0 for value in values]


def whole(value: float) -> float:
    """An integer where it is one: it is shorter in JSON."""
    return int(value) if value == int(value) else value
