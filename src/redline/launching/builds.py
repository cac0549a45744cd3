"""Build servers: only if their inputs have changed, and together if they share a command."""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from redline.errors import BuildError, LaunchError
from redline.files import cache_in, open_anew, open_lock, read_regular, write_atomically
from redline.launching.commands import lines_of, locked, started
from redline.launching.error_lines import error_line
from redline.launching.executable import why_missing, why_not_executed
from redline.launching.failures import tail
from redline.launching.guard import how_ended
from redline.launching.inputs import Contents, ToolVersions, cache_writes, input_files
from redline.launching.jdks import PICKED_UP
from redline.linux.mounts import noexec_mount
from redline.model import ServerEntry
from redline.model.base import Frozen
from redline.ports import Building, BuildOutcome

_KEPT_LINES = 15
_LONGEST_LINE = 500
_TICK_NS = 10_000_000
"""The kernel stamps files with a clock that is behind by up to a tick."""
_SHOWN_LINES = 15
_READ_LINES = 200  # searched for the line that names the error
_DENIED = re.compile(r"permission denied", re.IGNORECASE)
_NAMED_INPUTS = 3
_MOST_OF_STAMP = 64 << 20


class OutputMark(Frozen):
    """Identifies an output, so that a later change is detected."""

    size: int
    mtime_ns: int


class BuildStamp(Frozen):
    """Inputs and outputs of a build."""

    format: Literal["redline.stamp/1"] = "redline.stamp/1"
    hash: str
    outputs: dict[str, OutputMark]


def marks(folder: Path, outputs: tuple[str, ...]) -> dict[str, OutputMark]:
    """Return the outputs that exist."""
    marks = {}
    for name in outputs:
        with suppress(OSError):
            stat = (folder / name).stat()
            marks[name] = OutputMark(size=stat.st_size, mtime_ns=stat.st_mtime_ns)
    return marks


def read_stamp(file: Path) -> BuildStamp | None:
    """Read the stamp; None if it is missing or damaged, so that the server has to be built."""
    try:
        return BuildStamp.model_validate_json(read_regular(file, _MOST_OF_STAMP))
    except (OSError, ValidationError):
        return None


@dataclass(frozen=True)
class _CommandResult:
    """How a build command ended, and its lines `TARGET: ...`, which name failed targets. All output is in `log`.

    Files that it writes have the time `began_unix_ns` or a later time.
    """

    code: int
    began_unix_ns: int
    took_ns: int
    target_lines: dict[str, list[str]]
    log: Path


class Availability(NamedTuple):
    """Whether a server can be used here, or why it cannot."""

    state: Literal["built", "not built", "cannot be built"]
    reason: str = ""


@dataclass(frozen=True)
class StandingBuild:
    """A build of a server: its content hash, its folder, and the versions of its runtime.

    `number` counts the builds of a server, from 0; `outputs` is a hash of the outputs, if there are several builds.
    """

    entry: ServerEntry
    hash: str
    folder: Path
    runtime_version: str
    number: int = 0
    outputs: str = ""


@contextmanager
def _collecting_failure(outcome: BuildOutcome, name: str) -> Iterator[None]:
    """Keep a BuildError as a failure of the outcome."""
    try:
        yield
    except BuildError as error:
        outcome.failures[name] = error


def holder_of(entry: ServerEntry, catalogue: Path) -> Path:
    """Return the folder that holds the catalogue of a server: this catalogue, or another that is merged with it."""
    own = (catalogue / entry.family_folder).parent
    return own.parent if own.name == catalogue.name else catalogue.parent


