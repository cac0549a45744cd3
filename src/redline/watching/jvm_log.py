"""Read a JVM's log of collections and safepoints, line by line. Pure.

The log is written by `-Xlog:gc*,safepoint:file=F:utctime,uptimenanos,level,tags` or a selection of its tags (JEP 158,
JEP 271), by JDK 11 and later. Other decorations, in any order, are read too if they include a time of day.
Lines that are cut, or of another kind, are skipped.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from redline.model.runtime import Collection, CollectionKind, Pause

_DECORATION = re.compile(r"\[([^\]\[]{1,64})\]")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}")
_UPTIME = re.compile(r"(\d{1,18}|\d{1,9}\.\d{1,9})(ns|ms|s)")
_SAFEPOINT = re.compile(
    r'Safepoint "(?P<cause>[^"]*)", .*Reaching safepoint: (?P<reach>\d{1,18}) ns, .*Total: +(?P<total>\d{1,18}) ns'
)
_ENTERING_11 = re.compile(r"Entering safepoint region: (.+)")
_STOPPED_11 = re.compile(
    r"Total time for which application threads were stopped: (?P<total>\d{1,9}\.\d{1,9}) seconds, "
    r"Stopping threads took: (?P<reach>\d{1,9}\.\d{1,9}) seconds"
)
_NUMBERED = re.compile(r"GC\((\d{1,9})\) +(.+)")
_SIZES = (
    r"(?P<before>\d{1,12}[BKMGT])(?:\(\d+%\))?->(?P<after>\d{1,12}[BKMGT])"
    r"(?:\((?:\d+%|(?P<capacity>\d{1,12}[BKMGT]))\))?"
)
_TOOK = r"(?P<took>\d{1,9}\.\d{1,6})(?P<unit>ms|s)"
_LINE = re.compile(rf"(?P<what>.*?)(?: {_SIZES})?(?: {_TOOK})?")
_IN_BRACKETS = re.compile(r"\(((?:[^()]|\(\))*)\)")
_ROW = re.compile(r"(?:([YyO]): +)?(Used|Allocated|Live): +(.+)")
"""A row of Z's table of the heap, or of its two generations' tables."""
_COLUMN = re.compile(r"-|(\d{1,12}[BKMGT]) \(\d+%\)")
"""Columns: start of marking, its end, start of relocation, its end, and others."""
_STALL = re.compile(rf"(?:Allocation|Relocation) Stall \(.*\) {_TOOK}")
_CAPACITY = re.compile(r"(?:GC\(\d+\) +)?(?:[Yy]: +)?(?:Heap )?Max Capacity: +(\d{1,12}[BKMGT])\b.*")
_NO_ROOM = re.compile(r"To-space exhausted|Evacuation Failure(?!: Pinned\))")
"""Pinned regions stay where they are, and do not count as lack of room."""
_USING = re.compile(r"Using (?:The )?([A-Z][A-Za-z0-9]*)(?: Garbage Collector)?")
_UNITS = {"B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_NS = {"ns": 1, "ms": 1_000_000, "s": 1_000_000_000}
_MODES = frozenset({"Normal", "Mixed", "Prepare Mixed", "Concurrent Start", "Initial Mark", "Young", "Old", "Global"})
_Z_KINDS: dict[str, CollectionKind] = {"Garbage": "cycle", "Major": "cycle", "Minor": "young"}
_PARTS = frozenset({"Young", "Old"})
"""Shenandoah's generations. A collection of the old generation frees only entirely dead regions."""
_MOST_OPEN = 64
"""The most unfinished collections: G1's cycle, and the young collections that may happen meanwhile."""


class Stall(NamedTuple):
    """An allocation stall: a thread waited until memory was freed."""

    start_unix_ns: int
    duration_ns: int


class Allocated(NamedTuple):
    """Bytes allocated in the time before an instant."""

    at_unix_ns: int
    bytes: int
    over_ns: int


class Named(NamedTuple):
    """The collector's name or the maximum heap, as far as a line says it."""

    collector: str = ""
    max_heap_bytes: int | None = None


class CollectorWarning(NamedTuple):
    """A collection without room for live objects (`evacuation`), or caused by a large object (`humongous`)."""

    at_unix_ns: int
    kind: str


Event = Pause | Collection | Stall | Allocated | Named | CollectorWarning


class _Line(NamedTuple):
    at_ns: int
    tags: list[str]
    text: str


@dataclass
class _OpenCollection:
    """A collection that is not read completely."""

    start_ns: int
    end_ns: int = 0
    kind: CollectionKind = "cycle"
    cleanups: int = 0
    no_room: bool = False
    of_a_part: bool = False
    aborted: bool = False
    before: int | None = None
    after: int | None = None
    capacity: int | None = None
    used: tuple[int, int] | None = None
    marked: dict[str, int] = field(default_factory=dict)
    """Z's live bytes by generation, from its last marking."""

    def ended(self, kind: CollectionKind, cause: str, *, concurrent: bool, live: int | None = None) -> Collection:
        return Collection(
            start_unix_ns=self.start_ns,
            duration_ns=max(self.end_ns - self.start_ns, 0),
            kind=kind,
            cause=cause,
            concurrent=concurrent,
            before_bytes=self.before,
            after_bytes=self.after,
            capacity_bytes=self.capacity,
            live_bytes=live,
        )


