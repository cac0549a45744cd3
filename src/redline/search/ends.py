"""Which ends of the answers get a fresh probe next, and which already had one. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["low", "high"]


@dataclass(frozen=True)
class End:
    """An end of a set's answer."""

    name: str
    side: Side
    rate_per_s: float


@dataclass(frozen=True)
class EndCheck:
    """A fresh probe at an end, where the end lay then; `probe` is its index in the evidence.

    `start` is the number of its fresh start, from 1; 0 if no server is started for it.
    """

    end: End
    probe: int
    start: int = 0


@dataclass
class Checks:
    """The checks of a search's ends: every end gets a probe on each of `starts` fresh starts, where it lies by then.

    Without fresh starts every end gets a probe, and another if it has moved by more than `precision` since.
    """

    precision: float
    starts: int = 0
    made: list[EndCheck] = field(default_factory=list)

    def next(self, ends: Sequence[End], probe: int) -> EndCheck | None:
        """The next check, the lowest end first, with `probe` as its index; None when all checks are made."""
        # The search never returns to an earlier start.
        first = max((check.start for check in self.made), default=min(self.starts, 1))
        for start in range(first, self.starts + 1):
            had = {(check.end.name, check.end.side) for check in self.made if check.start == start}
            lacking = [end for end in ends if not self._near(end)]
            if self.starts:
                lacking = [end for end in ends if (end.name, end.side) not in had]
            if lacking:
                return EndCheck(min(lacking, key=lambda end: end.rate_per_s), probe, start)
        return None

    def settled(self, ends: Sequence[End]) -> list[EndCheck] | None:
        """The probes for these ends where they lie now; None if an end has too few."""
        wanted = max(self.starts, 1)
        checks = [self._near(end)[-wanted:] for end in ends]
        too_few = any(len(made) < wanted for made in checks)
        return None if too_few else [check for made in checks for check in made]

    def _near(self, end: End) -> list[EndCheck]:
        of_this = [check for check in self.made if (check.end.name, check.end.side) == (end.name, end.side)]
        within = self.precision * end.rate_per_s
        return [check for check in of_this if abs(check.end.rate_per_s - end.rate_per_s) <= within]
