"""The slowest requests: when they were due, how long they took, what became of them, and their traces."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from redline.document import format as fmt
from redline.document.blocks import Column, Section, Table, line
from redline.model import CellReport
from redline.model.kept import SlowRequest

if TYPE_CHECKING:  # a single load has none
    from redline.model import Report

TITLE = "Slowest requests"
LEFT = ("answer", "request", "trace id")
_MOST_CELLS = 2
"""Text has those of a comparison of two servers, and not of a suite."""


def slowest_heads(cells: Iterable[CellReport]) -> Sequence[str]:
    """The columns of `slowest_row`: those of duets are of starts."""
    return "due at", "response", "answer", "request", "trial" if any(c.trials for c in cells) else "start", "trace id"


def slowest_table(cell: CellReport) -> Table | None:
    """Those of a cell, without columns that say nothing; None if they are not known."""
    heads, rows = slowest_heads([cell]), [slowest_row(request) for request in cell.slowest]
    kept = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    columns = tuple(Column(heads[at], "left" if heads[at] in LEFT else "right") for at in kept)
    cells = tuple(tuple(row[at] for at in kept) for row in rows)
    return Table(columns, cells, line((TITLE, "strong"))) if rows else None


def slowest_row(request: SlowRequest) -> Sequence[str]:
    """The cells of a request under `slowest_heads`; a failure is said in place of its status."""
    failed = request.outcome.replace("_", " ") if request.outcome != "ok" else ""
    answer = " ".join(filter(None, (str(request.status or ""), failed))) or "ok"
    trial = str(request.trial) if request.trial else ""
    at = f"{request.at_ns / 1e9:.3f} s"
    return at, fmt.duration(request.response_ns), answer, request.request, trial, request.trace_id


def slowest_section(report: "Report") -> Iterator[Section]:
    """Those of the only cell, or of two that are compared."""
    made = [(cell.server, table) for cell in report.cells if (table := slowest_table(cell)) is not None]
    several = len(report.cells) > 1
    tables = (replace(table, title=line((server, "strong")) if several else ()) for server, table in made)
    if made and len(report.cells) <= _MOST_CELLS:
        yield Section(TITLE, tuple(tables), anchor="slowest")
