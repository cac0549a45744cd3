"""The picture beside the answer as a file: all ratios behind it, with their intervals, on a scale for each metric."""

from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

from redline.document.blocks import ChangeCell, Strip, Table, TableCell, lines_of
from redline.document.format import VerdictSign
from redline.document.scales import Scale
from redline.render.svg.elements import (
    CHARACTER,
    GRID,
    INK,
    MUTED,
    SHADE,
    WIDTH,
    add,
    add_text,
    as_file,
    new_picture,
)
from redline.report.forest import scale_of

_ROW, _TOP, _FOOT, _VALUES, _MOST_NAMES = 24, 54, 36, 190, 380
COLOURS = {"faster": "#00695c", "slower": "#b23c0a", "equivalent": "#4b5563", "inconclusive": "#785a00"}


def draw_forest(tables: Sequence[Table], title: str) -> bytes:
    """The file: a row per ratio below the heading of its metric, whose scale stands below its rows.

    Each has the band of what is too little to matter.
    """
    names = [_text(row[1]) for table in tables for row in table.rows]
    values = [_value(cell) for table in tables for row in table.rows for cell in row if isinstance(cell, ChangeCell)]
    left = min(_MOST_NAMES, 32 + max(map(len, names), default=0) * CHARACTER)
    right = WIDTH - max(_VALUES, 28 + max(map(len, values), default=0) * CHARACTER)
    height = sum((len(table.rows) + 1) * _ROW + _FOOT for table in tables)
    svg = new_picture(title, "".join(span.text for span in tables[0].title), _TOP + height)
    y = _TOP
    for table in tables:
        scale, bottom = scale_of(table), y + (len(table.rows) + 1) * _ROW

        def across(value: float, scale: Scale = scale) -> float:
            return round(left + scale.at(value) / 100 * (right - left), 2)

        if scale.band:
            low, high = map(across, scale.band)
            add(svg, "rect", x=low, y=y, width=round(high - low, 2), height=bottom - y, fill=SHADE)
        for value, label in scale.ticks:
            stroke = MUTED if value == scale.origin else GRID
            add(svg, "path", d=f"M{across(value)} {y}V{bottom}", stroke=stroke)
            add_text(svg, across(value), bottom + 17, label, fill=MUTED, text_anchor="middle")
        add_text(svg, 16, y + 16, str(table.rows[0][0]), fill=MUTED, font_weight=600)
        for at, row in enumerate(table.rows):
            _draw_row(svg, row, across, y + (at + 1) * _ROW, right)
        y = bottom + _FOOT
    return as_file(svg)


def _draw_row(
    svg: ET.Element, row: tuple[TableCell, ...], across: Callable[[float], float], y: int, right: float
) -> None:
    add_text(svg, 24, y + 16, _text(row[1]), fill=INK)
    for cell in row[2:]:
        if isinstance(cell, Strip):
            _strip(svg, cell, across, y + _ROW // 2)
        elif isinstance(cell, ChangeCell):
            add_text(svg, right + 14, y + 16, _value(cell), fill=_colour(cell.verdict))


def _value(cell: ChangeCell) -> str:
    """`+30.0% [not known] inconclusive`."""
    return " ".join(filter(None, (cell.text, cell.bounds, cell.verdict.words if cell.verdict else "")))


def _strip(svg: ET.Element, strip: Strip, across: Callable[[float], float], middle: int) -> None:
    """A point, its interval, and a dot for each round."""
    colour, scale = _colour(strip.verdict), strip.scale
    for dot in filter(scale.holds, strip.dots):
        add(svg, "circle", cx=across(dot), cy=middle + 6, r=1.5, fill=colour, fill_opacity=0.5)
    if strip.low is not None and strip.high is not None:
        path = f"M{across(strip.low)} {middle}H{across(strip.high)}"
        add(svg, "path", d=path, stroke=colour, stroke_width=2)
        for end in (strip.low, strip.high):
            _end(svg, across(end), middle, colour, beyond=_beyond(end, scale))
    if strip.value is not None:
        add(svg, "circle", cx=across(strip.value), cy=middle, r=4, fill=colour)


def _beyond(value: float, scale: Scale) -> int:
    """On which side a value is beyond the scale: -1, 1, or 0 if it is on it."""
    return 0 if scale.holds(value) else 1 if value > scale.high else -1


def _end(svg: ET.Element, x: float, y: int, colour: str, *, beyond: int) -> None:
    """The end of an interval: a cap, or an arrow where it goes on beyond the scale."""
    path = f"M{x - 6 * beyond} {y - 5}l{6 * beyond} 5l{-6 * beyond} 5" if beyond else f"M{x} {y - 4}v8"
    add(svg, "path", d=path, fill="none", stroke=colour, stroke_width=1.5)


def _colour(sign: VerdictSign | None) -> str:
    return COLOURS[sign.value.removeprefix("slightly-")] if sign else MUTED


def _text(cell: TableCell) -> str:
    return " ".join("".join(span.text for span in line) for line in lines_of(cell))
