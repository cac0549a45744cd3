"""What each server costs against its baseline, as a terminal shows it: changes in percent by server and scenario."""

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.model import Comparison, Metric, Report, Verdict
from redline.report.format import MARKS, change, label, one_line
from redline.report.render.boards import Board, Column, cost_boards
from redline.report.render.lines import Line

COLOURS = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.EQUIVALENT: "dim",
    Verdict.INCONCLUSIVE: "yellow",
}
_SHOWN = (Metric.THROUGHPUT, Metric.P99)
_VALUE = 8
_GAP = 1
_LEAST_NAME = 12


def print_costs(report: Report, console: Console) -> None:
    """A table for each metric and load; nothing for one scenario with one baseline, where the results say it all."""
    boards = [board for board in cost_boards(report) if board.metric in _SHOWN]
    if not any(len(board.scenarios) > 1 or not board.against for board in boards):
        return
    console.print()
    console.print(Text.assemble(("Cost against the baseline", "bold"), ("  change in percent", "dim")))
    for board in boards:
        for load, part in board.parts():
            for setting in part.settings:
                for columns in _fitting(part, console.width):
                    console.print()
                    console.print(_head(part, load, setting))
                    console.print(_table(part, part.of_setting(setting), columns, console.width))


def _head(board: Board, *told: str) -> Text:
    against = f" against {one_line(board.against)}" if board.against else ""
    where = "  ".join(one_line(text) for text in told if text)
    return Text.assemble(label(board.metric) + against, (f"  {where}" if where else "", "dim"))


def _fitting(board: Board, width: int) -> Iterator[tuple[Column, ...]]:
    """The columns in as many parts as the terminal's width needs."""
    longest = max(len(one_line(line.server)) for line in board.lines)
    names = min(longest, max(_LEAST_NAME, width - len(board.columns) * (_VALUE + _GAP)))
    most = max(1, (width - names) // (_VALUE + _GAP))
    for start in range(0, len(board.columns), most):
        yield board.columns[start : start + most]


def _table(board: Board, lines: Sequence[Line], columns: Sequence[Column], width: int) -> Table:
    room = max(_LEAST_NAME, width - len(columns) * (_VALUE + _GAP))
    names = [_name(line, board) for line in lines]
    if any(len(name) > room for name in names):
        names = [one_line(line.server) for line in lines]
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    table.add_column(width=min(room - _GAP, max(map(len, names))), overflow="fold")
    for _ in columns:
        table.add_column(width=_VALUE, justify="right", overflow="fold")
    table.add_row("", *(Text(_folded(one_line(board.title_of(column))), "dim") for column in columns))
    for line, name in zip(lines, names, strict=True):
        table.add_row(name, *(_change(board.found.get((line, column))) for column in columns))
    return table


def _name(line: Line, board: Board) -> str:
    return one_line(line.server if board.against else f"{line.server} vs {line.against}")


def _folded(title: str) -> str:
    """`SimpleGetMulti` in lines that fit a column, broken before capitals and at what joins its parts."""
    lines: list[str] = []
    for part in title.split(" · "):
        lines.append("")
        for word in re.split(r"(?<=[a-z0-9])(?=[A-Z])", part):
            if lines[-1] and len(lines[-1]) + len(word) > _VALUE:
                lines.append("")
            lines[-1] += word
    return "\n".join(lines)


def _change(comparison: Comparison | None) -> Text:
    if comparison is None:
        return Text("not run", "dim")
    if comparison.ratio is None or comparison.verdict is None:
        return Text("refused", "dim")
    text = f"{change(comparison.ratio, whole_from=0.1)} {MARKS[comparison.verdict]}"
    return Text(text, COLOURS[comparison.verdict])
