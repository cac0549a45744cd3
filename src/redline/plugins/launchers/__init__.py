"""Launchers: from a variant to a running server, a launcher for each kind of server."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.plugins.launchers.attached import AttachedLauncher
    from redline.plugins.launchers.builds import Builds
    from redline.plugins.launchers.command import CommandLauncher
    from redline.plugins.launchers.compose import ComposeLauncher
    from redline.plugins.launchers.of_packages import OwnLauncher
    from redline.plugins.launchers.own_images import ImageLauncher
    from redline.plugins.launchers.process import ProcessLauncher
    from redline.plugins.launchers.revision import RevisionLauncher
    from redline.plugins.launchers.tap import tapped
else:
    __getattr__ = offered(__name__)