class Builds:
    """The builds of catalogues, and the caches that remember them.

    Build 0 is made in the catalogue, further builds from the same inputs in their own folders in the cache. A server
    of another catalogue uses the cache of that catalogue: all builds in a folder take the same lock.
    """

    def __init__(self, catalogue: Path, cache: Path, number: int = 0) -> None:
        self._number = number
        self._catalogue = catalogue.absolute()
        self._holder = self._catalogue.resolve().parent
        self._near = cache.absolute() / "builds"
        self._tools = ToolVersions(self._near / "tools.json")
        self._contents = Contents()
        self._done: dict[str, StandingBuild] = {}

    def origin(self, entry: ServerEntry) -> Path:
        """The folder of the entry's inputs."""
        return Path(os.path.normpath(self._catalogue / entry.build_folder))

    def folder(self, entry: ServerEntry) -> Path:
        """The folder in which the entry is built."""
        origin = self.origin(entry)
        if not self._number:
            return origin
        return self._cache(entry) / "copies" / str(self._number) / _short_hash(str(origin))

    def build(
        self, entries: Iterable[ServerEntry], progress: Callable[[Building], None], *, hash_outputs: bool = False
    ) -> BuildOutcome:
        """Build the entries that need it, and hash their outputs if `hash_outputs`. The outcome is by name."""
        outcome = BuildOutcome()
        requested = {entry.name: entry for entry in entries}
        wanted = {build.entry.name: build for build in self._wanted(requested.values(), outcome)}
        for batch in self._batches([build.entry for build in wanted.values() if not self._stands(build)]):
            wanted |= {build.entry.name: build for build in self._build_batch(batch, outcome, progress)}
        for name, build in wanted.items():
            if name not in outcome.failures:
                outcome.hashes[name] = build.hash
                outcome.runtimes[name] = build.runtime_version
                self._done[name] = replace(build, outputs=hash_of_outputs(build)) if hash_outputs else build
        return outcome

    def availability(self, entry: ServerEntry) -> Availability:
        """Return whether the entry is built, or can be; build nothing."""
        tool = self._tools.missing((*entry.catalogue_build.needs, *entry.start.needs))
        if tool is not None:
            return Availability("cannot be built", f"{why_missing(tool.command)}; {tool.hint}")
        try:
            wanted = self._wanted_of(entry)
        except BuildError as error:
            return Availability("cannot be built", f"{error.message}; {error.hint}")
        return Availability("built" if self._stands(wanted) else "not built")

    def find(self, entry: ServerEntry) -> StandingBuild:
        """Return the build to start. Raises LaunchError if it is missing or has changed since it was built."""
        done = self._done.get(entry.name)
        try:
            self._tools.check(entry.name, entry.start.needs)
            build = done or self._wanted_of(entry)
        except BuildError as error:
            raise LaunchError.of(error) from error
        if self._stands(build):
            return build
        if done is None:
            raise LaunchError(f"{entry.name} is not built", hint="build it first")
        raise LaunchError(
            f"{entry.name} was built, but its outputs have changed since",
            hint="leave the build folder alone while a run is going on, and run again",
        )

    def _cache(self, entry: ServerEntry) -> Path:
        """Return the cache of an entry's build."""
        holder = holder_of(entry, self._catalogue)
        return self._near if holder in {self._holder, self._catalogue.parent} else cache_in(holder) / "builds"

    def _wanted(self, entries: Iterable[ServerEntry], outcome: BuildOutcome) -> list[StandingBuild]:
        """Return the builds that are needed; entries that cannot be built are failures of the outcome."""
        wanted = []
        for entry in entries:
            with _collecting_failure(outcome, entry.name):
                self._tools.check(entry.name, (*entry.catalogue_build.needs, *entry.start.needs))
                wanted.append(self._wanted_of(entry))
        return wanted

    def _wanted_of(self, entry: ServerEntry) -> StandingBuild:
        """Return the build for the current sources and tools. Raises BuildError."""
        folder = self.origin(entry)
        if not folder.is_dir():
            raise BuildError.of_server(
                entry.name, f"its build folder {folder} does not exist", hint="fix `build.folder`"
            )
        content = self._contents.of_build(
            entry, folder, self._tools.versions(entry.name, entry.catalogue_build.needs, folder)
        )
        # Check the tools that start it as well: a runtime that cannot report its version cannot run a server either.
        versions = self._tools.versions(entry.name, entry.start.needs, folder)
        return StandingBuild(entry, content, self.folder(entry), runtime_of(versions), self._number)

    def _stands(self, build: StandingBuild) -> bool:
        stamp = read_stamp(self._stamp_file(build.entry))
        outputs = marks(build.folder, build.entry.catalogue_build.outputs)
        return stamp is not None and (stamp.hash, stamp.outputs) == (build.hash, outputs)

    def _batches(self, entries: list[ServerEntry]) -> list[list[ServerEntry]]:
        """Group entries that the same command builds: its targets in a folder, and entries of the same build."""
        batches: dict[tuple[str, ...], list[ServerEntry]] = {}
        for entry in entries:
            build = entry.catalogue_build
            own = "" if build.target else build.model_dump_json()
            batches.setdefault((str(self.folder(entry)), own, *build.run), []).append(entry)
        return list(batches.values())

    def _build_batch(
        self, entries: list[ServerEntry], outcome: BuildOutcome, progress: Callable[[Building], None]
    ) -> list[StandingBuild]:
        """Build a batch when the lock is free, except builds that exist by then; failures are in the outcome."""
        wanted: list[StandingBuild] = []
        try:
            with self._lock(entries, progress):
                # Another lab may have built them meanwhile, and the sources may have changed.
                wanted = self._wanted(entries, outcome)
                left = []
                for build in wanted:
                    if not self._stands(build):
                        with _collecting_failure(outcome, build.entry.name):
                            if self._number:
                                self._copy_inputs(build)
                            _remove_old_outputs(build)
                            left.append(build)
                if left:
                    ended = self._run(left, progress)
                    for build in left:
                        outcome.took_ns[build.entry.name] = ended.took_ns
                        with _collecting_failure(outcome, build.entry.name):
                            self._accept(build, ended)
        except BuildError as error:
            outcome.failures.update({entry.name: error for entry in entries})
        return wanted

    def _run(self, builds: list[StandingBuild], progress: Callable[[Building], None]) -> _CommandResult:
        """Build a batch by its command, which any exception ends, Ctrl-C too. Raises BuildError if it cannot run."""
        names = tuple(build.entry.name for build in builds)
        first, folder, log = builds[0].entry, builds[0].folder, self._log(builds[0].entry)
        targets = sorted({build.entry.catalogue_build.target for build in builds if build.entry.catalogue_build.target})
        target_lines: dict[str, list[str]] = {target: [] for target in targets}
        progress(Building(names))
        with ExitStack() as stack:
            with cache_writes(self._cache(first), ", ".join(names)):
                log.parent.mkdir(parents=True, exist_ok=True)
                kept = stack.enter_context(open_anew(log))
            began_unix_ns, began_ns = time.time_ns() - _TICK_NS, time.monotonic_ns()
            try:
                process = stack.enter_context(started([*first.catalogue_build.run, *targets], folder))
            except OSError as error:
                refusal = why_not_executed(first.catalogue_build.run[0], folder, os.environ, error.errno or 0)
                reason = f"its build command {first.catalogue_build.run[0]} could not be run: {refusal.reason}"
                hint = refusal.advice or "fix `build.run` in its server.yaml"
                raise BuildError.of_server(", ".join(names), reason, hint=hint) from error
            for raw in lines_of(process):
                with cache_writes(self._cache(first), ", ".join(names)):
                    kept.write(raw)
                line = raw.decode(errors="replace").strip()
                target, colon, reason = line.partition(": ")
                if colon and target in target_lines and len(target_lines[target]) < _KEPT_LINES:
                    target_lines[target].append("".join(filter(str.isprintable, reason))[:_LONGEST_LINE])
                progress(Building(names, line))
            code = process.wait()
        return _CommandResult(code, began_unix_ns, time.monotonic_ns() - began_ns, target_lines, log)

    def _accept(self, wanted: StandingBuild, ended: _CommandResult) -> None:
        """Stamp the outputs of the command, if they are complete. Raises BuildError."""
        entry, folder = wanted.entry, wanted.folder
        left = marks(folder, entry.catalogue_build.outputs)
        lacking = [name for name in entry.catalogue_build.outputs if name not in left]
        # A target's files were removed before, so an existing file proves success; a folder does not.
        files_are_new = entry.catalogue_build.target is not None and any((folder / name).is_file() for name in left)
        if not lacking and (ended.code == 0 or files_are_new):
            self._refuse_other_inputs(wanted, ended)
            with cache_writes(self._cache(entry), entry.name):
                stamp = BuildStamp(hash=wanted.hash, outputs=left)
                write_atomically(self._stamp_file(entry), stamp.model_dump_json(indent=1).encode())
            return
        hint = f"the whole output is in {ended.log}"
        reasons = ended.target_lines.get(entry.catalogue_build.target or "")
        if reasons:
            listed, reason = (f" {reasons[0]}", reasons[0]) if len(reasons) == 1 else (_indented(reasons), "")
            raise BuildError(f"building {entry.name} failed:{listed}", hint=hint, reason=reason)
        if ended.code != 0:
            how = how_ended(ended.code)
            lines, cause = tail(ended.log, _SHOWN_LINES).splitlines(), error_line(tail(ended.log, _READ_LINES))
            if cause and cause not in map(str.strip, lines):
                lines = [cause, "…", *lines]
            if _DENIED.search(cause) and (forbidden := noexec_mount(folder)):
                how = f"{how}, and {forbidden}"
            reason = f"{how}: {cause}" if cause else how
            raise BuildError(f"building {entry.name} failed {how}:{_indented(lines)}", hint=hint, reason=reason)
        raise BuildError.of_server(
            entry.name,
            f"its build succeeded but left no {', '.join(lacking)} in {folder}",
            hint=f"fix `build.outputs` in its server.yaml; the build's output is in {ended.log}",
        )

    def _refuse_other_inputs(self, wanted: StandingBuild, ended: _CommandResult) -> None:
        """Raise BuildError if the inputs have changed since they were hashed: it is unknown what was built."""
        entry, folder = wanted.entry, self.origin(wanted.entry)
        if self._wanted_of(entry).hash == wanted.hash:
            return
        newer = [n for n in input_files(entry, folder) if (folder / n).stat().st_mtime_ns >= ended.began_unix_ns]
        named = ", ".join(newer[:_NAMED_INPUTS]) + (", …" if len(newer) > _NAMED_INPUTS else "")
        raise BuildError.of_server(
            entry.name,
            f"its inputs changed while it was built{f': {named}' if named else ''}",
            hint="build again; if this stays, `build.inputs` in its server.yaml matches what the build itself writes",
        )

    def _copy_inputs(self, wanted: StandingBuild) -> None:
        """Copy the inputs to the folder of a further build, and remove former inputs there. Raises BuildError."""
        entry, origin = wanted.entry, self.origin(wanted.entry)
        names = input_files(entry, origin)
        if outside := next((name for name in names if name.startswith("..")), None):
            raise BuildError.of_server(
                entry.name,
                f"it cannot be built apart, for its input {outside} is outside of its build folder",
                hint="leave out `builds`",
            )
        with cache_writes(self._cache(entry), entry.name):
            with suppress(BuildError):  # nothing matches yet
                for name in set(input_files(entry, wanted.folder)) - set(names):
                    (wanted.folder / name).unlink(missing_ok=True)
            for name in names:
                file = wanted.folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(origin / name, file)

    @contextmanager
    def _lock(self, entries: list[ServerEntry], progress: Callable[[Building], None]) -> Iterator[None]:
        """Hold the lock of a folder, so that no other lab on this machine, not even a killed lab's build, uses it."""
        names = tuple(entry.name for entry in entries)
        cache = self._cache(entries[0])
        path = cache / "locks" / f"{_short_hash(str(self.folder(entries[0])))}.lock"
        with cache_writes(cache, ", ".join(names)):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = open_lock(path)
        with locked(lock, lambda: progress(Building(names, "waiting for another build in the same folder"))):
            yield

    def _stamp_file(self, entry: ServerEntry) -> Path:
        """Return the build's stamp file: servers of a family with the same build command share it."""
        name = _short_hash(str(self.folder(entry)) + entry.catalogue_build.model_dump_json())
        return self._cache(entry) / f"{name}.json"

    def _log(self, entry: ServerEntry) -> Path:
        """Return the log of a command, for all of its targets."""
        folder = self.folder(entry)
        command = _short_hash(str((str(folder), entry.catalogue_build.run)))
        name = f"{folder.name}-{command}" if entry.catalogue_build.target else entry.name
        return self._cache(entry) / "logs" / f"{name}{f'-{self._number}' if self._number else ''}.log"


