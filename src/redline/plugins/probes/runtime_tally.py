"""Sums up the events of a runtime's log into facts of a bounded size. Pure."""

import heapq
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from redline.model.histogram import Histogram
from redline.model.runtime import (
    MOST_COLLECTIONS,
    MOST_LIVE,
    MOST_PAUSES,
    Collection,
    CollectionKind,
    CollectionSum,
    Durations,
    Pause,
    RuntimeFacts,
    RuntimeName,
)
from redline.plugins.probes.jvm_log import Allocated, CollectorWarning, Event, Named, Stall

_BATCH = 4096
_MOST_CAUSES = 40


class _Sums:
    """Durations, of which only a few thousand are held at a time."""

    def __init__(self) -> None:
        self._histogram, self._batch = Histogram(), list[int]()
        self._count = self._total_ns = 0

    def add(self, duration_ns: int) -> None:
        self._count += 1
        self._total_ns += duration_ns
        self._batch.append(duration_ns)
        if len(self._batch) >= _BATCH:
            self._merge()

    def _merge(self) -> None:
        self._histogram = Histogram.merged((self._histogram, Histogram.of(self._batch)))
        self._batch = []

    def durations(self) -> Durations:
        self._merge()
        return Durations(count=self._count, total_ns=self._total_ns, histogram=self._histogram)


_T = TypeVar("_T", Pause, Collection)


class _Longest(Generic[_T]):
    """The longest so many."""

    def __init__(self, most: int) -> None:
        self._most, self._order = most, count()
        self._kept: list[tuple[int, int, _T]] = []

    def add(self, one: _T) -> None:
        put = heapq.heappush if len(self._kept) < self._most else heapq.heappushpop
        put(self._kept, (one.duration_ns, next(self._order), one))

    def in_order(self) -> tuple[_T, ...]:
        return tuple(sorted((one for *_, one in self._kept), key=lambda one: one.start_unix_ns))


@dataclass
class RuntimeTally:
    """Takes in events, and keeps those of a window. Its size does not grow with their number."""

    window_unix_ns: tuple[int, int]
    _named: Named = field(default_factory=Named)
    _pauses: _Sums = field(default_factory=_Sums)
    _to_safepoint: _Sums = field(default_factory=_Sums)
    _stalls: _Sums = field(default_factory=_Sums)
    _longest: _Longest[Pause] = field(default_factory=lambda: _Longest(MOST_PAUSES))
    _longest_collections: _Longest[Collection] = field(default_factory=lambda: _Longest(MOST_COLLECTIONS))
    _sums: dict[tuple[CollectionKind, str], list[int]] = field(default_factory=dict)
    _live: list[tuple[int, int]] = field(default_factory=list)
    _live_seen: int = 0
    _live_step: int = 1
    _most_used: int | None = None
    _allocated: int | None = None
    _allocating_ns: int = 0
    _warnings: Counter[str] = field(default_factory=Counter)

    def add(self, event: Event) -> None:
        """Take in one more."""
        match event:
            case Named():
                collector = event.collector or self._named.collector
                self._named = Named(collector, event.max_heap_bytes or self._named.max_heap_bytes)
            case Pause():
                if self._covers(event.start_unix_ns, event.end_unix_ns):
                    self._pauses.add(event.duration_ns)
                    self._to_safepoint.add(event.to_safepoint_ns)
                    self._longest.add(event)
            case Collection():
                if self._covers(event.start_unix_ns, event.end_unix_ns):
                    self._collection(event)
            case Stall():
                if self._covers(event.start_unix_ns, event.start_unix_ns + event.duration_ns):
                    self._stalls.add(event.duration_ns)
            case Allocated():
                self._allocation(event)
            case CollectorWarning():
                self._warnings[event.kind] += self._covers(event.at_unix_ns, event.at_unix_ns)

    def _covers(self, start_unix_ns: int, end_unix_ns: int) -> bool:
        return start_unix_ns <= self.window_unix_ns[1] and end_unix_ns >= self.window_unix_ns[0]

    def _collection(self, one: Collection) -> None:
        self._longest_collections.add(one)
        key = (one.kind, one.cause)
        if key not in self._sums and len(self._sums) >= _MOST_CAUSES:
            key = (one.kind, "")
        sums = self._sums.setdefault(key, [0, 0])
        sums[0] += 1
        sums[1] += one.duration_ns
        if one.before_bytes is not None:
            self._most_used = max(one.before_bytes, self._most_used or 0)
        if one.whole and one.after_bytes is not None:
            self._live_seen += 1
            if self._live_seen % self._live_step == 0:
                self._live.append((one.end_unix_ns, one.after_bytes))
            if len(self._live) > MOST_LIVE:
                self._live, self._live_step = self._live[1::2], self._live_step * 2

    def _allocation(self, event: Allocated) -> None:
        """The part of it in the window, as if it had been even."""
        start, end = event.at_unix_ns - event.over_ns, event.at_unix_ns
        inside = min(end, self.window_unix_ns[1]) - max(start, self.window_unix_ns[0])
        if inside > 0:
            self._allocated = (self._allocated or 0) + event.bytes * inside // event.over_ns
            self._allocating_ns += inside

    def facts(self, runtime: RuntimeName, max_heap_bytes: int | None) -> RuntimeFacts:
        """What came of them. `max_heap_bytes` is used where no event says it."""
        sums = sorted(self._sums.items(), key=lambda item: -item[1][1])
        return RuntimeFacts(
            runtime=runtime,
            collector=self._named.collector,
            max_heap_bytes=self._named.max_heap_bytes or max_heap_bytes,
            pauses=self._pauses.durations(),
            to_safepoint=self._to_safepoint.durations(),
            longest_pauses=self._longest.in_order(),
            collections=tuple(
                CollectionSum(kind=kind, cause=cause, count=number, total_ns=total)
                for (kind, cause), (number, total) in sums
            ),
            longest_collections=self._longest_collections.in_order(),
            live_unix_ns=tuple(at for at, _ in self._live),
            live_bytes=tuple(size for _, size in self._live),
            most_used_bytes=self._most_used,
            allocated_bytes=self._allocated,
            allocating_ns=self._allocating_ns,
            stalls=self._stalls.durations(),
            evacuation_failures=self._warnings["evacuation"],
            humongous=self._warnings["humongous"],
        )
