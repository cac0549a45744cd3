"""Stamps of builds: what differs between two programs or archives and changes nothing of what they do."""

import struct
import zipfile
from pathlib import Path

import pytest

from redline.launching.stamps import stamps

COMMITS = ("a" * 40, "b" * 40)


def program(code: bytes, build_id: bytes, debug: bytes) -> bytes:
    """A program with one loaded segment, a build ID in it, and debug information behind it."""
    note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + build_id
    loaded = 64 + 56 + len(note) + len(code)
    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHIQQQI", 2, 62, 1, 0, 64, loaded + len(debug), 0)
    head += struct.pack("<6H", 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, loaded, loaded, 4096)
    return head + segment + note + code + debug


def differing(tmp_path: Path, first: bytes, second: bytes) -> tuple[str, ...]:
    files = tmp_path / "one", tmp_path / "two"
    for file, content in zip(files, (first, second), strict=True):
        file.write_bytes(content)
    return stamps(files, (Path("/work/one"), Path("/work/two")), COMMITS)


def test_debug_information_and_the_build_id_of_a_program_are_stamps(tmp_path: Path) -> None:
    ours, theirs = (program(b"code", bytes([number]) * 20, b"debug" * number) for number in (1, 2))
    assert differing(tmp_path, ours, theirs) == ("a build ID",)
    longer = program(b"code", bytes([1]) * 20, b"other")
    assert differing(tmp_path, ours, longer) == ("what is not loaded",)
    assert not differing(tmp_path, ours, program(b"Code", bytes([1]) * 20, b"debug"))


def test_folders_commits_and_times_are_stamps_where_both_have_their_own(tmp_path: Path) -> None:
    ours = b"/work/one/main.go v0.0.0-20261130051601-" + b"a" * 12 + b" at 2026-11-30T05:16:01Z"
    theirs = b"/work/two/main.go v0.0.0-20261130061601-" + b"b" * 12 + b" at 2026-11-30T06:16:01Z"
    assert differing(tmp_path, ours, theirs) == ("the folder of the build", "the commit", "a time")
    assert not differing(tmp_path, theirs, ours)
    assert not differing(tmp_path, ours, theirs.replace(b"b" * 12, b"b" * 13)), "what is behind it lies elsewhere"


@pytest.mark.parametrize(("content", "same"), [(b"class", True), (b"Class", False)])
def test_an_archive_is_its_names_and_contents(tmp_path: Path, content: bytes, *, same: bool) -> None:
    files = tmp_path / "one.jar", tmp_path / "two.jar"
    for hour, (file, of) in enumerate(zip(files, (b"class", content), strict=True)):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(zipfile.ZipInfo("A.class", (2026, 11, 30, hour, 0, 0)), of)
    assert bool(stamps(files, (tmp_path, tmp_path), COMMITS)) is same


@pytest.mark.parametrize("cut", [10, 60, 100])
def test_a_damaged_program_is_no_reason_to_fail(tmp_path: Path, cut: int) -> None:
    ours, theirs = (program(b"code", bytes([number]) * 20, b"")[:cut] for number in (1, 2))
    assert not differing(tmp_path, ours + b"1", theirs + b"2")
