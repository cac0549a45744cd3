"""Waterfalls: what layers add to those below them, and all of them at once, as tables and as bars."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from redline.model import CellReport, Comparison, Estimate, Layer, Metric, Report, Waterfall
from redline.report import format as fmt
from redline.report.document import (
    Block,
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
from redline.report.figures import Bar, BarChart, Panels
from redline.report.scales import Scale, amount_scale
from redline.report.sections import dots
from redline.report.sections.views import better, load_line, signs

ALL_LAYERS = "all layers"
_US = 1e3
_Cells = Mapping[tuple[str, str, str], CellReport]
"""Subjects by server, scenario and load."""


@dataclass(frozen=True)
class LayerLine:
    """One layer of a waterfall, or all of them: what it changes, and under which number a refusal is explained."""

    name: str
    throughput: ChangeCell
    cpu: ChangeCell
    cpu_share: ChangeCell


@dataclass(frozen=True)
class WaterfallLines:
    """A waterfall as lines, and the reasons why numbers are missing, numbered from 1."""

    fall: Waterfall
    lines: tuple[LayerLine, ...]
    notes: tuple[str, ...]

    @property
    def chain(self) -> str:
        """`rust.hyper → rust.axum → +routes=1`."""
        return " → ".join([self.fall.base, *(line.name for line in self.lines[:-1])])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those that it has: throughput only where the server decides it."""
        throughput = any(layer.throughput for layer in (*self.fall.steps, self.fall.whole))
        return (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST) if throughput else (Metric.CPU_PER_REQUEST,)


def waterfall_lines(fall: Waterfall) -> WaterfallLines:
    """The steps of a waterfall, then all of them at once."""
    layers = (*fall.steps, fall.whole)
    notes = tuple(dict.fromkeys(reason for layer in layers for reason in layer.why_not))
    numbers = {reason: number for number, reason in enumerate(notes, 1)}
    names = [*(name_of(layer) for layer in fall.steps), ALL_LAYERS]
    return WaterfallLines(fall, tuple(_line(*pair, numbers) for pair in zip(names, layers, strict=True)), notes)


def layer_sections(report: Report) -> Iterator[Section]:
    """Waterfalls by load; nothing where no baseline has a baseline itself."""
    cells = {(cell.server, cell.scenario, cell.load): cell for cell in report.cells if cell.role == "subject"}
    by_load: dict[str, list[WaterfallLines]] = {}
    for fall in report.layers:
        by_load.setdefault(fall.load, []).append(waterfall_lines(fall))
    folds = [
        Fold(
            load_line(load, [cell for view in views for cell in _shown(view.fall, cells)]),
            tuple(block for view in views for block in _blocks(view, cells)),
            at == 0 if len(by_load) > 1 else None,
        )
        for at, (load, views) in enumerate(by_load.items())
    ]
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


def _blocks(view: WaterfallLines, cells: _Cells) -> Iterator[Block]:
    heading = line(view.fall.scenario, (f" {view.chain}", "dim"))
    panels = Panels(tuple(_chart(view, metric, cells) for metric in view.metrics))
    caption = line(("change against the layer below, [95% interval]", "dim"))
    yield Fold(heading, (panels, _table(view, caption), refused(view.notes)))


def _table(view: WaterfallLines, title: Line) -> Table:
    """What the chain begins with, then a row per layer, then all of them."""
    fall, rates = view.fall, Metric.THROUGHPUT in view.metrics
    names = [*(["throughput"] if rates else []), "CPU per request", "the same in percent"]
    bases = [base_text(fall.base_throughput)] if rates else []
    bases += [base_text(fall.base_cpu), ""]
    rows: list[tuple[TableCell, ...]] = [(words(fall.base, look="strong"), *bases)]
    for layer in view.lines:
        changes = [*([layer.throughput] if rates else []), layer.cpu, layer.cpu_share]
        rows.append((words(layer.name, look="strong"), *changes))
    columns = (Column("layer"), *(Column(name, "right") for name in names))
    return Table(columns, tuple(rows), title, look="tiles", total=True)


def _shown(fall: Waterfall, cells: _Cells) -> Iterator[CellReport]:
    for slug in (fall.base, *(step.server for step in fall.steps)):
        if cell := cells.get((slug, fall.scenario, fall.load)):
            yield cell


def _chart(view: WaterfallLines, metric: Metric, cells: _Cells) -> BarChart:
    """What the chain begins with, the layers, one on top of the other, and the whole."""
    fall, throughput = view.fall, metric is Metric.THROUGHPUT
    base = fall.base_throughput if throughput else fall.base_cpu
    whole = _bar(fall, fall.whole, metric, cells)
    bottom = cells.get((fall.base, fall.scenario, fall.load))
    bars = [
        Bar(0.0, base.value, base.low, base.high, None, tuple(dots.by_round(bottom, metric).values()))
        if base
        else None,
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
    """From zero to the longest bar, and not much farther to the ends of intervals."""
    shown = [bar for bar in bars if bar]
    longest = [max(bar.start, bar.end) for bar in shown]
    return amount_scale(longest, [bar.high for bar in shown if bar.high is not None], unit)


def _estimate(cells: _Cells, slug: str, fall: Waterfall, metric: Metric) -> Estimate | None:
    cell = cells.get((slug, fall.scenario, fall.load))
    return cell.estimates.get(metric) if cell and cell.valid else None


def _bar(fall: Waterfall, layer: Layer, metric: Metric, cells: _Cells) -> Bar | None:
    """From the value of what stands below it to where its change leads, with a dot per round."""
    below = _estimate(cells, layer.against, fall, metric)
    compared = layer.throughput if metric is Metric.THROUGHPUT else layer.cpu
    if below is None or compared is None or compared.ratio is None:
        return None
    change = compared.ratio if metric is Metric.THROUGHPUT else layer.cpu_ns
    if change is None:
        return None
    value, low, high = (
        None if end is None else below.value * end if metric is Metric.THROUGHPUT else below.value + end
        for end in (change.value, change.low, change.high)
    )
    sides = (cells.get((slug, fall.scenario, fall.load)) for slug in (layer.server, layer.against))
    ours, theirs = (dots.by_round(side, metric) for side in sides)
    rounds = tuple(
        below.value * ours[number] / theirs[number]
        if metric is Metric.THROUGHPUT
        else below.value + ours[number] - theirs[number]
        for number in ours
        if number in theirs
    )
    return None if value is None else Bar(below.value, value, low, high, compared.verdict, rounds)


def name_of(layer: Layer) -> str:
    """The server; where that is the server below with something more, only what is added: `+http2`."""
    server, *ours = layer.server.split("+")
    below, *theirs = layer.against.split("+")
    more = [f"+{token}" for token in ours if token not in theirs]
    return "".join(more) if server == below and more else layer.server


def base_text(estimate: Estimate | None) -> str:
    """What a chain begins with: `96.0 k/s ±0.7%`."""
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
    """In microseconds whatever their size, to two digits of the interval's half width: layers are to be added up."""
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
