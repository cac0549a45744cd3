"""What is shown, before it is drawn: sections of text, tables and figures. Renderers know these, and no reports.

A block says on which media it appears (`on`). Every renderer draws text, items and tables. Only the page has folds,
tabs and figures: whatever a figure shows also stands in a table, and text shows what folds and tabs hold.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from redline.model import Comparison, Estimate, FindingKind, Grade, ObjectiveState, Verdict
from redline.report import format as fmt
from redline.report.scales import Scale


class Medium(Flag):
    """Where a report is read."""

    TERMINAL = auto()
    MARKDOWN = auto()
    PAGE = auto()
    TEXT = TERMINAL | MARKDOWN
    WRITTEN = MARKDOWN | PAGE
    EVERYWHERE = TERMINAL | MARKDOWN | PAGE


Look: TypeAlias = Verdict | fmt.VerdictSign | Grade | Literal["", "dim", "strong", "met", "missed", "unknown"]
"""How a text looks: verdicts and grades have colours of their own."""

STATE_LOOKS: dict[ObjectiveState, Look] = {"met": "met", "missed": "missed", "not known": "unknown"}
"""How what became of an objective looks."""


@dataclass(frozen=True)
class Span:
    """A piece of text. On the page it may be a link: to an anchor (`#results`), or to a file beside it."""

    text: str
    look: Look = ""
    link: str = ""


Line: TypeAlias = tuple[Span, ...]


def line(*parts: str | tuple[str, Look]) -> Line:
    """A line from texts, alone or with looks; empty texts are left out."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


def key(text: str) -> Line:
    """A line of explanation, in which `**words**` are strong. For texts of ours alone."""
    parts = enumerate(text.split("**"))
    return tuple(Span(part, "strong" if at % 2 else "dim") for at, part in parts if part)


@dataclass(frozen=True)
class TextCell:
    """A cell of a table: some lines of text. For the page also, folded, what a server printed."""

    lines: tuple[Line, ...]
    output: str = ""


def words(*texts: str, look: Look = "") -> TextCell:
    """A cell with a line per text that is not empty."""
    return TextCell(tuple((Span(text, look),) for text in texts if text))


class ObjectiveText(NamedTuple):
    """An objective as it was written, whether it was met, and why that is so where that says more."""

    text: str
    state: ObjectiveState
    reason: str = ""


@dataclass(frozen=True)
class ServerCell:
    """A cell of a table that names a server of a group, with what else is to be known of it.

    `against` and `load` are empty where the group has a single baseline and load. `series` is its colour in charts,
    `rank` its place among the servers that it is ranked with.
    """

    name: str
    role: Literal["", "baseline", "ceiling"] = ""
    against: str = ""
    load: str = ""
    valid: bool = True
    objectives: tuple[ObjectiveText, ...] = ()
    findings: tuple[tuple[FindingKind, Grade], ...] = ()
    series: int = 0
    rank: str = ""

    @property
    def grades(self) -> tuple[Grade, ...]:
        """The grades of its findings."""
        return tuple(dict.fromkeys(grade for _, grade in self.findings))


@dataclass(frozen=True)
class InvalidCell:
    """In place of all numbers of a row: why there are none, and what to do about it."""

    reason: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeCell:
    """A cell of a table with a change, or why there is none: `note` is the number of the table's reason.

    A change that is only described has no verdict. `brief` is the text without decimals that say little at a glance,
    and `size` the absolute relative change. `remark` stands behind the verdict. The page has `chances`, a hint, and
    `times`, the change as a multiple. In text a `stacked` change has its interval in a line of its own.
    """

    text: str = ""
    bounds: str = ""
    verdict: fmt.VerdictSign | None = None
    note: int | None = None
    brief: str = ""
    size: float = 0.0
    remark: str = ""
    chances: str = ""
    times: str = ""
    stacked: bool = False

    @classmethod
    def of(cls, comparison: Comparison | None, note: int | None = None, *, stacked: bool = False) -> "ChangeCell":
        """A comparison's ratio as a change in percent."""
        if comparison is None:
            return cls("not run")
        ratio = comparison.ratio
        if ratio is None:
            return cls(note=note, stacked=stacked)
        return cls(
            fmt.change(ratio),
            fmt.change_bounds(ratio),
            fmt.VerdictSign.of(comparison),
            brief=fmt.change(ratio, whole_from=0.1),
            size=abs(ratio.value - 1),
            remark=fmt.held_back(comparison),
            chances=fmt.chances(comparison),
            times=fmt.times(comparison),
            stacked=stacked,
        )

    @property
    def sign(self) -> str:
        """The verdict's, or nothing."""
        return self.verdict.mark if self.verdict else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """`+1.24 µs ▼ [+1.06, +1.42]`, or `refused [1]`; in two lines if it is stacked."""
        if self.note is not None:
            return (f"refused [{self.note}]",)
        first, second = (
            " ".join(filter(None, (self.text, self.sign))),
            " ".join(filter(None, (self.bounds, self.remark))),
        )
        return (first, second) if self.stacked else (f"{first} {second}".strip(),)


