"""The rows of `results.csv` as a table of Arrow, with a type for each column: for data frames and Parquet.

It is an extra: `redline[data]`. Texts are as they are in the report: no program runs them as formulas.
"""

import io
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from redline.entry_points import missing_package
from redline.model.limits import AnyReport, LimitReport
from redline.render.csvfile import COLUMNS, SEARCH_COLUMNS, Field, rows, search_rows

FLAGS = frozenset({"is_baseline", "valid", "matters", "fresh", "overloaded", "decided"})
COUNTS = frozenset({"family", "n", "start", "errors", "requests"})
NUMBERS = frozenset(
    {
        *("value", "low", "high", "confidence", "ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "p_equivalent"),
        *("at_least", "at_most", "rate_per_s", "seconds", "offered_per_s", "answered_per_s", "speed"),
        *("passed_per_s", "failed_per_s", "passed_speed", "failed_speed", "met_at_per_s", "missed_at_per_s"),
        *("users", "passed_users", "failed_users", "met_at_users", "missed_at_users"),
        *("began_s", "changed_until_s", "changed_since_s", "body_bytes", "messages_per_s", "goodput"),
        *(column for column in SEARCH_COLUMNS if column.endswith("_ns")),
    }
)
"""All other columns are texts."""


def arrow_table(report: AnyReport) -> Any:
    """Return the rows as a `pyarrow.Table`. Its columns and types depend on the kind of report alone.

    Raises UsageError where pyarrow is not installed.
    """
    pyarrow = library("pyarrow", "to_arrow()")
    columns: tuple[str, ...]
    filled: Iterable[dict[str, Field]]
    if isinstance(report, LimitReport):
        columns, filled = SEARCH_COLUMNS, search_rows(report)
    else:
        columns, filled = COLUMNS, rows(report)
    types = {
        **dict.fromkeys(FLAGS, pyarrow.bool_()),
        **dict.fromkeys(COUNTS, pyarrow.int64()),
        **dict.fromkeys(NUMBERS, pyarrow.float64()),
    }
    schema = pyarrow.schema([(column, types.get(column, pyarrow.string())) for column in columns])
    return pyarrow.Table.from_pylist(
        [{column: _encodable(row.get(column)) for column in columns} for row in filled], schema
    )


def _encodable(value: Field) -> Field:
    """The value, with what UTF-8 cannot hold replaced, as in the CSV."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def pandas_frame(report: AnyReport) -> Any:
    """Return the rows as a `pandas.DataFrame`. Raises UsageError where pandas or pyarrow is not installed."""
    library("pandas", "to_pandas()")
    return arrow_table(report).to_pandas()


def polars_frame(report: AnyReport) -> Any:
    """Return the rows as a `polars.DataFrame`. Raises UsageError where polars or pyarrow is not installed."""
    return library("polars", "to_polars()").from_arrow(arrow_table(report))


def parquet(report: AnyReport) -> bytes:
    """Return the rows as a file of Parquet. Raises UsageError where pyarrow is not installed."""
    writer = library("pyarrow.parquet", "a file of Parquet")
    file = io.BytesIO()
    writer.write_table(arrow_table(report), file)
    return file.getvalue()


def library(name: str, asked: str) -> Any:
    """Import what is not installed with Redline. `asked` is what needs it. Raises UsageError."""
    try:
        return import_module(name)
    except ImportError:
        raise missing_package(asked, name, "data") from None
