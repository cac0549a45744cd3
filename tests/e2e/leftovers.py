"""What a running command has written so far, and what it leaves behind: processes and temporary files."""

import contextlib
import time
from pathlib import Path

from tests.e2e.conftest import Redline


def exists_below(folder: Path, name: str) -> bool:
    """Whether a file or folder matches this glob somewhere in this folder, which may change meanwhile."""
    try:
        return any(folder.rglob(name))
    except FileNotFoundError:
        return False


def wait_for_the_second_start(folder: Path) -> None:
    """Wait until the first start of a duet has been measured: every start has a folder for its logs in this folder."""
    deadline = time.monotonic() + 120
    while not exists_below(folder, "0001-*"):
        assert time.monotonic() < deadline, "no second start"
        time.sleep(0.1)


def left_of(redline: Redline) -> list[str]:
    """The processes that use the folder for temporary files given to this `redline` alone, and the folder's content."""
    mark = f"TMPDIR={redline.environment['TMPDIR']}".encode()
    alive = []
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            alive += [str(process.parent)] if mark in process.read_bytes().split(b"\0") else []
    kept = [file for file in Path(redline.environment["TMPDIR"]).rglob("*") if file.name != ".lock"]
    return alive + [
        str(file)
        for file in kept
        if not file.name.startswith(("redline-scratch-", "redline-worktrees-", "redline-cache-"))
    ]
