"""The directory of a run, a comparison, a search or a load: atomic, append-only, consistent after any crash.

Layout, version 1 (docs/reference/run-directory.md):

    run.json                     the manifest: kind, plan, environment, command; written once, before the first trial
    suite.yaml                   the suite as it was given
    times.txt                    the due times of a replay that its command imported
    recordings/0007-SLUG.json    one per trial, named by its position
    repeated/0007-SLUG.1.json    a trial or duet that was repeated because of steal; it is ignored
    lost/0007-SLUG.1.json        a trial that ended with its host and was repeated on others; it is ignored
    duets/0008-SLUG.json         one per duet, named by its position and the cell of its baseline
    calibration.json             the duets that compared pairs of hosts before the run, if there were several
    profiles/0009-SLUG.json      one per trial with a profiler, named by its position; never compared
    profiles/0009-SLUG.cpu/      the files of its profiler, or of that of a sampled duet's server
    sampled/0010-SLUG.json       one per duet with a profiler on each server
    probes/SLUG/0007.json        one per load of a search on a cell, in chronological order
    logs/0007-SLUG/              the output of server and engine
    enough.json                  why the run stopped, if its suite leaves the number of rounds open
    judged/CELL.json             cells as they were judged, a cache (`judged.py`)
    report.html results.csv results.json   views, which `redline report` makes again
"""

import contextlib
import fcntl
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, TypeVar

from pydantic import ValidationError

from redline.errors import NotStoredError, StoreError, TakenError, UsageError
from redline.files import as_store_error, open_lock, open_within, write_pieces_atomically
from redline.model import (
    Calibration,
    Cell,
    DuetRecording,
    Enough,
    Manifest,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Recording,
    Run,
    ServerEntry,
    Stacks,
    StoredProfiles,
    StoredRecordings,
)
from redline.model.run import Kind
from redline.model.search import ProbeRecording
from redline.render.formats import FILE_ENDINGS
from redline.storage.earlier import EARLY_COMPARISON, EARLY_SEARCH, todays_manifest
from redline.storage.reading import CAPACITY, MANIFEST, duet_of, probe_of, read_stored, stamped, stored_json, trial_of
from redline.suite.loading import load_libraries
from redline.wording import as_argument, part

U = TypeVar("U")
_RECORDING = re.compile(r"^(\d{4,})-.+\.json$")
_PROBE = re.compile(r"^\d{4,}\.json$")
_COMMANDS = {"run": "run", "comparison": "ab", "search": "limit", "bisection": "bisect"}
"""The command that resumes a directory of each kind; a load is not resumed."""
BISECTION = "bisect.json"
"""The file of a bisection, in a directory that holds no run itself."""
VIEW = "results.json"
"""The view that a directory of any kind has, with the whole report."""
_MEASURED = ("recordings", "duets", "profiles", "sampled", "probes")
"""The folders of recordings."""


