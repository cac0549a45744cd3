"""The catalogue and the suites that are installed with Redline, and their copy in the user's cache.

Nothing is built in the installed package. The copy is named after its content: a new version of Redline gets a
new copy, and all folders share the servers built in it.
"""

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from redline.errors import UsageError
from redline.files import is_folder, mend, user_cache

_INSTALLED = Path(__file__).resolve().parents[1] / "shipped"
COPIES = "catalogues"
"""The folder of copies in the user's cache."""
UNFINISHED = ".new-"
"""The prefix of a copy's name until it is complete."""


def is_shipped() -> bool:
    """Whether this Redline was installed with a catalogue, as from its wheel."""
    return (_INSTALLED / "catalogue").is_dir()


@cache
def shipped_project() -> Path:
    """Return the copy of the installed `catalogue/` and `suites/`, made at its first use. Raises UsageError."""
    copy = user_cache() / COPIES / shipped_digest()
    if is_folder(copy):
        return copy
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=copy.parent, prefix=UNFINISHED) as scratch:
            made = Path(shutil.copytree(_INSTALLED, Path(scratch) / "copy", copy_function=_copy_writable))
            for folder, _, _ in os.walk(made):
                Path(folder).chmod(0o755)  # the installed folders may be read-only
            if not is_folder(copy):  # else another process was faster
                made.rename(copy)
    except OSError as error:
        if is_folder(copy):
            return copy
        hint = f"{mend(error)}, or set XDG_CACHE_HOME to another folder"
        raise UsageError(f"the catalogue cannot be copied to {copy}: {error.strerror}", hint=hint) from error
    return copy


def _copy_writable(source: str, target: str) -> None:
    """Copy a file and its execute permission. The installed file may be read-only; the copy is the user's."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def shipped_digest() -> str:
    """Return 12 hex digits of a hash of the names and bytes of all installed files: the name of the copy."""
    folder = _INSTALLED
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(folder)}\0".encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:12]
