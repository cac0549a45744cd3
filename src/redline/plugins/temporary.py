"""Folders for the time of one task, which go with it; those of labs that were killed go with the next task."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_GUARD = ".lock"


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """An empty folder in `parent`, removed when the block is left. Raises OSError when it cannot be made.

    The folder's name begins with the lab's process id, for people to read. What tells that it is in use is a lock on
    the folder, which the kernel lets go however its holder ends: an id may be another process's by then, and means
    nothing to a lab in another PID namespace.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with _guarded(parent):
        _sweep(parent)
        folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


@contextmanager
def _guarded(parent: Path) -> Iterator[None]:
    """Between making a folder and locking it, nobody may take it for a dead lab's."""
    with (parent / _GUARD).open("wb") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def _sweep(parent: Path) -> None:
    for folder in parent.iterdir():
        if folder.name == _GUARD:
            continue
        with suppress(OSError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
