"""The slowest requests: when they were due, how long they took, what became of them, and their traces."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from redline.document import format as fmt
from redline.document.blocks import Column, Section, Table, line
from redline.model import CellReport
from redline.model.kept import SlowRequest

if TYPE_CHECKING:  # a single load has none
    from redline.model import Report

TITLE = "Slowest requests"
HEADS = ("due at", "response", "answer", "request", "trial", "trace id")
LEFT = HEADS[2:4] + HEADS[5:]


def slowest_table(cell: CellReport) -> Table | None:
    """Those of a cell, without columns that say nothing; None if they are not known."""
    rows = [slowest_row(request) for request in cell.slowest]
    kept = [at for at in range(len(HEADS)) if any(row[at] for row in rows)]
    columns = tuple(Column(HEADS[at], "left" if HEADS[at] in LEFT else "right") for at in kept)
    cells = tuple(tuple(row[at] for at in kept) for row in rows)
    return Table(columns, cells, line((TITLE, "strong"))) if rows else None


def slowest_row(request: SlowRequest) -> Sequence[str]:
    """The cells of a request under `HEADS`; a failure is said in place of its status."""
    failed = request.outcome.replace("_", " ") if request.outcome != "ok" else ""
    answer = " ".join(filter(None, (str(request.status or ""), failed))) or "ok"
    trial = str(request.trial) if request.trial else ""
    at = f"{request.at_ns / 1e9:.3f} s"
    return at, fmt.duration(request.response_ns), answer, request.request, trial, request.trace_id


def slowest_section(report: "Report") -> Iterator[Section]:
    """Those of the only cell."""
    for cell in report.cells:
        if (table := slowest_table(cell)) is not None:
            yield Section(TITLE, (Table(table.columns, table.rows),), anchor="slowest")
