"""A chart as a file of SVG 1.1 that needs neither a page nor a script: lines on two axes, with a legend below."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

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

Point = tuple[float, float]
CELL = "#2462c9"

_LEFT, _RIGHT, _TOP, _PLOT, _FOOT = 78, 24, 48, 380, 34
_LEGEND_ROW, _LEGEND_GAP, _SWATCH = 20, 26, 18


@dataclass(frozen=True)
class ChartLine:
    """A line through points of ascending x, in pieces where it has gaps; with `dots` each point is marked.

    Lines of a name are one entry of the legend; a line without a name has none.
    """

    name: str
    colour: str
    pieces: tuple[tuple[Point, ...], ...]
    dash: str = ""
    width: float = 2.0
    dots: bool = False


@dataclass(frozen=True)
class ChartArea:
    """What lies between two lines over the same x: points of x, low and high."""

    colour: str
    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class ChartStretch:
    """A part of the x axis, shaded over the whole height."""

    low: float
    high: float
    name: str
    colour: str = SHADE
    opacity: float = 1.0
    in_legend: bool = False


@dataclass(frozen=True)
class ChartMarks:
    """Single points, as rings or crosses."""

    name: str
    colour: str
    points: tuple[Point, ...]
    sign: str = "ring"


@dataclass(frozen=True)
class ChartCells:
    """Rectangles of one shade: from x to x, and from y up to y."""

    opacity: float
    cells: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class ChartRule:
    """A dashed line across the chart with a text: at a value of y or, if `upright`, of x."""

    at: float
    text: str
    upright: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart, with the names of its axes."""

    title: str
    subtitle: str
    x: Scale
    y: Scale
    x_name: str
    y_name: str
    lines: tuple[ChartLine, ...]
    areas: tuple[ChartArea, ...] = ()
    stretches: tuple[ChartStretch, ...] = ()
    marks: tuple[ChartMarks, ...] = ()
    rules: tuple[ChartRule, ...] = ()
    cells: tuple[ChartCells, ...] = ()


def draw_chart(chart: Chart) -> bytes:
    """The file; the same chart gives the same bytes."""
    legend = _legend_rows(chart)
    height = _TOP + _PLOT + _FOOT + 14 + len(legend) * _LEGEND_ROW
    svg = new_picture(chart.title, chart.subtitle, height)
    defs = ET.SubElement(svg, "defs")
    clip = add(defs, "clipPath", id="plot")
    add(clip, "rect", x=_LEFT, y=_TOP, width=WIDTH - _LEFT - _RIGHT, height=_PLOT)
    plot = ET.Element("g")
    plot.set("clip-path", "url(#plot)")
    for stretch in chart.stretches:
        low, high = _across(chart, stretch.low), _across(chart, stretch.high)
        add(
            plot, "rect", x=low, y=_TOP, width=round(high - low, 2), height=_PLOT, fill=stretch.colour,
            fill_opacity=stretch.opacity,
        )  # fmt: skip
        if stretch.name and not stretch.in_legend and len(stretch.name) * CHARACTER < high - low:
            add_text(plot, low + 5, _TOP + 14, stretch.name, fill=MUTED)
    _axes(svg, chart, plot)
    for shade in chart.cells:
        corners = (
            (_across(chart, left), _down(chart, high), _across(chart, right), _down(chart, low))
            for left, right, low, high in shade.cells
        )
        path = "".join(f"M{left} {top}H{right}V{bottom}H{left}z" for left, top, right, bottom in corners)
        add(plot, "path", d=path, fill=CELL, fill_opacity=round(shade.opacity, 3))
    for area in chart.areas:
        upper = [f"{_across(chart, x)},{_down(chart, high)}" for x, _, high in area.points]
        lower = [f"{_across(chart, x)},{_down(chart, low)}" for x, low, _ in reversed(area.points)]
        add(plot, "polygon", points=" ".join((*upper, *lower)), fill=area.colour, fill_opacity=0.17)
    for line in chart.lines:
        _line(plot, chart, line)
    for marks in chart.marks:
        _marks(plot, chart, marks)
    for rule in chart.rules:
        _rule(plot, chart, rule)
    svg.append(plot)
    _legend(svg, legend)
    return as_file(svg)


def _axes(svg: ET.Element, chart: Chart, plot: ET.Element) -> None:
    bottom = _TOP + _PLOT
    for value, label in chart.y.ticks:
        y = _down(chart, value)
        add(plot, "path", d=f"M{_LEFT} {y}H{WIDTH - _RIGHT}", stroke=GRID)
        add_text(svg, _LEFT - 8, y + 4, label, fill=MUTED, text_anchor="end")
    last = 0.0
    for value, label in chart.x.ticks:
        x = _across(chart, value)
        add(plot, "path", d=f"M{x} {_TOP}V{bottom}", stroke=GRID)
        half = len(label) * CHARACTER / 2
        if x - half > last and x + half < WIDTH:  # labels that would run into the one before are left out
            add_text(svg, x, bottom + 17, label, fill=MUTED, text_anchor="middle")
            last = x + half + 8
    add_text(svg, WIDTH - _RIGHT, bottom + 33, chart.x_name, fill=MUTED, text_anchor="end")
    add_text(svg, WIDTH - _RIGHT, _TOP - 9, chart.y_name, fill=MUTED, text_anchor="end")


