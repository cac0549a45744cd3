"""What each layer adds to the one below it, as a terminal shows it."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.cli.costs import COLOURS
from redline.model import Metric, Report
from redline.report.format import label, one_line
from redline.report.render.layers import Change, Told, base_of, told

_LEAST_NAME = 12
_NUMBER = 26
_GAP = 2


def print_layers(report: Report, console: Console) -> None:
    """A table for each chain, scenario and load; nothing where no baseline has one itself."""
    if not report.layers:
        return
    console.print()
    console.print(Text.assemble(("Layers", "bold"), ("  what each adds to the one below it, [95% interval]", "dim")))
    for fall in report.layers:
        one = told(fall)
        console.print()
        console.print(Text(one_line(f"{fall.scenario} · {fall.load}"), "bold"))
        console.print(_table(one, console.width))
        for number, reason in enumerate(one.notes, 1):
            console.print(Text(f"  [{number}] refused: {one_line(reason)}", "dim"))


def _table(one: Told, width: int) -> Table:
    metrics = one.metrics
    names = [one_line(name) for name in (one.fall.base, *(line.name for line in one.lines))]
    room = max(_LEAST_NAME, width - len(metrics) * (_NUMBER + _GAP))
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    table.add_column(width=min(room, max(map(len, names))), overflow="fold")
    for _ in metrics:
        table.add_column(justify="right", min_width=_NUMBER)
    table.add_row("", *(Text(label(metric), "dim") for metric in metrics))
    bases = {Metric.THROUGHPUT: one.fall.base_throughput, Metric.CPU_PER_REQUEST: one.fall.base_cpu}
    table.add_row(names[0], *(Text(base_of(bases[metric])) for metric in metrics))
    for name, line in zip(names[1:], one.lines, strict=True):
        changes = {Metric.THROUGHPUT: line.throughput, Metric.CPU_PER_REQUEST: line.cpu}
        table.add_row(name, *(_change(changes[metric]) for metric in metrics))
    return table


def _change(change: Change) -> Text:
    if change.note is not None:
        return Text(f"refused [{change.note}]", "dim")
    return Text(change.in_full, COLOURS[change.verdict] if change.verdict else "")
