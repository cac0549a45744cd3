"""Send builds: the lab makes them once, and other hosts keep them by content hash."""

import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.errors import BuildError, LaunchError
from redline.files import mend
from redline.launching.builds import StandingBuild, hash_of_outputs, runtime_of
from redline.launching.inputs import ToolVersions, input_files
from redline.launching.temporary import temporary_folder
from redline.model import ServerEntry
from redline.ports import Building, BuildOutcome

CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class Parcel:
    """A build for transport: a tar archive of its files, by paths below the folder that holds the catalogue.

    `key` is the hash of the inputs and the outputs; `folder` is where it was built.
    """

    key: str
    name: str
    hash: str
    folder: str


def parcel_of(build: StandingBuild, project: Path) -> Parcel:
    """Return the files of a build below `project`. Raises BuildError for a build elsewhere."""
    folder = os.path.relpath(build.folder, project)
    if folder.startswith(".."):
        raise BuildError(
            f"{build.entry.name} cannot be sent to other hosts: it is built in {build.folder}, outside of {project}",
            hint="build it below the folder that holds the catalogue, and leave out `builds`",
        )
    key = f"{build.hash}-{hash_of_outputs(build)}"
    return Parcel(key, build.entry.name, build.hash, folder)


def packed(build: StandingBuild, project: Path) -> Iterator[bytes]:
    """Yield the archive of a build, in chunks. Raises BuildError if a file cannot be read."""
    buffer = io.BytesIO()
    try:
        with tarfile.open(fileobj=buffer, mode="w|", bufsize=CHUNK_BYTES) as archive:
            for path in _files(build):
                archive.add(path, arcname=os.path.relpath(path, project))
                if buffer.tell() >= CHUNK_BYTES:
                    yield buffer.getvalue()
                    buffer.seek(0)
                    buffer.truncate()
    except OSError as error:
        raise BuildError(
            f"{build.entry.name} cannot be sent to other hosts: {error.filename}: {error.strerror}",
            hint="leave the build folder alone while a run is going on, and run again",
        ) from error
    yield buffer.getvalue()


def _files(build: StandingBuild) -> list[Path]:
    """Return inputs and outputs of a build: servers are started from both."""
    named = [*input_files(build.entry, build.folder), *build.entry.catalogue_build.outputs]
    return [Path(os.path.normpath(build.folder / name)) for name in dict.fromkeys(named)]


class Received:
    """The builds that this host has received, in folders named by their keys."""

    def __init__(self, cache: Path) -> None:
        self._root = cache.absolute() / "received"
        self._tools = ToolVersions(self._root / "tools.json")
        self._arriving: dict[str, Path] = {}
        self._parcels: dict[str, Parcel] = {}

    def has(self, key: str) -> bool:
        """Whether all of it is here."""
        return self._folder(key).is_dir()

    def take(self, key: str, chunk: bytes, *, last: bool) -> None:
        """Take in the next chunk of an archive; the last chunk completes the build. Raises LaunchError."""
        file = self._root / f"{key}.{os.getpid()}.tar"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with file.open("ab" if key in self._arriving else "wb") as kept:
                kept.write(chunk)
            self._arriving[key] = file
            if last:
                del self._arriving[key]
                self._unpack(key, file)
        except (OSError, tarfile.TarError) as error:
            file.unlink(missing_ok=True)
            self._arriving.pop(key, None)
            hint = mend(error) if isinstance(error, OSError) else "run again: what arrived is damaged"
            raise LaunchError(f"a build could not be kept in {self._root}: {error}", hint=hint) from error

    def _unpack(self, key: str, file: Path) -> None:
        """Unpack an archive into its folder, whole or not at all."""
        with temporary_folder(self._root) as scratch:
            with tarfile.open(file) as archive:
                archive.extractall(scratch / "all", filter="tar")
            file.unlink()
            try:
                (scratch / "all").rename(self._folder(key))
            except OSError:
                if not self.has(key):  # else another agent of this host was faster
                    raise
                shutil.rmtree(scratch / "all", ignore_errors=True)

    def know(self, parcels: tuple[Parcel, ...]) -> None:
        """Let `find` look for these builds from now on."""
        self._parcels |= {parcel.name: parcel for parcel in parcels}

    def build(
        self, entries: Iterable[ServerEntry], progress: Callable[[Building], None], *, hash_outputs: bool = False
    ) -> BuildOutcome:
        """Find the builds; a build that cannot be started here is a failure."""
        del progress, hash_outputs
        outcome = BuildOutcome()
        for entry in entries:
            try:
                build = self.find(entry)
                outcome.runtimes[entry.name] = build.runtime_version
                outcome.hashes[entry.name] = build.hash
            except LaunchError as error:
                outcome.failures[entry.name] = BuildError.of(error)
        return outcome

    def find(self, entry: ServerEntry) -> StandingBuild:
        """Return the build to start. Raises LaunchError if it, or a tool that starts it, is missing here."""
        parcel = self._parcels.get(entry.name)
        if parcel is None or not self.has(parcel.key):
            raise LaunchError(f"{entry.name} has not been sent to this host", hint="this is an error in Redline")
        folder, needs = self._folder(parcel.key) / parcel.folder, entry.start.needs
        try:
            self._tools.check(entry.name, needs)
            runtime = runtime_of(self._tools.versions(entry.name, needs, folder))
        except BuildError as error:
            raise LaunchError.of(error) from error
        return StandingBuild(entry, parcel.hash, folder, runtime)

    def _folder(self, key: str) -> Path:
        return self._root / key