def _line(plot: ET.Element, chart: Chart, line: ChartLine) -> None:
    path = "".join(
        f"{'L' if place else 'M'}{_across(chart, x)} {_down(chart, y)}"
        for piece in line.pieces
        for place, (x, y) in enumerate(piece)
    )
    if not path:
        return
    dash = {"stroke_dasharray": line.dash} if line.dash else {}
    add(plot, "path", d=path, fill="none", stroke=line.colour, stroke_width=line.width, stroke_linejoin="round", **dash)
    for x, y in (point for piece in line.pieces for point in piece) if line.dots else ():
        add(plot, "circle", cx=_across(chart, x), cy=_down(chart, y), r=3, fill=line.colour)


def _marks(plot: ET.Element, chart: Chart, marks: ChartMarks) -> None:
    for x, y in marks.points:
        across, down = _across(chart, x), _down(chart, y)
        if marks.sign == "ring":
            add(plot, "circle", cx=across, cy=down, r=3, fill="none", stroke=marks.colour, stroke_width=1.25)
        else:
            cross = f"M{across - 4} {down - 4}l8 8M{across - 4} {down + 4}l8 -8"
            add(plot, "path", d=cross, stroke=marks.colour, stroke_width=1.75)


def _rule(plot: ET.Element, chart: Chart, rule: ChartRule) -> None:
    if rule.upright:
        x = _across(chart, rule.at)
        path, left, base = f"M{x} {_TOP}V{_TOP + _PLOT}", x + 5, _TOP + _PLOT - 6.0
    else:
        y = _down(chart, rule.at)
        path, left, base = f"M{_LEFT} {y}H{WIDTH - _RIGHT}", _LEFT + 5.0, y - 4
    add(plot, "path", d=path, stroke=INK if rule.upright else MUTED, stroke_width=1.25, stroke_dasharray="5 4")
    add_text(plot, left, base, rule.text, fill=MUTED)


def _legend_rows(chart: Chart) -> list[list[tuple[float, str, str, str]]]:
    """Rows of entries: where each begins, its name, its colour, and its dashes or its sign."""
    named = {line.name: (line.colour, line.dash) for line in reversed(chart.lines) if line.name}
    entries = [(name, *named[name]) for name in dict.fromkeys(line.name for line in chart.lines if line.name)]
    entries += [(marks.name, marks.colour, marks.sign) for marks in chart.marks if marks.name]
    entries += [(part.name, part.colour, "box") for part in chart.stretches if part.in_legend]
    rows: list[list[tuple[float, str, str, str]]] = []
    x = float(WIDTH)
    for name, colour, look in entries:
        width = _SWATCH + 6 + len(name) * CHARACTER + _LEGEND_GAP
        if x + width > WIDTH:
            rows.append([])
            x = 16.0
        rows[-1].append((x, name, colour, look))
        x += width
    return rows


def _legend(svg: ET.Element, rows: Sequence[Iterable[tuple[float, str, str, str]]]) -> None:
    for row, entries in enumerate(rows):
        middle = _TOP + _PLOT + _FOOT + 14 + row * _LEGEND_ROW
        for x, name, colour, look in entries:
            start = round(x, 2)
            if look == "box":
                add(svg, "rect", x=start, y=middle - 6, width=_SWATCH, height=12, fill=colour, fill_opacity=0.27)
            elif look == "ring":
                add(svg, "circle", cx=start + 9, cy=middle, r=3, fill="none", stroke=colour, stroke_width=1.25)
            elif look == "cross":
                add(svg, "path", d=f"M{start + 5} {middle - 4}l8 8m0 -8l-8 8", stroke=colour, stroke_width=1.75)
            else:
                dash = {"stroke_dasharray": look} if look else {}
                add(svg, "path", d=f"M{start} {middle}h{_SWATCH}", stroke=colour, stroke_width=2, **dash)
            add_text(svg, start + _SWATCH + 6, middle + 4, name, fill=INK)


def _across(chart: Chart, value: float) -> float:
    return round(_LEFT + chart.x.at(value) / 100 * (WIDTH - _LEFT - _RIGHT), 2)


def _down(chart: Chart, value: float) -> float:
    return round(_TOP + _PLOT - chart.y.at(value) / 100 * _PLOT, 2)
