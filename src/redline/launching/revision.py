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
from redline.model.catalogue import Checkout
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
        repository, name = Repository(Path(checkout.repository)), str(checkout.revision)
        try:
            root = self._stack.enter_context(repository.checked_out(checkout.revision))
            self._roots.setdefault(checkout, root)
            folder: Path = root / checkout.below
            if not folder.is_dir():
                hint = "compare revisions that have it, or put redline.yaml above it"
                raise BuildError(f"{name} has no folder {checkout.below}, in which redline.yaml lies", hint=hint)
            if checkout.build is not None:
                try:
                    build(checkout.build, folder, name, root.with_suffix(".log"), progress)
                except BuildError as error:
                    if why := _lacks_a_submodule(root):
                        raise BuildError(error.message, hint=f"{why}; {error.hint}") from error
                    raise
        except OSError as error:
            message = f"{name} cannot be checked out: {error.strerror}"
            raise BuildError(message, hint=elsewhere()) from error
        except UsageError as error:
            raise BuildError.of(error) from error
        return folder


def _lacks_a_submodule(root: Path) -> str:
    """Return advice if a checkout lacks a submodule; empty otherwise."""
    path = missing_submodule(root)
    return "" if path is None else f"the submodule {path} is empty: begin `build` with `git submodule update --init`"


def _checkout_of(variant: Variant) -> Checkout:
    checkout = variant.catalogued.checkout
    assert checkout is not None, f"{variant.slug} is no revision"
    return checkout
