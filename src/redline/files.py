"""Files that are whole or not there, and what a file system refuses, as an error with advice."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from redline.errors import StoreError


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file: a reader sees the old content or the new, whatever happens. Raises OSError."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(file)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def as_store_error(path: Path) -> Iterator[None]:
    """Turn what the file system refuses for a file of a run into a StoreError with advice."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}", hint=_advice(error)) from error


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full: make room, then resume with --resume; what was measured is kept"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return "this place cannot be written: choose another with -o DIR"
        case errno.ENOTDIR | errno.EEXIST:
            return "a file stands where a directory is needed: choose another place with -o DIR"
        case _:
            return "check the path and the disk"
