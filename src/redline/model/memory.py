"""What a report says of a server's memory and pauses: over the used trials of one cell."""

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.runtime import CollectionSum, Durations, RuntimeName


class PauseMark(Frozen):
    """A pause of one trial, for the plots over time; `at_s` counts from the start of its warm-up."""

    position: int
    at_s: float
    duration_ns: int
    cause: str


class MemoryReport(Frozen):
    """Memory, collections and pauses of one cell's used trials, as its runtime said. Absent is what it did not say."""

    runtime: RuntimeName
    collector: str = ""
    trials: int = Field(description="used trials of which the runtime said something")
    seconds: float = Field(description="length of their measurements")
    allocated_per_s: float | None = None
    allocated_per_request: float | None = None
    live_bytes: int | None = Field(default=None, description="after collections of the whole heap, the median trial")
    most_used_bytes: int | None = Field(default=None, description="of the heap, before collections, in any trial")
    heap_bytes: int | None = Field(default=None, description="the largest capacity that the heap had")
    max_heap_bytes: int | None = Field(default=None, description="what it may grow to")
    peak_rss_bytes: int | None = Field(default=None, description="resident memory of the server's processes")
    limit_bytes: int | None = omitted_if_default(None, description="of its container")
    pauses: Durations
    paused_share: float = Field(description="of the time")
    to_safepoint: Durations
    stalls: Durations = omitted_if_default(Durations(), description="waits of threads for memory")
    collections: tuple[CollectionSum, ...] = ()
    evacuation_failures: int = omitted_if_default(0)
    humongous: int = omitted_if_default(0)
    collector_cores: float | None = Field(default=None, description="CPU time of its threads, in cores")
    compiler_cores: float | None = Field(default=None, description="CPU time of its threads, in cores")
    compiler_waits: float | None = Field(default=None, description="their waits for a core, in threads")
    longest: tuple[PauseMark, ...] = Field(default=(), description="the longest pauses, in order of time")
