"""The log of single requests: what workers wrote, as one table."""

import struct
from pathlib import Path

import numpy as np
import pytest

from redline.driving.request_log import read_logged
from redline.errors import DriveError

EPOCH = 1_700_000_000_000_000_000


def row(due: int, rank: int, *, written: int = 5, first: int = 6, status: int = 200, outcome: int = 0) -> bytes:
    return struct.pack("<qqqqQIHBB", due, written, first, due + 9, due * 10, due % 2, status, outcome, rank)


def written(file: Path, level: int, ended: int, *rows: bytes) -> None:
    file.write_bytes(b"RLREQS1\n" + struct.pack("<QQ", level, ended) + b"".join(rows))


def test_requests_of_all_workers_stand_in_the_order_of_their_due_times(tmp_path: Path) -> None:
    written(tmp_path / "0.rows", 0, 2, row(1, 0), row(4, 3))
    written(tmp_path / "1.rows", 0, 2, row(2, 0), row(3, 1, written=-1, first=-1, status=0, outcome=9))
    logged = read_logged(tmp_path)
    columns = logged.columns(EPOCH, ("one", "other"))
    assert (logged.ended, logged.one_of) == (4, 1)
    assert columns["due_unix_ns"].tolist() == [EPOCH + due for due in (1, 2, 3, 4)]
    assert columns["written_unix_ns"].tolist() == [EPOCH + 5, EPOCH + 5, None, EPOCH + 5]
    assert columns["first_byte_unix_ns"].tolist()[2] is None
    assert columns["end_unix_ns"].tolist() == [EPOCH + due + 9 for due in (1, 2, 3, 4)]
    assert columns["request"].tolist() == ["other", "one", "other", "one"]
    assert columns["seq"].tolist() == [10, 20, None, 40]
    assert columns["outcome"].tolist() == ["ok", "ok", "timeout", "ok"]
    assert columns["status"].tolist() == [200, 200, None, 200]


def test_a_sample_has_the_highest_level_of_all_workers(tmp_path: Path) -> None:
    written(tmp_path / "0.rows", 0, 3, row(1, 0), row(2, 1), row(3, 2))
    written(tmp_path / "1.rows", 2, 9, row(4, 2), row(5, 7))
    logged = read_logged(tmp_path)
    assert logged.rows["due"].tolist() == [3, 4, 5]
    assert (logged.ended, logged.one_of) == (12, 4)
    assert logged.columns(0, ("a", "b"))["one_of"].tolist() == [4, 4, 4]


def test_a_load_without_workers_that_wrote_has_no_rows(tmp_path: Path) -> None:
    logged = read_logged(tmp_path)
    assert (len(logged.rows), logged.ended, logged.one_of) == (0, 0, 1)
    assert {len(column) for column in logged.columns(0, ("a",)).values()} == {0}
    assert isinstance(logged.columns(0, ("a",))["due_unix_ns"], np.ndarray)


@pytest.mark.parametrize("content", [b"", b"RLREQS2\n" + bytes(16), b"RLREQS1\n" + bytes(17)])
def test_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.rows").write_bytes(content)
    with pytest.raises(DriveError, match=r"0\.rows is no log of requests of this version"):
        read_logged(tmp_path)
