"""Builds the servers of `redline.yaml` where they are: in its folder, before they are measured."""

import tempfile
from pathlib import Path

from rich.console import Console

from redline.cli.build_view import BuildView
from redline.cli.origins import find_project, read_project_file
from redline.errors import BuildError, UsageError
from redline.model import ServerEntry, Suite
from redline.plugins.revisions import build
from redline.plugins.temporary import elsewhere
from redline.suite.project import Project


def build_named(near: Path, suite: Suite, console: Console) -> None:
    """The same for a suite in a folder, which may name servers of a redline.yaml there or above it."""
    file = find_project(near)
    if file is None or not any(variant.is_own and not variant.is_attached for variant in suite.variants):
        return
    try:
        project = read_project_file(file)
    except UsageError:
        return  # no server of the suite is of that file
    if project.written.servers is not None:
        build_servers(project, suite, console)


def build_servers(project: Project, suite: Suite, console: Console) -> None:
    """Run the build of each server that the suite has; what several share runs once. Raises BuildError.

    The rest of a comparison says little without one of its servers, so the first that does not build ends it.
    """
    folder = Path(project.document.file).parent
    commands = commands_of(project, suite)
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


def builds_of(project: Project) -> tuple[str, ...]:
    """The builds of its servers, each once."""
    written = project.written
    servers = [written] if written.servers is None else written.servers
    return tuple(dict.fromkeys(server.build for server in servers if server.build is not None))


def commands_of(project: Project, suite: Suite) -> dict[str, str]:
    """What is to be run, each with the name of the first server that it builds."""
    written = project.written
    if written.servers is None:
        return {} if written.build is None else {written.build: suite.variants[0].slug}
    # A suite may have a server of that name with a command of its own.
    entries = [variant.entry for variant in suite.variants if isinstance(variant.entry, ServerEntry)]
    chosen = {(entry.name, _what_starts(entry)) for entry in entries}
    commands: dict[str, str] = {}
    for server in written.servers:
        if server.build is not None and (server.name, server.start or server.image or server.service) in chosen:
            commands.setdefault(server.build, server.name)
    return commands


def _what_starts(entry: ServerEntry) -> str:
    """Its image, service or command, as a redline.yaml writes it."""
    if entry.image is not None:
        return entry.image.name
    return entry.about if entry.compose is None else entry.compose.service
