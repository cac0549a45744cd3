"""A single server under a single load: on a page's first screen its numbers, in text what a load shows of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from redline.document import format as fmt
from redline.document.blocks import Section
from redline.document.figures import Tile, Tiles
from redline.findings import RULES
from redline.findings.cell import too_few_trials
from redline.model import CellReport, Grade, Metric, Report, StreamReport
from redline.report.load import deviations_table, load_numbers
from redline.report.results import Level, level_name, level_score
from redline.report.streams import at_a_glance
from redline.report.views import weighed_findings

_SHOWN: tuple[Level, ...] = (Metric.THROUGHPUT, Metric.P50, Metric.P99, "max", Metric.CPU_PER_REQUEST)
_OF_STREAMS: tuple[Level, ...] = (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST)
"""Where every request is a conversation, whose length is seldom the server's doing."""
_MEDIAN = 0.5
_BIASED: Mapping[str, tuple[Level, ...]] = {
    "throughput": (Metric.THROUGHPUT,),
    "response times": (Metric.P50, Metric.P99, "max"),
    "percentiles": (Metric.P50, Metric.P99),
    "tails": (Metric.P99, "max"),
    "costs": (Metric.CPU_PER_REQUEST,),
    "levels": _SHOWN,
}
"""The numbers that a finding moves, by the word that its rule has for them."""


def is_single(report: Report) -> bool:
    """Whether there is one cell, and nothing that it is compared with."""
    return len(report.cells) == 1 and not report.comparisons and not report.run.same


def tiles(report: Report) -> Tiles | None:
    """The numbers of the only cell; None if there are several, or nothing was counted."""
    return Tiles((*_tiles(report.cells[0]),)) if is_single(report) and report.cells[0].counts.due else None


def deviations_section(report: Report) -> Iterator[Section]:
    """The columns of wrk, of a load that was measured by itself."""
    for cell in report.cells:
        table = deviations_table(cell.load_facts.deviations) if cell.load_facts else None
        if table is not None and table.rows:
            yield Section("Deviations", (table,), anchor="deviations")


def _tiles(cell: CellReport) -> Iterator[Tile]:
    outcomes = cell.counts.outcomes
    yield Tile("requests", fmt.integer(cell.counts.due))
    failed = f"{fmt.percent(outcomes.errors / outcomes.total)} of all" if outcomes.errors else ""
    yield Tile("failed", fmt.integer(outcomes.errors), failed, is_bad=outcomes.errors > 0)
    streams = cell.streams
    if streams:
        yield from _message_tiles(cell, streams)
    are_all_streams = streams is not None and streams.begun >= cell.counts.due
    for level in _OF_STREAMS if are_all_streams else _SHOWN:
        if (score := level_score(cell, level)).value not in ("", fmt.NOT_KNOWN):
            yield Tile(level_name(level), score.value, score.spread, doubt=score.why or _doubt(cell, level))


def _message_tiles(cell: CellReport, streams: StreamReport) -> Iterator[Tile]:
    if streams.events_per_s is not None:
        yield Tile("messages", fmt.rate(streams.events_per_s), doubt=_doubt(cell, Metric.THROUGHPUT))
    for name, points in (("first message", streams.first_event), ("gap", streams.gaps)):
        for point in at_a_glance(points):
            doubt = _doubt(cell, Metric.P50 if point.q <= _MEDIAN else Metric.P99)
            yield Tile(f"{name} {fmt.quantile_name(point.q)}", fmt.point_sign(point), doubt=doubt)
    if streams.goodput is not None:
        yield Tile("good", fmt.percent(streams.goodput))


def _doubt(cell: CellReport, level: Level) -> str:
    """`cpu-steal: throughput is too low …`: the warnings that may have moved this number.

    Too few trials are none of them: a load is one trial, and the line below the numbers says so.
    """
    warned = (finding.kind for finding in weighed_findings(cell) if finding.grade is Grade.WARN)
    warnings = {kind: RULES[kind] for kind in warned if kind != too_few_trials.kind}
    return "; ".join(
        f"{kind}: {rule.biases or 'it scatters'}"
        for kind, rule in warnings.items()
        if rule.scatters or any(level in moved for word, moved in _BIASED.items() if word in rule.biases)
    )


def load_sections(report: Report) -> Iterator[Section]:
    """The numbers that the command of a load prints, as a whole; nothing of other runs."""
    for cell in filter(has_facts, report.cells):
        yield Section("Results", tuple(load_numbers(cell, whole=True)), cell.load_text)


def besides_loads(build: Callable[[Report], Iterable[Section]]) -> Callable[[Report], Iterable[Section]]:
    """The sections of a run; none of a load, which `load_sections` shows."""
    return lambda report: () if any(map(has_facts, report.cells)) else build(report)


def has_facts(cell: CellReport) -> bool:
    """Whether it is of a load that was measured by itself, and sent something."""
    return cell.load_facts is not None


def of_single(build: Callable[[Report], Iterable[Section]]) -> Callable[[Report], Iterable[Section]]:
    """The sections of a report of a single cell; none of others."""
    return lambda report: build(report) if is_single(report) else ()


def of_several(build: Callable[[Report], Iterable[Section]]) -> Callable[[Report], Iterable[Section]]:
    """The sections of a report of several cells; none of a single one."""
    return lambda report: () if is_single(report) else build(report)
