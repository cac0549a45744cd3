"""What monitors of other packages saw: a table of each group of cells, which every renderer draws."""

from collections.abc import Iterator

from redline.document import format as fmt
from redline.document.blocks import Fold, Medium, Prose, Section, ServerCell
from redline.model import Report, WatchedSeries
from redline.report.parts import server_cell, server_table
from redline.report.views import colours, groups

_HEADS = ("series", "of", "median of trials", "lowest trial", "highest trial", "most", "trials")
_TEXT = (
    "What monitors of other packages saw in the measurements, over the used trials, or all of them if a cell is "
    "invalid: the mean of a gauge's samples, or the increase of a counter per second. Redline "
    "neither checks nor judges it."
)


def watched_sections(report: Report) -> Iterator[Section]:
    """Tables of the groups; empty if no such monitor watched."""
    series, folds = colours(report), list[Fold]()
    for group in groups(report):
        rows: list[tuple[ServerCell, tuple[str, ...]]] = [
            (server_cell(cell, series[cell.server]), _row(seen)) for cell in group.cells for seen in cell.watched
        ]
        if rows:
            table = server_table("", _HEADS, rows, left=("series", "of"), on=Medium.EVERYWHERE)
            folds.append(Fold(group.heading(), (table,), not folds))
    if folds:
        yield Section("What monitors saw", (Prose.of([_TEXT], "dim", on=Medium.PAGE), *folds), anchor="monitors")


def _row(seen: WatchedSeries) -> tuple[str, ...]:
    unit = f"{seen.unit}/s" if seen.kind == "counter" else seen.unit
    amounts = (seen.middle, seen.lowest, seen.highest, seen.most)
    return (seen.name, seen.subject, *(_amount(value, unit) for value in amounts), str(seen.trials))


def _amount(value: float | None, unit: str) -> str:
    return "" if value is None else fmt.amount(value, unit).rstrip()
