"""Raw facts that a server's runtime (a JVM, Node, Go) reported in a trial: pauses, collections, memory.

All facts are about the measurement window unless a field says otherwise. The size is bounded: only the longest pauses
and collections are kept individually.
"""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.histogram import Histogram

MOST_PAUSES = 500
MOST_COLLECTIONS = 200
MOST_LIVE = 400
"""The most entries that are kept individually; for sizes of the live set, evenly over the window."""

RuntimeName = Literal["jvm", "node", "go"]
"""Runtimes that report facts."""

NATIVE = "native"
"""The runtime of a server that was compiled ahead of time."""

RECOGNISED = frozenset({"jvm", "node", "deno", "bun", "python", "pypy", "ruby", "php", "dotnet", "beam", "luajit"})
"""Runtimes that Redline recognises in a running process."""

COMPILES_WHILE_RUNNING = frozenset({"jvm", "node", "deno", "bun", "pypy", "dotnet", "luajit"})
"""Runtimes with a JIT compiler by default: servers are slow at first. Ruby, PHP and CPython need an option for it."""

CollectionKind = Literal["young", "mixed", "full", "cycle", "degenerated"]
"""`young` and `mixed`: of a part of the heap. `full`: of all of it, with the application stopped. `cycle`: of all of it
while the application runs. `degenerated`: a cycle that came too late and was ended with the application stopped."""


class Pause(Frozen):
    """A time in which no thread of the application ran. The duration includes the time to the safepoint."""

    start_unix_ns: int
    duration_ns: int = Field(ge=0)
    to_safepoint_ns: int = omitted_if_default(0, "until the last thread had stopped; part of the duration", ge=0)
    cause: str = Field(description="as the runtime names it, such as `G1CollectForAllocation`")

    @property
    def end_unix_ns(self) -> int:
        """When the application continued, in Unix ns."""
        return self.start_unix_ns + self.duration_ns


class Collection(Frozen):
    """A collection. Sizes are of the used heap before and after it, and of the heap's capacity after it."""

    start_unix_ns: int
    duration_ns: int = Field(ge=0)
    kind: CollectionKind
    cause: str = ""
    concurrent: bool = omitted_if_default(default=False, description="the application ran for most of it")
    before_bytes: int | None = Field(default=None, ge=0)
    after_bytes: int | None = Field(default=None, ge=0)
    capacity_bytes: int | None = Field(default=None, ge=0)
    live_bytes: int | None = omitted_if_default(None, "the live set, or an upper bound, as far as known", ge=0)

    @property
    def end_unix_ns(self) -> int:
        """When it ended, in Unix ns."""
        return self.start_unix_ns + self.duration_ns


class Durations(Frozen):
    """Number, sum and distribution of durations."""

    count: int = Field(default=0, ge=0)
    total_ns: int = Field(default=0, ge=0)
    histogram: Histogram = Field(default_factory=Histogram)


class CollectionSum(Frozen):
    """Collections of the same kind and cause."""

    kind: CollectionKind
    cause: str
    count: int
    total_ns: int


class CounterCheck(Frozen):
    """A number according to both the log and the runtime's counters, from the load's beginning to its end."""

    name: Literal["safepoints", "safepoint_ns", "collections"]
    logged: int
    counted: int


class RuntimeFacts(Frozen):
    """Facts that the server's runtime reported."""

    runtime: RuntimeName
    collector: str = Field(default="", description="such as `G1`; empty if not known")
    max_heap_bytes: int | None = Field(default=None, description="the maximum size of the heap")
    pauses: Durations = Durations()
    to_safepoint: Durations = omitted_if_default(Durations(), "the part of pauses until all threads had stopped")
    longest_pauses: tuple[Pause, ...] = Field(default=(), max_length=MOST_PAUSES, description="in order of time")
    collections: tuple[CollectionSum, ...] = ()
    longest_collections: tuple[Collection, ...] = Field(
        default=(), max_length=MOST_COLLECTIONS, description="in order of time"
    )
    paused_ns: int | None = omitted_if_default(None, "time paused in the window, of the process that paused longest")
    live_unix_ns: tuple[int, ...] = Field(default=(), description="ends of collections that report the live set")
    live_bytes: tuple[int, ...] = Field(default=(), description="the live set at these times, or an upper bound")
    most_used_bytes: int | None = Field(default=None, description="the most heap in use before collections")
    allocated_bytes: int | None = Field(default=None, description="bytes allocated in `allocating_ns`")
    allocating_ns: int = omitted_if_default(0, "time for which allocation is known; part of the window")
    stalls: Durations = omitted_if_default(Durations(), "waits of a thread for memory to be freed")
    evacuation_failures: int = omitted_if_default(0, "collections without room for live objects")
    humongous: int = omitted_if_default(0, "collections started by an object of half a region or more")
    checks: tuple[CounterCheck, ...] = ()
    traced_bytes: int = omitted_if_default(0, "size of these messages in the server's output")

    @property
    def allocated_per_s(self) -> float | None:
        """Bytes allocated per second; None if not known."""
        known = self.allocated_bytes is not None and self.allocating_ns > 0
        return (self.allocated_bytes or 0) * 1e9 / self.allocating_ns if known else None
