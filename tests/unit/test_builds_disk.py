"""Builds where the cache cannot be written, or the disk is full: reported as what they are."""

import errno
import os
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.plugins.launchers import builds
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


def test_a_disk_that_is_full_of_the_builds_output_is_not_called_a_missing_command(family: Family) -> None:
    logs = family.root / "cache/builds/logs"
    logs.mkdir(parents=True)
    (logs / "fake.one.log").symlink_to("/dev/full")
    with pytest.raises(BuildError, match="No space left on device") as caught:
        build(family, family.entry())
    assert "could not be run" not in str(caught.value)
    assert "the disk is full" in caught.value.hint
