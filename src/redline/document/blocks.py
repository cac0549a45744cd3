"""Documents before they are drawn: sections of text, tables and figures. Renderers know these, and no reports.

A block says on which media it appears (`on`). Every renderer draws text, items and tables. Only the page has folds,
tabs and figures: a figure's content also stands in a table, and text shows the content of folds and tabs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Flag, auto
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from redline.document import format as fmt
from redline.document.scales import Scale
from redline.lazily import dataclass
from redline.model import Comparison, Estimate, FindingKind, Grade, ObjectiveState, Verdict


class Medium(Flag):
    """A medium on which a report is read."""

    TERMINAL = auto()
    MARKDOWN = auto()
    PAGE = auto()
    TEXT = TERMINAL | MARKDOWN
    WRITTEN = MARKDOWN | PAGE
    EVERYWHERE = TERMINAL | MARKDOWN | PAGE


Look: TypeAlias = Verdict | fmt.VerdictSign | Grade | Literal["", "dim", "strong", "met", "missed", "unknown"]
"""The look of a text: verdicts and grades have their own colours."""

STATE_LOOKS: dict[ObjectiveState, Look] = {"met": "met", "missed": "missed", "not known": "unknown"}
"""The looks of objectives, by state."""


@dataclass(frozen=True)
class Span:
    """A piece of text. On the page it may be a link: to an anchor (`#results`), or to a file beside it."""

    text: str
    look: Look = ""
    link: str = ""


Line: TypeAlias = tuple[Span, ...]


def line(*parts: str | tuple[str, Look]) -> Line:
    """Make a line from texts, alone or with looks; empty texts are left out."""
    spans = (Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(span for span in spans if span.text)


def key(text: str) -> Line:
    """Make a line of explanation, in which `**words**` are strong. Only for our own texts."""
    parts = enumerate(text.split("**"))
    return tuple(Span(part, "strong" if at % 2 else "dim") for at, part in parts if part)


@dataclass(frozen=True)
class TextCell:
    """A table cell with some lines of text. The page also has, folded, what a server printed."""

    lines: tuple[Line, ...]
    output: str = ""


def words(*texts: str, look: Look = "") -> TextCell:
    """Make a cell with a line per text that is not empty."""
    return TextCell(tuple((Span(text, look),) for text in texts if text))


class ObjectiveText(NamedTuple):
    """An objective as written, whether it was met, and the reason if that adds something."""

    text: str
    state: ObjectiveState
    reason: str = ""


@dataclass(frozen=True)
class ServerCell:
    """A table cell that names a server of a group, with further facts about it.

    `against` and `load` are empty if the group has a single baseline and load. `series` is its colour in charts,
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
    """A cell in place of all numbers of a row: why there are none, and what to do about it."""

    reason: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeCell:
    """A table cell with a change, or the reason why there is none: `note` is its number below the table.

    `why` says why a judged metric has no verdict. `brief` is the text without insignificant decimals, and `size` the
    absolute relative change. `remark` stands behind the verdict. The page has `chances`, a hint, and `times`, the
    change as a multiple. In text a `stacked` change has its interval on its own line.
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
    why: str = ""
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
            why=f"No verdict: {comparison.why_no_verdict}" if comparison.primary and not comparison.verdict else "",
            stacked=stacked,
        )

    @property
    def sign(self) -> str:
        """The verdict's sign, or an empty text."""
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
    """A table cell with a metric: the texts of its value and of its interval.

    `value` is empty if nothing was measured, and a bound if it says `why`. `spread` is for a glance, `bounds` are the
    interval's. The page also has the change against the baseline, and sorts rows by `place`.
    """

    value: str = ""
    spread: str = ""
    bounds: str = ""
    change: ChangeCell | None = None
    place: float | None = None
    why: str = ""

    @classmethod
    def of(cls, estimate: Estimate | None, change: ChangeCell | None = None, place: float | None = None) -> "ScoreCell":
        """Format an estimate."""
        if estimate is None:
            return cls(change=change, place=place)
        value, spread = fmt.amount(estimate.value, estimate.unit), fmt.spread(estimate)
        return cls(value, spread, fmt.interval(estimate), change, place)


