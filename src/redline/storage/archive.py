"""Find the runs below a directory, and report its other content."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redline.errors import StoreError, UsageError
from redline.files import as_store_error
from redline.model.history import LeftOut
from redline.storage.runs import BISECTION, RunStore, capacity_store


@dataclass(frozen=True)
class Archive:
    """Runs by name, runs that are left out, and `foreign` directories, which contain no run."""

    runs: tuple[RunStore, ...]
    left_out: tuple[LeftOut, ...]
    foreign: tuple[str, ...]


def open_archive(folder: Path) -> Archive:
    """All runs at or below the folder. A directory within a run, such as its capacity, is a part of that run.

    Links and hidden directories are not followed. Raises UsageError if there is no such directory.
    """
    if not folder.is_dir():
        what = f"{folder} is not a directory" if folder.exists() else f"there is no directory {folder}"
        raise UsageError(what, hint="name the directory with the runs, such as runs/")
    with as_store_error(folder):
        entries, foreign = list(_at(folder)), []
        children = [] if entries else _followed(folder)
    for child in children:
        below = list(_within(child))
        entries += below
        foreign += [] if below else [child.name]
    return Archive(
        tuple(entry for entry in entries if isinstance(entry, RunStore)),
        tuple(entry for entry in entries if isinstance(entry, LeftOut)),
        tuple(foreign),
    )


def stores_below(folder: Path) -> Iterator[RunStore]:
    """All directories of any kind at or below the folder, by name, also those of which only a capacity is measured.

    As `open_archive` it follows no links and no hidden directories. What cannot be read, or is not there, is empty.
    """
    waiting = [folder]
    while waiting:
        store = RunStore(waiting.pop())
        if store.exists or capacity_store(store.folder).exists:
            yield store
            continue
        with suppress(OSError):
            waiting += reversed(_children(store.folder))


def left_out(folder: Path, reason: str, store: RunStore, *, going: bool = False) -> LeftOut:
    """A run that is left out, described by its manifest if that is readable."""
    try:
        manifest = store.manifest()
    except StoreError:
        return LeftOut(folder=str(folder), reason=reason, going=going)
    suite = manifest.plan.suite.name
    began = manifest.created_unix_ns
    return LeftOut(folder=str(folder), reason=reason, suite=suite, started_unix_ns=began, going=going)


def _within(folder: Path) -> Iterator[RunStore | LeftOut]:
    try:
        here = list(_at(folder))
        children = [] if here else _followed(folder)
    except OSError as error:
        yield LeftOut(folder=str(folder), reason=error.strerror or str(error))
        return
    yield from here
    for child in children:
        yield from _within(child)


def _at(folder: Path) -> Iterator[RunStore | LeftOut]:
    """The run in this folder itself, or why it is left out: it is still being measured, or was interrupted."""
    whole, capacity = RunStore(folder), RunStore(folder / "capacity")
    if whole.kind == "search":
        return  # a history has no limits
    if whole.exists and not whole.is_being_written:
        yield whole
    elif whole.exists or capacity.exists:
        store = whole if whole.exists else capacity
        going = whole.is_being_written or capacity.is_being_written
        reason = "is still being measured" if going else "has been measured no further than its capacity"
        yield left_out(folder, reason, store, going=going)


def _followed(folder: Path) -> list[Path]:
    """The directories in it that a history looks into: not those of a bisection, whose steps are no runs in time."""
    return [] if _is_bisection(folder) else [child for child in _children(folder) if not _is_bisection(child)]


def _is_bisection(folder: Path) -> bool:
    try:
        return (folder / BISECTION).is_file() or any((folder / "steps").glob("0001-*"))
    except PermissionError:
        return False  # who looks into it says so


def _children(folder: Path) -> list[Path]:
    return sorted(
        child for child in folder.iterdir() if child.is_dir() and not child.is_symlink() and child.name[0] != "."
    )
