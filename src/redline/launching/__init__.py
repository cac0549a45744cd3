"""Launchers: build, start and stop servers, from commands, images, compose files and git revisions."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.launching.attached import AttachedLauncher
    from redline.launching.builds import Builds
    from redline.launching.command import CommandLauncher
    from redline.launching.compose import ComposeLauncher
    from redline.launching.of_packages import OwnLauncher
    from redline.launching.own_images import ImageLauncher
    from redline.launching.process import ProcessLauncher
    from redline.launching.revision import RevisionLauncher
    from redline.launching.revisions import Repository
    from redline.launching.tap import tapped
else:
    __getattr__ = offered(__name__)