class RunStore:
    """A directory of any kind. One process may hold it for writing at a time: see `locked`."""

    manifest_file: ClassVar[str] = MANIFEST

    def __init__(self, folder: Path, *, is_kept: bool = True) -> None:
        self.folder = folder
        self.is_kept = is_kept
        """Whether it outlives the command."""

    @property
    def exists(self) -> bool:
        """Whether the directory has a manifest, be it one that cannot be read."""
        return os.path.lexists(self._manifest)

    @property
    def _manifest(self) -> Path:
        """Where the manifest is, or would be: that of an early search has a name of its own."""
        file, early = self.folder / self.manifest_file, self.folder / EARLY_SEARCH
        return early if not file.exists() and early.is_file() else file

    @property
    def kind(self) -> Kind:
        """The kind of the directory; a run if its manifest is missing or damaged."""
        try:
            return "search" if self._manifest.name == EARLY_SEARCH else stamped(self._manifest)
        except (OSError, ValidationError):
            return "run"

    def check_free(self, *, has_capacity: bool = False) -> None:
        """Raise StoreError unless a new run can be kept here, UsageError for a file's name. Leaves nothing behind.

        With `has_capacity`, the capacity of the run may have been measured here.
        """
        if self.folder.suffix.lower() in FILE_ENDINGS and not self.folder.is_dir():
            place = part("keep", str(self.folder))
            hint = f"keep them in one, then write the file: redline report DIR -o {as_argument(self.folder)}"
            raise UsageError(place + ": results are kept in a directory, and this is a file's name", hint=hint)
        is_bisection = (self.folder / BISECTION).is_file()
        if self.exists or is_bisection or (capacity_store(self.folder).exists and not has_capacity):
            kind, other = "bisection" if is_bisection else self.kind, f"choose another with {part('keep', 'DIR')}"
            resumed = f"redline {_COMMANDS.get(kind)} --resume {as_argument(self.folder)}"
            hint = f"resume it with: {resumed}; or {other}" if kind in _COMMANDS else other
            raise TakenError(f"{self.folder} already holds a {kind}", hint=hint)
        if self._measured:
            message = f"{self.folder} already holds {self._measured} recordings of an unknown origin"
            raise TakenError(message, hint=f"choose another with {part('keep', 'DIR')}, or move them away")
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        with as_store_error(self.folder, begun=False):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.write(".probe", b"can be written").unlink()
        for folder in missing:
            folder.rmdir()

    def create_folder(self, name: str) -> Path:
        """Create a folder in the directory unless it exists. Raises StoreError."""
        folder = self.folder / name
        with as_store_error(folder, begun=self._can_go_on):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def _can_go_on(self) -> bool:
        return self.is_kept and self.exists

    @property
    def _measured(self) -> int:
        """The number of recordings of all kinds."""
        return sum(1 for part in _MEASURED for _ in (self.folder / part).rglob("*.json"))

    def _absent(self) -> NotStoredError:
        message = f"{self.folder} holds no run"
        hint = "name a directory that `redline run`, `ab`, `limit` or `load` made, such as runs/…"
        if not self.folder.exists():
            message = f"{self.folder} does not exist"
        elif (self.folder / EARLY_COMPARISON).is_file():
            message = f"{self.folder} holds a comparison by a version before 0.1.0, which cannot be judged again"
            hint = f"see its answer in {self.folder / 'results.md'}, or compare anew: redline ab A B -o DIR"
        elif self.folder.is_file() and self.folder.name != self.manifest_file:
            message = f"{self.folder} is a file, and holds no run"
        elif self.folder.name == self.manifest_file:
            message, hint = f"{message}: it is a file", f"name its directory: {self.folder.parent}"
        elif self._measured:
            message += (
                f": it has {self._measured} recordings, but no {self.manifest_file}, without which they are useless"
            )
            hint = f"begin again with another {part('keep', 'DIR')}"
        elif (self.folder / "logs").is_dir():
            message += f": it ended before its {self.manifest_file} was written, and nothing was measured"
            hint = "begin again"
        return NotStoredError(message, hint=hint)

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically. Raises StoreError; a file of that name stays as it was."""
        return self.write_pieces(name, (content,))

    def write_pieces(self, name: str, pieces: Iterable[bytes]) -> Path:
        """The same with pieces that are made one by one."""
        file = self.folder / name
        with as_store_error(file, begun=self._can_go_on):
            write_pieces_atomically(file, pieces)
        return file

    def duets(self) -> tuple[DuetRecording, ...]:
        """All recordings of duets so far, by position. Raises StoreError, naming the file, if one cannot be read."""
        return tuple(read_stored(file, DuetRecording) for file in self._files("duets").values())

    def duets_said(self, plan: Plan) -> tuple[DuetRecording, ...]:
        """The same; one that cannot be used has failed, and its failure says why."""
        return self._duets_in("duets", plan.duets)

    def sampled(self, plan: Plan) -> tuple[DuetRecording, ...]:
        """The recordings of duets with profilers so far, as `duets_said` reads them."""
        return self._duets_in("sampled", plan.sampled)

    def _duets_in(self, folder: str, duets: Sequence[PlannedDuet]) -> tuple[DuetRecording, ...]:
        planned, files = {duet.position: duet for duet in duets}, self._files(folder)
        return tuple(duet_of(file, planned[position]) for position, file in files.items() if position in planned)

    def save_probe(self, made: ProbeRecording, cell: Cell) -> None:
        """Write the recording of a load of a search."""
        self.write(made.stored_as(cell), stored_json(made))

    def probes(self, cell: Cell) -> tuple[ProbeRecording, ...]:
        """The recordings of a search's loads on a cell so far, in their order. Raises StoreError, naming the file."""
        return tuple(probe_of(file, cell) for file in self._probe_files(cell))

    def probes_said(self, cell: Cell) -> tuple[tuple[ProbeRecording, ...], tuple[str, ...]]:
        """The recordings that can be read of a search's loads on a cell, and why the others cannot."""
        made, unread = list[ProbeRecording](), list[str]()
        for file in self._probe_files(cell):
            try:
                made.append(probe_of(file, cell))
            except StoreError as error:
                unread.append(error.message)
        return tuple(made), tuple(unread)

    def _probe_files(self, cell: Cell) -> list[Path]:
        folder = self.folder / "probes" / cell.slug
        if not folder.is_dir():
            return []
        with as_store_error(folder):
            files = [file for file in folder.iterdir() if _PROBE.match(file.name)]
        return sorted(files, key=lambda file: int(file.stem))

    def _files(self, folder: str) -> dict[int, Path]:
        """The recordings in a folder by position, in order."""
        if not (self.folder / folder).exists():
            return {}
        with as_store_error(self.folder):
            names = [(file, _RECORDING.match(file.name)) for file in (self.folder / folder).iterdir()]
        return dict(sorted((int(name.group(1)), file) for file, name in names if name))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory for writing. Raises StoreError if another process has. Released on exit."""
        with as_store_error(self.folder):
            lock = os.fdopen(open_lock(self.folder / ".lock"), "wb")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(
                    f"{self.folder} is being written by another redline", hint="wait for it, or stop it, and try again"
                ) from None
            yield

    @property
    def is_being_written(self) -> bool:
        """Whether a process of this machine has locked it for writing. Does not change it."""
        try:
            lock = os.open(self.folder / ".lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def create(self, manifest: Manifest, kept: Mapping[str, str | bytes] = MappingProxyType({})) -> None:
        """Create the directory, and write the manifest. Raises StoreError if it fails or the directory is not free.

        `kept` are the files that the suite names beside itself, by name.
        """
        self.check_free(has_capacity=True)
        for name in ("logs", *_parts(manifest)):
            self.create_folder(name)
        if manifest.suite_text:
            self.write("suite.yaml", manifest.suite_text.encode())
        for name, content in kept.items():
            self.write(name, content.encode() if isinstance(content, str) else content)
        self.write(self.manifest_file, stored_json(manifest))

    def check_parts(self) -> None:
        """Raise NotStoredError if a folder of the plan's recordings is gone."""
        for name in _parts(self.manifest()):
            if not (self.folder / name).is_dir():
                raise NotStoredError(
                    f"{self.folder / name} is gone, with recordings of this {self.kind}",
                    hint=f"put it back, or begin again with another {part('keep', 'DIR')}",
                )

    def extend(self, plan: Plan) -> None:
        """Replace the plan by an extension of it. Raises StoreError."""
        self.write(self.manifest_file, stored_json(self.manifest().with_plan(plan)))

    def manifest(self) -> Manifest:
        """The manifest from `run.json`. Raises StoreError if it does not exist or cannot be read."""
        if not self.exists:
            raise self._absent()
        begin = f"begin again with another {part('keep', 'DIR')}: without this file nothing can be resumed"
        try:
            return read_stored(self._manifest, Manifest, begin, todays_manifest)
        except StoreError as error:
            raise NotStoredError.of(error) from error

    def recording_files(self) -> dict[int, Path]:
        """The files of recordings by their position in the plan, in order. Raises StoreError."""
        return self._files("recordings")

    def recording_file(self, position: int, cell: Cell) -> Path:
        """The file of a trial's recording."""
        return self.folder / "recordings" / f"{_stem(position, cell.slug)}.json"

    def recordings(self) -> tuple[Recording, ...]:
        """All recordings so far, by position. Raises StoreError, naming the file, if one cannot be read."""
        return tuple(read_stored(file, Recording) for file in self._files("recordings").values())

    def recording(self, position: int) -> Recording:
        """The recording of a trial. Raises StoreError as `recordings`, and KeyError when there is none."""
        return read_stored(self._files("recordings")[position], Recording)

    def duet(self, position: int) -> DuetRecording:
        """The recording of a duet. Raises StoreError as `duets`, and KeyError when there is none."""
        return read_stored(self._files("duets")[position], DuetRecording)

    def set_aside(self, position: int) -> None:
        """Move a recording away, so that its trial or duet is repeated."""
        file = (self._files("recordings") | self._files("duets"))[position]
        folder, number = self.create_folder("repeated"), 1 + self.repeated().count(position)
        with as_store_error(folder):
            file.rename(folder / f"{file.stem}.{number}.json")

    def save_lost(self, recording: Recording | DuetRecording, cell: Cell) -> None:
        """Keep the recording that a lost host left of a trial or duet that other hosts repeat."""
        folder, stem = self.create_folder("lost"), _stem(recording.position, cell.slug)
        number = 1 + len([*folder.glob(f"{glob.escape(stem)}.*.json")])
        self.write(f"lost/{stem}.{number}.json", stored_json(recording))

    def repeated(self) -> tuple[int, ...]:
        """The positions of repeated trials and duets, once per repetition."""
        folder = self.folder / "repeated"
        with as_store_error(folder):
            names = [_RECORDING.match(file.name) for file in folder.iterdir()] if folder.exists() else []
        return tuple(sorted(int(name.group(1)) for name in names if name))

    def positions(self) -> frozenset[int]:
        """The positions in the plan that have a recording."""
        folders = ("recordings", "duets", "profiles", "sampled")
        return frozenset(position for folder in folders for position in self._files(folder))

    def run(self) -> Run:
        """The run so far; its recordings are read on access. Raises StoreError only if its manifest cannot be read.

        A recording that cannot be used has failed, and its failure says why. `unread` names what else cannot be read.
        """
        self.check_parts()
        manifest, files = self.manifest(), self._files("recordings")
        plan, unread = manifest.plan, [*self._unplanned(manifest.plan)]
        planned = {trial.position: trial for trial in plan.trials}
        kept = tuple(position for position in files if position in planned)
        return Run(
            manifest=manifest,
            recordings=StoredRecordings(kept, lambda position: trial_of(files[position], planned[position])),
            duets=self.duets_said(plan),
            profiled=self.profiled(plan),
            sampled=self.sampled(plan),
            profiles=StoredProfiles(self.stacks, lambda: load_libraries(*_catalogues_of(plan))),
            enough=_if_readable(self.enough, unread, None),
            repeated=self.repeated(),
            calibration=_if_readable(self.calibration, unread, tuple[DuetRecording, ...]()),
            lost=len(self._files("lost")),
            unread=tuple(unread),
        )

    def _unplanned(self, plan: Plan) -> Iterator[str]:
        """Yield what is said of files that are named like recordings of the plan, and are none."""
        for name, planned in _steps_by_folder(plan).items():
            known = {step.position for step in planned}
            for position, file in self._files(name).items():
                if position not in known:
                    yield f"{file} is of no trial of the plan"

    def profiled(self, plan: Plan) -> tuple[Recording, ...]:
        """The recordings of trials with a profiler, by position. One that cannot be used has failed."""
        planned, files = {trial.position: trial for trial in plan.profiled}, self._files("profiles")
        return tuple(trial_of(file, planned[position]) for position, file in files.items() if position in planned)

    def stacks(self, name: str) -> Stacks:
        """The stacks in a file that a profiler left, by its name in a recording. Raises StoreError."""
        try:
            with as_store_error(self.folder / name), open_within(self.folder, name) as file:
                content = file.read()
        except UsageError as error:
            raise StoreError.of(error) from None
        return Stacks.from_bytes(content, name)

    def enough(self) -> Enough | None:
        """Why the run stopped; None while it goes on. Raises StoreError when it cannot be read."""
        file = self.folder / "enough.json"
        return read_stored(file, Enough) if os.path.lexists(file) else None

    def forget_enough(self) -> None:
        """Allow further rounds."""
        with as_store_error(self.folder):
            (self.folder / "enough.json").unlink(missing_ok=True)

    def save_enough(self, enough: Enough) -> None:
        """Store why the run stopped."""
        self.write("enough.json", stored_json(enough))

    def calibration(self) -> tuple[DuetRecording, ...]:
        """The duets that compared pairs of hosts. Raises StoreError if they cannot be read."""
        file = self.folder / "calibration.json"
        return read_stored(file, Calibration).duets if os.path.lexists(file) else ()

    def save_calibration(self, duets: tuple[DuetRecording, ...]) -> None:
        """Store the duets that compared pairs of hosts."""
        self.write("calibration.json", stored_json(Calibration(duets=duets)))

    def log_folder(self, planned: PlannedTrial | PlannedDuet, cell: Cell) -> Path:
        """The folder for the output of server and engine during a trial or duet; made if it does not exist."""
        return self.create_folder(f"logs/{_stem(planned.position, cell.slug)}")

    def profile_folder(self, planned: PlannedTrial | PlannedDuet, cell: Cell) -> Path:
        """Create a new folder for the files of a profiler; the folder of an earlier attempt stays."""
        name = f"{_stem(planned.position, cell.slug)}.{planned.profile}"
        with as_store_error(self.folder / "profiles"):
            tries = len([*(self.folder / "profiles").glob(f"{glob.escape(name)}*/")])
            folder = self.folder / "profiles" / (f"{name}.{tries + 1}" if tries else name)
            folder.mkdir(parents=True)
        return folder

    def save(self, recording: Recording | DuetRecording, cell: Cell, *, profiled: bool = False) -> None:
        """Write a recording, completely or not at all. The cell of a duet is its baseline's cell."""
        if isinstance(recording, DuetRecording):
            folder = "sampled" if profiled else "duets"
        else:
            folder = "profiles" if profiled else "recordings"
        self.write(f"{folder}/{_stem(recording.position, cell.slug)}.json", stored_json(recording))


