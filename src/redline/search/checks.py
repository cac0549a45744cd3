"""Fresh probes at both ends of every answer: which are still to be made, and which were made."""

from collections.abc import Sequence
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
class Check:
    """A fresh probe at an end, as it was then; `probe` is its index among the evidence."""

    end: End
    probe: int


@dataclass
class Checks:
    """Of a search: `wanted` for each end, and an end that has moved by more than `precision` since gets new ones."""

    precision: float
    wanted: int = 1
    made: list[Check] = field(default_factory=list)

    def of(self, end: End) -> list[Check]:
        """Those that were made for it where it lies now."""
        near = self.precision * end.rate_per_s
        return [each for each in self._ever(end) if abs(each.end.rate_per_s - end.rate_per_s) <= near]

    def missing(self, ends: Sequence[End]) -> End | None:
        """The end that has the fewest of its checks, the lowest first; None when all have theirs."""
        lacking = [end for end in ends if len(self.of(end)) < self.wanted]
        return min(lacking, key=lambda end: (len(self.of(end)), end.rate_per_s), default=None)

    def turn(self, end: End) -> int:
        """The number, from 1, of the check that is next for this end: those of one turn may share a start."""
        return len(self._ever(end)) + 1

    def _ever(self, end: End) -> list[Check]:
        return [each for each in self.made if (each.end.name, each.end.side) == (end.name, end.side)]
