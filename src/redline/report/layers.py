"""Waterfalls: what each layer adds to the layers below, and the sum, as tables and as bars."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from redline.document import format as fmt
from redline.document.blocks import (
    ChangeCell,
    Column,
    Fold,
    Line,
    Medium,
    Prose,
    Section,
    Table,
    TableCell,
    key,
    line,
    refused,
    words,
)
from redline.document.figures import Bar, BarChart, Panels
from redline.document.scales import Scale, amount_scale
from redline.model import CellReport, Comparison, Estimate, Layer, Metric, Report, Waterfall
from redline.report import dots
from redline.report.views import better, load_line, signs

_US = 1e3
_Cells = Mapping[tuple[str, str, str], CellReport]
"""Subjects by server, scenario and load."""


@dataclass(frozen=True)
class LayerLine:
    """A layer of a waterfall, or all layers: its change, or the number of the reason why that is not known."""

    name: str
    throughput: ChangeCell
    cpu: ChangeCell
    cpu_share: ChangeCell


@dataclass(frozen=True)
class WaterfallLines:
    """A waterfall as lines, and the reasons for missing numbers, numbered from 1."""

    fall: Waterfall
    lines: tuple[LayerLine, ...]
    notes: tuple[str, ...]

    @property
    def chain(self) -> str:
        """`rust.hyper → rust.axum → +routes=1`."""
        return " → ".join([self.fall.base, *(line.name for line in self.lines[:-1])])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the waterfall: throughput only if the server decides it."""
        throughput = any(layer.throughput for layer in (*self.fall.steps, self.fall.whole))
        return (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST) if throughput else (Metric.CPU_PER_REQUEST,)


def waterfall_lines(fall: Waterfall) -> WaterfallLines:
    """The steps of a waterfall, then all of them together."""
    layers = (*fall.steps, fall.whole)
    notes = tuple(dict.fromkeys(reason for layer in layers for reason in layer.why_not))
    numbers = {reason: number for number, reason in enumerate(notes, 1)}
    lines = [_line(name_of(layer), layer, numbers) for layer in fall.steps]
    return WaterfallLines(fall, (*lines, _line("all layers", fall.whole, numbers)), notes)


def layer_sections(report: Report) -> Iterator[Section]:
    """Waterfalls by load; empty if no baseline has a baseline itself."""
    cells = {(cell.server, cell.scenario, cell.load): cell for cell in report.cells if cell.role == "subject"}
    by_load: dict[str, list[WaterfallLines]] = {}
    for fall in report.layers:
        by_load.setdefault(fall.load, []).append(waterfall_lines(fall))
    folds: list[Fold] = []
    for load, views in by_load.items():
        places = (
            (slug, view.fall) for view in views for slug in (view.fall.base, *(s.server for s in view.fall.steps))
        )
        shown = [cell for slug, fall in places if (cell := cells.get((slug, fall.scenario, fall.load)))]
        blocks = tuple(_fold(view, cells) for view in views)
        folds.append(Fold(load_line(load, shown), blocks, not folds if len(by_load) > 1 else None))
    intro = key(
        "What **each layer adds** to the one below it, and **all of them together**: the last server compared with the "
        "first, not the steps multiplied. "
    )
    drawn = key("A bar begins where the last ended; the whisker is the 95% interval, and a dot is a round.")
    if folds:
        yield Section(
            "Layers",
            (Prose(((*intro, *key("Signs: "), *signs()),)), Prose((drawn,), on=Medium.PAGE), *folds),
            anchor="layers",
        )


def _fold(view: WaterfallLines, cells: _Cells) -> Fold:
    """A waterfall; if every step is refused only the reasons, and no picture of an unknown metric."""
    heading = line(view.fall.scenario, (f" {view.chain}", "dim"))
    changes = [change for layer in view.lines for change in (layer.throughput, layer.cpu)]
    if all(change.note is not None for change in changes):
        return Fold(heading, (refused(view.notes),))
    charts = (_chart(view, metric, cells) for metric in view.metrics)
    panels = Panels(tuple(chart for chart in charts if any(bar for _, bar, _ in chart.rows[1:])))
    caption = line(("change against the layer below, [95% interval]", "dim"))
    drawn = (panels,) if panels.blocks else ()
    return Fold(heading, (*drawn, _table(view, caption), refused(view.notes)))


def _table(view: WaterfallLines, title: Line) -> Table:
    """A row for the start of the chain, then a row per layer, then a row for all layers."""
    fall = view.fall
    rows: list[tuple[TableCell, ...]] = [
        (words(fall.base, look="strong"), base_text(fall.base_throughput), base_text(fall.base_cpu), "")
    ]
    rows += [(words(layer.name, look="strong"), layer.throughput, layer.cpu, layer.cpu_share) for layer in view.lines]
    names = ("throughput", "CPU per request", "the same in percent")
    columns = (Column("layer"), *(Column(name, "right") for name in names))
    if Metric.THROUGHPUT not in view.metrics:
        columns, rows = (columns[0], *columns[2:]), [(row[0], *row[2:]) for row in rows]
    return Table(columns, tuple(rows), title, look="tiles", total=True)