def _parts(manifest: Manifest) -> tuple[str, ...]:
    """The folders of this plan's recordings."""
    plan = manifest.plan
    if manifest.search is not None:
        return tuple(f"probes/{cell.slug}" for cell in plan.cells.values())
    return tuple(name for name, planned in _steps_by_folder(plan).items() if planned)


def _steps_by_folder(plan: Plan) -> Mapping[str, Sequence[PlannedTrial | PlannedDuet]]:
    """The steps of a plan by the folder of their recordings."""
    return {"recordings": plan.trials, "duets": plan.duets, "profiles": plan.profiled, "sampled": plan.sampled}


def _catalogues_of(plan: Plan) -> tuple[Path, ...]:
    """The folders of the catalogues that the servers of a plan come from."""
    entries = (variant.entry for variant in plan.suite.variants if isinstance(variant.entry, ServerEntry))
    return tuple(dict.fromkeys(Path(entry.family_folder).parent for entry in entries if entry.build is not None))


def capacity_store(folder: Path) -> RunStore:
    """The directory of the capacity, the first part of a run with two parts."""
    return RunStore(folder / CAPACITY)


def _stem(position: int, slug: str) -> str:
    return f"{position:04d}-{slug}"


def _if_readable(read: Callable[[], U], unread: list[str], otherwise: U) -> U:
    """What is read, or else this; why it cannot be read is added to `unread`."""
    try:
        return read()
    except StoreError as error:
        unread.append(error.message)
        return otherwise
