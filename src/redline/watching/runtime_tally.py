"""Sum up the events of a runtime's log into facts of a bounded size. Pure."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, Literal, TypeVar

from redline.model.histogram import Histogram
from redline.model.runtime import (
    MOST_COLLECTIONS,
    MOST_LIVE,
    MOST_PAUSES,
    Collection,
    CollectionKind,
    CollectionSum,
    CounterCheck,
    Durations,
    Pause,
    RuntimeFacts,
    RuntimeName,
)
from redline.watching.jvm_log import Allocated, CollectorWarning, Event, Named, Stall

_BATCH = 4096
_MOST_CAUSES = 40


class _Sums:
    """A distribution of durations, which holds only a few thousand at a time."""

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
    def __init__(self, most: int) -> None:
        self._most, self._order = most, count()
        self._kept: list[tuple[int, int, _T]] = []

    def add(self, pause: _T) -> None:
        put = heapq.heappush if len(self._kept) < self._most else heapq.heappushpop
        put(self._kept, (pause.duration_ns, next(self._order), pause))

    def in_order(self) -> tuple[_T, ...]:
        return tuple(sorted((pause for *_, pause in self._kept), key=lambda pause: pause.start_unix_ns))


@dataclass
class RuntimeTally:
    """Sums events within a window. Its size does not grow with their number."""

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
    _mixed: Literal["", "kept", "left out"] = ""
    """Whether the last size is from mixed collections, to which another may belong."""
    _most_used: int | None = None
    _paused_ns: Counter[int] = field(default_factory=Counter)
    _allocated: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Allocated bytes by heap, as the paused time, and the time for which they are known."""
    _warnings: Counter[str] = field(default_factory=Counter)

    def add(self, event: Event, heap: int = 0) -> None:
        """Take in an event of a heap: processes of a cluster have their own heaps, and pause alone."""
        match event:
            case Named():
                collector = event.collector or self._named.collector
                self._named = Named(collector, event.max_heap_bytes or self._named.max_heap_bytes)
            case Pause():
                if self._covers(event.start_unix_ns, event.end_unix_ns):
                    self._pauses.add(event.duration_ns)
                    self._to_safepoint.add(event.to_safepoint_ns)
                    self._longest.add(event)
                    self._paused_ns[heap] += self._inside(event.start_unix_ns, event.end_unix_ns)
            case Collection():
                if self._covers(event.start_unix_ns, event.end_unix_ns):
                    self._collection(event)
            case Stall():
                if self._covers(event.start_unix_ns, event.start_unix_ns + event.duration_ns):
                    self._stalls.add(event.duration_ns)
            case Allocated():
                self._allocation(event, heap)
            case CollectorWarning():
                self._warnings[event.kind] += self._covers(event.at_unix_ns, event.at_unix_ns)

    def _covers(self, start_unix_ns: int, end_unix_ns: int) -> bool:
        return start_unix_ns <= self.window_unix_ns[1] and end_unix_ns >= self.window_unix_ns[0]

    def _inside(self, start_unix_ns: int, end_unix_ns: int) -> int:
        """The part of a span within the window."""
        return max(min(end_unix_ns, self.window_unix_ns[1]) - max(start_unix_ns, self.window_unix_ns[0]), 0)

    def _collection(self, collection: Collection) -> None:
        self._longest_collections.add(collection)
        key = (collection.kind, collection.cause)
        if key not in self._sums and len(self._sums) >= _MOST_CAUSES:
            key = (collection.kind, "")
        sums = self._sums.setdefault(key, [0, 0])
        sums[0] += 1
        sums[1] += self._inside(collection.start_unix_ns, collection.end_unix_ns)
        if collection.before_bytes is not None:
            self._most_used = max(collection.before_bytes, self._most_used or 0)
        if collection.live_bytes is not None:
            self._lives(collection.end_unix_ns, collection.live_bytes, mixed=collection.kind == "mixed")
        elif collection.kind == "cycle":
            self._mixed = ""

    def _lives(self, at_unix_ns: int, size: int, *, mixed: bool) -> None:
        """Keep the live set. Mixed collections after a cycle free the heap by steps: the smallest value counts."""
        if mixed and self._mixed:
            if self._mixed == "kept" and size < self._live[-1][1]:
                self._live[-1] = at_unix_ns, size
            return
        self._live_seen += 1
        if kept := self._live_seen % self._live_step == 0:
            self._live.append((at_unix_ns, size))
        if len(self._live) > MOST_LIVE:  # an odd number: the last value is left out
            self._live, self._live_step, kept = self._live[1::2], self._live_step * 2, False
        self._mixed = ("kept" if kept else "left out") if mixed else ""

    def _allocation(self, event: Allocated, heap: int) -> None:
        """Add an allocation's part in the window, as if it had been even."""
        inside = self._inside(event.at_unix_ns - event.over_ns, event.at_unix_ns)
        if inside > 0:
            known, over_ns = self._allocated.get(heap, (0, 0))
            self._allocated[heap] = known + event.bytes * inside // event.over_ns, over_ns + inside

    @property
    def collector(self) -> str:
        """The collector's name; empty if no event says it."""
        return self._named.collector

    def facts(
        self,
        runtime: RuntimeName,
        max_heap_bytes: int | None = None,
        checks: Sequence[CounterCheck] = (),
        traced_bytes: int = 0,
    ) -> RuntimeFacts:
        """Facts from all events. `max_heap_bytes` is the default for a log that does not say it."""
        sums = sorted(self._sums.items(), key=lambda item: -item[1][1])
        # With several heaps, all allocate at the same time, each at its own rate.
        allocating_ns = max((over_ns for _, over_ns in self._allocated.values()), default=0)
        allocated = [size * allocating_ns // over_ns for size, over_ns in self._allocated.values()]
        return RuntimeFacts(
            runtime=runtime,
            collector=self._named.collector,
            max_heap_bytes=self._named.max_heap_bytes or max_heap_bytes,
            pauses=self._pauses.durations(),
            to_safepoint=self._to_safepoint.durations(),
            longest_pauses=self._longest.in_order(),
            paused_ns=max(self._paused_ns.values(), default=0),
            collections=tuple(
                CollectionSum(kind=kind, cause=cause, count=number, total_ns=total)
                for (kind, cause), (number, total) in sums
            ),
            longest_collections=self._longest_collections.in_order(),
            live_unix_ns=tuple(at for at, _ in self._live),
            live_bytes=tuple(size for _, size in self._live),
            most_used_bytes=self._most_used,
            allocated_bytes=sum(allocated) if allocated else None,
            allocating_ns=allocating_ns,
            stalls=self._stalls.durations(),
            evacuation_failures=self._warnings["evacuation"],
            humongous=self._warnings["humongous"],
            checks=tuple(checks),
            traced_bytes=traced_bytes,
        )