def _chart(view: WaterfallLines, metric: Metric, cells: _Cells) -> BarChart:
    """Draw the start of the chain, the layers, one on top of the other, and the whole."""
    fall, throughput = view.fall, metric is Metric.THROUGHPUT
    base = fall.base_throughput if throughput else fall.base_cpu
    whole = _bar(fall, fall.whole, metric, cells)
    trials = tuple(dots.by_round(cells.get((fall.base, fall.scenario, fall.load)), metric).values())
    bars = [
        Bar(0.0, base.value, base.low, base.high, None, trials) if base else None,
        *(_bar(fall, layer, metric, cells) for layer in fall.steps),
        replace(whole, start=0.0, verdict=None) if whole else None,
    ]
    names = (fall.base, *(layer.name for layer in view.lines))
    values: tuple[ChangeCell | str, ...] = (
        base_text(base),
        *(layer.throughput if throughput else layer.cpu for layer in view.lines),
    )
    label = f"Waterfall of {fmt.label(metric)}, {fall.scenario}: the numbers stand in the table below"
    rows = tuple(zip(names, bars, values, strict=True))
    return BarChart(fmt.label(metric), label, waterfall_scale(bars, metric.unit), rows, better(metric), joined=True)


def waterfall_scale(bars: Iterable[Bar | None], unit: str) -> Scale:
    """Scale from zero to the longest bar, and not much farther to the ends of intervals."""
    shown = [bar for bar in bars if bar]
    longest = [max(bar.start, bar.end) for bar in shown]
    return amount_scale(longest, [bar.high for bar in shown if bar.high is not None], unit)


def _bar(fall: Waterfall, layer: Layer, metric: Metric, cells: _Cells) -> Bar | None:
    """Draw a bar from the value of the layer below to the value after the change, with a dot per round."""
    cell, against = (cells.get((slug, fall.scenario, fall.load)) for slug in (layer.server, layer.against))
    below = against.known.get(metric) if against else None
    scales = metric is Metric.THROUGHPUT  # a change of CPU time is added
    compared = layer.throughput if scales else layer.cpu
    change = compared.ratio if compared and scales else layer.cpu_ns
    if below is None or compared is None or compared.ratio is None or change is None:
        return None
    start = below.value
    ends = (None, None) if compared.ratio.says_nothing else (change.low, change.high)
    low, high = (None if end is None else start * end if scales else start + end for end in ends)
    ours, theirs = dots.by_round(cell, metric), dots.by_round(against, metric)
    rounds = tuple(
        start * ours[number] / theirs[number] if scales else start + ours[number] - theirs[number]
        for number in ours
        if number in theirs
    )
    value = start * change.value if scales else start + change.value
    return Bar(start, value, low, high, compared.verdict, rounds)


def name_of(layer: Layer) -> str:
    """The server; if it is the server below plus something, only the addition: `+http2`."""
    server, *ours = layer.server.split("+")
    below, *theirs = layer.against.split("+")
    more = [f"+{token}" for token in ours if token not in theirs]
    return "".join(more) if server == below and more else layer.server


def base_text(estimate: Estimate | None) -> str:
    """The level at which a chain begins: `96.0 k/s ±0.7%`."""
    return fmt.with_spread(estimate) if estimate else "not measured"


def _line(name: str, layer: Layer, numbers: dict[str, int]) -> LayerLine:
    missing = numbers.get(layer.refused)
    return LayerLine(
        name,
        _percent(layer.throughput, numbers) if layer.throughput or not missing else ChangeCell(note=missing),
        _microseconds(layer, numbers) if layer.cpu else ChangeCell(note=missing),
        _percent(layer.cpu, numbers) if layer.cpu else ChangeCell(note=missing),
    )


def _percent(comparison: Comparison | None, numbers: dict[str, int]) -> ChangeCell:
    if comparison is None or comparison.ratio is None:
        return ChangeCell(note=numbers.get(comparison.refused) if comparison else None)
    return ChangeCell.of(comparison)


def _microseconds(layer: Layer, numbers: dict[str, int]) -> ChangeCell:
    """In microseconds whatever their size, to two digits of the interval's half width, so that layers can be added."""
    change = layer.cpu_ns
    if change is None:
        return ChangeCell(note=numbers.get(layer.cpu.refused) if layer.cpu else None)
    ends = () if change.low is None or change.high is None else (change.low, change.high)
    half = (ends[1] - ends[0]) / 2 if ends else abs(change.value) / 10
    places = min(4, max(0, 1 - math.floor(math.log10(half / _US)))) if half > 0 else 2
    bounds = ", ".join(fmt.signed(end / _US, places) for end in ends)
    text, cpu = f"{fmt.signed(change.value / _US, places)} µs", layer.cpu
    bounds = fmt.NOT_KNOWN if cpu and cpu.ratio and cpu.ratio.says_nothing else bounds
    size = abs(cpu.ratio.value - 1) if cpu and cpu.ratio else 0.0
    return ChangeCell(text, f"[{bounds}]" if ends else "", fmt.VerdictSign.of(cpu) if cpu else None, size=size)
