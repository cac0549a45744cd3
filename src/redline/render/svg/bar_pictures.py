"""The page's charts of bars as files: waterfalls of layers, and the shares of libraries."""

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from redline.document.blocks import Block, ChangeCell, Fold, Tabs
from redline.document.figures import Bar, BarChart, Panels, Stacked, StackedBars
from redline.model import Report
from redline.quantities import percent
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
from redline.render.svg.forest_picture import COLOURS
from redline.render.svg.run_charts import SERIES
from redline.report.layers import layer_sections
from redline.report.profiles import profile_sections
from redline.visible import visible

_ROW, _TOP, _FOOT, _VALUES, _MOST_NAMES = 24, 54, 36, 190, 320
_GROUND, _REST = "#9aa0a9", "#c9ccd2"


def bar_files(report: Report) -> Iterator[tuple[str, bytes]]:
    """Each picture by a name: `layers.1`, `libraries.1` and so on, in the order of the page."""
    for name, sections in (("layers", layer_sections(report)), ("libraries", profile_sections(report))):
        blocks = (block for section in sections for block in _within(section.blocks))
        for number, (about, block) in enumerate(blocks, 1):
            match block:
                case BarChart():
                    yield f"{name}.{number}", _bars(block)
                case StackedBars():
                    yield f"{name}.{number}", _stacked(block, about)


def _within(blocks: Iterable[Block], about: str = "") -> Iterator[tuple[str, BarChart | StackedBars]]:
    """The charts, with the title of the fold that they stand in."""
    for block in blocks:
        match block:
            case BarChart() | StackedBars():
                yield about, block
            case Fold(title=title, blocks=inner):
                yield from _within(inner, "".join(span.text for span in title))
            case Panels(blocks=inner):
                yield from _within(inner, about)
            case Tabs(choices=choices):
                for _, _, inner in choices:
                    yield from _within(inner, about)


def _left(names: Iterable[str]) -> float:
    return min(_MOST_NAMES, 32 + max(map(len, names), default=0) * CHARACTER)


def _bars(chart: BarChart) -> bytes:
    """A row per bar, from its start to its end, with its interval and the trials behind it."""
    scale, left, right = chart.scale, _left(name for name, _, _ in chart.rows), WIDTH - _VALUES
    bottom = _TOP + len(chart.rows) * _ROW

    def across(value: float) -> float:
        return round(left + scale.at(value) / 100 * (right - left), 2)

    about = chart.label.partition(": ")[0]  # what follows is about the page
    svg = new_picture(f"{chart.title}, {chart.hint}" if chart.hint else chart.title, about, bottom + _FOOT)
    if scale.band:
        low, high = map(across, scale.band)
        add(svg, "rect", x=low, y=_TOP, width=round(high - low, 2), height=bottom - _TOP, fill=SHADE)
    for value, label in scale.ticks:
        add(svg, "path", d=f"M{across(value)} {_TOP}V{bottom}", stroke=GRID)
        add_text(svg, across(value), bottom + 17, label, fill=MUTED, text_anchor="middle")
    for row, (name, bar, said) in enumerate(chart.rows):
        top = _TOP + row * _ROW
        add_text(svg, 16, top + 16, name, fill=INK)
        if bar is not None:
            colour = COLOURS[bar.verdict.value] if bar.verdict else _GROUND
            start, end = sorted((across(bar.start), across(bar.end)))
            add(svg, "rect", x=start, y=top + 5, width=round(end - start, 2), height=12, fill=colour, fill_opacity=0.55)
            _interval(svg, bar, across(bar.end), (across(bar.low or 0.0), across(bar.high or 0.0)), top + 11)
            for dot in filter(scale.holds, bar.dots):
                add(svg, "circle", cx=across(dot), cy=top + 20, r=1.5, fill=MUTED)
        add_text(svg, right + 14, top + 16, _cell_text(said), fill=INK)
    return as_file(svg)


def _interval(svg: ET.Element, bar: Bar, end: float, ends: tuple[float, float], middle: int) -> None:
    """A line with caps, as far as the axis reaches."""
    if bar.low is None or bar.high is None:
        return
    caps = "".join(f"M{at} {middle - 4}v8" for at in ends if at != end)
    add(svg, "path", d=f"M{ends[0]} {middle}H{ends[1]}{caps}", stroke=INK, fill="none")


def _cell_text(value: ChangeCell | str) -> str:
    if isinstance(value, str):
        return value
    words = (
        value.text or ("refused" if value.note else ""),
        value.bounds,
        value.verdict.words if value.verdict else "",
    )
    return " ".join(filter(None, words))


def _stacked(chart: StackedBars, about: str) -> bytes:
    """A bar per row, in parts; the name and share of a part are its title, and those that fit stand in it."""
    left, right = _left(row.name for row in chart.rows), WIDTH - 110.0
    bottom = _TOP + len(chart.rows) * _ROW
    svg = new_picture(chart.title, about, bottom + 14 + -(-len(chart.legend) // 4) * 20)
    for at, row in enumerate(chart.rows):
        _stack(svg, row, (left, right), _TOP + at * _ROW)
    for at, entry in enumerate(chart.legend):
        x, y = 16 + at % 4 * 215, bottom + 14 + at // 4 * 20
        add(svg, "rect", x=x, y=y - 8, width=12, height=12, fill=_colour(entry.series), fill_opacity=0.55)
        add_text(svg, x + 18, y + 2, entry.name, fill=INK)
    return as_file(svg)


def _stack(svg: ET.Element, row: Stacked, ends: tuple[float, float], top: int) -> None:
    add_text(svg, 16, top + 16, row.name, fill=INK)
    x = ends[0]
    for series, share, name in row.parts:
        width = share * row.length * (ends[1] - ends[0])
        group = add(svg, "g")
        ET.SubElement(group, "title").text = visible(f"{name} {percent(share)}")
        add(
            group, "rect", x=round(x, 2), y=top + 3, width=round(width, 2), height=18, fill=_colour(series),
            fill_opacity=0.55,
        )  # fmt: skip
        if width > len(percent(share)) * CHARACTER + 4:
            add_text(group, x + width / 2, top + 16, percent(share), fill=INK, text_anchor="middle")
        x += width
    add_text(svg, x + 8, top + 16, row.value, fill=MUTED)


def _colour(series: int) -> str:
    return SERIES[series] if series >= 0 else _REST
