"""Build the servers of `redline.yaml` in its folder, before they are measured."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from redline.asking.origins import find_project, read_project_file
from redline.errors import BuildError, UsageError
from redline.launching.temporary import elsewhere
from redline.model import ServerEntry, Suite
from redline.schema.project import ProjectServerSchema
from redline.suite.project import Project


def build_named(near: Path, suite: Suite, console: Console) -> None:
    """Build the servers that a suite names from a redline.yaml in its folder or above it."""
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
    """Run the build of every server in the suite; a shared build runs once. Raises BuildError.

    A comparison says little without one of its servers, so the first failed build ends it.
    """
    folder, commands = Path(project.document.file).parent, commands_of(project, suite)
    run_builds(commands, project.document.file, folder, console)


def run_builds(commands: Mapping[str, str], of_what: str, folder: Path, console: Console) -> None:
    """Run commands, which map to the servers they build, in a folder. Raises BuildError."""
    if not commands:
        return
    from redline.cli.build_view import BuildView  # noqa: PLC0415 - most servers have nothing to build
    from redline.launching.revisions import build  # noqa: PLC0415

    hint = f"run `build` of {of_what} by hand, in {folder.resolve()}"
    try:
        with tempfile.TemporaryDirectory() as logs, BuildView(console) as view:
            for command, name in commands.items():
                build(command, folder, name, Path(logs) / f"{name}.log", view, hint)
    except OSError as error:
        raise BuildError(f"the servers of {of_what} cannot be built: {error.strerror}", hint=elsewhere()) from error


def builds_of(project: Project) -> tuple[str, ...]:
    """The builds of the project's servers, without repetition."""
    written = project.written
    servers = [written] if written.servers is None else written.servers
    return tuple(dict.fromkeys(server.build for server in servers if server.build is not None))


def commands_of(project: Project, suite: Suite) -> dict[str, str]:
    """Map build commands to the name of the first server that each builds."""
    written = project.written
    if written.servers is None:
        return {} if written.build is None else {written.build: suite.variants[0].slug}
    entries = [variant.entry for variant in suite.variants if isinstance(variant.entry, ServerEntry)]
    commands: dict[str, str] = {}
    for server in written.servers:
        if server.build is not None and any(_is_of(server, entry) for entry in entries):
            commands.setdefault(server.build, server.name)
    return commands


def _is_of(server: ProjectServerSchema, entry: ServerEntry) -> bool:
    """Whether a server of a suite is this server: the suite may have another of that name."""
    if entry.name != server.name:
        return False
    if entry.image is not None:
        return entry.image == server.own_image
    if entry.compose is not None:
        return entry.compose.service == server.service
    return entry.about == server.start
