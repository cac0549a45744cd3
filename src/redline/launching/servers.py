"""Launch servers by their kind: commands and git revisions here, all others by other modules."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath

from redline.errors import BuildError, LaunchError, UsageError
from redline.launching.attached import AttachedLauncher
from redline.launching.builds import StandingBuild
from redline.launching.compose import ComposeLauncher
from redline.launching.failures import OF_COMMAND, OF_REVISION, LaunchAdvice
from redline.launching.of_packages import OwnLauncher
from redline.launching.own_images import ImageLauncher
from redline.launching.process import Prepared, ProcessLauncher, ProcessServer, started
from redline.launching.revisions import Repository, build, missing_submodule
from redline.launching.temporary import elsewhere, private_folder
from redline.model import AttachedServer, Variant
from redline.model.catalogue import Checkout
from redline.ports import Building, BuildOutcome, Launch, Launcher, RunningServer


class CommandLauncher:
    """Launcher of a user's commands, which run in the folders of their entries."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build nothing; the content hash is that of the files which a command names."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: _content(variant) for variant in variants})

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start it, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return _run_command(launch, Path(launch.variant.catalogued.family_folder), _content(launch.variant))


@contextmanager
def _run_command(
    launch: Launch, folder: Path, content: str, advice: LaunchAdvice = OF_COMMAND
) -> Iterator[ProcessServer]:
    """Start the command of a launch in a folder; `content` is the content hash of what it runs."""
    built = StandingBuild(launch.variant.catalogued, hash=content, folder=folder, runtime_version="")
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


class RevisionLauncher:
    """Launcher of git revisions. Their worktrees are removed when `stack` ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folders: dict[tuple[Checkout, int], Path] = {}
        self._roots: dict[Checkout, Path] = {}

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Check the revisions out and build them `builds` times; the content hash is the commit."""
        outcome = BuildOutcome()
        for variant in variants:
            checkout = _checkout_of(variant)
            try:
                for number in range(builds):
                    if (checkout, number) not in self._folders:
                        self._folders[checkout, number] = self._built(checkout, progress)
                outcome.hashes[variant.slug] = checkout.revision.commit
                outcome.checkouts[variant.slug] = self._roots[checkout]
            except BuildError as error:
                outcome.failures[variant.slug] = error
        return outcome

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start it in its build folder, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        checkout = _checkout_of(launch.variant)
        folder = self._folders[checkout, launch.build_number]
        advice = OF_COMMAND if checkout.build else OF_REVISION
        depth = len(PurePath(checkout.below).parts)
        if why := _lacks_a_submodule([folder, *folder.parents][depth]):
            advice = replace(advice, by_hand=f"{why}; {advice.by_hand}")
        return _run_command(launch, folder, checkout.revision.commit, advice)

    def _built(self, checkout: Checkout, progress: Callable[[Building], None]) -> Path:
        """Build a revision, and return the folder to start it in. Raises BuildError."""
        repository, name = Repository(Path(checkout.repository)), str(checkout.revision)
        try:
            root = self._stack.enter_context(repository.checked_out(checkout.revision))
            self._roots.setdefault(checkout, root)
            folder: Path = root / checkout.below
            if not folder.is_dir():
                hint = "compare revisions that have it, or put redline.yaml above it"
                raise BuildError(f"{name} has no folder {checkout.below}, in which redline.yaml lies", hint=hint)
            if checkout.build is not None:
                try:
                    build(checkout.build, folder, name, root.with_suffix(".log"), progress)
                except BuildError as error:
                    if why := _lacks_a_submodule(root):
                        raise BuildError(error.message, hint=f"{why}; {error.hint}") from error
                    raise
        except OSError as error:
            message = f"{name} cannot be checked out: {error.strerror}"
            raise BuildError(message, hint=elsewhere()) from error
        except UsageError as error:
            raise BuildError.of(error) from error
        return folder


def _lacks_a_submodule(root: Path) -> str:
    """Return advice if a checkout lacks a submodule; empty otherwise."""
    path = missing_submodule(root)
    return "" if path is None else f"the submodule {path} is empty: begin `build` with `git submodule update --init`"


def _checkout_of(variant: Variant) -> Checkout:
    checkout = variant.catalogued.checkout
    assert checkout is not None, f"{variant.slug} is no revision"
    return checkout


class ServersLauncher:
    """Launcher of servers of every kind, by the launchers of their kinds."""

    def __init__(
        self, catalogue: ProcessLauncher, revisions: RevisionLauncher, services: ComposeLauncher, own: OwnLauncher
    ) -> None:
        self._catalogue, self._revisions, self._services, self._of_packages = catalogue, revisions, services, own
        self._attached, self._commands = AttachedLauncher(), CommandLauncher()
        self._images = ImageLauncher(catalogue.containers)

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants need. Failures are in the outcome, by variant slug."""
        wanted: dict[Launcher, list[Variant]] = {}
        for variant in variants:
            wanted.setdefault(self._launcher_of(variant), []).append(variant)
        outcome = BuildOutcome()
        for launcher, own in wanted.items():
            outcome = outcome.joined(launcher.build(own, progress, builds))
        return outcome

    def running(self, launch: Launch) -> AbstractContextManager[RunningServer]:
        """Start a server or a proxy, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return self._launcher_of(launch.variant).running(launch)

    def _launcher_of(self, variant: Variant) -> Launcher:
        entry = variant.entry
        if isinstance(entry, AttachedServer):
            return self._attached
        if entry.checkout is not None:
            return self._revisions
        if entry.image is not None:
            return self._images
        if entry.compose is not None:
            return self._services
        if entry.launcher is not None:
            return self._of_packages
        return self._commands if entry.build is None else self._catalogue
