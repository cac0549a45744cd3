"""Launch git revisions: check them out, build them, and start the command of their redline.yaml."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path, PurePath

from redline.errors import BuildError, UsageError
from redline.launching.command import run_command
from redline.launching.failures import OF_COMMAND, OF_REVISION
from redline.launching.process import ProcessServer
from redline.launching.revisions import Repository, build, missing_submodule
from redline.launching.temporary import elsewhere
from redline.model import Variant
from redline.model.catalogue import Checkout, Revision
from redline.ports import Building, BuildOutcome, Launch


class RevisionLauncher:
    """Launcher of git revisions. Their worktrees are removed when `stack` ends."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folders: dict[tuple[Checkout, int], Path] = {}
        self._roots: dict[Checkout, Path] = {}

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Check the revisions out and build them `builds` times; the content hash is the commit."""
        outcome = BuildOutcome()
        for variant in variants:
            checkout = _checkout_of(variant)
            try:
                for number in range(builds):
                    if (checkout, number) not in self._folders:
                        self._folders[checkout, number] = self._built(checkout, progress)
                outcome.hashes[variant.slug] = checkout.revision.commit
                outcome.checkouts[variant.slug] = self._roots[checkout]
            except BuildError as error:
                outcome.failures[variant.slug] = error
        return outcome

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start it in its build folder, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        checkout = _checkout_of(launch.variant)
        folder = self._folders[checkout, launch.build_number]
        advice = OF_COMMAND if checkout.build else OF_REVISION
        depth = len(PurePath(checkout.below).parts)
        if why := _lacks_a_submodule([folder, *folder.parents][depth]):
            advice = replace(advice, by_hand=f"{why}; {advice.by_hand}")
        return run_command(launch, folder, checkout.revision.commit, advice)

    def _built(self, checkout: Checkout, progress: Callable[[Building], None]) -> Path:
        """Build a revision, and return the folder to start it in. Raises BuildError."""
        repository = Repository(Path(checkout.repository))
        root, folder = built_checkout(
            repository, checkout.revision, checkout.below, checkout.build, self._stack, progress
        )
        self._roots.setdefault(checkout, root)
        return folder


def built_checkout(  # noqa: PLR0913, PLR0917 - what, where, and for how long
    repository: Repository,
    revision: Revision,
    below: str,
    command: str | None,
    stack: ExitStack,
    progress: Callable[[Building], None],
) -> tuple[Path, Path]:
    """Check a revision out until `stack` ends, and build its folder `below` by a command, if there is one.

    Gives its topmost folder and the built one. Raises BuildError.
    """
    try:
        root = stack.enter_context(repository.checked_out(revision))
        folder: Path = root / below
        if not folder.is_dir():
            hint = "name revisions that have it, or run it from a folder above, where redline.yaml lies"
            raise BuildError(f"{revision} has no folder {below}", hint=hint)
        if command is not None:
            try:
                build(command, folder, str(revision), root.with_suffix(".log"), progress)
            except BuildError as error:
                if why := _lacks_a_submodule(root):
                    raise BuildError(error.message, hint=f"{why}; {error.hint}") from error
                raise
    except OSError as error:
        raise BuildError(f"{revision} cannot be checked out: {error.strerror}", hint=elsewhere()) from error
    except UsageError as error:
        raise BuildError.of(error) from error
    return root, folder


def _lacks_a_submodule(root: Path) -> str:
    """Return advice if a checkout lacks a submodule; empty otherwise."""
    path = missing_submodule(root)
    return "" if path is None else f"the submodule {path} is empty: begin `build` with `git submodule update --init`"


def _checkout_of(variant: Variant) -> Checkout:
    checkout = variant.catalogued.checkout
    assert checkout is not None, f"{variant.slug} is no revision"
    return checkout