@dataclass
class JvmLog:
    """The reader's state, whose size does not grow with the log.

    Clocks are written in milliseconds and uptimes in nanoseconds. So an instant is the uptime plus the largest
    difference of the two that any line had so far: the digits below a millisecond are cut off, not rounded.
    """

    _offset_ns: int | None = None
    _cause: str = ""
    _open: dict[int, _OpenCollection] = field(default_factory=dict)
    _used: tuple[int, int] | None = None
    """The last reading of the used heap: time and bytes."""
    _marked: bool = False
    """Whether G1 has marked its heap, and neither freed the garbage yet nor given that up."""

    def later(self) -> "JvmLog":
        """A state for later lines that do not follow the last line, but have the same clock."""
        return JvmLog(self._offset_ns)

    def read(self, lines: Iterable[str]) -> Iterator[Event]:
        """Yield the events of these lines; an event appears with its last line."""
        for raw in lines:
            line = self._split(raw.rstrip("\r\n"))
            if line is None:
                continue
            if "safepoint" in line.tags:
                yield from self._safepoint(line)
            elif "gc" in line.tags:
                yield from self._gc(line)
        yield from self._end_shenandoah()

    def _split(self, line: str) -> _Line | None:
        clock_ns = uptime_ns = None
        tags: list[str] = []
        at = 0
        while match := _DECORATION.match(line, at):
            word, at = match[1].strip(), match.end()
            if _CLOCK.fullmatch(word):
                clock_ns = _unix_ns(word)
            elif uptime := _UPTIME.fullmatch(word):
                uptime_ns = round(float(uptime[1]) * _NS[uptime[2]])
            else:
                tags = word.split(",")  # they come last of the decorations that are no time
        if clock_ns is not None and uptime_ns is not None:
            self._offset_ns = max(clock_ns - uptime_ns, self._offset_ns or 0)
        if uptime_ns is not None and self._offset_ns is not None:
            return _Line(self._offset_ns + uptime_ns, tags, line[at:].strip())
        return None if clock_ns is None else _Line(clock_ns, tags, line[at:].strip())

    def _safepoint(self, line: _Line) -> Iterator[Event]:
        if match := _ENTERING_11.fullmatch(line.text):
            self._cause = match[1]
            return
        if match := _SAFEPOINT.match(line.text):
            total_ns, reach_ns, cause = int(match["total"]), int(match["reach"]), match["cause"]
        elif match := _STOPPED_11.match(line.text):
            total_ns, reach_ns = round(float(match["total"]) * 1e9), round(float(match["reach"]) * 1e9)
            cause, self._cause = self._cause, ""
        else:
            return
        start_ns, reach_ns = line.at_ns - total_ns, min(reach_ns, total_ns)
        yield Pause(start_unix_ns=start_ns, duration_ns=total_ns, to_safepoint_ns=reach_ns, cause=cause or "unknown")

    def _gc(self, line: _Line) -> Iterator[Event]:
        if match := _CAPACITY.fullmatch(line.text):
            yield Named(max_heap_bytes=_bytes(match[1]))
        elif match := _NUMBERED.fullmatch(line.text):
            yield from self._numbered(line, int(match[1]), match[2])
        elif match := _STALL.fullmatch(line.text):
            took_ns = _took_ns(match)
            yield Stall(line.at_ns - took_ns, took_ns)
        elif line.tags == ["gc"] and (match := _USING.fullmatch(line.text)):
            yield Named(collector=match[1])

    def _numbered(self, line: _Line, number: int, text: str) -> Iterator[Event]:
        if number not in self._open:
            yield from self._end_shenandoah()
            for old in [known for known in self._open if known <= number - _MOST_OPEN]:
                del self._open[old]
            self._open[number] = _OpenCollection(line.at_ns)
        known = self._open[number]
        known.end_ns = line.at_ns
        if match := _ROW.fullmatch(text):
            yield from self._row(line.at_ns, known, match, _COLUMN.findall(match[3]))
        elif line.tags == ["gc"] and (match := _LINE.fullmatch(text)):
            if _NO_ROOM.search(text):
                known.no_room = True
                yield CollectorWarning(line.at_ns, "evacuation")
            began_ns = line.at_ns - _took_ns(match)
            known.start_ns = min(known.start_ns, began_ns)
            yield from self._ended(line.at_ns, began_ns, number, match)

    def _ended(self, at_ns: int, began_ns: int, number: int, match: re.Match[str]) -> Iterator[Event]:
        """End a collection, or a part of it."""
        known, what = self._open[number], f"{match['what']}  ".split(" ")
        marks = _IN_BRACKETS.findall(match["what"])
        cause = next((mark for mark in marks if mark not in _MODES), "")
        before, after = (_bytes(match[name]) if match[name] else None for name in ("before", "after"))
        if before is None or after is None:
            if what[0] == "Concurrent" and "Cycle" in what[1:3] and match["took"]:
                # Of G1. It frees no region that something lives in: the mixed collections after it do.
                self._marked = what[1] != "Undo" and not known.aborted
                del self._open[number]
                yield known.ended("cycle", cause, concurrent=True)
            return
        known.before, known.after = before if known.before is None else known.before, after
        known.capacity = _bytes(match["capacity"]) if match["capacity"] else None
        if what[1] == "Collection" and what[0] in _Z_KINDS:
            del self._open[number]
            kind = _Z_KINDS[what[0]]
            live = sum(known.marked.values()) if known.marked and kind == "cycle" else None
            yield known.ended(kind, cause, concurrent=True, live=live)
        elif what[:2] == ["Concurrent", "cleanup"]:  # of Shenandoah, which also copies between the first and the second
            known.cleanups += 1
            known.kind, known.of_a_part = "young" if "Young" in marks else "cycle", not _PARTS.isdisjoint(marks)
            yield from self._heap(began_ns, began_ns, at_ns, before, after, copied=known.cleanups > 1)
        elif what[0] == "Pause":
            yield from self._heap(began_ns, at_ns, at_ns, before, after)
            if what[1] in ("Young", "Full", "Degenerated"):
                del self._open[number]
                known.before, known.start_ns = before, began_ns
                if "Humongous" in cause:
                    yield CollectorWarning(at_ns, "humongous")
                kinds: dict[str, CollectionKind] = {"Full": "full", "Degenerated": "degenerated"}
                kind = "mixed" if "Mixed" in marks else kinds.get(what[1], "young")
                tells = self._tells(kind, marks) and not known.no_room
                yield known.ended(kind, cause, concurrent=False, live=after if tells else None)

    def _tells(self, kind: CollectionKind, marks: list[str]) -> bool:
        """Whether the used heap after this pause is about the live set; without room a collection frees too little."""
        if kind in ("full", "degenerated"):
            for known in self._open.values():  # an unfinished marking of G1 does not count
                known.aborted = True
            self._marked = False
            return _PARTS.isdisjoint(marks)
        if "Prepare Mixed" in marks:
            return False  # the next ones free more
        # Without mixed collections after a marking too little could be freed, by default less than 5% of the heap.
        tells, self._marked = kind == "mixed" or self._marked, False
        return tells

    def _row(self, at_ns: int, known: _OpenCollection, row: re.Match[str], columns: list[str]) -> Iterator[Allocated]:
        """Read a row of Z's table: the used heap before and after, allocated bytes, or live bytes."""
        generation, name = (row[1] or "").upper(), row[2]
        if len(columns) < 4 or not columns[3]:
            return
        if name == "Live" and columns[1]:
            known.marked[generation] = _bytes(columns[1])
        elif generation == "O":
            return  # new objects are in the young generation
        elif name == "Allocated" and known.used is not None:
            yield from self._heap(known.start_ns, known.start_ns, at_ns, *known.used)
            yield Allocated(at_ns, _bytes(columns[3]), at_ns - known.start_ns)
        elif name == "Used" and known.used is None and columns[0]:
            known.used = _bytes(columns[0]), _bytes(columns[3])

    def _heap(  # noqa: PLR0913 - two instants, two sizes
        self, began_ns: int, from_ns: int, to_ns: int, before: int, after: int, *, copied: bool = False
    ) -> Iterator[Allocated]:
        """Take in the used heap `before` and `after` a collection; `copied` counts some of it twice.

        A collection that began before the last reading was interrupted by another: its `before` is older than that.
        """
        since_ns, used = self._used or (from_ns, before)
        if before >= used and began_ns >= since_ns and from_ns > since_ns and not copied:
            yield Allocated(from_ns, before - used, from_ns - since_ns)
        self._used = (to_ns, after)

    def _end_shenandoah(self) -> Iterator[Collection]:
        """End Shenandoah's cycles, which have no last line, when the next collection begins."""
        for number in [number for number, cycle in self._open.items() if cycle.cleanups]:
            cycle = self._open.pop(number)
            yield cycle.ended(cycle.kind, "", concurrent=True, live=None if cycle.of_a_part else cycle.after)


def _unix_ns(text: str) -> int | None:
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000
    except (ValueError, OverflowError):
        return None


def _took_ns(match: re.Match[str]) -> int:
    return round(float(match["took"]) * _NS[match["unit"]]) if match["took"] else 0


def _bytes(text: str) -> int:
    return int(text[:-1]) << _UNITS[text[-1]]
