"""Builds where the cache cannot be written, or the disk is full: reported as such."""

import errno
import os
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching import builds, revisions
from tests.fakes.servers.families import Family, build


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


def test_a_cache_that_cannot_be_written(family: Family) -> None:
    (family.root / "cache").write_text("a file")
    with pytest.raises(BuildError, match="cannot be written"):
        build(family, family.entry())


@pytest.mark.parametrize("blocked", ["logs", "locks"])
def test_a_part_of_the_cache_that_cannot_be_written(family: Family, blocked: str) -> None:
    (family.root / "cache/builds").mkdir(parents=True)
    (family.root / "cache/builds" / blocked).write_text("a file in the way")
    with pytest.raises(BuildError, match=r"cache .* cannot be written"):
        build(family, family.entry())


def test_a_stamp_that_cannot_be_written(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(builds, "write_atomically", full)
    with pytest.raises(BuildError, match="No space left on device") as caught:
        build(family, family.entry())
    assert "the disk is full" in caught.value.hint


def test_a_disk_that_is_full_of_the_builds_output_is_not_called_a_missing_command(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "open_anew", lambda _log: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115
    with pytest.raises(BuildError, match="No space left on device") as caught:
        build(family, family.entry())
    assert "could not be run" not in str(caught.value)
    assert "the disk is full" in caught.value.hint


def test_a_log_is_not_written_through_a_link_nor_into_a_pipe(family: Family) -> None:
    logs = family.root / "cache/builds/logs"
    logs.mkdir(parents=True)
    precious, log = family.root / "precious", logs / "fake.one.log"
    precious.write_text("as it was")
    log.symlink_to(precious)
    with pytest.raises(BuildError, match=r"fake\.one\.log is a link"):
        build(family, family.entry())
    with pytest.raises(OSError, match=r"fake\.one\.log is a link"):
        revisions.build("echo hello", family.folder, "HEAD", log, lambda _building: None)
    log.unlink()
    os.mkfifo(log)  # nobody reads it
    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        revisions.build("echo hello", family.folder, "HEAD", log, lambda _building: None)
    assert precious.read_text() == "as it was"
    assert family.times_built == 0
