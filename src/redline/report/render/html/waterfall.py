"""Waterfalls as pictures: what a chain begins with, each layer from where the one below it ends, and the whole."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from redline.model import CellReport, Estimate, Layer, Metric, Report, Verdict, Waterfall
from redline.quantities import scale_of
from redline.report.document import ChangeCell, Table
from redline.report.render.html.bars import ROW, WIDTH, BarTick
from redline.report.sections.layers import ALL_LAYERS, WaterfallLines, base_text, each_load, layer_table
from redline.report.sections.views import common_load

_HALF_BAR = 6
_HALF_CAP = 4
_ARROW = 24
_FARTHEST = 1.4  # an interval that reaches so many times as far as the longest bar is cut there
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_Key = tuple[str, str, str]


@dataclass(frozen=True)
class Bar:
    """One row: from where to where, with the interval of its end; `verdict` is None of what stands on the ground."""

    start: float
    end: float
    low: float | None
    high: float | None
    verdict: Verdict | None


@dataclass(frozen=True)
class Drawn:
    """The outlines of the bars by class, what joins the end of one to the next, the error bars, and the axis."""

    height: int
    fills: tuple[tuple[str, str], ...]
    joins: str
    errors: str
    ticks: tuple[BarTick, ...]


@dataclass(frozen=True)
class Picture:
    """One metric of one waterfall: a name, a bar and a text in each row."""

    metric: Metric
    names: tuple[str, ...]
    base: str
    changes: tuple[ChangeCell, ...]
    drawn: Drawn


@dataclass(frozen=True)
class FallView:
    """One waterfall: its pictures, and its numbers for a table."""

    lines: WaterfallLines
    table: Table
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class LayersView:
    """The waterfalls of one load."""

    load: str
    load_text: str
    falls: tuple[FallView, ...]


def layers(report: Report) -> tuple[LayersView, ...]:
    """Every waterfall of the report, by load; none where no baseline has one itself."""
    cells = {(cell.server, cell.scenario, cell.load): cell for cell in report.cells if cell.role == "subject"}
    return tuple(
        LayersView(load, common_load(_shown(falls, cells)), tuple(_view(fall, cells) for fall in falls))
        for load, falls in each_load(report.layers)
    )


def _shown(falls: tuple[WaterfallLines, ...], cells: Mapping[_Key, CellReport]) -> Iterator[CellReport]:
    for lines in falls:
        for slug in (lines.fall.base, *(step.server for step in lines.fall.steps)):
            if cell := cells.get((slug, lines.fall.scenario, lines.fall.load)):
                yield cell


def _view(lines: WaterfallLines, cells: Mapping[_Key, CellReport]) -> FallView:
    pictures = tuple(_picture(lines, metric, cells) for metric in lines.metrics)
    return FallView(lines, layer_table(lines, percent=True), pictures)


def _picture(lines: WaterfallLines, metric: Metric, cells: Mapping[_Key, CellReport]) -> Picture:
    fall = lines.fall
    throughput = metric is Metric.THROUGHPUT
    base = fall.base_throughput if throughput else fall.base_cpu
    ground = Bar(0.0, base.value, base.low, base.high, None) if base else None
    steps = [_bar(layer, metric, _estimate(cells, layer.against, fall, metric)) for layer in fall.steps]
    whole = _bar(fall.whole, metric, base)
    total = Bar(0.0, whole.end, whole.low, whole.high, None) if whole else None
    return Picture(
        metric,
        (fall.base, *(line.name for line in lines.lines[:-1]), ALL_LAYERS),
        base_text(base),
        tuple(line.throughput if throughput else line.cpu for line in lines.lines),
        draw([ground, *steps, total], metric.unit),
    )


def _estimate(cells: Mapping[_Key, CellReport], slug: str, fall: Waterfall, metric: Metric) -> Estimate | None:
    cell = cells.get((slug, fall.scenario, fall.load))
    return cell.estimates.get(metric) if cell and cell.valid else None


def _bar(layer: Layer, metric: Metric, below: Estimate | None) -> Bar | None:
    """From the value of what stands below it to where its change leads."""
    compared = layer.throughput if metric is Metric.THROUGHPUT else layer.cpu
    if below is None or compared is None or compared.ratio is None:
        return None
    if metric is Metric.THROUGHPUT:
        ends = [end if end is None else below.value * end for end in _of(compared.ratio)]
    elif layer.cpu_ns is not None:
        ends = [end if end is None else below.value + end for end in _of(layer.cpu_ns)]
    else:
        return None
    value, low, high = ends
    return None if value is None else Bar(below.value, value, low, high, compared.verdict)


def _of(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def draw(rows: list[Bar | None], unit: str) -> Drawn:
    """One row each, in order, on an axis from zero; a row of None is empty, and nothing is joined to it."""
    shown = [bar for bar in rows if bar]
    longest = max((max(bar.start, bar.end) for bar in shown), default=0.0)
    reach = max((bar.high for bar in shown if bar.high is not None), default=0.0)
    top = max(longest, min(reach, _FARTHEST * longest)) or 1.0
    fills: dict[str, list[str]] = {}
    joins: list[str] = []
    errors: list[str] = []
    for row, bar in enumerate(rows):
        if bar is None:
            continue
        middle = row * ROW + ROW // 2
        look = bar.verdict.value if bar.verdict else "ground"
        start, end = _at(bar.start, top), _at(bar.end, top)
        fills.setdefault(look, []).append(f"M{start} {middle - _HALF_BAR}H{end}v{2 * _HALF_BAR}H{start}z")
        errors.append(_error(bar, middle, top))
        if row + 1 < len(rows) and rows[row + 1] is not None:
            joins.append(f"M{end} {middle + _HALF_BAR}v{ROW - 2 * _HALF_BAR}")
    paths = tuple((look, "".join(outlines)) for look, outlines in fills.items())
    return Drawn(len(rows) * ROW, paths, "".join(joins), "".join(errors), _ticks(top, unit))


def _error(bar: Bar, middle: int, top: float) -> str:
    """The interval of the bar's end, with a cap on each end, or an arrow where it goes on."""
    if bar.low is None or bar.high is None:
        return ""
    parts = [f"M{_at(bar.low, top)} {middle}H{_at(bar.high, top)}"]
    for end in (bar.low, bar.high):
        if 0 <= end <= top:
            parts.append(f"M{_at(end, top)} {middle - _HALF_CAP}v{2 * _HALF_CAP}")
        else:
            turn = _ARROW if end > top else -_ARROW
            parts.append(f"M{_at(end, top) - turn} {middle - 5}l{turn} 5l{-turn} 5")
    return "".join(parts)


def _at(value: float, top: float) -> int:
    return round(WIDTH * min(1.0, max(0.0, value / top)))


def _ticks(top: float, unit: str) -> tuple[BarTick, ...]:
    """Round values from zero on, six at most; the last one has the unit."""
    scale, name = scale_of(top, unit)
    rough = top / scale / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))
    count = math.floor(top / scale / step * (1 + 1e-9))
    return tuple(
        BarTick(round(step * n * scale / top * 100, 2), f"{step * n:g} {name}" if n == count else f"{step * n:g}")
        for n in range(count + 1)
    )
