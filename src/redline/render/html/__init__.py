"""A page as a self-contained HTML file: no network, no framework, readable without JavaScript.

Every text is escaped and `visible`; a content security policy allows our own style and scripts by hash.
"""

import base64
import contextlib
import hashlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from redline.document import format as fmt
from redline.document.blocks import STATE_LOOKS, ChangeCell, Figures, Line, Page, Table, TableCell, filled
from redline.document.figures import Bar, BarChart, Heat
from redline.model import Grade
from redline.render.html.courses import draw_course
from redline.render.html.later import LaterTables
from redline.render.html.packing import packed
from redline.render.html.terms import explained
from redline.visible import visible

_HERE = Path(__file__).parent
_HEATS = (0.05, 0.15)
"""Changes from which a table cell is coloured more strongly."""

ROW = 22
"""The height of a row of a chart in pixels."""
WIDTH = 1000
"""The width of a chart in units; a browser stretches it to the available width (`preserveAspectRatio`)."""
_CODE = re.compile("`([^`\\n]+)`")
_HALF_BAR = 6
_HALF_CAP = 4
_BELOW = 8
"""The distance of the dots below the middle of their bar."""
_ARROW = 24
_CURVE = 44
"""The height of the curve above a heat map."""


_PLACES = {name: f'<script type="application/json" id="{name}">' for name in ("data", "tables")}
"""What stands before the data of a page, and of its tables, and nowhere else in it: all text is escaped."""


def render(page: Page, data: Callable[[], bytes] | None = None) -> bytes:
    """Render the whole page: always the same bytes. `data` gives what `figures_data` makes, if it is made."""
    return render_served(page, data).content


class ServedPage(NamedTuple):
    """A page, and the content security policy that a server sends with it, which is also in it."""

    content: bytes
    policy: str


def render_served(page: Page, data: Callable[[], bytes] | None = None) -> ServedPage:
    """Render the whole page as `render`, for a server. A page with a `watch` may ask the server that it comes from."""
    style = Markup("\n").join(_asset(name) for name in ("vendor/uPlot.min.css", "page.css", *page.figures.styles))
    watching = ("watch.js",) if page.watch else ()
    scripts = [_asset(name) for name in ("vendor/uPlot.iife.min.js", "plot.js", *page.figures.scripts, *watching)]
    policy = _policy(style, *scripts, asks=page.watch is not None)
    later = LaterTables(page)
    made = _templates().get_template("page.html.j2")
    text = made.render(
        page=page,
        style=style,
        scripts=scripts,
        policy=policy,
        later=later.place,
        large=bool(later.data),
    )
    tables = _json(later.data)
    contents = {"data": data() if data else figures_data(page.figures), "tables": tables}
    parts = []
    for name, place in _PLACES.items():
        before, begin, text = text.partition(place)
        parts += [visible(before + begin).encode(), contents[name]]
    return ServedPage(b"".join((*parts, visible(text).encode())), policy)


def figures_data(figures: Figures) -> bytes:
    """The data of a page's figures."""
    return _json(figures.data())


def _json(data: object) -> bytes:
    text = packed(data)
    for character in "<>&":  # so that no text can end the script element
        text = text.replace(character, f"\\u{ord(character):04x}")
    return visible(text).encode()


@cache
def _asset(name: str) -> Markup:
    """Read a file of this package, trusted as code."""
    return Markup((_HERE / "assets" / name).read_text(encoding="utf-8"))  # noqa: S704


def _policy(style: str, *scripts: str, asks: bool = False) -> str:
    """Forbid loading anything; only these texts may act (W3C, Content Security Policy Level 3).

    A page that `asks` may do so of the server that it comes from, and of no other.
    """
    allowed = " ".join(f"'{_digest(script)}'" for script in scripts)
    own = "connect-src 'self'; form-action 'self'" if asks else "form-action 'none'"
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src {allowed}; img-src data:; base-uri 'none'; {own}"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


