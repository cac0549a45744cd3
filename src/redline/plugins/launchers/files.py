"""Files of the build cache: what a build is made from, and writing whole or not at all."""

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redline.errors import BuildError
from redline.model import ServerEntry

_SETTLED_NS = 1_000_000_000
"""A file that was written less than this ago may be written again without its time telling."""


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


@contextmanager
def cache_writes(cache: Path, servers: str) -> Iterator[None]:
    """Turn what the file system refuses to the cache into a BuildError."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise BuildError(
            f"{servers} cannot be built: the cache {cache} cannot be written: {error.strerror}",
            hint="the disk is full: make room" if full else "make that folder writable",
        ) from error


def input_files(entry: ServerEntry, folder: Path) -> tuple[str, ...]:
    """The files that the globs of `inputs` match, as sorted names relative to the build folder.

    `src/**` means all files below src. Raises BuildError for a glob that matches nothing: a typo there would hide
    changes from the cache.
    """
    names: set[str] = set()
    for pattern in entry.build.inputs:
        whole = f"{pattern}/*" if pattern.endswith("**") else pattern
        found = {os.path.relpath(path, folder) for path in folder.glob(whole) if path.is_file()}
        if not found:
            raise BuildError(
                f"{entry.name}: `build.inputs` names {pattern!r}, and no file in {folder} matches it",
                hint="mend the glob in its server.yaml, or remove it",
            )
        names |= found
    return tuple(sorted(names))


class Contents:
    """The hashes of files, each read once however many builds are made from it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], str] = {}

    def of_build(self, entry: ServerEntry, folder: Path, versions: dict[str, str]) -> str:
        """16 hex digits over the build's command, the versions of its tools, and the names and bytes of its inputs.

        Raises BuildError when an input cannot be read.
        """
        build = entry.build
        command = [*build.run, build.target] if build.target else build.run
        total = hashlib.sha256(json.dumps([command, build.outputs, versions]).encode())
        for name in input_files(entry, folder):
            try:
                content = self._of_file(folder / name)
            except OSError as error:
                raise BuildError(
                    f"{entry.name}: the input {folder / name} cannot be read: {error.strerror}",
                    hint="check its permissions",
                ) from error
            total.update(json.dumps([name, content]).encode())
        return total.hexdigest()[:16]

    def _of_file(self, path: Path) -> str:
        stat = path.stat()
        key = (os.path.normpath(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if key in self._known:
            return self._known[key]
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        if time.time_ns() - stat.st_mtime_ns > _SETTLED_NS:
            self._known[key] = content
        return content
