"""Sections on a terminal: readable at 80 columns, without colour, and piped."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from redline.document import format as fmt
from redline.document.blocks import (
    ChangeCell,
    Items,
    Line,
    Look,
    Medium,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Span,
    Table,
    TableCell,
    line,
    lines_of,
    more_like_it,
    on_medium,
)
from redline.model import Grade, Verdict
from redline.visible import printable

COLOURS: dict[Look, str] = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.EQUIVALENT: "dim",
    Verdict.INCONCLUSIVE: "yellow",
    fmt.VerdictSign.SLIGHTLY_FASTER: "cyan",
    fmt.VerdictSign.SLIGHTLY_SLOWER: "magenta",
    Grade.NOTE: "blue",
    Grade.WARN: "yellow",
    Grade.INVALID: "bold red",
    "met": "green",
    "missed": "red",
    "unknown": "yellow",
    "dim": "dim",
    "strong": "bold",
    "": "",
}
_GAP = 2
_LEAST = 12
"""The least room for names and remarks, in characters, however narrow the terminal is."""


def render(sections: Iterable[Section], console: Console) -> Text:
    """Render sections as lines that fit the console's width. Control characters in any text are shown as escapes."""
    shown = [(section, tuple(on_medium(section.blocks, Medium.TERMINAL))) for section in sections]
    grids = _grids([block for _, blocks in shown for block in blocks if isinstance(block, Table)], console)
    lines: list[Text] = []
    for section, blocks in shown:
        lines += [Text()] if lines else []
        if section.title:
            hint = f"  {section.hint}" if section.hint else ""
            lines += _wrapped(_text(line((section.title, "strong"), (hint, "dim"))), console)
        for block in blocks:
            if isinstance(block, Table):
                grid, widths = grids[id(block)]
                lines += [Text()] if block.title and block is not blocks[0] else []
                lines += grid.lines(widths)
            elif isinstance(block, Prose | Items):
                lines += _prose(block, console)
    return Text("\n").join(lines)


def _prose(block: Prose | Items, console: Console) -> Iterator[Text]:
    if isinstance(block, Prose):
        for text in block.lines:
            yield from _wrapped(_text(text), console, 2 if block.listed else 0)
        return
    for item in block.items:
        yield from _wrapped(_text(item.head), console)
        first, *others = item.lines
        for text in ((*first, Span(more_like_it(item))), *others):
            yield from _wrapped(_text(text), console, 2)


def _grids(tables: Sequence[Table], console: Console) -> dict[int, tuple["_Grid", list[int]]]:
    """Lay out tables, by `id`, with the widths of their columns: the same for all tables with the same titles."""
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        alike.setdefault(tuple(column.heading for column in table.columns), []).append(table)
    made: dict[int, tuple[_Grid, list[int]]] = {}
    for members in alike.values():
        grids = [_Grid(table, console) for table in members]
        widths = _widest(grids)
        if not all(grid.fits(widths) for grid in grids):
            grids = [_Grid(table, console, brief=True) for table in members]
            widths = _widest(grids)
        made |= {id(table): (grid, widths) for table, grid in zip(members, grids, strict=True)}
    return made


def _widest(grids: Sequence["_Grid"]) -> list[int]:
    return [max(column) for column in zip(*(grid.widths for grid in grids), strict=True)]


def _text(spans: Line) -> Text:
    return Text.assemble(*((printable(span.text), COLOURS[span.look]) for span in spans))


def _wrapped(text: Text, console: Console, indent: int = 0) -> Iterator[Text]:
    room = max(_LEAST, console.width - indent)
    for part in [text] if cell_len(text.plain) <= room else text.wrap(console, room, overflow="fold"):
        part.rstrip()
        yield Text(" " * indent).append_text(part)