class _CompiledTemplates(BytecodeCache):
    """Compiled templates, kept like Python's compiled modules: beside their sources, if that is writable."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load the template compiled from this source by this version of Python and of Jinja."""
        with contextlib.suppress(OSError):
            bucket.bytecode_from_string(self._file(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Cache a compiled template, unless Python writes no bytecode."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        made = file.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            made.write_bytes(bucket.bytecode_to_string())
            made.replace(file)

    def _file(self, bucket: Bucket) -> Path:
        return _HERE / "templates" / "__pycache__" / f"{bucket.key}.{sys.implementation.cache_tag}.pyc"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        optimized=False,  # folding constants takes longer than it saves
        bytecode_cache=_CompiledTemplates(),
    )
    made.globals.update(
        fmt=fmt,
        Grade=Grade,
        marks={sign.value: sign.mark for sign in fmt.VerdictSign} | dict(fmt.GRADE_MARKS),
        states=fmt.STATE_MARKS,
        looks=STATE_LOOKS,
        breakable=_breakable,
        coded=_coded,
        camel=_camel,
        bodies=_bodies,
        groups=_groups,
        heat=_heat,
        drawn=draw,
        heated=heat_map,
        course=draw_course,
        filled=filled,
        plain=_plain,
    )
    made.filters["explained"] = explained
    made.filters["kind"] = lambda value: type(value).__name__
    return made


@lru_cache(maxsize=4096)
def _coded(text: str) -> Markup:
    """A text with what stands between backticks as code."""
    parts = (Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(_CODE.split(text)))
    return Markup("").join(parts)


@lru_cache(maxsize=4096)
def _breakable(name: str) -> Markup:
    """Allow breaks in names before dots, pluses and equal signs; `join` escapes the parts."""
    return Markup("<wbr>").join(re.split(r"(?=[.+=][A-Za-z])", name))


@lru_cache(maxsize=4096)
def _camel(name: str) -> Markup:
    """Allow breaks before the capitals of a name such as SimpleGetMulti."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z0-9])(?=[A-Z])", name))


def _plain(spans: Line) -> str:
    return "".join(span.text for span in spans)


def _groups(table: Table) -> list[tuple[str, int]]:
    """Return the headings above the columns with their widths; empty if no column has a heading."""
    columns = [column for column in table.columns if column.place == "column"]
    if not any(column.group for column in columns):
        return []
    return [(group, len(list(members))) for group, members in groupby(columns[1:], lambda column: column.group)]


def _bodies(table: Table) -> Iterator[tuple[str, list[tuple[int, tuple[TableCell, ...]]]]]:
    """Yield the rows with their indices, by the heading above them or by the cell that they share."""
    above = table.columns[0].place == "above"
    merged = table.columns[0].merged

    def shared(numbered: tuple[int, tuple[TableCell, ...]]) -> object:
        first = numbered[1][0]
        return first if above else id(first) if merged else None

    for heading, rows in groupby(enumerate(table.rows), shared):
        yield (heading if isinstance(heading, str) else ""), [(at, row[1:] if above else row) for at, row in rows]


def _heat(cell: ChangeCell) -> str:
    """Return the CSS classes of a change: its verdict, and its size."""
    return f"{cell.verdict} h{sum(cell.size >= edge for edge in _HEATS)}" if cell.verdict else "none"


@dataclass(frozen=True)
class Drawn:
    """A chart as paths: the outlines of bars by class, the lines that join them, all whiskers, and all dots of trials.

    Heights are pixels, widths are not. A hundred bars are few paths.
    """

    height: int
    fills: tuple[tuple[str, str], ...]
    joins: str
    whiskers: str
    dots: str


def draw(chart: BarChart) -> Drawn:
    """Draw the rows in order; a row without a bar is empty, and nothing is joined to it."""
    fills: dict[str, list[str]] = {}
    joins: list[str] = []
    whiskers: list[str] = []
    dots: list[str] = []
    bars = [bar for _, bar, _ in chart.rows]
    for row, bar in enumerate(bars):
        if bar is None:
            continue
        middle = row * ROW + ROW // 2
        start, end = _at(bar.start, chart), _at(bar.end, chart)
        look = bar.verdict.value if bar.verdict else "ground"
        fills.setdefault(look, []).append(f"M{start} {middle - _HALF_BAR}H{end}v{2 * _HALF_BAR}H{start}z")
        whiskers.append(_whisker(bar, middle, chart))
        dots += [f"M{_at(dot, chart)} {middle + _BELOW}h0" for dot in bar.dots if chart.scale.holds(dot)]
        if chart.joined and row + 1 < len(bars) and bars[row + 1] is not None:
            joins.append(f"M{end} {middle + _HALF_BAR}v{ROW - 2 * _HALF_BAR}")
    paths = tuple((look, "".join(outlines)) for look, outlines in fills.items())
    return Drawn(len(bars) * ROW, paths, "".join(joins), "".join(whiskers), "".join(dots))


def _whisker(bar: Bar, middle: int, chart: BarChart) -> str:
    """Draw a line with caps at its ends, or with an arrow if the interval, or the bar itself, is cut off."""
    bounded = bar.low is not None and bar.high is not None
    low, high = (bar.end if end is None else end for end in (bar.low, bar.high))
    parts = [f"M{_at(low, chart)} {middle}H{_at(high, chart)}"] if bounded else []
    for end in dict.fromkeys((low, high)):
        if chart.scale.holds(end):
            parts += [f"M{_at(end, chart)} {middle - _HALF_CAP}v{2 * _HALF_CAP}"] if bounded else []
        else:
            turn = _ARROW if end > chart.scale.high else -_ARROW
            parts.append(f"M{_at(end, chart) - turn} {middle - 5}l{turn} 5l{-turn} 5")
    return "".join(parts)


@dataclass(frozen=True)
class Heated:
    """A heat map as paths by level; heights are pixels, widths are columns."""

    columns: int
    height: int
    top: int
    levels: tuple[tuple[int, str], ...]
    curve: str
    marks: str


def heat_map(heat: Heat) -> Heated:
    """Draw a curve, the rows in order, and marks below."""
    levels: dict[int, list[str]] = {}
    for row, (_, cells) in enumerate(heat.rows):
        start = 0
        for level, run in groupby(cells):  # draw neighbours of a level as a single rectangle
            end = start + len(list(run))
            levels.setdefault(level, []).append(f"M{start} {_CURVE + row * ROW}H{end}v{ROW - 1}H{start}z")
            start = end
    known = [math.log(value) for value in heat.curve if value]
    low, reach = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    steps = []
    for column, value in enumerate(heat.curve):
        if value:
            pen = "L" if column and heat.curve[column - 1] else "M"
            y = round(_CURVE - 6 - (math.log(value) - low) / reach * (_CURVE - 12), 1)
            steps.append(f"{pen}{column} {y}H{column + 1}")
    bottom = _CURVE + len(heat.rows) * ROW
    marks = "".join(f"M{column} {bottom + 2}h1v4h-1z" for column, marked in enumerate(heat.marks) if marked)
    paths = tuple((level, "".join(parts)) for level, parts in sorted(levels.items()) if level)
    return Heated(len(heat.marks), bottom + 8, _CURVE, paths, "".join(steps), marks)


def _at(value: float, chart: BarChart) -> int:
    return round(chart.scale.at(value) * WIDTH / 100)
