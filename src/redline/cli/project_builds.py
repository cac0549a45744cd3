"""Builds the servers of `redline.yaml` where they are: in its folder, before they are measured."""

import tempfile
from pathlib import Path

from rich.console import Console

from redline.cli.build_view import BuildView
from redline.errors import BuildError
from redline.model import Suite
from redline.plugins.revisions import build
from redline.plugins.temporary import elsewhere
from redline.suite.project import Project


def build_servers(project: Project, suite: Suite, console: Console) -> None:
    """Run the build of each server that the suite has; what several share runs once. Raises BuildError.

    The rest of a comparison says little without one of its servers, so the first that does not build ends it.
    """
    folder = Path(project.document.file).parent
    commands = _commands(project, suite)
    if not commands:
        return
    hint = f"run `build` of {project.document.file} by hand, in {folder.resolve()}"
    try:
        with tempfile.TemporaryDirectory() as logs, BuildView(console) as view:
            for command, name in commands.items():
                build(command, folder, name, Path(logs) / f"{name}.log", view, hint)
    except OSError as error:
        message = f"the servers of {project.document.file} cannot be built: {error.strerror}"
        raise BuildError(message, hint=elsewhere()) from error


def _commands(project: Project, suite: Suite) -> dict[str, str]:
    """What is to be run, each with the name of the first server that it builds."""
    written = project.written
    if written.servers is None:
        return {} if written.build is None else {written.build: suite.variants[0].slug}
    chosen = {variant.entry.name for variant in suite.variants}
    commands: dict[str, str] = {}
    for server in written.servers:
        if server.build is not None and server.name in chosen:
            commands.setdefault(server.build, server.name)
    return commands
