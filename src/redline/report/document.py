"""What is shown, before it is drawn: sections of prose, items and tables. Renderers know these, and no reports."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from redline.model import Comparison, Estimate, FindingKind, Grade, Metric, ObjectiveResult, Verdict
from redline.report import format as fmt

Look: TypeAlias = Verdict | Grade | Literal["", "dim", "strong"]
"""How a text looks: verdicts and grades have colours of their own."""


@dataclass(frozen=True)
class Span:
    """A piece of text of one look."""

    text: str
    look: Look = ""


Line: TypeAlias = tuple[Span, ...]


def line(*parts: str | tuple[str, Look]) -> Line:
    """A line from texts, each alone or with its look; empty texts are left out."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


@dataclass(frozen=True)
class TextCell:
    """A cell of a table: some lines of text."""

    lines: tuple[Line, ...]


def words(*texts: str, look: Look = "") -> TextCell:
    """A cell with a line for each text that is not empty."""
    return TextCell(tuple((Span(text, look),) for text in texts if text))


@dataclass(frozen=True)
class ServerCell:
    """A cell of a table that names a server of a group, with what else is to be known of it.

    `against` and `load` are empty where the group has one baseline and one load. `series` is its colour in charts.
    """

    name: str
    role: Literal["", "baseline", "ceiling"] = ""
    against: str = ""
    load: str = ""
    valid: bool = True
    objectives: tuple[ObjectiveResult, ...] = ()
    findings: tuple[tuple[FindingKind, Grade], ...] = ()
    series: int = 0

    @property
    def grades(self) -> tuple[Grade, ...]:
        """The grades of its findings, each once."""
        return tuple(dict.fromkeys(grade for _, grade in self.findings))


@dataclass(frozen=True)
class ScoreCell:
    """A cell of a table with one metric: its estimate, and its comparison where it has one."""

    metric: Metric
    estimate: Estimate | None
    comparison: Comparison | None = None


@dataclass(frozen=True)
class InvalidCell:
    """In place of all numbers of a row: why there are none, and what to do about it."""

    reason: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeCell:
    """A cell of a table with a change, or why there is none: `note` is the number of the table's reason.

    `brief` is the text without decimals that say little at a glance, and `size` the absolute relative change.
    """

    text: str = ""
    bounds: str = ""
    verdict: Verdict | None = None
    note: int | None = None
    brief: str = ""
    size: float = 0.0

    @classmethod
    def of(cls, comparison: Comparison | None, note: int | None = None) -> "ChangeCell":
        """A comparison's ratio as a change in percent."""
        if comparison is None:
            return cls("not run")
        ratio = comparison.ratio
        if ratio is None or comparison.verdict is None:
            return cls(note=note)
        brief, size = fmt.change(ratio, whole_from=0.1), abs(ratio.value - 1)
        return cls(fmt.change(ratio), fmt.change_bounds(ratio), comparison.verdict, brief=brief, size=size)

    @property
    def sign(self) -> str:
        """The verdict's, or nothing."""
        return fmt.MARKS[self.verdict] if self.verdict else ""

    @property
    def in_full(self) -> str:
        """`+1.24 µs ▼ [+1.06, +1.42]`, or `refused [1]`."""
        if self.note is not None:
            return f"refused [{self.note}]"
        return " ".join(part for part in (self.text, self.sign, self.bounds) if part)


TableCell: TypeAlias = TextCell | ServerCell | ScoreCell | InvalidCell | ChangeCell


@dataclass(frozen=True)
class Column:
    """A column. Where there is little room it may stand above its rows as a heading, or below each of them.

    Columns of one `group` stand under a heading of that name.
    """

    title: str
    align: Literal["left", "right"] = "left"
    place: Literal["beside", "above", "below"] = "beside"
    group: str = ""

    @property
    def heading(self) -> str:
        """Its title with its group's: `SimpleGet · saturate`."""
        return " · ".join(part for part in (self.title, self.group) if part)


@dataclass(frozen=True)
class Table:
    """Rows of cells, one for each column; a `InvalidCell` is a row's last cell and stands for all that are missing."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: Line = ()
    reasons: tuple[str, ...] = ()
    """Why changes are refused, numbered from 1."""


@dataclass(frozen=True)
class Prose:
    """Lines of text: paragraphs, or the items of a list."""

    lines: tuple[Line, ...]
    listed: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], look: Look = "", *, listed: bool = False) -> "Prose":
        """One line for each text that is not empty, all of one look."""
        return cls(tuple((Span(text, look),) for text in texts if text), listed)


@dataclass(frozen=True)
class Item:
    """The head of an item, and the lines that belong to it."""

    head: Line
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Items:
    """A list of items."""

    items: tuple[Item, ...]


Block: TypeAlias = Prose | Items | Table


@dataclass(frozen=True)
class Section:
    """A heading of a level from 1 to 3, a hint that belongs to it, and what stands below."""

    title: str
    blocks: tuple[Block, ...]
    hint: str = ""
    level: int = 2


def filled(*blocks: Block | None) -> Iterator[Block]:
    """The blocks that have something to show."""
    for block in blocks:
        match block:
            case Prose(lines=()) | Items(items=()) | Table(rows=()) | None:
                pass
            case _:
                yield block
