"""Launch the commands of users."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from redline.errors import LaunchError
from redline.launching.builds import StandingBuild
from redline.launching.failures import OF_COMMAND, LaunchAdvice
from redline.launching.process import Prepared, ProcessServer, started
from redline.launching.temporary import elsewhere, private_folder
from redline.model import Variant
from redline.ports import Building, BuildOutcome, Launch


class CommandLauncher:
    """Launcher of a user's commands, which run in the folders of their entries."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build nothing; the content hash is that of the files which a command names."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: _content(variant) for variant in variants})

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start it, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return run_command(launch, Path(launch.variant.catalogued.family_folder), _content(launch.variant))


@contextmanager
def run_command(
    launch: Launch, folder: Path, content: str, advice: LaunchAdvice = OF_COMMAND
) -> Iterator[ProcessServer]:
    """Start the command of a launch in a folder; `content` is the content hash of what it runs."""
    built = StandingBuild(
        launch.variant.catalogued, hash=content, folder=folder, runtime_version="", number=launch.build_number
    )
    try:
        scratch = private_folder("scratch")
    except OSError as error:
        message = f"{launch.variant.slug} could not be given a scratch folder: {error.strerror}"
        raise LaunchError(message, hint=elsewhere()) from error
    with started(launch, Prepared(built, None, scratch, advice=advice)) as server:
        yield server


def _content(variant: Variant) -> str:
    """Return 16 hex digits of a hash of a command's program and the files that it names; empty without any."""
    (program, *words), folder = variant.catalogued.start.command, Path(variant.catalogued.family_folder)
    if "/" not in program:
        program = shutil.which(program) or program
    hashes = {}
    for named in (folder / word for word in (program, *words)):
        with suppress(OSError, ValueError):
            if named.is_file():  # not a device, which may have no end
                with named.open("rb") as file:
                    hashes[str(named)] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16] if hashes else ""
