"""Waterfalls as tables: what each layer adds to the one below it, and all of them at once."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from redline.model import Comparison, Estimate, Layer, Metric, Report, Waterfall
from redline.report import format as fmt
from redline.report.document import ChangeCell, Column, Section, Table, TextCell, line, words

ALL_LAYERS = "all layers"
_US = 1e3


@dataclass(frozen=True)
class LayerLine:
    """One layer of a waterfall, or all of them: what it changes, and under which number a refusal is explained."""

    name: str
    layer: Layer
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
        throughput = any(line.layer.throughput for line in self.lines)
        return (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST) if throughput else (Metric.CPU_PER_REQUEST,)


def waterfall_lines(fall: Waterfall) -> WaterfallLines:
    """The steps of a waterfall, then all of them at once."""
    layers = (*fall.steps, fall.whole)
    notes = tuple(dict.fromkeys(reason for layer in layers for reason in layer.why_not))
    numbers = {reason: number for number, reason in enumerate(notes, 1)}
    names = [*(name_of(layer) for layer in fall.steps), ALL_LAYERS]
    return WaterfallLines(fall, tuple(_line(*each, numbers) for each in zip(names, layers, strict=True)), notes)


def layer_sections(report: Report, *, percent: bool) -> Iterator[Section]:
    """A table for each chain, scenario and load; `percent` adds the change in CPU time in percent."""
    if report.layers:
        hint = "What each adds to the one below it, [95% interval], and all of them: the last compared with the first."
        tables = (layer_table(waterfall_lines(fall), percent=percent) for fall in report.layers)
        yield Section("Layers", tuple(tables), hint)


def layer_table(view: WaterfallLines, *, percent: bool) -> Table:
    """What the chain begins with, then a row for each layer, then all of them."""
    fall, rates = view.fall, Metric.THROUGHPUT in view.metrics
    names = [*(["throughput"] if rates else []), "CPU per request", *(["the same in percent"] if percent else [])]
    bases = [base_text(fall.base_throughput)] if rates else []
    bases += [base_text(fall.base_cpu), *([""] if percent else [])]
    rows: list[tuple[TextCell | ChangeCell, ...]] = [(words(fall.base, look="strong"), *map(words, bases))]
    for each in view.lines:
        changes = [*([each.throughput] if rates else []), each.cpu, *([each.cpu_share] if percent else [])]
        rows.append((words(each.name, look="strong"), *changes))
    columns = (Column("layer"), *(Column(name, "right") for name in names))
    title = line((f"{view.chain} · {fall.scenario} · {fall.load}", "strong"))
    return Table(columns, tuple(rows), title, view.notes)


def name_of(layer: Layer) -> str:
    """The server; where it is the one below with something more, only that: `+http2`."""
    server, *ours = layer.server.split("+")
    below, *theirs = layer.against.split("+")
    more = [f"+{token}" for token in ours if token not in theirs]
    return "".join(more) if server == below and more else layer.server


def base_text(estimate: Estimate | None) -> str:
    """What a chain begins with: `96.0 k/s ±0.7%`."""
    if estimate is None:
        return "not measured"
    return f"{fmt.amount(estimate.value, estimate.unit)} {fmt.spread(estimate)}".rstrip()


def _line(name: str, layer: Layer, numbers: dict[str, int]) -> LayerLine:
    missing = numbers.get(layer.refused)
    return LayerLine(
        name,
        layer,
        _percent(layer.throughput, numbers) if layer.throughput or not missing else ChangeCell(note=missing),
        _microseconds(layer, numbers) if layer.cpu else ChangeCell(note=missing),
        _percent(layer.cpu, numbers) if layer.cpu else ChangeCell(note=missing),
    )


def _percent(found: Comparison | None, numbers: dict[str, int]) -> ChangeCell:
    if found is None or found.ratio is None:
        return ChangeCell(note=numbers.get(found.refused) if found else None)
    return ChangeCell.of(found)


def _microseconds(layer: Layer, numbers: dict[str, int]) -> ChangeCell:
    """In microseconds whatever their size, to two digits of the interval's half width: layers are to be added up."""
    found = layer.cpu_ns
    if found is None:
        return ChangeCell(note=numbers.get(layer.cpu.refused) if layer.cpu else None)
    ends = () if found.low is None or found.high is None else (found.low, found.high)
    half = (ends[1] - ends[0]) / 2 if ends else abs(found.value) / 10
    places = min(4, max(0, 1 - math.floor(math.log10(half / _US)))) if half > 0 else 2
    bounds = ", ".join(_signed(end / _US, places) for end in ends)
    text, cpu = f"{_signed(found.value / _US, places)} µs", layer.cpu
    size = abs(cpu.ratio.value - 1) if cpu and cpu.ratio else 0.0
    return ChangeCell(text, f"[{bounds}]" if ends else "", cpu.verdict if cpu else None, size=size)


def _signed(value: float, places: int) -> str:
    text = f"{abs(value):,.{places}f}"
    if not any(digit in "123456789" for digit in text):
        return text
    return ("+" if value > 0 else "\u2212") + text


def each_load(falls: tuple[Waterfall, ...]) -> Iterator[tuple[str, tuple[WaterfallLines, ...]]]:
    """The waterfalls by load, in the order of the report."""
    for load in dict.fromkeys(fall.load for fall in falls):
        yield load, tuple(waterfall_lines(fall) for fall in falls if fall.load == load)
