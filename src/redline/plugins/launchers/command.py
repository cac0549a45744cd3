"""Servers that are commands of the user's, for which nothing is built."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from redline.errors import LaunchError
from redline.model import Variant
from redline.plugins.launchers.builds import StandingBuild
from redline.plugins.launchers.failures import OF_COMMAND
from redline.plugins.launchers.process import Prepared, ProcessServer, started
from redline.plugins.temporary import elsewhere, private_folder
from redline.ports import Building, BuildOutcome, Launch


def named_files(command: Sequence[str], folder: Path) -> dict[str, str]:
    """The SHA-256 of the program that a command starts in a folder, and of the files that it names, by path."""
    program = command[0] if "/" in command[0] else shutil.which(command[0]) or command[0]
    hashes = {}
    for named in (folder / word for word in (program, *command[1:])):
        with suppress(OSError, ValueError):
            if named.is_file():  # no device, which may have no end
                with named.open("rb") as file:
                    hashes[str(named)] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes


class CommandLauncher:
    """Launcher of commands, which run in the folders of their entries."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Builds nothing; the content hash is that of the files which a command names."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: _content(variant) for variant in variants})

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start it, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return run_command(launch, Path(launch.variant.catalogued.family_folder), _content(launch.variant))


@contextmanager
def run_command(launch: Launch, folder: Path, content: str) -> Iterator[ProcessServer]:
    """Start a command in a folder, wait until it is ready, and stop it whatever happens. Raises LaunchError.

    `content` is the content hash of what it runs.
    """
    built = StandingBuild(launch.variant.catalogued, hash=content, folder=folder, runtime_version="")
    try:
        scratch = private_folder("scratch")
    except OSError as error:
        message = f"{launch.variant.slug} could not be given a scratch folder: {error.strerror}"
        raise LaunchError(message, hint=elsewhere()) from error
    with started(launch, Prepared(built, None, scratch, advice=OF_COMMAND)) as server:
        yield server


def _content(variant: Variant) -> str:
    """16 hex digits over the files that the command names; empty without any."""
    entry = variant.catalogued
    files = named_files(entry.start.command, Path(entry.family_folder))
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16] if files else ""
