"""The intervals of a load: at most `MOST_INTERVALS`, however long it lasts. Pure."""

from redline.model import Interval
from redline.model.traffic import TICK_NS

MOST_INTERVALS = 1200
"""The most intervals of a measurement: twenty minutes at one second. Longer measurements merge neighbours."""


def kept_ns(interval_ns: int, lasted_ns: int) -> int:
    """Return the length of the kept intervals: doubled until there are at most `MOST_INTERVALS`."""
    while lasted_ns > MOST_INTERVALS * interval_ns:
        interval_ns *= 2
    return interval_ns


class KeptIntervals:
    """Takes in successive intervals, of this length if the engine was read in time."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = self._kept_ns = interval_ns
        self._measured_from_ns: int | None = None
        self._kept: list[Interval] = []

    def all(self) -> tuple[Interval, ...]:
        """The kept intervals, without gaps."""
        return tuple(self._kept)

    def add(self, interval: Interval) -> None:
        """Add an interval."""
        if interval.phase == "measure":
            if self._measured_from_ns is None:
                self._measured_from_ns = interval.start_ns
            kept = kept_ns(self._interval_ns, interval.end_ns - self._measured_from_ns)
            if kept > self._kept_ns:
                finer, self._kept, self._kept_ns = self._kept, [], kept
                for kept_before in finer:
                    self._append(kept_before)
        self._append(interval)

    def _append(self, interval: Interval) -> None:
        last = self._kept[-1] if self._kept and self._kept_ns > self._interval_ns else None
        if last and last.phase == interval.phase == "measure" and self._place(last) == self._place(interval):
            merged = Interval.merged([last, interval], last.index, last.start_ns, interval.end_ns)
            ticks = last.ticks + interval.ticks
            if interval.start_ns - last.start_ns != len(last.ticks) * TICK_NS:
                ticks = ()
            self._kept[-1] = merged = merged.with_steps(ticks, _added(last.workers, interval.workers))
            for each in (merged, last, interval):  # merging decoded them
                each.pack()
        elif interval.index != len(self._kept):
            renumbered = Interval.merged([interval], len(self._kept), interval.start_ns, interval.end_ns)
            self._kept.append(renumbered.with_steps(interval.ticks, interval.workers))
        else:
            self._kept.append(interval)

    def _place(self, interval: Interval) -> int:
        """Return the index of the kept interval in which an interval ends."""
        return -(-(interval.end_ns - (self._measured_from_ns or 0)) // self._kept_ns)


def _added(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Right answers by worker of two intervals; none if one does not say them."""
    return tuple(a + b for a, b in zip(first, second, strict=True)) if len(first) == len(second) else ()
