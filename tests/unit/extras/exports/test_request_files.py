"""Single requests as files, and read again."""

import sys
from pathlib import Path

import numpy as np
import pytest

from redline import read_requests
from redline.cli.commands.load import RequestLog
from redline.errors import StoreError, UsageError
from redline.extras.exports.request_files import request_table, request_writer

COLUMNS = {
    "due_unix_ns": np.ma.masked_where([False, False], np.array([1_700_000_000_000_000_001, 2])),
    "written_unix_ns": np.ma.masked_where([False, True], np.array([3, -1])),
    "request": np.array(["GET /a,b", 'say "x"'], dtype=object),
    "outcome": np.array(["ok", "timeout"], dtype=object),
    "status": np.ma.masked_where([False, True], np.array([200, 0])),
    "one_of": np.array([1, 1]),
}
ROWS = [
    {"due_unix_ns": 1_700_000_000_000_000_001, "written_unix_ns": 3, "request": "GET /a,b", "outcome": "ok"}
    | {"status": 200, "one_of": 1},
    {"due_unix_ns": 2, "written_unix_ns": None, "request": 'say "x"', "outcome": "timeout"}
    | {"status": None, "one_of": 1},
]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "A.CSV"])
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(request_writer(file)(COLUMNS))
    table = read_requests(file)
    assert table.to_pylist() == ROWS
    assert table.schema == request_table(file).schema
    assert str(table.schema.field("status").type) == "int64"


def test_the_csv_is_that_of_rfc_4180() -> None:
    first, second, third, last = request_writer(Path("x.csv"))(COLUMNS).decode().split("\r\n")
    assert first == ",".join(COLUMNS)
    assert second == '1700000000000000001,3,"GET /a,b",ok,200,1'
    assert third == '2,,"say ""x""",timeout,,1'
    assert last == ""


def test_what_cannot_be_written_is_refused_before_a_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"a log of requests is Parquet or CSV"):
        RequestLog.at(tmp_path / "x.json")
    with pytest.raises(UsageError, match="there is no folder"):
        RequestLog.at(tmp_path / "none/x.csv")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(UsageError, match="it cannot be written"):
        RequestLog.at(tmp_path / "dir.csv")
    with pytest.raises(StoreError, match="No such file"):
        read_requests(tmp_path / "none.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert RequestLog.at(tmp_path / "x.csv")
    with pytest.raises(UsageError, match="needs the package pyarrow") as refused:
        RequestLog.at(tmp_path / "x.parquet")
    assert "pip install 'redline[data]'" in refused.value.hint


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_holds_no_requests_is_refused(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"requests.{ending}"
    with pytest.raises(StoreError, match="No such file"):
        read_requests(file)
    for content in (b"", b"\xff\xfe,b\n1,2,3\n"):
        file.write_bytes(content)
        with pytest.raises(StoreError, match="holds no log of requests"):
            read_requests(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        read_requests(file)