@dataclass(frozen=True)
class Strip:
    """A picture in a table cell: a value and its interval, on a scale that all rows share.

    A point has a whisker for its interval. A span reaches from `low` to `high`, or to the scale's end if a side is
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
    """Return a cell of text, or of a change, as lines; empty for pictures and what renderers lay out themselves."""
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
    """A column. In a narrow layout it may stand above its rows as a heading, or below them.

    Columns of a `group` stand under a heading of that name. A `merged` column shows the same object in successive rows
    once. Only the page has hints, and the axis of the scale below the column's strips.
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
        """The title with the group's: `SimpleGet · saturate`."""
        return " · ".join(part for part in (self.title, self.group) if part)


@dataclass(frozen=True)
class Table:
    """Rows of cells in the order of columns; an `InvalidCell` is a row's last cell and replaces all that are missing.

    For the page: `look` is the style of the whole table; `total` sets the last row apart; `muted` are the indices
    of unused rows; `more` is the evidence of rows, or None, folded below them. A table that is made `later` and has
    only texts is made by the page's script when its fold is opened.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    title: Line = ()
    look: Literal["plain", "tiles", "scores", "answers", "forest"] = "plain"
    total: bool = False
    muted: frozenset[int] = frozenset()
    more: tuple["Fold | None", ...] = ()
    later: bool = False
    on: Medium = Medium.EVERYWHERE

    def in_text(self) -> "Table":
        """The table without its columns of pictures."""
        kept = [at for at, column in enumerate(self.columns) if column.title or not column.scale]
        rows = tuple(tuple(row[at] for at in kept if at < len(row)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    def shown_rows(self) -> Iterator[tuple[TableCell, ...]]:
        """The rows; merged columns are empty where they repeat the row before."""
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
        """Make a line per text that is not empty, all of the same look."""
        return cls(tuple((Span(text, look),) for text in texts if text), listed, on)


@dataclass(frozen=True)
class Item:
    """The head of an item, and the lines that belong to it.

    `more` are other texts like its first line, which the page folds and text counts. Only the page has an
    anchor, a hint, and `output`: what a server printed.
    """

    head: Line
    lines: tuple[Line, ...]
    more: tuple[Line, ...] = ()
    anchor: str = ""
    hint: str = ""
    output: str = ""


def more_like_it(item: Item) -> str:
    """` (And 3 more like it.)`, or an empty text."""
    return f" (And {len(item.more)} more like it.)" if item.more else ""


@dataclass(frozen=True)
class Items:
    """A list of items; if `folded`, the page shows heads and first lines."""

    items: tuple[Item, ...]
    folded: bool = False
    on: Medium = Medium.EVERYWHERE


@dataclass(frozen=True)
class Fold:
    """Blocks under a heading. On the page they are folded; `open` is None if they cannot be.

    Text has the heading and the blocks. If the whole fold is only for the page, text has the line `instead`, if any.
    Tables of a fold that is made `later` are made when it is opened: a page of a thousand cells then opens in half the
    time. Without JavaScript they stand there at once.
    """

    title: Line
    blocks: tuple["Block", ...]
    open: bool | None = None
    anchor: str = ""
    instead: Line = ()
    later: bool = False
    on: Medium = Medium.EVERYWHERE


@dataclass(frozen=True)
class Tabs:
    """Blocks of which the page shows a single choice, with titles and hints; `first` is shown first.

    Text has the blocks of all choices in turn. The other choices of many cells are made `later`: when they are chosen.
    """

    name: str
    choices: tuple[tuple[str, str, tuple["Block", ...]], ...]
    first: int
    later: bool = False
    on: ClassVar[Medium] = Medium.EVERYWHERE


class PageBlock:
    """A block that only the page has."""

    on: ClassVar[Medium] = Medium.PAGE


@dataclass(frozen=True)
class Facts(PageBlock):
    """Names and values; `brief` facts stand in columns."""

    facts: tuple[tuple[str, str], ...]
    brief: bool = True


@dataclass(frozen=True)
class WithoutScript(PageBlock):
    """A text for a browser that runs no scripts."""

    text: str


@dataclass(frozen=True)
class Code(PageBlock):
    """A text to copy, such as a command."""

    text: str
    label: str


@dataclass(frozen=True)
class Choices(PageBlock):
    """The controls of all plots: names and texts of choices, values and texts of options, and the first value."""

    choices: tuple[tuple[str, str, tuple[tuple[str, str], ...], str], ...]


Block: TypeAlias = Prose | Items | Table | Fold | Tabs | PageBlock


@dataclass(frozen=True)
class Section:
    """A heading of a level from 1 to 3, a hint that text has beside it, and the blocks below.

    For the page: its anchor; a text beside its heading; a picture beside all of it; a number for the table of
    contents; and whether it is `tucked` under the section before it, beside the picture of that.
    """

    title: str
    blocks: tuple[Block, ...]
    hint: str = ""
    level: int = 2
    anchor: str = ""
    aside: Prose | Choices | None = None
    picture: tuple[Table, ...] = ()
    count: int | None = None
    tucked: bool = False


_FEW_SERVERS = 2


@dataclass(frozen=True)
class Head:
    """The head of the document, above all sections.

    Only the page has `brand`, with the `trail` of links beside it, `about` and `footer`. `servers` are the lines that
    say what the user's servers are: more than two are folded on the page, and left out where little is shown.
    """

    title: str
    facts: tuple[str, ...] = ()
    servers: tuple[Line, ...] = ()
    notices: tuple[Line, ...] = ()
    brand: str = "Redline"
    trail: Line = ()
    about: str = ""
    footer: str = ""

    @property
    def has_many_servers(self) -> bool:
        """Whether the lines of servers would fill a first screen."""
        return len(self.servers) > _FEW_SERVERS


@dataclass(frozen=True)
class Figures:
    """The scripts that draw a page's plots, what makes the JSON data for them, their styles, and the tables' scales."""

    scripts: tuple[str, ...] = ()
    data: Callable[[], Mapping[str, object]] = dict
    scales: tuple[Scale, ...] = ()
    styles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watch:
    """What a page asks the server that it comes from: whether `address` still has the `stamp` of what is shown."""

    address: str
    stamp: str


@dataclass(frozen=True)
class Page:
    """Everything on a page. Only a page that a server serves has a `watch`: a file asks nobody."""

    head: Head
    sections: tuple[Section, ...]
    figures: Figures
    watch: Watch | None = None


def filled(*blocks: Block | None) -> Iterator[Block]:
    """Yield the blocks that have something to show."""
    for block in blocks:
        match block:
            case Prose(lines=()) | Items(items=()) | Table(rows=()) | None:
                pass
            case _:
                yield block


def on_medium(blocks: Iterable[Block | None], medium: Medium) -> Iterator[Block]:
    """Yield the blocks that appear on a medium and have something to show; text has the content of folds and tabs."""
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
    """Yield blocks below a heading, which becomes the title of a first table without a title."""
    first, *others = blocks
    if isinstance(first, Table) and not first.title:
        yield replace(first, title=title)
    else:
        yield from (Prose((title,)), first)
    yield from others


def _strong(title: Line) -> Line:
    """Make a heading within text stand out from the blocks below it."""
    return tuple(replace(span, look=span.look or "strong") for span in title)


def refused(reasons: Iterable[str]) -> Prose:
    """Reasons why changes are refused, numbered from 1 as in `ChangeCell.note`."""
    return Prose.of((f"[{number}] refused: {reason}" for number, reason in enumerate(reasons, 1)), "dim", listed=True)
