"""The contents of the user's cache."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from redline.asking.shipped import COPIES
from redline.errors import StoreError
from redline.files import mend


class CachedItem(NamedTuple):
    """A file or folder of the cache, with its size in bytes."""

    path: Path
    size: int


def kept(cache: Path) -> tuple[CachedItem, ...]:
    """List the cache by name; copies of the catalogue are listed singly. Empty if there is no cache.

    Raises StoreError where it cannot be read.
    """
    try:
        return tuple(CachedItem(path, _size(path)) for path in sorted(_entries(cache)))
    except OSError as error:
        raise StoreError(f"{error.filename or cache} cannot be read: {error.strerror}", hint=mend(error)) from error


def _entries(cache: Path) -> Iterator[Path]:
    for path in cache.iterdir() if cache.is_dir() else ():
        if path.name == COPIES and path.is_dir():
            yield from path.iterdir()
        else:
            yield path


def _size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; files that vanish meanwhile count as 0."""
    if not path.is_dir() or path.is_symlink():
        return _own_size(path)
    return sum(_own_size(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _own_size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
