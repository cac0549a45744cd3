"""Read the `redline.yaml` of a folder, and resolve revisions in the git repository of that folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from redline import launching
from redline.errors import UsageError
from redline.lazily import dataclass
from redline.model.catalogue import WORK_TREE, Checkout
from redline.schema.project import ProjectServerSchema
from redline.schema.suite import ServerSchema
from redline.suite import read_text, referenced_files
from redline.suite.project import PROJECT_FILE, Origins, Project, read_project
from redline.suite.urls import check_has_a_host


def find_project(folder: Path) -> Path | None:
    """Return the `redline.yaml` in a folder or above it, up to the root of a git repository; None if there is none.

    A file of another user counts only in the folder itself: nobody asked for the commands of a file above it. Raises
    UsageError if the folder has something else of that name.
    """
    for here in (folder, *folder.parents):
        file = here / PROJECT_FILE
        is_there = os.path.isfile(file)  # noqa: PTH113 - Path.is_file raises for a folder that may not be searched
        if is_there and (here == folder or file.stat().st_uid in (0, os.geteuid())):
            return file
        if here == folder and os.path.lexists(file) and not is_there:
            what = "a folder" if os.path.isdir(file) else "not a file that can be read"  # noqa: PTH112 - as above
            raise UsageError(f"{file} is {what}", hint="write a file of this name, or remove it")
        if os.path.lexists(here / ".git"):
            return None
    return None


def read_project_file(file: Path) -> Project:
    """Read a project. Raises UsageError with all problems of the file."""
    here = Path.cwd()
    shown = file.relative_to(here) if file.parent == here else file
    return read_project(read_text(file), str(shown), referenced_files(file))


def project_name(project: Project) -> str:
    """The name of a project in reports: that of its folder."""
    return Path(project.document.file).resolve().parent.name or PROJECT_FILE


def project_here() -> Project | None:
    """Return the project of the current folder; None if there is none. Raises UsageError."""
    file = find_project(Path.cwd())
    return None if file is None else read_project_file(file)


def _contained(server: ProjectServerSchema) -> str | None:
    """Return what starts a server in a container, which cannot be built at a revision."""
    if server.compose is not None:
        return "compose file"
    return None if server.image is None else "image"


@contextmanager
def _no_ports(*revisions: str) -> Iterator[None]:
    """Say of revisions that git does not know, and that are ports, how a server there is named. Raises UsageError."""
    try:
        yield
    except UsageError:
        for revision in revisions:
            check_has_a_host(revision)
        raise


@dataclass(frozen=True)
class FromRepository:
    """The git repository of a folder. Its properties raise UsageError if there is no repository, or no project."""

    folder: Path

    def origins(self) -> Origins:
        """The origins of a suite in the folder; the repository is read when the suite names a revision."""
        return Origins(self.checkout, lambda: self.project, str(self.folder), lambda: self.servers)

    @cached_property
    def servers(self) -> dict[str, ServerSchema]:
        """The servers of a `redline.yaml` in the folder or above it, by name."""
        file = find_project(self.folder)
        return {} if file is None else read_project_file(file).servers(str(file.resolve().parent))

    @cached_property
    def repository(self) -> "launching.Repository":
        """The git repository."""
        return launching.Repository.around(self.folder)

    @cached_property
    def file(self) -> Path:
        """The `redline.yaml` in the folder or above it."""
        folders = [here for here in (self.folder, *self.folder.parents) if here.is_relative_to(self.repository.folder)]
        for folder in folders:
            if (folder / PROJECT_FILE).is_file():
                return folder / PROJECT_FILE
        hint = "write a file with at least `start: ./server --port {port}`, and `build:` with what builds it"
        raise UsageError(f"there is no {PROJECT_FILE} in {self.folder} or above it", hint=f"{hint}: docs/guide/ab.md")

    @cached_property
    def project(self) -> Project:
        """How to build and start a revision, and its requests."""
        project = read_project_file(self.file)
        if project.own is None:
            hint = "add `start: ./server --port {port}` beside `servers`, and `build:` with what builds it"
            kept = next(filter(None, map(_contained, project.written.servers or ())), None)
            if kept is not None:
                hint = f"`git worktree add` checks out the other revision: name its {kept} as a second server"
            raise UsageError(f"{project.document.file} does not say how a revision is started", hint=hint)
        return project

    def checkout(self, revision: str) -> Checkout:
        """Return a revision by its name, and how to build it. Raises UsageError."""
        with _no_ports(revision):
            found = self.repository.revision(revision)
        return Checkout(
            repository=str(self.repository.folder),
            revision=found,
            build=self.project.build,
            below=str(self.file.parent.relative_to(self.repository.folder)),
        )

    def ends(self, written: str) -> tuple[str, str]:
        """Return the two revisions of a range: their names, or the commit for a merge base. Raises UsageError."""
        with _no_ports(written):
            first, second = self.repository.range(written)
        return (first.commit if "..." in written else first.name), second.name

    def leaves_out_changes(self, revisions: tuple[str, ...]) -> bool:
        """Whether tracked files have changes that none of these revisions includes."""
        with _no_ports(*revisions):
            return WORK_TREE not in revisions and self.repository.has_changes()
