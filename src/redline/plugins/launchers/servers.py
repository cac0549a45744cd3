"""Servers of every kind in a session: of the catalogue, commands, revisions, and running servers."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from redline.model import AttachedServer, Variant
from redline.plugins.launchers.attached import AttachedLauncher
from redline.plugins.launchers.command import CommandLauncher
from redline.plugins.launchers.revision import RevisionLauncher
from redline.ports import Building, BuildOutcome, HopLauncher, Launch, Launcher, RunningServer, Upstream


class ServersLauncher:
    """Passes servers to the launchers of their kinds; proxies are of the catalogue."""

    def __init__(self, catalogue: HopLauncher, revisions: RevisionLauncher) -> None:
        self._catalogue, self._revisions = catalogue, revisions
        self._attached, self._commands = AttachedLauncher(), CommandLauncher()

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
        """Start a server, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return self._launcher_of(launch.variant).running(launch)

    def in_front(self, launch: Launch, upstream: Upstream) -> AbstractContextManager[RunningServer]:
        """Start a proxy in front of a running server or proxy, as `running` does. Raises LaunchError."""
        return self._catalogue.in_front(launch, upstream)

    def _launcher_of(self, variant: Variant) -> Launcher:
        entry = variant.entry
        if isinstance(entry, AttachedServer):
            return self._attached
        if entry.checkout is not None:
            return self._revisions
        return self._commands if entry.build is None else self._catalogue
