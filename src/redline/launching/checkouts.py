"""Compare two checkouts byte for byte, with whatever their builds left there."""

import filecmp
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_FILES, MOST_BYTES = 200_000, 4 << 30
"""A larger checkout takes longer to compare than to say so is worth."""
_GIT = ".git"


@dataclass(frozen=True)
class Differences:
    """How many files two checkouts have together, and those that are not in both with the same bytes, by their paths.

    `listings` are folders whose names differ.
    """

    files: int
    differing: tuple[str, ...]
    listings: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    """What a path is: its mode, its size, and where a link leads. Only regular files, folders and links compare."""

    mode: int
    size: int
    target: str

    @property
    def is_plain(self) -> bool:
        return stat.S_ISREG(self.mode) or stat.S_ISDIR(self.mode) or stat.S_ISLNK(self.mode)


def differences(first: Path, second: Path) -> Differences | None:
    """Return how two checkouts differ, apart from what belongs to git; None if they are too large, or unreadable."""
    try:
        ours, theirs = _entries(first), _entries(second)
        if ours is None or theirs is None:
            return None
        both = sorted({*ours, *theirs})
        differing = [path for path in both if not _alike(path, ours.get(path), theirs.get(path), (first, second))]
    except OSError:
        return None
    only_one = {os.path.dirname(path) for path in both if (path in ours) != (path in theirs)}  # noqa: PTH120 - texts
    listings = tuple(sorted(folder for folder in only_one if not folder or (folder in ours and folder in theirs)))
    return Differences(len(both), tuple(differing), listings)


def _entries(root: Path) -> dict[str, _Entry] | None:
    """What is in a folder, by its path there; None if it is too much."""
    found, size = dict[str, _Entry](), 0
    for path, entry in _walk(root, ""):
        found[path], size = entry, size + entry.size
        if len(found) > MOST_FILES or size > MOST_BYTES:
            return None
    return found


def _walk(root: Path, below: str) -> Iterator[tuple[str, _Entry]]:
    with os.scandir(root / below) as scanned:
        listed = list(scanned)
    for one in listed:
        if one.name == _GIT:
            continue
        path, seen = os.path.join(below, one.name), one.stat(follow_symlinks=False)  # noqa: PTH118 - texts are faster
        is_folder, is_link = stat.S_ISDIR(seen.st_mode), stat.S_ISLNK(seen.st_mode)
        target = os.readlink(one.path) if is_link else ""  # noqa: PTH115 - texts
        plain = stat.S_ISREG(seen.st_mode)
        yield path, _Entry(seen.st_mode, seen.st_size if plain else 0, target)
        if is_folder:
            yield from _walk(root, path)


def _alike(path: str, ours: _Entry | None, theirs: _Entry | None, roots: tuple[Path, Path]) -> bool:
    if ours is None or theirs is None or not ours.is_plain:
        return False
    if (ours.mode, ours.size, ours.target) != (theirs.mode, theirs.size, theirs.target):
        return False
    return not stat.S_ISREG(ours.mode) or filecmp.cmp(roots[0] / path, roots[1] / path, shallow=False)
