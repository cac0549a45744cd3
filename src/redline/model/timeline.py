"""What was recorded of a trial, on one time axis: for the page's plots, not part of any published format."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from redline.model.base import ROW, Frozen
from redline.model.estimate import Estimate, Metric
from redline.model.finding import Grade

ROWS_PER_DECADE = 10
"""Rows of a heat map per decade: each is 26% higher than the one below it."""


class TimedSteps(Frozen):
    """Named values over successive steps of time; None where nothing is known of a step, never an interpolation.

    `edges_s` are the ends of the steps, one more than there are steps. Rates are per second, times in nanoseconds,
    CPU in cores, memory in bytes.
    """

    edges_s: tuple[float, ...]
    values: dict[str, tuple[float | None, ...]]

    @classmethod
    def none(cls) -> "TimedSteps":
        """No steps."""
        return cls(edges_s=(), values={})

    def known(self, name: str) -> tuple[float, ...]:
        """The values that are known, in their order."""
        return tuple(value for value in self.values.get(name, ()) if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatColumn:
    """The response times of a step: requests by row, from the row `first` up.

    Row `n` holds the times from 10^(n/10) ns up to those of the next row.
    """

    __pydantic_config__ = ROW

    first: int = 0
    counts: tuple[int, ...] = ()


class TimelineEvent(Frozen):
    """A pause, a collection, a failure or a stretch that a finding is about.

    `lasts_ns` is 0 for an instant. `name` is its kind or cause.
    """

    at_s: float
    lasts_ns: int = Field(default=0, ge=0)
    name: str
    grade: Grade | None = None

    @property
    def end_s(self) -> float:
        """When it ended, in seconds since the load began."""
        return self.at_s + self.lasts_ns / 1e9


class TrialTimeline(Frozen):
    """A trial from the start of its warm-up to the end of its measurement; seconds count from its first request.

    What a monitor or a runtime did not report is absent.
    """

    position: int
    intervals: int = Field(default=0, ge=0, description="those that its steps are made of")
    measured_from_s: float
    ends_s: float
    load: TimedSteps = Field(description="offered, answered and errors; p50, p90, p99, p99.9 and max; engine (cores)")
    ticks: TimedSteps = Field(description="answered, in steps of 50 ms or little more; only of a trial that stalled")
    heat: tuple[HeatColumn, ...] = Field(description="response times by step of `load`")
    cpu: TimedSteps = Field(description="server, collector and compiler, in cores; a server with its proxies")
    memory: TimedSteps = Field(description="resident, and heap: its capacity")
    taken: TimedSteps = Field(
        description="steal, throttled and busy, in cores; of the machine, the server, the machine"
    )
    live: tuple[tuple[float, int], ...] = Field(default=(), description="seconds, and bytes of heap after a collection")
    pauses: tuple[TimelineEvent, ...] = Field(default=(), description="the longest of the measurement")
    collections: tuple[TimelineEvent, ...] = Field(default=(), description="the longest of the measurement")
    pauses_in_all: int = Field(default=0, description="of the measurement")
    collections_in_all: int = Field(default=0, description="of the measurement")
    events: tuple[TimelineEvent, ...] = Field(default=(), description="first failures, and findings that have a time")
    apart: bool = Field(default=False, description="the server ran on another host, whose clock is another")


class BlockStep(Frozen):
    """One or several successive blocks of a start; seconds count from its first slice.

    `costs` and `rates` are by server, in the order of `DuetTimeline.servers`: nanoseconds of CPU time per request, and
    right answers per second. None where it is not known.
    """

    at_s: float
    end_s: float
    blocks: int = Field(default=1, description="number of blocks in it")
    warms: bool = Field(description="part of the warm-up")
    counts: bool = Field(description="whether the ratios rest on it")
    costs: tuple[float | None, ...]
    rates: tuple[float | None, ...]


class StartTimeline(Frozen):
    """A start of the servers of a duet, and how the ratios read once it had ended."""

    number: int = Field(description="from 1, in the order of the run")
    left_out: str = Field(default="", description="why it does not count; empty if it does")
    paused_blocks: int = Field(default=0, description="left out because the engine was paused meanwhile")
    blocks: tuple[BlockStep, ...] = ()
    so_far: dict[Metric, Estimate] = Field(default={}, description="ratios over all starts up to this, where estimated")


class DuetTimeline(Frozen):
    """A server and its baseline by turns, start by start."""

    cell_id: str
    baseline_id: str
    servers: tuple[str, str, str] = Field(description="the baseline, the server, and the baseline as its own control")
    starts: tuple[StartTimeline, ...]
    failed: tuple[str, ...] = Field(default=(), description="why further starts failed")


class SearchedLoad(Frozen):
    """A load of a search: seconds count from its first request.

    `probe` is the index of the probe that it was, None for a warm-up, an approach or the overload test.
    """

    phase: Literal["warmup", "approach", "probe", "overload"]
    start: int = Field(description="number of the start of the server, from 0")
    measured_from_s: float
    ends_s: float
    rate_per_s: float | None = Field(description="as requested; None for a closed load")
    users: int | None = Field(default=None, description="of a search by users")
    answered_per_s: float
    probe: int | None = None
