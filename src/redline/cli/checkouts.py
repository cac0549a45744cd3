"""Two revisions of the user's repository, read from `--git` and `redline.yaml`, and built."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from redline.cli.build_view import BuildView
from redline.errors import BuildError, UsageError
from redline.plugins.revisions import WORK_TREE, Repository, Revision, build
from redline.suite import read_text, referenced_files
from redline.suite.project import PROJECT_FILE, Project, read_project


@dataclass(frozen=True)
class Checkout:
    """Two revisions and how to build and start them, in the folder `below` that of the repository."""

    repository: Repository
    revisions: tuple[Revision, Revision]
    project: Project
    below: Path

    @property
    def names(self) -> tuple[str, str]:
        """`main (1a2b3c4d5)`."""
        return str(self.revisions[0]), str(self.revisions[1])

    @property
    def leaves_out_changes(self) -> bool:
        """Whether the work tree has changes, and is not one of the two."""
        return self.repository.has_changes() and self.revisions[1].name != WORK_TREE

    @contextmanager
    def built(self) -> Iterator[tuple[Path, ...]]:
        """The folders to start them in. Raises BuildError; nothing is left when the block is left."""
        with ExitStack() as stack:
            try:
                folders = stack.enter_context(self.repository.checked_out(self.revisions))
                with BuildView(Console(stderr=True)) as view:
                    for folder, name in zip(folders, self.names, strict=True):
                        self._build(folder, name, view)
            except OSError as error:
                hint = "make room for temporary files; TMPDIR names their folder"
                raise BuildError(f"the revisions cannot be checked out: {error.strerror}", hint=hint) from error
            yield tuple(folder / self.below for folder in folders)

    def _build(self, folder: Path, name: str, view: BuildView) -> None:
        if not (folder / self.below).is_dir():
            hint = f"compare revisions that have it, or put {PROJECT_FILE} above it"
            raise BuildError(f"{name} has no folder {self.below}, in which {PROJECT_FILE} lies", hint=hint)
        if self.project.build is not None:
            build(self.project.build, folder / self.below, name, folder.with_suffix(".log"), view)


def read_checkout(written: str) -> Checkout:
    """What `--git` means here. Raises UsageError."""
    here = Path.cwd()
    repository = Repository.around(here)
    revisions = repository.range(written)
    folders = [each for each in (here, *here.parents) if each.is_relative_to(repository.folder)]
    file = next((folder / PROJECT_FILE for folder in folders if (folder / PROJECT_FILE).is_file()), None)
    if file is None:
        hint = "write one that has at least `start: ./server --port {port}`, and `build:` with what builds it"
        raise UsageError(f"there is no {PROJECT_FILE} in {here} or above it", hint=f"{hint}: docs/guide/ab.md")
    project = read_project(
        read_text(file), str(file.relative_to(here) if file.parent == here else file), referenced_files(file)
    )
    return Checkout(repository, revisions, project, file.parent.relative_to(repository.folder))
