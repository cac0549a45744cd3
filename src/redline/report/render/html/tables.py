"""Tables of text and changes as HTML; every text is escaped."""

import re
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup

from redline.report.document import ChangeCell, Column, Line, Table, TableCell, TextCell

_HEATS = (0.05, 0.15)
"""Changes from which on a cell of a table is coloured more strongly."""


def table_html(table: Table, look: str, *, caption: str = "", brief: bool = False, sum_row: bool = False) -> Markup:
    """The table in a region that scrolls by itself; `look` are its CSS classes, `sum_row` sets the last row apart.

    Rows stand under what is in their column `above`, columns under their group's name. `brief` leaves bounds out.
    """
    columns = [column for column in table.columns if column.place == "beside"]
    above = next((at for at, column in enumerate(table.columns) if column.place == "above"), None)
    bodies = []
    for heading, rows in groupby(table.rows, lambda row: "" if above is None else _plain(row[above])):
        title = Markup('<tr class="setting"><th colspan="{}" scope="rowgroup">{}</th></tr>').format(
            len(columns), heading
        )
        lines = [
            _row(
                [cell for at, cell in enumerate(row) if at != above],
                brief=brief,
                last=sum_row and row is table.rows[-1],
            )
            for row in rows
        ]
        bodies.append(Markup("<tbody>{}{}</tbody>\n").format(title if heading else "", Markup("\n").join(lines)))
    head = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{0}"><table class="{1}">{2}\n').format(
        caption, look, Markup("<caption>{}</caption>").format(caption) if caption else ""
    )
    heads = Markup("<thead>{}</thead>\n").format(Markup("").join(_heads(columns)))
    return head + heads + Markup("").join(bodies) + Markup("</table></div>")


def breakable(name: str) -> Markup:
    """A name that may be broken before its dots, pluses and equal signs; `join` escapes its parts."""
    return Markup("<wbr>").join(re.split(r"(?=[.+=])", name))


def _camel(name: str) -> Markup:
    """A name such as SimpleGetMulti that may be broken before its capitals."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z0-9])(?=[A-Z])", name))


def _heads(columns: list[Column]) -> Iterator[Markup]:
    first, *others = columns
    if any(column.group for column in others):
        groups = ((group, len(list(members))) for group, members in groupby(others, lambda column: column.group))
        cells = (
            Markup('<th scope="colgroup" colspan="{}" class="first">{}</th>').format(width, group)
            for group, width in groups
        )
        yield Markup("<tr><td></td>{}</tr>\n").format(Markup("").join(cells))
    titles = [Markup('<th scope="col">{}</th>').format(first.title)]
    before = None
    for column in others:
        begins = Markup(' class="first"') if column.group != before else ""
        before = column.group
        titles.append(Markup('<th scope="col"{}>{}</th>').format(begins, _camel(column.title)))
    yield Markup("<tr>{}</tr>").format(Markup("").join(titles))


def _row(cells: list[TableCell], *, brief: bool, last: bool) -> Markup:
    name, *others = cells
    made = Markup("").join(_cell(cell, brief=brief) for cell in others)
    head = _text(name) if isinstance(name, TextCell) else ""
    return Markup('<tr{}><th scope="row">{}</th>{}</tr>').format(Markup(' class="sum"') if last else "", head, made)


def _cell(cell: TableCell, *, brief: bool) -> Markup:
    if not isinstance(cell, ChangeCell):
        return Markup('<td class="none">{}</td>').format(_text(cell) if isinstance(cell, TextCell) else "")
    if cell.verdict is None:
        note = Markup("refused <sup>{}</sup>").format(cell.note) if cell.note else cell.text
        return Markup('<td class="none">{}</td>').format(note)
    bounds = Markup(" <small>{}</small>").format(cell.bounds) if cell.bounds and not brief else ""
    return Markup('<td class="{}"><b>{}</b> {}{}</td>').format(
        look_of(cell), (cell.brief if brief else "") or cell.text, cell.sign, bounds
    )


def look_of(cell: ChangeCell) -> str:
    """The CSS classes of a change: its verdict, and how large it is."""
    return f"{cell.verdict} h{sum(cell.size >= edge for edge in _HEATS)}" if cell.verdict else "none"


def _text(cell: TextCell) -> Markup:
    return Markup("<br>").join(map(_line, cell.lines))


def _line(spans: Line) -> Markup:
    """Names may be broken; what is dim is small."""
    return Markup("").join(
        Markup("<small>{}</small>").format(breakable(span.text))
        if span.look == "dim"
        else breakable(span.text)
        if span.look == "strong"
        else span.text
        for span in spans
    )


def _plain(cell: TableCell) -> str:
    return "".join(span.text for each in cell.lines for span in each) if isinstance(cell, TextCell) else ""
