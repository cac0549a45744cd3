"""The picture beside the answer: all ratios behind the answer, on a scale for each metric."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from redline.document import format as fmt
from redline.document.blocks import ChangeCell, Column, Medium, Strip, Table, TableCell, TextCell, line
from redline.document.scales import Scale, ratio_scale
from redline.model import SHOWN, CellReport, Comparison, Metric, Report
from redline.report import dots
from redline.report.boards import Board, ServerPair, Workload, cost_boards
from redline.report.views import better, only_judged

_MOST = 24
"""The most rows beside the answer on a first screen; of more, the largest differences are shown."""

_Found = tuple[Board, ServerPair, Workload, Comparison]
"""A comparison, and where its board has it."""


def forest(report: Report) -> tuple[Table, ...]:
    """A table for each metric, a row per comparison: its interval, a dot per start or round, and what does not matter.

    Each has a scale of its own: a percentile may differ by hundreds of percent where CPU time differs by five.
    """
    rows = _rows(report)
    every = sum(comparison.ratio is not None for comparison in _candidates(report))
    title = (
        f"The {len(rows)} largest of {every:,} differences" if every > len(rows) else f"Change against {_base(rows)}"
    )
    title += ": ratios with 95% intervals, dots of single starts or rounds, shaded what is too small to matter"
    cells = {cell.cell_id: cell for cell in report.cells}
    tables: list[Table] = []
    for metric, own in groupby(rows, key=lambda row: row[0].metric):
        compared = [*own]
        scale = ratio_scale([row[3] for row in compared], report.run.threshold, f"forest-{metric.value}")
        columns = (Column("metric", place="above"), Column(""), Column("", scale=scale), Column("", "right"))
        lacking = "" if any(row[3].primary for row in compared) else only_judged(report.comparisons)
        heading = ", ".join(filter(None, (fmt.label(metric), better(metric)))) + (f" ({lacking})" if lacking else "")
        made = tuple(_row(row, cells, scale, heading) for row in compared)
        tables.append(Table(columns, made, () if tables else line((title, "dim")), look="forest", on=Medium.PAGE))
    return tuple(tables)


def scale_of(table: Table) -> Scale:
    """The scale of a table of the picture."""
    return next(column.scale for column in table.columns if column.scale)


def _row(found: _Found, cells: Mapping[str, CellReport], scale: Scale, heading: str) -> tuple[TableCell, ...]:
    """A row of a metric, under its heading."""
    board, pair, workload, comparison = found
    ratio = comparison.ratio
    assert ratio is not None
    known = ratio.interval if not ratio.says_nothing else None
    low, high = known or (None, None)
    sign, rounds = fmt.VerdictSign.of(comparison), dots.ratios(cells, comparison)
    strip = Strip(scale, "point", ratio.value, low, high, sign, dots=rounds)
    whole = ChangeCell.of(comparison)
    change = ChangeCell(whole.text, "" if known else whole.bounds, sign, why=whole.why)
    return heading, _name(pair, workload, board), strip, change


def _candidates(report: Report) -> list[Comparison]:
    """The comparisons behind the answer: judged, and rates by duets; without verdicts, the metrics of most tables."""
    comparisons = [comparison for board in cost_boards(report) for comparison in board.comparisons.values()]
    judged = any(comparison.primary for comparison in comparisons)

    def tells(comparison: Comparison) -> bool:
        if not judged:
            return comparison.metric in SHOWN
        return comparison.primary or (comparison.metric is Metric.THROUGHPUT and comparison.duet is not None)

    return list(filter(tells, comparisons))


def _rows(report: Report) -> list[_Found]:
    """The rows by metric, servers and workloads."""
    told = {id(comparison) for comparison in _candidates(report)}
    rows = [
        (board, pair, workload, comparison)
        for board in cost_boards(report)
        for pair in board.lines
        for workload in board.columns
        if (comparison := board.comparisons.get((pair, workload)))
        if id(comparison) in told and comparison.ratio is not None and comparison.ratio.value > 0
    ]
    if len(rows) <= _MOST:
        return rows
    largest = sorted(rows, key=lambda row: -abs(math.log(row[3].ratio.value)) if row[3].ratio else 0.0)[:_MOST]
    metrics = {metric: place for place, metric in enumerate(dict.fromkeys(row[3].metric for row in rows))}
    return sorted(largest, key=lambda row: metrics[row[3].metric])


def _base(rows: Sequence[_Found]) -> str:
    names = {row[1].against for row in rows}
    return names.pop() if len(names) == 1 else "the baseline"


def _name(pair: ServerPair, workload: Workload, board: Board) -> TextCell:
    """`rust.axum SimpleGet · saturate`, without the parts that all rows share."""
    several = len(board.columns) > 1
    against = "" if board.against else f" vs {pair.against}"
    where = f" {board.title_of(workload)}" if several else ""
    setting = f" {pair.setting}" if pair.setting else ""
    return TextCell((line(pair.server, (f"{against}{setting}{where}", "dim")),))
