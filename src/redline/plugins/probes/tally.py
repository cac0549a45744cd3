"""Sums of counters whose parts come and go."""

from collections.abc import Mapping


class Tally:
    """The sum over parts of counters that only grow, such as the CPU times of processes. The sum never falls.

    A part, known by its id, that is missing, or smaller than before (the id was given to another), has ended: what it
    had counted is kept. What a part counts after it was last seen is lost.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._ended = 0

    def total(self, now: Mapping[int, int]) -> int:
        """The sum, given the parts that are there now and their values."""
        self._ended += sum(before for part, before in self._last.items() if now.get(part, -1) < before)
        self._last = dict(now)
        return self._ended + sum(now.values())
