"""Files are read whole, and no longer than they may be, also where their size is not known before."""

from pathlib import Path

import pytest

from redline.files import read_regular

ABOUT_US = Path("/proc/self/status")
"""A regular file that says that it is empty."""


def test_a_file_is_read_whole_up_to_the_most_that_it_may_have(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"", b"x", b"x" * 20_000):
        file.write_bytes(content)
        assert read_regular(file, 20_000) == content
    with pytest.raises(OSError, match="it is longer than 0 MiB"):
        read_regular(file, 19_999)


def test_a_file_that_says_no_size_is_read_whole_and_bounded_as_well() -> None:
    assert ABOUT_US.stat().st_size == 0
    assert b"\nPid:\t" in read_regular(ABOUT_US, 1 << 20)
    with pytest.raises(OSError, match="it is longer than 0 MiB"):
        read_regular(ABOUT_US, 100)
