"""What panels show of a load that runs: its latest rate and response times, and how much time is left."""

from collections.abc import Sequence

from redline.model import DuetBlock, Interval
from redline.quantities import duration

POINT_NS = 500_000_000
"""Rates are over this time at least: those of shorter intervals jump about, and nobody reads as fast."""
_MOST = 24
"""Rates that are kept.

They are replaced, never changed: a panel may be painted by another thread than the one that reads the engine.
"""


class RecentLoad:
    """The rate and response times of a load over its last half second, or its last interval if that is longer."""

    def __init__(self) -> None:
        self._open: list[Interval] = []
        self.rates: tuple[float, ...] = ()
        self.last: Interval | None = None
        self.waiting = 0
        """The requests that were due and have not ended."""

    def add(self, interval: Interval) -> None:
        """Take in another interval; those of the drain, which have no rate, are left out."""
        # In the measurement, answers to the warm-up's requests have no outcome.
        counts = interval.counts
        self.waiting = max(0, self.waiting + counts.due - max(counts.outcomes.total, counts.completed))
        if interval.lasts_ns <= 0 or interval.phase == "drain":
            return
        before = self._open[-1] if self._open else interval
        if before.phase != interval.phase or before.start_ns > interval.start_ns:  # of another load
            self._open.clear()
        self._open.append(interval)
        start_ns = self._open[0].start_ns
        if interval.end_ns - start_ns >= POINT_NS:
            self.last = Interval.merged(self._open, interval.index, start_ns, interval.end_ns)
            self.rates = _with(self.rates, self.last.counts.completed / self.last.lasts_ns * 1e9)
            self._open.clear()


class RecentDuet:
    """The rate of each server of a duet in its own slices of the last half second; the control is the baseline."""

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self._open: list[DuetBlock] = []
        self._open_ns = 0
        self.rates: tuple[float, ...] = ()
        self.last: Sequence[float | None] = ()
        """The rate of each server lately; None where nothing was measured of it."""

    def start(self) -> None:
        """Begin with other starts of the servers: their rates are not known yet."""
        self._open, self._open_ns, self.last = [], 0, ()

    def add(self, block: DuetBlock) -> None:
        """Take in another block."""
        self._open.append(block)
        self._open_ns += sum(slice_.end_ns - slice_.start_ns for slice_ in block.slices)
        if self._open_ns < POINT_NS:
            return
        answered, measured_ns = [0] * self._servers, [0] * self._servers
        for slice_ in (slice_ for block in self._open for slice_ in block.slices):
            server = slice_.target % self._servers  # the last target is the first server once more
            answered[server] += slice_.measured
            measured_ns[server] += slice_.measured_ns
        pairs = zip(answered, measured_ns, strict=True)
        self.last = [number / ns * 1e9 if ns else None for number, ns in pairs]
        self.rates = _with(self.rates, sum(answered) / max(1, sum(measured_ns)) * 1e9)
        self._open, self._open_ns = [], 0


def _with(rates: tuple[float, ...], latest: float) -> tuple[float, ...]:
    """The latest rates, as many as are kept."""
    return (*rates, latest)[-_MOST:]


def left_text(left_ns: float, *, at_most: bool = False) -> str:
    """`31 s left`, `at most 2 min 5 s left`; `longer than planned` once nothing is left."""
    if left_ns <= 0:
        return "longer than planned"
    seconds = max(1, round(left_ns / 1e9))
    text = f"{seconds} s" if seconds < 60 else duration(left_ns)
    return f"{'at most ' if at_most else ''}{text} left"
