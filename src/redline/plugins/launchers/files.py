"""Files of the build cache: what a build is made from, and writing whole or not at all."""

import hashlib
import json
import os
from pathlib import Path

from redline.errors import BuildError
from redline.model import ServerEntry


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


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


def content_hash(entry: ServerEntry, folder: Path, versions: dict[str, str]) -> str:
    """16 hex digits over the build's command, the versions of its tools, and the names and bytes of its inputs.

    Raises BuildError when an input cannot be read.
    """
    total = hashlib.sha256(json.dumps([entry.build.run, entry.build.outputs, versions]).encode())
    for name in input_files(entry, folder):
        try:
            content = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError as error:
            raise BuildError(
                f"{entry.name}: the input {folder / name} cannot be read: {error.strerror}",
                hint="check its permissions",
            ) from error
        total.update(json.dumps([name, content]).encode())
    return total.hexdigest()[:16]
