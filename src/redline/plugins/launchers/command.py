"""Servers that are commands of the user's: nothing is built, and nobody vouches for them."""

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from redline.errors import LaunchError
from redline.model import Variant
from redline.plugins.launchers.builds import StandingBuild
from redline.plugins.launchers.failures import OF_COMMAND
from redline.plugins.launchers.process import Prepared, ProcessServer, started
from redline.plugins.temporary import elsewhere, private_folder
from redline.ports import Building, BuildOutcome, Launch


def named_files(command: Sequence[str], folder: Path) -> dict[str, str]:
    """The SHA-256 of the program that a command starts in a folder, and of each file that it names, by path."""
    program = command[0] if "/" in command[0] else shutil.which(command[0]) or command[0]
    found = {}
    for named in (folder / word for word in (program, *command[1:])):
        with suppress(OSError, ValueError):
            if named.is_file():  # no device, which may have no end
                with named.open("rb") as file:
                    found[str(named)] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


class CommandLauncher:
    """Launcher of commands, each of which runs in the folder of its entry."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Nothing is built."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: "" for variant in variants})

    @contextmanager
    def running(self, launch: Launch) -> Iterator[ProcessServer]:
        """Start it, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        folder = Path(launch.variant.catalogued.family_folder)
        built = StandingBuild(launch.variant.catalogued, hash="", folder=folder, runtime_version="")
        try:
            scratch = private_folder("scratch")
        except OSError as error:
            message = f"{launch.variant.slug} could not be given a scratch folder: {error.strerror}"
            raise LaunchError(message, hint=elsewhere()) from error
        with started(launch, Prepared(built, None, scratch, advice=OF_COMMAND)) as server:
            yield server
