"""Data frames and Parquet have the rows of the CSV, with a type for each column."""

import csv
import io
import sys
from collections.abc import Callable

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from redline.errors import UsageError
from redline.extras.exports import tables
from redline.model.limits import AnyReport, LimitReport
from redline.render import csvfile
from tests.fakes import limits, reports

REPORTS = [reports.healthy, reports.alone, reports.doubtful, reports.died, reports.skipping, reports.nasty]
SEARCHES = [limits.by_hand, limits.whole, limits.alone, limits.nasty]


def columns_of(report: AnyReport) -> tuple[str, ...]:
    return csvfile.SEARCH_COLUMNS if isinstance(report, LimitReport) else csvfile.COLUMNS


def rows_of(report: AnyReport) -> list[dict[str, csvfile.Field]]:
    return list(csvfile.search_rows(report) if isinstance(report, LimitReport) else csvfile.rows(report))


@pytest.mark.parametrize("made", [*REPORTS, *SEARCHES])
def test_a_table_has_the_values_of_the_rows(made: Callable[[], AnyReport]) -> None:
    report = made()
    expected = [{column: row.get(column) for column in columns_of(report)} for row in rows_of(report)]
    table = tables.arrow_table(report)
    assert table.to_pylist() == expected != []
    assert pq.read_table(io.BytesIO(tables.parquet(report))).equals(table)


def test_names_and_order_of_columns_are_those_of_the_csv() -> None:
    for report, content in (
        (reports.healthy(), csvfile.render(reports.healthy())),
        (limits.whole(), csvfile.render_search(limits.whole())),
    ):
        header = next(csv.reader(io.StringIO(content.decode())))
        assert tables.arrow_table(report).column_names == header


@pytest.mark.parametrize("kinds", [REPORTS, SEARCHES])
def test_types_are_the_same_for_all_reports_of_a_kind(kinds: list[Callable[[], AnyReport]]) -> None:
    first, *others = [tables.arrow_table(made()).schema for made in kinds]
    assert all(other.equals(first) for other in others)
    known = {str(field.type) for field in first}
    assert known == {"bool", "int64", "double", "string"}


def test_each_named_type_is_of_a_column() -> None:
    named = [tables.FLAGS, tables.COUNTS, tables.NUMBERS]
    assert frozenset().union(*named) <= {*csvfile.COLUMNS, *csvfile.SEARCH_COLUMNS}
    assert sum(map(len, named)) == len(frozenset().union(*named))


def test_frames_have_all_rows_and_what_is_unknown_is_missing() -> None:
    report = reports.doubtful()
    rows = rows_of(report)
    frame, other = tables.pandas_frame(report), tables.polars_frame(report)
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert len(frame) == len(other) == len(rows)
    unknown = [row.get("value") is None for row in rows]
    assert frame["value"].isna().tolist() == other["value"].is_null().to_list() == unknown
    assert {True, False} == set(unknown)


@pytest.mark.parametrize(
    ("package", "made", "asked"),
    [
        ("pyarrow", tables.arrow_table, "to_arrow()"),
        ("pandas", tables.pandas_frame, "to_pandas()"),
        ("polars", tables.polars_frame, "to_polars()"),
        ("pyarrow.parquet", tables.parquet, "a file of Parquet"),
    ],
)
def test_what_is_not_installed_is_named(
    package: str, made: Callable[[AnyReport], object], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as refused:
        made(reports.healthy())
    assert refused.value.message == f"{asked} needs the package {package.partition('.')[0]}, which is not installed"
    assert "redline[data]" in str(refused.value.hint)


def test_what_is_no_unicode_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "rows", lambda _: iter([{"run": "odd \udcff name"}]))
    assert tables.arrow_table(reports.healthy())["run"].to_pylist() == ["odd ? name"]
