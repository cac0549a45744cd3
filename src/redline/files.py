"""Atomic writes, files named by other files, lock files, and advice on errors of the file system."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from redline.errors import StoreError, TakenError, UsageError
from redline.wording import part


def is_folder(path: Path) -> bool:
    """Whether a folder exists; false where access is denied, for which Path.is_dir raises."""
    return os.path.isdir(path)  # noqa: PTH112


def cache_in(holder: Path) -> Path:
    """Return the cache of the catalogue in a folder."""
    return holder / ".cache"


def user_cache() -> Path:
    """The user's cache, `$XDG_CACHE_HOME/redline` or `~/.cache/redline`. Raises UsageError where there is no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redline"
    except RuntimeError:
        hint = "set XDG_CACHE_HOME to a folder that can be written"
        raise UsageError("this user has no home, and so no cache", hint=hint) from None


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file atomically: readers see either the old or the new content. Raises OSError."""
    write_pieces_atomically(file, (content,))


def write_pieces_atomically(file: Path, pieces: Iterable[bytes]) -> None:
    """The same with pieces that are made one by one, and never in memory together."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        scratch.unlink(missing_ok=True)
        with scratch.open("xb") as out:  # never through a link that somebody else created
            out.writelines(pieces)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(file)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def open_within(folder: Path, name: str) -> BinaryIO:
    """Open a file that another file names, for reading. Raises UsageError if it is outside of the other file's folder.

    The author of the other file must not read the rest of the disk, nor learn whether a file exists there. Links are
    followed. The file is held by a descriptor without effect on it before it is checked (opening a device may have an
    effect), and the held file is read, so no link can be changed in between.
    """
    inner = folder.resolve()
    try:
        held = os.open(folder / name, os.O_PATH)
    except (OSError, ValueError):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # the caller reports a missing file
            _check_within(inner, (folder / name).resolve(), name)
        raise
    try:
        itself = Path(f"/proc/self/fd/{held}")
        _check_within(inner, itself.readlink(), name)
        return _opened(itself, folder / name)
    finally:
        os.close(held)


def open_beneath(folder: Path, names: Sequence[str]) -> BinaryIO:
    """Open a regular file below a folder by the names of the way to it, none of which may be a link. Raises OSError.

    Hidden names, `..` and names with a slash are refused: the way cannot leave the folder, whatever is changed on it
    meanwhile.
    """
    if not names or any(name.startswith(".") or not name or {"/", "\0"} & {*name} for name in names):
        raise OSError(errno.ENOENT, "there is no such file", "/".join(names))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names[:-1]:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            os.close(held)
            held = inner
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(names[-1], flags, dir_fd=held)
    finally:
        os.close(held)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.ENOENT, "it is not a regular file", "/".join(names))
    return os.fdopen(file, "rb")


def _check_within(folder: Path, target: Path, name: str) -> None:
    if not target.is_relative_to(folder):
        message = f"{name} leads out of the folder of the file that names it"
        raise UsageError(message, hint=f"copy the file into that folder, {folder}: links are followed")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises UsageError for a device or a pipe, which may never end, and OSError."""
    return _opened(path, path)


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file of at most so many bytes. Raises OSError, also for anything else.

    A pipe or a device may never end, and opening a pipe waits until somebody writes.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = None
        if state.st_size <= most_bytes:
            content = file.read(state.st_size + 1)  # as many bytes as are read for are allocated
            if len(content) > state.st_size:  # it grew, or says no size, as those of /proc
                content += file.read(most_bytes + 1 - len(content))
    if content is None or len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is longer than {most_bytes >> 20} MiB", str(path))
    return content


def _opened(path: Path, called: Path) -> BinaryIO:
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - a Path has no opener; the caller closes
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UsageError(f"{called} is not a regular file", hint="save its content to a file, and name that")
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def open_anew(path: Path) -> FileIO:
    """Open a file for writing, truncated and unbuffered, so that errors appear at once. Raises OSError.

    A link is refused, and a pipe without a reader.
    """
    if path.is_symlink():  # for the message; the flag is what refuses
        raise OSError(errno.ELOOP, f"{path.name} is a link, through which Redline does not write", str(path))
    return open(path, "wb", buffering=0, opener=_through_no_link)


def _through_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def open_lock(file: Path) -> int:
    """Open a lock file, and make it if it does not exist. Returns its descriptor. Raises OSError.

    Its content, if any, stays, and a link or a pipe is refused.
    """
    if file.is_symlink():  # for the message; the flag is what refuses
        raise OSError(errno.ELOOP, f"{file.name} is a link, which Redline does not lock", str(file))
    held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(held).st_mode):
        os.close(held)
        raise OSError(errno.EINVAL, f"{file.name} is not a file that Redline can lock", str(file))
    return held


@contextlib.contextmanager
def as_store_error(path: Path, *, begun: bool = True) -> Iterator[None]:
    """Turn an OSError about a file of a run into a StoreError with advice.

    `begun` says whether there is a run to resume, whose place is known.
    """
    try:
        yield
    except FileNotFoundError as error:
        if begun or path.parent.exists():
            raise StoreError(f"{path}: {error.strerror or error}", hint=_advice(error, begun=begun)) from error
        raise TakenError(f"{path}: there is no folder {path.parent}", hint="make it first") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}", hint=_advice(error, begun=begun)) from error


def _advice(error: OSError, *, begun: bool) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            goes_on = "; what was measured is kept, and --resume goes on unless it is a load"
            return f"the disk is full: make room{goes_on if begun else ', and begin again'}"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            other = f"choose another with {part('keep', 'DIR')}"
            return f"this place cannot be written: {'make it writable, and try again' if begun else other}"
        case errno.ENOTDIR | errno.EEXIST:
            return f"a file stands where a directory is needed: choose another place with {part('keep', 'DIR')}"
        case errno.ENAMETOOLONG:
            return "the name is too long for this file system: leave --slug full out, or choose shorter names"
        case _:
            return "check the path and the disk"


def mend(error: OSError) -> str:
    """A hint for a folder that cannot be written, by the error's reason."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk is full: make room"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return "make that folder writable"
        case errno.ENOTDIR | errno.EEXIST:
            return "a file stands where a folder is needed: move it away"
        case _:
            return "see what is there"
