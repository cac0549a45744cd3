"""What every renderer asks of waterfalls: what a layer is called, and its numbers as texts. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from redline.model import Comparison, Estimate, Layer, Metric, Verdict, Waterfall
from redline.report import format as fmt

ALL_LAYERS = "all layers"
_US = 1e3


@dataclass(frozen=True)
class Change:
    """What a layer changes in one metric: `text` and `bounds` with their signs; both empty where there is no number."""

    text: str = ""
    bounds: str = ""
    verdict: Verdict | None = None
    note: int | None = None

    @property
    def sign(self) -> str:
        """The verdict's, or nothing."""
        return fmt.MARKS[self.verdict] if self.verdict else ""

    @property
    def in_full(self) -> str:
        """`+1.24 µs ▼ [+1.06, +1.42]`."""
        return " ".join(part for part in (self.text, self.sign, self.bounds) if part)


@dataclass(frozen=True)
class Line:
    """One layer of a waterfall, or all of them: what it changes, and under which number a refusal is explained."""

    name: str
    layer: Layer
    throughput: Change
    cpu: Change
    cpu_share: Change


@dataclass(frozen=True)
class Told:
    """A waterfall as lines, and the reasons for which numbers are missing, numbered from 1."""

    fall: Waterfall
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def chain(self) -> str:
        """`rust.hyper → rust.axum → +routes=1`."""
        return " → ".join([self.fall.base, *(line.name for line in self.lines[:-1])])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What there is to tell of: throughput only where the server decides it."""
        throughput = any(line.layer.throughput for line in self.lines)
        return (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST) if throughput else (Metric.CPU_PER_REQUEST,)


def told(fall: Waterfall) -> Told:
    """The waterfall as a table shows it: its steps, then the whole."""
    layers = (*fall.steps, fall.whole)
    notes = tuple(dict.fromkeys(reason for layer in layers for reason in layer.why_not))
    numbers = {reason: number for number, reason in enumerate(notes, 1)}
    names = [*(name_of(layer) for layer in fall.steps), ALL_LAYERS]
    return Told(fall, tuple(_line(*each, numbers) for each in zip(names, layers, strict=True)), notes)


def name_of(layer: Layer) -> str:
    """The server; where it is the one below with something more, only that: `+http2`."""
    server, *ours = layer.server.split("+")
    below, *theirs = layer.against.split("+")
    more = [f"+{token}" for token in ours if token not in theirs]
    return "".join(more) if server == below and more else layer.server


def base_of(estimate: Estimate | None) -> str:
    """What a chain begins with: `96.0 k/s ±0.7%`."""
    if estimate is None:
        return "not measured"
    return f"{fmt.amount(estimate.value, estimate.unit)} {fmt.spread(estimate)}".rstrip()


def _line(name: str, layer: Layer, numbers: dict[str, int]) -> Line:
    missing = numbers.get(layer.refused)
    return Line(
        name,
        layer,
        _percent(layer.throughput, numbers) if layer.throughput or not missing else Change(note=missing),
        _microseconds(layer, numbers) if layer.cpu else Change(note=missing),
        _percent(layer.cpu, numbers) if layer.cpu else Change(note=missing),
    )


def _percent(found: Comparison | None, numbers: dict[str, int]) -> Change:
    if found is None or found.ratio is None:
        return Change(note=numbers.get(found.refused) if found else None)
    return Change(fmt.change(found.ratio), fmt.change_bounds(found.ratio), found.verdict)


def _microseconds(layer: Layer, numbers: dict[str, int]) -> Change:
    """In microseconds whatever their size, to two digits of the interval's half width: layers are to be added up."""
    found = layer.cpu_ns
    if found is None:
        return Change(note=numbers.get(layer.cpu.refused) if layer.cpu else None)
    ends = () if found.low is None or found.high is None else (found.low, found.high)
    half = (ends[1] - ends[0]) / 2 if ends else abs(found.value) / 10
    places = min(4, max(0, 1 - math.floor(math.log10(half / _US)))) if half > 0 else 2
    bounds = ", ".join(_signed(end / _US, places) for end in ends)
    verdict = layer.cpu.verdict if layer.cpu else None
    return Change(f"{_signed(found.value / _US, places)} µs", f"[{bounds}]" if ends else "", verdict)


def _signed(value: float, places: int) -> str:
    text = f"{abs(value):,.{places}f}"
    if not any(digit in "123456789" for digit in text):
        return text
    return ("+" if value > 0 else "\u2212") + text


def each_load(falls: tuple[Waterfall, ...]) -> Iterator[tuple[str, tuple[Told, ...]]]:
    """The waterfalls by load, in the order of the report."""
    for load in dict.fromkeys(fall.load for fall in falls):
        yield load, tuple(told(fall) for fall in falls if fall.load == load)
