"""Measure a commit by a command of the user's that prints a number, beside the same of the oldest commit."""

import math
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from redline.errors import BuildError, RedlineError
from redline.launching.commands import lines_of, started
from redline.launching.guard import how_ended
from redline.launching.revision import built_checkout
from redline.launching.revisions import Repository
from redline.model.bisection import BisectedCommit, CommitDuet, PrintedNumber
from redline.model.catalogue import Revision
from redline.ports import Building

_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
FEWEST_PAIRS, MOST_PAIRS = 3, 100


@dataclass(frozen=True)
class NumberOfCommit:
    """Runs a shell command in the checkouts of a commit and of the oldest one, in turn.

    Each checkout is built once, and stays until `stack` ends.
    """

    repository: Repository
    oldest: Revision
    printed: PrintedNumber
    stack: ExitStack
    building: Callable[[], AbstractContextManager[Callable[[Building], None]]]
    _folders: dict[str, Path] = field(default_factory=dict)

    def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
        """Measure it. Raises RedlineError, which is a BuildError if it is the commit's own."""
        del number
        began = time.monotonic_ns()
        try:
            oldest = self._built(self.oldest)
        except BuildError as error:
            raise RedlineError(error.message, hint=error.hint) from None
        own = self._built(Revision(name=commit.commit[:9], commit=commit.commit))
        until_ns, build_ns = time.monotonic_ns() + self.printed.budget_ns, time.monotonic_ns() - began
        logs: list[float] = []
        while len(logs) < FEWEST_PAIRS or (time.monotonic_ns() < until_ns and len(logs) < MOST_PAIRS):
            if len(logs) % 2:
                value, base = self._number(own, commit.commit), self._base(oldest)
            else:
                base, value = self._base(oldest), self._number(own, commit.commit)
            logs.append(math.log(value / base))
        return CommitDuet(logs=tuple(logs), build_ns=build_ns)

    def _base(self, folder: Path) -> float:
        """The number of the oldest commit, without which no other is measured. Raises RedlineError."""
        try:
            return self._number(folder, self.oldest.commit)
        except BuildError as error:
            raise RedlineError(error.message, hint=error.hint) from None

    def _built(self, revision: Revision) -> Path:
        if revision.commit not in self._folders:
            with self.building() as progress:
                _, folder = built_checkout(
                    self.repository, revision, self.printed.below, self.printed.build, self.stack, progress
                )
            self._folders[revision.commit] = folder
        return self._folders[revision.commit]

    def _number(self, folder: Path, commit: str) -> float:
        """The last number in the last line that the command prints in a folder. Raises BuildError."""
        command, hint = self.printed.command, "it has to end with 0, and to print a number above 0 in its last line"
        with started(["sh", "-c", command], folder) as process:
            printed = b"".join(lines_of(process))
            code = process.wait()
        said = printed.decode(errors="replace").strip()[-200:] or "nothing"
        if code != 0:
            raise BuildError(f"{commit[:9]}: `{command}` ended {how_ended(code)}: {said}", hint=hint)
        numbers = _NUMBER.findall(printed.strip().rpartition(b"\n")[2])
        if not numbers or not 0 < float(numbers[-1]) < math.inf:
            raise BuildError(f"{commit[:9]}: `{command}` printed no number above 0: {said}", hint=hint)
        return float(numbers[-1])
