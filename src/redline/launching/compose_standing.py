"""Services of compose files that stay up between the starts of a server which needs them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from redline.errors import LaunchError
from redline.launching.compose_project import ComposeProject
from redline.launching.temporary import private_folder, temporary_folder
from redline.model.catalogue import ComposeService
from redline.ports import Launch

Make = Callable[[Path], ComposeProject]
"""Makes a project of these services, with its files in a folder. Raises LaunchError and OSError."""
_Key = tuple[ComposeService, str, int]
"""The service, the slug of the server, and its place: in a search, servers of the same place run at the same time."""


class StandingServices:
    """Projects that hold all of a compose file but the server, for each server and place of a comparison its own."""

    def __init__(self) -> None:
        self._projects: dict[_Key, tuple[ComposeProject, ExitStack]] = {}

    def of(self, launch: Launch, service: ComposeService, make: Make) -> ComposeProject:
        """The project for a start, with its services running; started if need be. Raises LaunchError and OSError.

        A core is one of the server's or not: where the cores differ from those of the last start, it starts again.
        """
        key = (service, launch.variant.slug, launch.place)
        if key in self._projects:
            project, _ = self._projects[key]
            if project.cpus == launch.placement.server_cpus:
                try:
                    project.check_services()
                except LaunchError:
                    self._close(key)
                    raise
                return project
            self._close(key)
        with ExitStack() as stack:
            project = make(stack.enter_context(temporary_folder(private_folder("scratch"))))
            stack.callback(project.close)
            project.start_services()
            self._projects[key] = project, stack.pop_all()
        return project

    def _close(self, key: _Key) -> None:
        """Remove a project. What the container engine does not remove now, the janitor tries again in the end."""
        _, stack = self._projects.pop(key)
        with suppress(LaunchError):
            stack.close()

    def close(self) -> None:
        """Remove all projects, at the same time."""
        if self._projects:
            with ThreadPoolExecutor(len(self._projects)) as threads:
                for _ in threads.map(self._close, list(self._projects)):
                    pass
