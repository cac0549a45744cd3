"""Control groups with a quota of CPU time, for tests in which a quota runs out."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextmanager
def group_with_a_quota(share: float) -> Iterator[Path]:
    """A group whose processes may use this much of a core, and must end before it does; or the test is skipped."""
    group = (V1.resolve() if V1.is_dir() else V2) / f"redline-test-{os.getpid()}"
    quota_us = round(share * PERIOD_US)
    try:
        group.mkdir()
        if V1.is_dir():
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    except OSError:
        if group.is_dir():
            group.rmdir()
        pytest.skip("no control group with a quota may be made here")
    try:
        yield group
    finally:
        group.rmdir()
