"""Tables that the page's script makes when their folds are opened, as plain data for it."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from redline.document.blocks import (
    Block,
    Fold,
    InvalidCell,
    Page,
    ServerCell,
    Table,
    TableCell,
    Tabs,
    TextCell,
)

LaterCell = str | list[str] | list[str | int] | dict[str, str] | None
"""A text; texts, of which every second one is small; colour (-1: a ceiling), name and height of a server, or None in
the rows that share it; or why there is no number."""


class LaterTables:
    """The tables of a page that are made later, with the places of their data."""

    def __init__(self, page: Page) -> None:
        every = _tables(block for section in page.sections for block in section.blocks)
        made = [(table, data) for table in every if table.later and (data := _data(table)) is not None]
        self._places = {id(table): place for place, (table, _) in enumerate(made)}
        self.data = [data for _, data in made]

    def place(self, table: Table) -> int | None:
        """The place of a table's data; None if the table is made at once."""
        return self._places.get(id(table))


def _tables(blocks: Iterable[Block | None]) -> Iterator[Table]:
    for block in blocks:
        match block:
            case Table():
                yield block
                yield from _tables(block.more)
            case Fold():
                yield from _tables(block.blocks)
            case Tabs():
                yield from _tables(inner for _, _, held in block.choices for inner in held)


def _data(table: Table) -> dict[str, object] | None:
    """Title, heads, rows, and what looks otherwise; None if a cell is more than texts."""
    rows = []
    for _, alike in groupby(table.rows, key=lambda row: id(row[0])):
        several = [*alike]
        for at, row in enumerate(several):
            cells = [_cell(cell, len(several)) for cell in row]
            if None in cells:
                return None
            if at and table.columns[0].merged:
                cells[0] = None
            while cells and cells[-1] == "":
                cells.pop()
            rows.append(cells)
    return {
        "title": "".join(span.text for span in table.title),
        "heads": [column.title for column in table.columns],
        "left": [at for at, column in enumerate(table.columns) if column.align == "left"],
        "rows": rows,
        "unused": sorted(table.muted),
    }


def _cell(cell: TableCell, height: int) -> LaterCell:
    match cell:
        case str():
            return cell
        case ServerCell():
            head: list[str | int] = [-1 if cell.role == "ceiling" else cell.series, cell.name, height]
            return head
        case InvalidCell(advice=()):
            return {"why": cell.reason}
        case TextCell(lines=(spans,), output="") if all(span.look in ("", "dim") and not span.link for span in spans):
            texts = [""]
            for span in spans:
                if (len(texts) % 2 == 0) is not (span.look == "dim"):
                    texts.append("")
                texts[-1] += span.text
            return texts[0] if len(texts) == 1 else [text.strip() for text in texts]
    return None
