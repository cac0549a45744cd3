"""The log of single requests as a file, and read again: Parquet, or CSV (RFC 4180). docs/reference/exports.md."""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from redline.errors import StoreError, UsageError
from redline.extras.exports.tables import library
from redline.wording import part

TEXTS = frozenset({"request", "outcome"})
"""All other columns are `int64`."""
_ENDINGS = (".parquet", ".csv")
Columns = Mapping[str, Any]


def request_writer(file: Path) -> Callable[[Columns], bytes]:
    """What makes a file of columns, by its ending. Raises UsageError for another, and without pyarrow for Parquet."""
    _check_ending(file)
    if file.suffix.lower() == ".csv":
        return _sheet
    pyarrow, writer = library("pyarrow", part("log", file)), library("pyarrow.parquet", part("log", file))

    def write(columns: Columns) -> bytes:
        arrays = [pyarrow.array(values, _type(pyarrow, name)) for name, values in columns.items()]
        out = io.BytesIO()
        writer.write_table(pyarrow.table(arrays, names=list(columns)), out)
        return out.getvalue()

    return write


def request_table(file: Path) -> Any:
    """The rows of a file as a `pyarrow.Table`.

    Raises UsageError for another ending, and without pyarrow, StoreError for a file that holds something else, and
    OSError.
    """
    _check_ending(file)
    pyarrow, is_csv = library("pyarrow", "read_requests()"), file.suffix.lower() == ".csv"
    reader = library("pyarrow.csv" if is_csv else "pyarrow.parquet", "read_requests()")
    try:
        with file.open("rb") as source:
            if not is_csv:
                return reader.read_table(source)
            types = {name: _type(pyarrow, name) for name in source.readline().decode().strip().split(",")}
            source.seek(0)
            return reader.read_csv(source, convert_options=reader.ConvertOptions(column_types=types))
    except ValueError as error:
        raise StoreError(f"{file} holds no log of requests: {error}", hint="name a file that a load wrote") from None


def _type(pyarrow: Any, column: str) -> Any:
    return pyarrow.string() if column in TEXTS else pyarrow.int64()


def _check_ending(file: Path) -> None:
    if file.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{file}: a log of requests is Parquet or CSV", hint="end its name with .parquet or .csv")


def _sheet(columns: Columns) -> bytes:
    """A header, and a row per request; empty where a value is not known."""
    out = io.StringIO(newline="")
    sheet = csv.writer(out, lineterminator="\r\n")
    sheet.writerow(columns)
    filled = [np.ma.filled(values.astype(object), "") for values in columns.values()]
    sheet.writerows(zip(*filled, strict=True))
    return out.getvalue().encode(errors="replace")
