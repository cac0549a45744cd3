"""Builds of servers, done once for each content of their inputs."""

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from redline.errors import BuildError, LaunchError
from redline.model import ServerEntry
from redline.model.base import Frozen
from redline.plugins.launchers.files import content_hash, replace_text
from redline.plugins.launchers.output import tail
from redline.plugins.launchers.tools import ToolVersions

_SHOWN_LINES = 15


class Availability(NamedTuple):
    """Whether a server can be used here, and why not."""

    state: Literal["built", "not built", "cannot be built"]
    reason: str = ""


@dataclass(frozen=True)
class StandingBuild:
    """A build that stands: its content hash, its folder, and what the runtime says of its version."""

    hash: str
    folder: Path
    runtime_version: str


class _Mark(Frozen):
    """Tells whether an output is still the one that the build left."""

    size: int
    mtime_ns: int


class _Stamp(Frozen):
    """What a build was made from and what it left, kept beside the outputs' hash."""

    format: Literal["redline.build/1"] = "redline.build/1"
    hash: str
    outputs: dict[str, _Mark]


class Builds:
    """The builds of one catalogue and the cache that remembers them."""

    def __init__(self, catalogue: Path, cache: Path) -> None:
        self._catalogue = catalogue.absolute()
        self._cache = cache.absolute() / "builds"
        self._tools = ToolVersions(self._cache / "tools.json")
        self._done: dict[str, StandingBuild] = {}

    def folder(self, entry: ServerEntry) -> Path:
        """Where the entry is built."""
        return Path(os.path.normpath(self._catalogue / entry.build_folder))

    def build(self, entry: ServerEntry, progress: Callable[[str], None]) -> str:
        """Build the entry unless that is done. Returns the content hash; raises BuildError."""
        self._tools.check(entry.name, (*entry.build.needs, *entry.start.needs))
        wanted = self._wanted(entry)
        # Of what starts it as well: a runtime that cannot say its version cannot run a server either.
        runtime_version = self._runtime_version(entry)
        if not self._stands(entry, wanted):
            with self._lock(entry, progress):
                if not self._stands(entry, wanted):
                    self._run(entry, progress)
                    self._stamp(entry, wanted)
        self._done[entry.name] = StandingBuild(wanted, self.folder(entry), runtime_version)
        return wanted

    def availability(self, entry: ServerEntry) -> Availability:
        """Whether the entry is built, or can be; builds nothing."""
        tool = self._tools.missing((*entry.build.needs, *entry.start.needs))
        if tool is not None:
            return Availability("cannot be built", f"{tool.command} is not installed; {tool.hint}")
        try:
            wanted = self._wanted(entry)
            self._runtime_version(entry)
        except BuildError as error:
            return Availability("cannot be built", f"{error.problems[0].message}; {error.hint}")
        return Availability("built" if self._stands(entry, wanted) else "not built")

    def find(self, entry: ServerEntry) -> StandingBuild:
        """The build to start. Raises LaunchError when there is none, or when it is no longer the one that was built."""
        done = self._done.get(entry.name)
        try:
            self._tools.check(entry.name, entry.start.needs)
            build = done or StandingBuild(self._wanted(entry), self.folder(entry), self._runtime_version(entry))
        except BuildError as error:
            raise LaunchError(error.problems[0].message, hint=error.hint) from error
        if not self._stands(entry, build.hash):
            raise LaunchError(
                f"{entry.name} {'was built, but its outputs have changed since' if done else 'is not built'}",
                hint="leave the build folder alone while a run is going on, and run again"
                if done
                else "build it first",
            )
        return build

    def _runtime_version(self, entry: ServerEntry) -> str:
        """What the tools of the start say of their versions, the first line of each. Raises BuildError."""
        versions = self._tools.versions(entry.name, entry.start.needs, self.folder(entry))
        return "; ".join(text.partition("\n")[0] for text in versions.values())

    def _wanted(self, entry: ServerEntry) -> str:
        folder = self.folder(entry)
        if not folder.is_dir():
            raise BuildError(f"{entry.name}: its build folder {folder} does not exist", hint="mend `build.folder`")
        return content_hash(entry, folder, self._tools.versions(entry.name, entry.build.needs, folder))

    def _stands(self, entry: ServerEntry, wanted: str) -> bool:
        try:
            stamp = _Stamp.model_validate_json(self._stamp_file(entry).read_bytes())
        except (OSError, ValidationError):
            return False
        return stamp.hash == wanted and stamp.outputs == self._marks(entry)

    def _marks(self, entry: ServerEntry) -> dict[str, _Mark]:
        marks = {}
        for name in entry.build.outputs:
            with suppress(OSError):
                stat = (self.folder(entry) / name).stat()
                marks[name] = _Mark(size=stat.st_size, mtime_ns=stat.st_mtime_ns)
        return marks

    def _stamp(self, entry: ServerEntry, wanted: str) -> None:
        marks = self._marks(entry)
        lacking = [name for name in entry.build.outputs if name not in marks]
        if lacking:
            raise BuildError(
                f"{entry.name}: its build succeeded but left no {', '.join(lacking)} in {self.folder(entry)}",
                hint=f"mend `build.outputs` in its server.yaml; the build's output is in {self._log(entry)}",
            )
        with self._writing(entry):
            replace_text(self._stamp_file(entry), _Stamp(hash=wanted, outputs=marks).model_dump_json(indent=1))

    def _run(self, entry: ServerEntry, progress: Callable[[str], None]) -> None:
        log = self._log(entry)
        with self._writing(entry):
            log.parent.mkdir(parents=True, exist_ok=True)
            file = log.open("wb", buffering=0)  # what cannot be written is then known at once, not when it is closed
        with file, _started(entry, self.folder(entry)) as process:
            for line in process.stdout or ():
                with self._writing(entry):
                    file.write(line)
                progress(line.decode(errors="replace").strip())
            code = process.wait()
        if code != 0:
            ending = f"with code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
            lines = "".join(f"\n    {line}" for line in tail(log, _SHOWN_LINES).splitlines())
            raise BuildError(f"building {entry.name} failed {ending}:{lines}", hint=f"the whole output is in {log}")

    @contextmanager
    def _lock(self, entry: ServerEntry, progress: Callable[[str], None]) -> Iterator[None]:
        """One build at a time in a folder, of all labs on this machine."""
        path = self._cache / "locks" / f"{_short_hash(str(self.folder(entry)))}.lock"
        with self._writing(entry):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress("waiting for another build in the same folder")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _writing(self, entry: ServerEntry) -> Iterator[None]:
        """Turn what the file system refuses to the cache into a BuildError."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise BuildError(
                f"{entry.name} cannot be built: the cache {self._cache} cannot be written: {error.strerror}",
                hint="the disk is full: make room" if full else "make that folder writable",
            ) from error

    def _stamp_file(self, entry: ServerEntry) -> Path:
        """Of the build, not of the server: servers of one family that are built by one command share it."""
        return self._cache / f"{_short_hash(str(self.folder(entry)) + entry.build.model_dump_json())}.json"

    def _log(self, entry: ServerEntry) -> Path:
        return self._cache / "logs" / f"{entry.name}.log"


@contextmanager
def _started(entry: ServerEntry, folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The build command, running; killed with all it started when the block is left by an exception."""
    try:
        process = subprocess.Popen(
            entry.build.run,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError(
            f"{entry.name}: its build command {entry.build.run[0]} could not be run: {error.strerror}",
            hint="mend `build.run` in its server.yaml, or install the command",
        ) from error
    try:
        yield process
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