@dataclass(frozen=True)
class ScoreCell:
    """A cell of a table with a metric: the texts of its value and of its interval.

    `value` is empty where nothing was measured. `spread` is for a glance, `bounds` are those of the interval. The page
    has the change against the baseline, too, and sorts rows by `place`.
    """

    value: str = ""
    spread: str = ""
    bounds: str = ""
    change: ChangeCell | None = None
    place: float | None = None

    @classmethod
    def of(cls, estimate: Estimate | None, change: ChangeCell | None = None, place: float | None = None) -> "ScoreCell":
        """An estimate as texts."""
        if estimate is None:
            return cls(change=change, place=place)
        amount = fmt.amount(estimate.value, estimate.unit)
        return cls(amount, fmt.spread(estimate), fmt.interval(estimate), change, place)


@dataclass(frozen=True)
class Strip:
    """A picture in a cell of a table: a value and its interval, on a scale that all rows share.

    A point has a whisker for its interval. A span reaches from `low` to `high`, or to the scale's end where a side is
    unknown; a ring marks its `value`. `dots` are the trials behind the interval.
    """

    scale: Scale
    form: Literal["point", "span"]
    value: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: fmt.VerdictSign | None = None
    series: int | None = None
    dots: tuple[float, ...] = ()


TableCell: TypeAlias = str | TextCell | ServerCell | ScoreCell | InvalidCell | ChangeCell | Strip


def lines_of(cell: TableCell) -> tuple[Line, ...]:
    """A cell of text, or of a change, as lines; none of a picture and of what renderers lay out themselves."""
    match cell:
        case str():
            return (line(cell),)
        case TextCell():
            return cell.lines
        case InvalidCell():
            return (line((f"{fmt.GRADE_MARKS[Grade.INVALID]} invalid: ", Grade.INVALID), cell.reason),)
        case ChangeCell():
            return tuple(line((text, cell.verdict or "dim")) for text in cell.texts)
        case _:
            return ()


@dataclass(frozen=True)
class Column:
    """A column. Where there is little room it may stand above its rows as a heading, or below them.

    Columns of a `group` stand under a heading of that name. A `merged` column shows a cell once for all successive
    rows that have the same object in it. Only the page has hints, and the axis of the scale below the column's strips.
    """

    title: str
    align: Literal["left", "right"] = "left"
    place: Literal["column", "above", "below"] = "column"
    group: str = ""
    merged: bool = False
    hint: str = ""
    scale: Scale | None = None

    @property
    def heading(self) -> str:
        """Its title with its group's: `SimpleGet · saturate`."""
        return " · ".join(part for part in (self.title, self.group) if part)


