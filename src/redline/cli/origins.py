"""Where the revisions of a suite come from: the git repository of a folder, and its `redline.yaml`."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from redline.errors import UsageError
from redline.model.catalogue import Checkout
from redline.plugins.revisions import WORK_TREE, Repository
from redline.suite import read_text, referenced_files
from redline.suite.project import PROJECT_FILE, Origins, Project, read_project


@dataclass(frozen=True)
class FromRepository:
    """The repository that a folder is in. Its properties raise UsageError where there is none, or no project."""

    folder: Path

    def origins(self) -> Origins:
        """The origins of a suite in the folder; the repository is read once the suite names a revision."""
        return Origins(self.checkout, lambda: self.project, str(self.folder))

    @cached_property
    def repository(self) -> Repository:
        """The repository itself."""
        return Repository.around(self.folder)

    @cached_property
    def file(self) -> Path:
        """The `redline.yaml` in the folder or above it."""
        folders = [here for here in (self.folder, *self.folder.parents) if here.is_relative_to(self.repository.folder)]
        for folder in folders:
            if (folder / PROJECT_FILE).is_file():
                return folder / PROJECT_FILE
        hint = "write one that has at least `start: ./server --port {port}`, and `build:` with what builds it"
        raise UsageError(f"there is no {PROJECT_FILE} in {self.folder} or above it", hint=f"{hint}: docs/guide/ab.md")

    @cached_property
    def project(self) -> Project:
        """How the server of a revision is built, started and asked."""
        here = Path.cwd()
        shown = self.file.relative_to(here) if self.file.parent == here else self.file
        return read_project(read_text(self.file), str(shown), referenced_files(self.file))

    def checkout(self, revision: str) -> Checkout:
        """A revision by its name, and how it is built. Raises UsageError."""
        return Checkout(
            repository=str(self.repository.folder),
            revision=self.repository.revision(revision),
            build=self.project.build,
            below=str(self.file.parent.relative_to(self.repository.folder)),
        )

    def ends(self, written: str) -> tuple[str, str]:
        """The two revisions of a range: names, and of a merge base its commit. Raises UsageError."""
        first, second = self.repository.range(written)
        return (first.commit if "..." in written else first.name), second.name

    def leaves_out_changes(self, revisions: tuple[str, ...]) -> bool:
        """Whether tracked files have changes that none of these revisions includes."""
        return WORK_TREE not in revisions and self.repository.has_changes()
