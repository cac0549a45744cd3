"""Make images with only what a server needs: its build, its runtime, and the libraries that these are linked with.

Every file has the same path in the image as on this machine, so a command means the same in both places.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from redline.launching.executable import ELF, first_line, head_of
from redline.launching.jdks import Jdk

_WITHIN_S = 60.0
_MOST_LINKS = 40  # the kernel's limit on the way to a file
_LIBRARY = re.compile(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", re.MULTILINE)
_OF_LIBC = ("libgcc_s.so.1", "libnss_files.so.2")
"""Libraries that glibc loads only when needed: to cancel threads, and to find users and hosts."""
_SCRIPT_TOOLS = (
    *("sh", "env", "basename", "cat", "chmod", "cp", "dirname", "grep", "head", "ln", "mkdir", "nproc", "printf"),
    *("rm", "sed", "sort", "tail", "tr"),
)
"""Programs that a start script may use besides what its entry `needs`."""
_NAMES = tuple(map(Path, ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf")))
"""Files in which a server looks up the user to run as."""
_TEMPORARY = Path("/tmp")  # noqa: S108 - its entry, without what is in it
_PYTHON = re.compile(r"python3(\.\d+)?")
_LIBRARY_OF_PYTHON = "import sysconfig; print(sysconfig.get_path('stdlib'))"
_NOT_OF_PYTHON = ("site-packages", "dist-packages", "test", "idlelib", "ensurepip")
_NOT_RUN = ("jmods", "include", "man", "demo", "sample", "src.zip", "lib/src.zip")
"""Folders of a JDK that no program needs at run time."""


class _Closure:
    """Paths, with the links and folders on the way to them, and the contents of the folders."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self._done: set[Path] = set()

    def add(self, roots: Iterable[Path], leave_out: Iterable[Path] = ()) -> None:
        """Add paths, without those that lead nowhere."""
        queue, done = list(roots), self._done | set(leave_out)
        while queue:
            root = queue.pop()
            if root in done:
                continue
            done.add(root)
            steps = list(path_steps(root))
            self.paths.update(steps)
            if steps and steps[-1].is_dir() and not steps[-1].is_symlink():
                with suppress(OSError):
                    queue += steps[-1].iterdir()
        self._done |= done


def needed(
    folder: Path, outputs: Iterable[str], words: Sequence[str], tools: Iterable[str], jdk: Jdk | None
) -> tuple[Path, ...]:
    """Return the distinct absolute paths that a start needs: files, folders, and the links on the way to them.

    `outputs` are relative to the build's folder. `words` are from the command and the environment, the program
    first; the files that they name are needed too. `tools` are programs on the PATH.
    """
    closure = _Closure()
    if jdk is not None:
        closure.add([jdk.home], [jdk.home / name for name in _NOT_RUN])
    closure.paths.update(path_steps(folder))
    closure.add(
        [*(folder / name for name in outputs), *_files_in(words, folder), *_NAMES, *_programs((words[0], *tools))]
    )
    interpreters = {word for path in closure.paths if _may_be_run(path) for word in first_line(head_of(path))}
    if interpreters:
        closure.add(_programs((*interpreters, *_SCRIPT_TOOLS)))
    for python in sorted(path for path in closure.paths if _PYTHON.fullmatch(path.name) and _may_be_run(path)):
        for library in map(Path, _output_of((str(python), "-c", _LIBRARY_OF_PYTHON)).split()):
            closure.add([library], [library / name for name in _NOT_OF_PYTHON])
    binaries = [
        path for path in closure.paths if (_may_be_run(path) or ".so" in path.name) and head_of(path).startswith(ELF)
    ]
    # `ldd` reports static files and missing libraries on stderr; both are left out.
    libraries = [Path(library) for library in _LIBRARY.findall(_output_of(("ldd", *map(str, binaries))))]
    closure.add(libraries)
    closure.add(path.with_name(name) for path in libraries if path.name == "libc.so.6" for name in _OF_LIBC)
    return tuple(sorted(closure.paths))


def _files_in(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield the files that words name, also as `@FILE` and after a `=`, and folders below the build's."""
    for word in words:
        for text in {word, word.removeprefix("@"), word.partition("=")[2]} - {""}:
            path = folder / text
            with suppress(OSError, ValueError):
                if ("/" in text and path.is_file()) or (path.is_dir() and folder in path.parents):
                    yield path


def digest(paths: Iterable[Path]) -> str:
    """Return 12 hex digits of a hash of names, sizes and times of files, which change with any file of the image."""
    total = hashlib.sha256()
    for path in paths:
        status = path.lstat()
        facts = [str(path), str(status.st_mode)]
        if stat.S_ISLNK(status.st_mode):
            facts.append(str(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            facts += [str(status.st_size), str(status.st_mtime_ns)]
        total.update("\0".join([*facts, ""]).encode(errors="surrogateescape"))
    return total.hexdigest()[:12]


def pack(paths: Iterable[Path], file: Path) -> None:
    """Write the only layer of an image: everything owned by root, and a folder for temporary files. Raises OSError."""
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*paths, _TEMPORARY}):
            member = archive.gettarinfo(path)
            if member.islnk():  # a hard link
                member.type, member.linkname, member.size = tarfile.REGTYPE, "", path.stat().st_size
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            if member.isfile():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            elif member.isdir() or member.issym():
                archive.addfile(member)


def path_steps(path: Path) -> Iterator[Path]:
    """Yield the folders and links through which a path leads, and its target; nothing if that does not exist."""
    steps: list[Path] = []
    at, left, links = Path("/"), list(path.parts[1:]), 0
    while left:
        part = left.pop(0)
        if part == "..":
            at = at.parent
            continue
        step = at / part
        if not os.path.lexists(step):
            return
        steps.append(step)
        if not step.is_symlink():
            at = step
            continue
        target = step.readlink()
        links += 1
        if links > _MOST_LINKS:
            return
        at = Path("/") if target.is_absolute() else at
        left = [*(target.parts[1:] if target.is_absolute() else target.parts), *left]
    yield from steps


def _programs(names: Iterable[str]) -> list[Path]:
    return [Path(path).absolute() for name in names if (path := shutil.which(name))]


def _may_be_run(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and os.access(path, os.X_OK)


def _output_of(command: Sequence[str]) -> str:
    """Return the output of a command; empty if it cannot be run."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
