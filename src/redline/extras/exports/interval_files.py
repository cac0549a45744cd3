"""Rows of intervals as files: CSV (RFC 4180) and NDJSON.

docs/reference/exports.md is the contract.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice

from redline.analysis.intervals import IntervalRow
from redline.model import Outcomes
from redline.render.csvfile import field_text

_AT_ONCE = 500
_COLUMNS = tuple(
    column for name in IntervalRow.model_fields for column in (Outcomes.model_fields if name == "outcomes" else (name,))
)


def interval_sheet(rows: Iterable[IntervalRow]) -> Iterator[bytes]:
    """A header, and a line per row, in pieces: UTF-8, CRLF, empty where a value is not known."""
    yield _lines([_COLUMNS])
    for some in _pieces(rows):
        yield _lines(map(_fields, some))


def interval_lines(rows: Iterable[IntervalRow]) -> Iterator[bytes]:
    """A JSON object per line and row, in pieces."""
    for some in _pieces(rows):
        yield "".join(f"{row.model_dump_json()}\n" for row in some).encode()


def _pieces(rows: Iterable[IntervalRow]) -> Iterator[list[IntervalRow]]:
    left = iter(rows)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _fields(row: IntervalRow) -> list[str]:
    outcomes = dict(row.outcomes) if row.outcomes else {}
    return [
        field_text(outcomes.get(name) if name in Outcomes.model_fields else getattr(row, name)) for name in _COLUMNS
    ]


def _lines(rows: Iterable[Iterable[str]]) -> bytes:
    sheet = io.StringIO(newline="")
    csv.writer(sheet, lineterminator="\r\n").writerows(rows)
    return sheet.getvalue().encode(errors="replace")
