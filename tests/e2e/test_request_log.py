"""`load --log`: every request of a measurement, whose numbers are those of the result; or a sample of them."""

from collections import Counter
from pathlib import Path

import pytest

from redline import load, read_requests
from redline.driving import protocol
from tests.e2e.conftest import Done, Redline

pytestmark = pytest.mark.e2e


def outcomes(done: Done) -> dict[str, int]:
    """How many requests ended in each outcome, by the result."""
    return {name: count for name, count in done.json["counts"]["outcomes"].items() if count}


def test_the_rows_are_the_requests_of_the_result(redline: Redline, tmp_path: Path, oracle: Path) -> None:
    command = f"{oracle} fixed --delay 5ms --port {{port}}"
    for form in ("csv", "parquet"):
        log = tmp_path / f"requests.{form}"
        rate = ("-R", "400", "--arrivals", "uniform", "-d", "1s", "-c", "8", "-t", "2")
        done = redline("load", command, *rate, "--log", log, "--json").measured()
        rows = read_requests(log).to_pylist()
        assert Counter(row["outcome"] for row in rows) == outcomes(done)
        assert len(rows) == 400
        assert {row["status"] for row in rows} == {200}
        assert len({row["seq"] for row in rows}) == len(rows)
        assert [row["due_unix_ns"] for row in rows] == sorted(row["due_unix_ns"] for row in rows)
        for row in rows:
            assert row["due_unix_ns"] <= row["written_unix_ns"] < row["first_byte_unix_ns"] <= row["end_unix_ns"]
            assert row["end_unix_ns"] - row["written_unix_ns"] >= 5_000_000
        times = [percentile["ns"] for percentile in done.json["response"]]
        assert times or done.json.get("bounds"), "a busy machine leaves times open, and says so"
        longest = max(row["end_unix_ns"] - row["due_unix_ns"] for row in rows)
        assert not times or longest == pytest.approx(max(times), rel=0.002)


def test_of_very_many_requests_a_sample_is_kept(
    tmp_path: Path, oracle: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(protocol, "MOST_ROWS", 100)
    log = tmp_path / "some.csv"
    command = f"{oracle} fixed --delay 1ms --port {{port}}"
    result = load(command, rate=1000, arrivals="uniform", duration="1s", log=log, progress=True)
    rows = read_requests(log).to_pylist()
    (one_of,) = {row["one_of"] for row in rows}
    assert one_of >= 8
    assert 0 < len(rows) <= 100
    assert f"has {len(rows)} of 1,000 requests: one in {one_of}" in capfd.readouterr().err
    assert result.errors == 0


def test_a_request_that_was_never_written_has_no_times(redline: Redline, tmp_path: Path, oracle: Path) -> None:
    log = tmp_path / "requests.csv"
    command = f"{oracle} fixed --delay 600ms --port {{port}}"
    rate = ("-R", "10", "--arrivals", "uniform", "-d", "1s", "-c", "1", "--warmup", "0s")
    done = redline("load", command, *rate, "--timeout", "300ms", "--log", log, "--json")
    rows = read_requests(log).to_pylist()
    assert len(rows) == 10
    unsent = [row for row in rows if row["written_unix_ns"] is None]
    assert unsent
    assert all(row["seq"] is row["first_byte_unix_ns"] is row["status"] is None for row in unsent)
    assert Counter(row["outcome"] for row in rows) == outcomes(done)
    assert "ok" not in outcomes(done)
