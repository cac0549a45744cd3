"""Two revisions of the user's repository, read from `--git` and `redline.yaml`."""

from pathlib import Path

from rich.console import Console

from redline.errors import UsageError
from redline.model.duet import Checkout
from redline.plugins.revisions import WORK_TREE, Repository
from redline.suite import read_text, referenced_files
from redline.suite.project import PROJECT_FILE, Project, read_project


def read_checkout(written: str) -> tuple[Checkout, Project]:
    """What `--git` means here, and how its servers are started and asked. Raises UsageError.

    Prints a warning where there are changes that are not committed, and are not compared.
    """
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
    if repository.has_changes() and revisions[1].name != WORK_TREE:
        start = revisions[0].name
        message = (
            f"changes that are not committed are not measured; `--git {start}` compares {start} with the work tree"
        )
        Console(stderr=True).print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)
    below = str(file.parent.relative_to(repository.folder))
    made = Checkout(repository=str(repository.folder), revisions=revisions, build=project.build, below=below)
    return made, project