class _Grid:
    """A table as texts, some of several lines; `brief` leaves out details."""

    def __init__(self, table: Table, console: Console, *, brief: bool = False) -> None:
        self._console = console
        self._table = table
        self._brief = brief
        self._columns = [column for column in table.columns if column.place == "column"]
        rows = list(table.shown_rows())
        self._rows = [self._placed(row, "column") for row in rows]
        self._above = [self._placed(row, "above") for row in rows]
        self._below = [self._placed(row, "below") for row in rows]
        self._indent = 2 if any(self._above) else 0
        self._titles = tuple(column.heading for column in self._columns)
        left = any(isinstance(cell, ScoreCell) for row in table.rows for cell in row)
        self._right = [column.align == "right" and not left for column in self._columns]

    @property
    def widths(self) -> list[int]:
        """The widths of the columns' widest texts, without titles."""
        widest = [0] * len(self._columns)
        for row in self._rows:
            numbers = row if len(row) == len(widest) else row[:1]  # a text in place of numbers has all the room
            for at, text in enumerate(numbers):
                widest[at] = max(widest[at], *(cell_len(part) for part in text.plain.split("\n")))
        return widest

    def lines(self, widths: Sequence[int]) -> Iterator[Text]:
        """Yield the table in as many parts as the terminal's width needs, all with the first column."""
        first, *others = self._fitted(widths)
        if self._table.title:
            yield from _wrapped(_text(self._table.title), self._console)
        room = self._console.width - self._indent - first
        for start, end in _parts(others, room):
            yield from self._part([0, *range(start + 1, end + 1)], [first, *others[start:end]])

    def _placed(self, row: Sequence[TableCell], place: str) -> list[Text]:
        """Return the row's texts in the columns of that place."""
        cells = zip(self._table.columns, row, strict=False)
        return [_cell(cell, brief=self._brief) for column, cell in cells if column.place == place]

    def fits(self, widths: Sequence[int]) -> bool:
        """Whether columns of these widths, or as wide as their titles' longest words, are within the terminal's."""
        return sum(self._folding(widths)) <= self._room

    @property
    def _room(self) -> int:
        return self._console.width - self._indent - _GAP * (len(self._columns) - 1)

    def _folding(self, widths: Sequence[int]) -> list[int]:
        pieces = (max(map(len, _pieces(title)), default=0) for title in self._titles)
        return [max(pair) for pair in zip(widths, pieces, strict=True)]

    def _fitted(self, widths: Sequence[int]) -> list[int]:
        """Return widths with room for titles, whole, else folded; then the first and the last column give way."""
        whole = [max(width, cell_len(title)) for width, title in zip(widths, self._titles, strict=True)]
        if sum(whole) <= self._room:
            return whole
        fitted = self._folding(widths)
        for at in (0, -1) if self._columns[-1].align == "left" else (0,):
            fitted[at] = min(fitted[at], max(_LEAST, self._room - sum(fitted) + fitted[at]))
        widest = max(_LEAST, self._console.width - self._indent - fitted[0] - _GAP)
        return [fitted[0], *(min(width, widest) for width in fitted[1:])]

    def _part(self, columns: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
        if any(self._titles):
            heads = [Text(_folded(self._titles[at], width), "dim") for at, width in zip(columns, widths, strict=True)]
            yield from self._row(heads, columns, widths)
        above = ""
        for row, over, under in zip(self._rows, self._above, self._below, strict=True):
            if (heading := Text(" ").join(over)).plain != above:
                above = heading.plain
                yield from _wrapped(heading, self._console)
            if len(row) < len(self._columns):
                if columns[1:2] != [1]:
                    continue  # it is in the first part
                rest = sum(widths[1:]) + _GAP * (len(widths) - 2)
                yield from self._row(row, (0, 0), (widths[0], max(_LEAST, rest)))
            else:
                yield from self._row([row[at] for at in columns], columns, widths)
            for text in filter(None, under):
                for part in text.split("\n"):
                    yield from _wrapped(part, self._console, self._indent + 2)

    def _row(self, texts: Sequence[Text], columns: Sequence[int], widths: Sequence[int]) -> Iterator[Text]:
        stacks = [list(self._stack(text, width)) for text, width in zip(texts, widths, strict=True)]
        for height in range(max(map(len, stacks))):
            made = Text(" " * self._indent)
            for stack, at, width in zip(stacks, columns, widths, strict=True):
                text = stack[height] if height < len(stack) else Text()
                blank = " " * max(0, width - cell_len(text.plain))
                made.append(blank if self._right[at] else "").append_text(text)
                made.append(("" if self._right[at] else blank) + " " * _GAP)
            made.rstrip()
            yield made

    def _stack(self, text: Text, width: int) -> Iterator[Text]:
        for part in text.split("\n", allow_blank=True):
            if cell_len(part.plain) <= width:
                yield part
            else:
                yield from part.wrap(self._console, width, overflow="fold")


def _parts(widths: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of columns that fit the room, at least one column wide."""
    start, used = 0, 0
    for at, width in enumerate(widths):
        if at > start and used + _GAP + width > room:
            yield start, at
            start, used = at, 0
        used += _GAP + width
    yield start, len(widths)


def _pieces(title: str) -> list[str]:
    """Split `SimpleGetMulti · p99` where it may be broken: before capitals, and at spaces."""
    return re.split(r"(?<=[a-z0-9])(?=[A-Z])|\s+(?:·\s+)?", title)


def _folded(title: str, width: int) -> str:
    if cell_len(title) <= width:
        return title
    lines = [""]
    for piece, gap in re.findall(r"(.+?)((?<=[a-z0-9])(?=[A-Z])|\s+(?:·\s+)?|$)", title):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece + (" " if gap else "")
    return "\n".join(part.rstrip() for part in lines)


def _cell(cell: TableCell, *, brief: bool) -> Text:
    match cell:
        case ServerCell():
            return _server(cell)
        case ScoreCell():
            return _score(cell)
        case ChangeCell() if brief and cell.brief and not cell.stacked:
            return _text(line((f"{cell.brief} {cell.sign}".rstrip(), cell.verdict or "dim")))
        case _:
            return Text("\n").join(map(_text, lines_of(cell)))


def _server(server: ServerCell) -> Text:
    """The server, and below it its role or its baseline, its own load, and the grades of its findings."""
    ranked = f"rank {server.rank}" if server.rank else ""
    remarks = (ranked, server.role, f"vs {server.against}" if server.against else "", server.load)
    notes = _text(line((", ".join(part for part in remarks if part), "dim")))
    for grade in server.grades:
        notes.append(" " if notes else "").append(fmt.GRADE_MARKS[grade], COLOURS[grade])
    name = Text(printable(server.name), "dim" if server.role == "ceiling" else "")
    return Text("\n").join([name, notes]) if notes else name


def _score(score: ScoreCell) -> Text:
    if not score.value:
        return Text("not measured", "dim")
    return Text.assemble(score.value, (f" {score.spread}".rstrip(), "dim"))
