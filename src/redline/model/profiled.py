"""Profiles in a report: the published view of profiled trials."""

from typing import NamedTuple

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate, Metric
from redline.model.profile import NativeMemory, ProfileFile, ProfileKind, ProfileUnit, Subject


class LibraryShare(Frozen):
    """A library's share of all samples. Shares of all libraries add up to 1."""

    name: str
    share: Estimate
    total: Estimate = Field(description="of the samples in which it is anywhere on the stack")


class FrameShare(Frozen):
    """A function's shares of all samples: self, and total (with what it called)."""

    frame: str
    library: str = Field(description="the library of most of its own samples")
    self_share: float
    total_share: float


class ThreadShare(Frozen):
    """Threads whose names differ in numbers alone, and their share of all samples."""

    name: str
    threads: int
    share: float


class Points(Frozen):
    """The cost that a library or a function adds, as a share of the other side's CPU time per request.

    If that is not known, `points` is the difference of shares.
    """

    name: str
    points: Estimate
    p_adjusted: float | None = Field(description="p-value with Holm's correction for all libraries or functions")


class ProfileChange(Frozen):
    """A cell's profile against that of another cell, or the slow moments of a profile against the rest of it."""

    against: str = Field(description="the other cell's id; empty for the rest of the same profile")
    ratio: Estimate | None = Field(description="of CPU time per request without a profiler; null: shares are compared")
    libraries: tuple[Points, ...] = Field(description="libraries with the largest difference first")
    frames: tuple[Points, ...] = Field(description="the same for functions, by their own samples")
    shares: tuple[Points, ...] = omitted_if_default((), "with a ratio: differences of shares, largest first")


class FlameNode(NamedTuple):
    """A frame; its parent is the last frame before it of less depth. `slow` is its weight in slow moments."""

    depth: int
    frame: int
    weight: int
    slow: int


class FlameGraph(Frozen):
    """A tree of frames in preorder, heaviest first. At depth 0 are threads by name, without numbers.

    Frames of less than `least` of the whole are left out, and the lightest of too many.
    """

    total: int = 0
    slow: int = 0
    least: float = 0.0
    frames: tuple[str, ...] = ()
    libraries: tuple[str, ...] = Field(default=(), description="of the `frames`, or of whole threads; empty for none")
    nodes: tuple[FlameNode, ...] = ()


class HeatRow(Frozen):
    """A library over time."""

    name: str
    weights: tuple[int, ...]


class HeatMap(Frozen):
    """Libraries over time: columns are equal spans of a trial."""

    column_s: float
    totals: tuple[int, ...] = Field(description="weight of all samples in each column")
    p99_ns: tuple[int | None, ...] = Field(description="the highest of the engine's intervals that overlap a column")
    slow: tuple[bool, ...] = Field(description="whether a slow moment is in it")
    rows: tuple[HeatRow, ...]


class ProfileReport(Frozen):
    """The profiles of one kind of a cell, over all of its profiled trials."""

    cell_id: str
    slug: str
    server: str
    scenario: str
    load: str
    kind: ProfileKind
    subject: Subject
    profiler: str
    event: str
    interval: int
    unit: ProfileUnit
    samples: int
    lost: int
    positions: tuple[int, ...] = Field(description="of the profiled trials in the plan")
    cpu_per_request_ns: float | None = Field(description="of the cell's unprofiled trials; null if it is not known")
    overhead: dict[Metric, Estimate] = Field(
        description="throughput and CPU time per request with the profiler over those without, on one start; "
        "empty if the load changes or is too short"
    )
    libraries: tuple[LibraryShare, ...] = Field(description="the largest first")
    frames: tuple[FrameShare, ...] = Field(description="functions with the largest own share first")
    threads: tuple[ThreadShare, ...]
    change: ProfileChange | None = omitted_if_default(None, "only if it has a baseline with a profile")
    by_rate: ProfileChange | None = omitted_if_default(
        None, "against the same server's profile at the lowest rate; only at the highest rate, if that is much higher"
    )
    slow: ProfileChange | None = omitted_if_default(None, "only if samples have times")
    graph: SkipJsonSchema[FlameGraph] = Field(default=FlameGraph(), exclude=True)  # for pages; files have it all
    heat: HeatMap | None = omitted_if_default(None, "only if samples have times")
    native: tuple[NativeMemory, ...] = omitted_if_default((), "from the first of these trials that has it")
    files: tuple[ProfileFile, ...]
    cut: float = omitted_if_default(
        0.0, "the share of samples whose stacks are deeper: their outer callers are unknown"
    )
    deepest: int = omitted_if_default(0, "the frames to which stacks were followed; 0 if they do not end there")
    unknown: str = omitted_if_default("", "why samples count as `unknown`")
    problem: str = omitted_if_default("", "why there are no stacks")