@dataclass(frozen=True)
class Table:
    """Rows of cells in the order of columns; a `InvalidCell` is a row's last cell and stands for all that are missing.

    For the page: `look` is the style of the whole table; `total` sets the last row apart; `muted` are the rows, from 0,
    of which nothing was used; `more` is what rows rest on, or None, folded below them.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: Line = ()
    look: Literal["plain", "tiles", "scores", "answers", "forest"] = "plain"
    total: bool = False
    muted: frozenset[int] = frozenset()
    more: tuple["Fold | None", ...] = ()
    on: Medium = Medium.EVERYWHERE

    def in_text(self) -> "Table":
        """The table without the columns that hold pictures alone."""
        kept = [at for at, column in enumerate(self.columns) if column.title or not column.scale]
        rows = tuple(tuple(row[at] for at in kept if at < len(row)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    def shown_rows(self) -> Iterator[tuple[TableCell, ...]]:
        """The rows, with nothing in merged columns that show the row before them already."""
        before: TableCell | None = None
        for row in self.rows:
            repeats = row[0] is before
            before = row[0]
            cells = zip(self.columns, row, strict=False)
            yield tuple("" if repeats and column.merged else cell for column, cell in cells)


@dataclass(frozen=True)
class Prose:
    """Lines of text: paragraphs, or the items of a list."""

    lines: tuple[Line, ...]
    listed: bool = False
    on: Medium = Medium.EVERYWHERE

    @classmethod
    def of(
        cls, texts: Iterable[str], look: Look = "", *, listed: bool = False, on: Medium = Medium.EVERYWHERE
    ) -> "Prose":
        """A line per text that is not empty, all of the same look."""
        return cls(tuple((Span(text, look),) for text in texts if text), listed, on)


@dataclass(frozen=True)
class Item:
    """The head of an item, and the lines that belong to it.

    `more` are other texts like its first line, which the page folds and others only count. The page alone has an
    anchor, a hint, and `output`: what a server printed.
    """

    head: Line
    lines: tuple[Line, ...]
    more: tuple[Line, ...] = ()
    anchor: str = ""
    hint: str = ""
    output: str = ""


def more_like_it(item: Item) -> str:
    """` (And 3 more like it.)`, or nothing."""
    return f" (And {len(item.more)} more like it.)" if item.more else ""


@dataclass(frozen=True)
class Items:
    """A list of items, of which the page shows heads and first lines where they are `folded`."""

    items: tuple[Item, ...]
    folded: bool = False
    on: Medium = Medium.EVERYWHERE


@dataclass(frozen=True)
class Fold:
    """Blocks under a heading. On the page they are folded; `open` is None where they cannot be.

    Text has the heading and the blocks. If the whole fold is for the page alone, text has the line `instead`, if any.
    """

    title: Line
    blocks: tuple["Block", ...]
    open: bool | None = None
    anchor: str = ""
    instead: Line = ()
    on: Medium = Medium.EVERYWHERE


@dataclass(frozen=True)
class Tabs:
    """Blocks of which the page shows one choice at a time, with titles and hints; `first` is shown first.

    Text has the blocks of all choices in turn.
    """

    name: str
    choices: tuple[tuple[str, str, tuple["Block", ...]], ...]
    first: int
    on: ClassVar[Medium] = Medium.EVERYWHERE


class PageBlock:
    """A block that the page alone has."""

    on: ClassVar[Medium] = Medium.PAGE


@dataclass(frozen=True)
class Facts(PageBlock):
    """Names and values; `brief` ones stand in columns."""

    facts: tuple[tuple[str, str], ...]
    brief: bool = True


@dataclass(frozen=True)
class Code(PageBlock):
    """A text to be copied, such as a command."""

    text: str
    label: str


@dataclass(frozen=True)
class Choices(PageBlock):
    """What all plots show: the name and text of choices, the values and texts of their options, and the first value."""

    choices: tuple[tuple[str, str, tuple[tuple[str, str], ...], str], ...]


Block: TypeAlias = Prose | Items | Table | Fold | Tabs | PageBlock


@dataclass(frozen=True)
class Section:
    """A heading of a level from 1 to 3, a hint that text has beside it, and what stands below.

    For the page: its anchor; what stands beside its heading; a picture beside all of it; a number for the table of
    contents.
    """

    title: str
    blocks: tuple[Block, ...]
    hint: str = ""
    level: int = 2
    anchor: str = ""
    aside: Prose | Choices | None = None
    picture: Table | None = None
    count: int | None = None


@dataclass(frozen=True)
class Head:
    """What stands above all sections. The page alone has `brand`, `about` and `footer`."""

    title: str
    facts: tuple[str, ...] = ()
    notices: tuple[Line, ...] = ()
    brand: str = "Redline"
    about: str = ""
    footer: str = ""


@dataclass(frozen=True)
class Figures:
    """What a page's `scripts` draw its plots from, as data for JSON; and the scales of its tables."""

    data: object
    scripts: tuple[str, ...]
    scales: tuple[Scale, ...] = ()


@dataclass(frozen=True)
class Page:
    """Everything on a page."""

    head: Head
    sections: tuple[Section, ...]
    figures: Figures


def filled(*blocks: Block | None) -> Iterator[Block]:
    """The blocks that have something to show."""
    for block in blocks:
        match block:
            case Prose(lines=()) | Items(items=()) | Table(rows=()) | None:
                pass
            case _:
                yield block


def on_medium(blocks: Iterable[Block | None], medium: Medium) -> Iterator[Block]:
    """The blocks that appear there and have something to show; of folds and tabs text has what is in them."""
    for block in filled(*blocks):
        match block:
            case Fold() if medium not in block.on:
                yield from filled(Prose((block.instead,) if block.instead else ()))
            case Fold():
                inner = tuple(on_medium(block.blocks, medium))
                if inner and medium is Medium.PAGE:
                    yield replace(block, blocks=inner)
                elif inner:
                    yield from _headed(_strong(block.title), inner)
            case Tabs() if medium is not Medium.PAGE:
                for _, _, inner in block.choices:
                    yield from on_medium(inner, medium)
            case Tabs():
                choices = tuple((title, hint, tuple(on_medium(inner, medium))) for title, hint, inner in block.choices)
                yield replace(block, choices=choices)
            case _ if medium in block.on:
                yield block.in_text() if isinstance(block, Table) and medium is not Medium.PAGE else block


def _headed(title: Line, blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Blocks below a heading, which is the title of a table that comes first and has none."""
    first, *others = blocks
    if isinstance(first, Table) and not first.title:
        yield replace(first, title=title)
    else:
        yield from (Prose((title,)), first)
    yield from others


def _strong(title: Line) -> Line:
    """A heading within text, which stands out from what is below it."""
    return tuple(replace(span, look=span.look or "strong") for span in title)


def refused(reasons: Iterable[str]) -> Prose:
    """Why changes are refused, numbered from 1 as in `ChangeCell.note`."""
    return Prose.of((f"[{number}] refused: {reason}" for number, reason in enumerate(reasons, 1)), "dim", listed=True)
