"""Measurements on a machine know of each other; what others write there is only shown."""

import fcntl
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from redline.watching import measurements as module
from redline.watching.measurements import NAMED_BY, Measurement, Measurements, State, measurements
from tests.fakes.measuring import holding, named


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the machine's measurements."""
    monkeypatch.setenv(NAMED_BY, str(tmp_path / "shared"))
    known = measurements()
    assert known is not None
    return known.folder


def test_two_processes_know_of_each_other(folder: Path) -> None:
    known = Measurements(folder)
    with holding(folder, "redline limit", "measuring") as process:
        (other,) = known.others()
        assert (other.command, other.pid, other.state) == ("redline limit", process.pid, "measuring")
        assert str(other).startswith(f"redline limit (pid {process.pid}, of {other.user}, since ")
    assert known.others() == ()
    assert list(folder.iterdir()) == []


def test_a_killed_process_leaves_nothing_that_counts(folder: Path) -> None:
    known = Measurements(folder)
    with holding(folder, "redline run", "alone") as process:
        process.kill()
        process.wait()
        assert len(list(folder.iterdir())) == 1
        assert known.others() == ()
        assert list(folder.iterdir()) == []


def test_a_measurement_is_no_other_of_its_own_process(folder: Path) -> None:
    known = measurements()
    assert known is not None
    with known.entered("redline.ab", "measuring") as entry, known.entered("redline.load", "measuring"):
        assert known.others() == ()
        assert named(known.others(than=entry)) == [("redline.load", "measuring")], "two threads"


@pytest.mark.parametrize(
    ("content", "shown", "pid"),
    [
        (b"", "a measurement", None),
        (b"[1]", "a measurement", None),
        (b"[" * 1_000, "a measurement", None),
        (b'{"command": 1, "pid": true}', "a measurement", None),
        (b'{"command": "", "pid": -1}', "a measurement", None),
        (json.dumps({"command": "a\x1b[2J\n\nb", "pid": 7}).encode(), "a\\u001b[2J b", 7),
        (json.dumps({"command": "x" * 500, "pid": 2**40}).encode(), "x" * 80, None),
        (json.dumps({"command": "x" * 5_000, "pid": 1}).encode(), "a measurement", None),
    ],
)
def test_what_another_user_writes_is_only_shown(folder: Path, content: bytes, shown: str, pid: int | None) -> None:
    file = folder / f"{'a' * 16}.measuring"
    file.write_bytes(content)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (other,) = Measurements(folder).others()
        assert (other.command, other.pid) == (shown, pid)


def test_what_is_no_file_of_a_measurement_is_passed_over(folder: Path, tmp_path: Path) -> None:
    """Links lead elsewhere, a pipe would make its reader wait, and nobody holds the last."""
    (tmp_path / "secret").write_text("{}")
    (folder / f"{'a' * 16}.alone").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / f"{'b' * 16}.alone")
    (folder / f"{'c' * 16}.alone").mkdir()
    (folder / "notes.alone").write_text("{}")
    assert Measurements(folder).others() == ()
    assert (tmp_path / "secret").exists()


def test_few_of_many_files_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    for number in range(5):
        (folder / f"{number}").touch()
    read: list[str] = []
    monkeypatch.setattr(module.os, "open", lambda *_: read.append("opened"))
    assert Measurements(folder).others() == ()
    assert read == []


def test_the_directory_is_for_all_users_and_nobody_removes_what_is_another_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first place that is shared, and in it no directory that one user has made for himself."""
    monkeypatch.delenv(NAMED_BY, raising=False)
    private, first, second = (tmp_path / name for name in ("private", "first", "second"))
    for parent in (private, first, second):
        parent.mkdir()
    first.chmod(0o1777)
    second.chmod(0o1777)
    monkeypatch.setattr(module, "_PARENTS", (private, first, second))
    known = measurements()
    assert known is not None
    assert known.folder.parent == first
    assert known.folder.stat().st_mode & 0o7777 == 0o1777
    known.folder.chmod(0o755)
    known = measurements()
    assert known is not None
    assert known.folder.parent == second
    monkeypatch.setattr(module, "_PARENTS", (private,))
    assert measurements() is None


def measurement(state: State = "measuring", pid: int | None = 12) -> Measurement:
    return Measurement("a", state, "redline ab", pid, "anna", 5)


def test_a_measurement_is_named_with_what_is_known_of_it() -> None:
    assert str(measurement()).startswith("redline ab (pid 12, of anna, since ")
    assert str(measurement("alone")).endswith(", alone)")
    assert "alone" not in str(measurement())
    assert str(measurement(pid=None)).startswith("redline ab (of anna, since ")
    assert measurement().turn == (5, "a")
    assert measurement("waiting").is_waiting
    assert not measurement().is_waiting


def test_what_began_first_comes_first(folder: Path) -> None:
    known = Measurements(folder)
    with known.entered("second", "waiting") as second, known.entered("first", "measuring") as first:
        os.utime(first.file, ns=(1, 1_000))
        os.utime(second.file, ns=(1, 2_000))
        known.own.clear()
        others = known.others()
        assert named(others) == [("first", "measuring"), ("second", "waiting")]
        assert [other.since_unix_ns for other in others] == [1_000, 2_000]
        assert (first.turn[0], second.turn[0]) == (1_000, 2_000)


def test_a_measurement_that_becomes_another_state_is_seen_once(folder: Path) -> None:
    known = Measurements(folder)
    with known.entered("redline ab", "waiting") as own:
        assert own.file.name == f"{own.token}.waiting"
        own.become("alone")
        known.own.clear()
        assert named(known.others()) == [("redline ab", "alone")]
        assert own.file.stat().st_mode & 0o777 == 0o644
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("pid", "shown"), [(0, None), (1, 1), (2**31 - 1, 2**31 - 1), (2**31, None), (True, None), ("7", None)]
)
def test_only_a_number_that_a_process_may_have_is_its_id(pid: object, shown: int | None) -> None:
    assert module._parse_measurement(json.dumps({"command": "x", "pid": pid}).encode()) == ("x", shown)


def test_a_user_without_a_name_is_a_number() -> None:
    assert module._user(2**31 - 5) == f"user {2**31 - 5}"


def test_a_directory_that_becomes_shared_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[float] = []

    def shared_at_the_second_look(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == 2:
            tmp_path.chmod(0o1777)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=shared_at_the_second_look))
    tmp_path.chmod(0o755)
    assert module._is_shared(tmp_path)
    assert len(looked) == 2
    tmp_path.chmod(0o755)
    looked.extend([0.0] * 5)
    assert not module._is_shared(tmp_path)
    (tmp_path / "file").touch()
    assert not module._is_shared(tmp_path / "file")
    assert not module._is_shared(tmp_path / "missing")
