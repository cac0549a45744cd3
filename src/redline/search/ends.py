"""Which ends of the answers get a fresh probe next, and which have had theirs. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["low", "high"]


@dataclass(frozen=True)
class End:
    """One end of a set's answer."""

    name: str
    side: Side
    rate_per_s: float


@dataclass(frozen=True)
class EndCheck:
    """A fresh probe at an end, as it was then; `probe` is its index among the evidence.

    `start` is which fresh start it is on, from 1; with 0 nothing is started for it.
    """

    end: End
    probe: int
    start: int = 0


@dataclass
class Checks:
    """The ends of a search. On each of `starts` fresh starts every end has one, where it lies by then.

    Without fresh starts each end has one, and another one when it has moved by more than `precision` since.
    """

    precision: float
    starts: int = 0
    made: list[EndCheck] = field(default_factory=list)

    def next(self, ends: Sequence[End], probe: int) -> EndCheck | None:
        """The one to be made next, by the probe of that index, the lowest first; None when all were made."""
        for start in range(self._last_start, self.starts + 1):
            had = {(each.end.name, each.end.side) for each in self.made if each.start == start}
            lacking = [end for end in ends if self._lacks(end, had)]
            if lacking:
                return EndCheck(min(lacking, key=lambda end: end.rate_per_s), probe, start)
        return None

    def settled(self, ends: Sequence[End]) -> list[EndCheck] | None:
        """The probes for these ends where they lie now; None if one of them has too few."""
        wanted = max(self.starts, 1)
        found = [self._near(end)[-wanted:] for end in ends]
        return None if any(len(each) < wanted for each in found) else [one for each in found for one in each]

    @property
    def _last_start(self) -> int:
        """The latest one: the search never returns to an earlier start."""
        return max((each.start for each in self.made), default=min(self.starts, 1))

    def _lacks(self, end: End, had: Collection[tuple[str, Side]]) -> bool:
        return (end.name, end.side) not in had if self.starts else not self._near(end)

    def _near(self, end: End) -> list[EndCheck]:
        of_this = [each for each in self.made if (each.end.name, each.end.side) == (end.name, end.side)]
        within = self.precision * end.rate_per_s
        return [each for each in of_this if abs(each.end.rate_per_s - end.rate_per_s) <= within]
