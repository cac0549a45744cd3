"""Temporary folders, removed with their task; those of killed labs are removed by the next task."""

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from redline.files import open_lock
from redline.launching.commands import locked

_GUARD = ".lock"
_LOCK = ".lock"
# The names that mkstemp makes of the prefix and the suffix below. Other files belong to somebody else.
_OURS = re.compile(rf"redline-\d+-[a-z0-9_]{{8}}{re.escape(_LOCK)}")


def elsewhere() -> str:
    """A hint how to choose another folder for temporary files."""
    named = os.environ.get("TMPDIR")
    return f"TMPDIR names {named}: let it name another folder" if named else "TMPDIR=DIR names another folder"


def private_folder(name: str) -> Path:
    """Return `redline-NAME-UID` in the temporary folder. Raises OSError, with advice, unless it is only this user's.

    Names in it are predictable, so whoever can replace it could change what is built and started there.
    """
    folder = Path(tempfile.gettempdir()).resolve() / f"redline-{name}-{os.geteuid()}"
    for above in folder.parents:
        if (who := _who_can_replace(above.stat())) is not None:
            raise PermissionError(
                errno.EPERM, f"{who} can replace what is in {above}; {elsewhere()}, where only you can"
            )
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{folder} is no folder of this user's")
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(opened, 0o700)  # an older lab let others look into it
    finally:
        os.close(opened)
    return folder


def _who_can_replace(folder: os.stat_result) -> str | None:
    """Return who else can replace entries of this folder; None if only this user and root can.

    A group with the number of the folder's owner counts as that user's own: most systems give every user such a
    group, and let it write (umask 002).
    """
    if folder.st_uid not in (0, os.geteuid()):
        return f"user {folder.st_uid}"  # also where the sticky bit is set
    if folder.st_mode & stat.S_ISVTX:
        return None
    if folder.st_mode & stat.S_IWOTH:
        return "everybody"
    return f"group {folder.st_gid}" if folder.st_mode & stat.S_IWGRP and folder.st_gid != folder.st_uid else None


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in `parent`, removed when the block ends. Raises OSError if it cannot be made.

    It is in use while the file next to it is locked: the kernel releases locks however their holders end. The
    process id in its name is for people. Not every file system can lock a folder (NFS).
    """
    parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with guarded(parent):
            _sweep(parent)
            folder = stack.enter_context(_locked_folder(parent))
        yield folder


@contextmanager
def guarded(parent: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no other lab removes a new folder before it is locked."""
    with locked(open_lock(parent / _GUARD)):
        yield


@contextmanager
def _locked_folder(parent: Path) -> Iterator[Path]:
    held, name = tempfile.mkstemp(prefix=f"redline-{os.getpid()}-", suffix=_LOCK, dir=parent)
    lock = Path(name)
    folder = lock.with_suffix("")
    try:
        with locked(held):
            try:
                folder.mkdir(mode=0o700)
                yield folder
            finally:
                _remove(folder, lock)
    finally:
        _remove(folder, lock)  # where it could not be locked


def _sweep(parent: Path) -> None:
    for lock in parent.iterdir():
        if not _OURS.fullmatch(lock.name):
            continue
        with suppress(OSError):
            held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder, status = lock.with_suffix(""), os.fstat(held)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
                if ours and os.path.lexists(folder):
                    there = folder.lstat()
                    ours = stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid()
                if ours:
                    _remove(folder, lock)
            finally:
                os.close(held)


def _remove(folder: Path, lock: Path) -> None:
    """Remove a folder, and then its lock: if anything is left, the next sweep tries again."""
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        lock.unlink(missing_ok=True)
