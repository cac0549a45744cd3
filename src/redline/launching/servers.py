"""Launch servers of every kind, by the launchers of their kinds."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path

from redline import launching
from redline.model import AttachedServer, Variant
from redline.ports import Building, BuildOutcome, Launch, Launcher, RunningServer


class ServersLauncher:
    """Launcher of servers of every kind. That of a kind is imported for the first server of its kind.

    `stack` removes worktrees of revisions, and services that stay up. `own` are the names of launchers of other
    packages. Raises UsageError for a name that no package brings, or several do.
    """

    def __init__(self, catalogue: Path, cache: Path, stack: ExitStack, own: Iterable[str] = ()) -> None:
        self._folders, self._stack, names = (catalogue, cache), stack, tuple(own)
        self._of_packages = launching.OwnLauncher(names) if names else None

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

    @cached_property
    def _attached(self) -> Launcher:
        return launching.AttachedLauncher()

    @cached_property
    def _commands(self) -> Launcher:
        return launching.CommandLauncher()

    @cached_property
    def _revisions(self) -> Launcher:
        return launching.RevisionLauncher(self._stack)

    @cached_property
    def _catalogue(self) -> "launching.ProcessLauncher":
        return launching.ProcessLauncher(*self._folders)

    @cached_property
    def _images(self) -> Launcher:
        return launching.ImageLauncher(self._catalogue.containers)

    @cached_property
    def _services(self) -> Launcher:
        return launching.ComposeLauncher(self._catalogue.containers, self._stack)

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
            assert self._of_packages is not None, f"{entry.launcher} was not named"
            return self._of_packages
        return self._commands if entry.build is None else self._catalogue
