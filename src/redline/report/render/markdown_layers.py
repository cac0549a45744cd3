"""Layers as Markdown tables."""

from collections.abc import Callable, Iterator

from redline.model import Metric, Report
from redline.report import format as fmt
from redline.report.render.layers import Change, Told, base_of, told


def layers(report: Report, safe: Callable[[str], str]) -> Iterator[str]:
    """What each layer adds to the one below it, a table for each chain, scenario and load; nothing without chains."""
    if not report.layers:
        return
    yield "### Layers"
    yield (
        "What each layer adds to the one below it, \\[95% interval\\], and all of them together: the last server "
        "compared with the first."
    )
    for fall in report.layers:
        yield _table(told(fall), safe)


def _table(told: Told, safe: Callable[[str], str]) -> str:
    fall, rates = told.fall, Metric.THROUGHPUT in told.metrics
    header = ["layer", *(["throughput"] if rates else []), fmt.label(Metric.CPU_PER_REQUEST), "the same in percent"]
    bases = [*([fall.base_throughput] if rates else []), fall.base_cpu]
    rows = [[f"**{safe(fall.base)}**", *map(base_of, bases), ""]]
    for line in told.lines:
        changes = [*([line.throughput] if rates else []), line.cpu, line.cpu_share]
        rows.append([f"**{safe(line.name)}**", *(_change(change, safe) for change in changes)])
    lines = [
        f"**{safe(f'{told.chain} · {fall.scenario} · {fall.load}')}**\n",
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * (len(header) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    if told.notes:
        lines += ["", *(f"- \\[{number}\\] refused: {safe(reason)}" for number, reason in enumerate(told.notes, 1))]
    return "\n".join(lines)


def _change(change: Change, safe: Callable[[str], str]) -> str:
    if change.note is not None:
        return f"refused \\[{change.note}\\]"
    return safe(change.in_full)