def runtime_of(versions: dict[str, str]) -> str:
    """Join the versions of the tools that start a server, as in recordings."""
    lines = ([line for line in text.splitlines() if not line.startswith(PICKED_UP)] for text in versions.values())
    return "; ".join(said[0] if said else "" for said in lines)


def _remove_old_outputs(wanted: StandingBuild) -> None:
    """Remove a target's output files, so that old files are not mistaken for new. Raises BuildError."""
    entry, folder = wanted.entry, wanted.folder
    if entry.catalogue_build.target is None:
        return
    inputs = {os.path.normpath(name) for name in input_files(entry, folder)}
    for name in entry.catalogue_build.outputs:
        if os.path.normpath(name) in inputs:
            raise BuildError.of_server(
                entry.name,
                f"{name} is among its `build.inputs` and its `build.outputs`",
                hint="fix its server.yaml: outputs are removed before a target is built",
            )
        file = folder / name
        try:
            if not file.is_dir():
                file.unlink(missing_ok=True)
        except OSError as error:
            raise BuildError.of_server(
                entry.name,
                f"the output of its last build, {file}, cannot be removed: {error.strerror}",
                hint="make its folder writable, or remove it by hand",
            ) from error


def hash_of_outputs(build: StandingBuild) -> str:
    """Return 16 hex digits of a hash of the outputs' names and bytes. Raises BuildError if they cannot be read."""
    total = hashlib.sha256()
    try:
        for name in build.entry.catalogue_build.outputs:
            output = build.folder / name
            for file in sorted(output.rglob("*")) if output.is_dir() else [output]:
                if file.is_file():
                    total.update(os.fsencode(f"{file.relative_to(build.folder)}\0"))
                    total.update(hashlib.sha256(file.read_bytes()).digest())
    except OSError as error:
        raise BuildError.of_server(
            build.entry.name,
            f"what was built cannot be read: {error.filename}: {error.strerror}",
            hint="leave the build folder alone while a run is going on, and run again",
        ) from error
    return total.hexdigest()[:16]


def _indented(lines: list[str]) -> str:
    return "".join(f"\n    {line}" for line in lines)


def _short_hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]  # a path need not be UTF-8
