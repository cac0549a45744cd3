"""Inputs of builds: files, and tools with their versions."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redline.errors import BuildError
from redline.files import mend, read_regular, write_atomically
from redline.launching import error_lines
from redline.launching.executable import why_missing
from redline.model import ServerEntry, Tool

_SETTLED_NS = 1_000_000_000
"""A file written less than this ago may be rewritten with the same time."""
_VERSION_WITHIN_S = 60.0
_MOST_OF_MEMORY = 1 << 20


@contextmanager
def cache_writes(cache: Path, servers: str) -> Iterator[None]:
    """Turn an OSError on the cache into a BuildError."""
    try:
        yield
    except OSError as error:
        message = f"{servers} cannot be built: the cache {cache} cannot be written: {error.strerror}"
        raise BuildError(message, hint=mend(error)) from error


def input_files(entry: ServerEntry, folder: Path) -> tuple[str, ...]:
    """Return the files that the globs of `inputs` match, as sorted names relative to the build folder.

    `src/**` means all files below src. Raises BuildError for a glob that matches nothing: a typo there would hide
    changes from the cache.
    """
    names: set[str] = set()
    for pattern in entry.catalogue_build.inputs:
        whole = f"{pattern}/*" if pattern.endswith("**") else pattern
        files = {os.path.relpath(path, folder) for path in folder.glob(whole) if path.is_file()}
        if not files:
            is_folder = (folder / pattern).is_dir()
            below = f"write `{pattern.rstrip('/')}/**` in its server.yaml for all files below that folder"
            raise BuildError.of_server(
                entry.name,
                f"`build.inputs` names {pattern!r}, and no file in {folder} matches it",
                hint=below if is_folder else "fix the glob in its server.yaml, or remove it",
            )
        names |= files
    return tuple(sorted(names))


class Contents:
    """The hashes of files, which are read only once for any number of builds."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], str] = {}

    def of_build(self, entry: ServerEntry, folder: Path, versions: dict[str, str]) -> str:
        """Return 16 hex digits of a hash of the build's command, tool versions, and the inputs' names and bytes.

        Raises BuildError if an input cannot be read.
        """
        build = entry.catalogue_build
        command = [*build.run, build.target] if build.target else build.run
        total = hashlib.sha256(json.dumps([command, build.outputs, versions]).encode())
        for name in input_files(entry, folder):
            try:
                content = self._of_file(folder / name)
            except OSError as error:
                raise BuildError.of_server(
                    entry.name,
                    f"the input {folder / name} cannot be read: {error.strerror}",
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


class ToolVersions:
    """Versions of tools; a file caches the versions that cannot have changed."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._versions: dict[str, str] = {}

    def missing(self, needs: tuple[Tool, ...]) -> Tool | None:
        """Return the first tool that is missing on the PATH, if any."""
        return next((tool for tool in needs if shutil.which(tool.command) is None), None)

    def check(self, name: str, needs: tuple[Tool, ...]) -> None:
        """Raise BuildError with the tool's hint, if a tool is not on the PATH."""
        tool = self.missing(needs)
        if tool is not None:
            raise BuildError(f"{name} cannot be used here: {why_missing(tool.command)}", hint=tool.hint)

    def versions(self, name: str, needs: tuple[Tool, ...], folder: Path) -> dict[str, str]:
        """Return the versions of tools, as run in `folder`, where a toolchain file may choose them."""
        return {tool.command: self._version(name, tool, folder) for tool in needs if tool.version}

    def _version(self, name: str, tool: Tool, folder: Path) -> str:
        key = json.dumps([*tool.version, str(folder)])
        if key in self._versions:
            return self._versions[key]
        identity = _identity(tool.version[0])
        try:
            memory = json.loads(read_regular(self._memory, _MOST_OF_MEMORY))
        except (OSError, ValueError, RecursionError):
            memory = {}
        remembered: dict[str, object] = memory if isinstance(memory, dict) else {}
        known = remembered.get(key)
        if identity is not None and isinstance(known, list) and known[:1] == [identity]:
            self._versions[key] = str(known[1])
            return self._versions[key]
        self._versions[key] = _ask(name, tool, folder)
        if identity is not None:
            with suppress(OSError):
                self._memory.parent.mkdir(parents=True, exist_ok=True)
                memory = {**remembered, key: [identity, self._versions[key]]}
                write_atomically(self._memory, json.dumps(memory, indent=1).encode())
        return self._versions[key]


def _identity(command: str) -> str | None:
    """Identify a command's program, and the Java of a JVM's build tools; None if files do not."""
    program = shutil.which(command)
    if program is None:
        return None
    real = Path(program).resolve()
    # A link to a program of another name, such as rustup's cargo, does not identify what runs.
    if real.name != Path(program).name or real.stat().st_nlink > 1:
        return None
    java = shutil.which("java")
    files = [_file_identity(real), *([_file_identity(Path(java).resolve())] if java else [])]
    return " ".join([*files, os.environ.get("JAVA_HOME", "")])


def _file_identity(file: Path) -> str:
    stat = file.stat()
    return f"{file} {stat.st_mtime_ns} {stat.st_size}"


def _ask(name: str, tool: Tool, folder: Path) -> str:
    try:
        done = subprocess.run(
            tool.version,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"`{' '.join(tool.version)}` could not be run: {error}"
        raise BuildError.of_server(name, reason, hint=tool.hint) from error
    text = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        said = error_lines.error_line(text) or "nothing"
        reason = f"`{' '.join(tool.version)}` failed with code {done.returncode} and said: {said}"
        raise BuildError.of_server(name, reason, hint=tool.hint)
    return text
