"""Sections as GitHub-flavoured Markdown, fit for a comment on a pull request.

Texts are escaped: they cannot mention anyone, hide anything or contain HTML. What stands in backticks is code.
"""

import re
from collections.abc import Iterable, Iterator

from redline.document import format as fmt
from redline.document.blocks import (
    Items,
    Line,
    Medium,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Table,
    TableCell,
    lines_of,
    more_like_it,
    on_medium,
)
from redline.visible import visible

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_CODE = re.compile(r"(?<![^\s(])(`[^\s`<>&|@#](?:[^`<>&|@#]*[^\s`<>&|@#])?`)(?!`)")
"""Code that needs no escape. Only a space or a parenthesis before it is sure not to belong to a link."""
_WORD_JOINER = "&NoBreak;"
"""U+2060, an invisible character that separates a sign from its word."""


def render(sections: Iterable[Section]) -> bytes:
    """Render the sections, the first level as `##`."""
    blocks = (block for section in sections for block in _section(section))
    return ("\n\n".join(blocks) + "\n").encode(errors="replace")


def safe(text: str) -> str:
    """Escape a line of plain text: markup, HTML, mentions and references to issues have no effect; code is code."""
    parts = _CODE.split(visible(re.sub(r"\s+", " ", text)))
    return "".join(part if at % 2 else _escaped(part) for at, part in enumerate(parts))


def _escaped(text: str) -> str:
    line = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _SPECIAL.sub(r"\\\1", line)
    return re.sub(r"([@#])(?=\w)", rf"\1{_WORD_JOINER}", line)


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"{'#' * (section.level + 1)} {safe(section.title).strip()}"
    if section.hint:
        yield safe(section.hint).strip()
    for block in on_medium(section.blocks, Medium.MARKDOWN):
        match block:
            case Prose(listed=True):
                yield "\n".join(f"- {_line(line)}" for line in block.lines)
            case Prose():
                yield from map(_line, block.lines)
            case Items():
                yield "\n".join(
                    f"- {': '.join(map(_line, (item.head, *item.lines[:1])))}{more_like_it(item)}"
                    + "".join(f"\n  {_line(line)}" for line in item.lines[1:])
                    for item in block.items
                )
            case Table():
                yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield _line(table.title)
    lines = [f"| {' | '.join(safe(column.heading) for column in table.columns)} |"]
    lines.append(f"|{''.join('---:|' if column.align == 'right' else '---|' for column in table.columns)}")
    for row in table.shown_rows():
        missing = [""] * (len(table.columns) - len(row))
        lines.append(f"| {' | '.join([*map(_cell, row), *missing])} |")
    yield "\n".join(lines)


def _line(spans: Line) -> str:
    return "".join(f"**{safe(span.text)}**" if span.look == "strong" else safe(span.text) for span in spans).strip()


def _cell(cell: TableCell) -> str:
    match cell:
        case ServerCell():
            return _server(cell)
        case ScoreCell():
            return _score(cell)
        case _:
            return "<br>".join(map(_line, lines_of(cell)))


def _server(server: ServerCell) -> str:
    remark = f" ({server.role})" if server.role else ""
    if server.against:
        remark = f" (vs {safe(server.against)})"
    own = "".join(f"<br>{safe(text)}" for text in (server.load, server.rank and f"rank {server.rank}") if text)
    missed = "".join(
        f"<br>{fmt.STATE_MARKS[result.state]} {safe(result.text)}"
        + (f" ({safe(result.reason)})" if result.reason else "")
        for result in server.objectives
        if result.state != "met"
    )
    signs = "".join(f" {fmt.GRADE_MARKS[grade]}" for grade in server.grades if server.valid)
    return f"**{safe(server.name)}**{remark}{own}{signs}{missed}"


def _score(score: ScoreCell) -> str:
    return f"{score.value} {score.spread}".rstrip() or "not measured"
