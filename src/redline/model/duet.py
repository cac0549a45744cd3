"""A duet: several servers alive at once, loaded in short slices in turn. See docs/reference/engine-protocol.md."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import Revision
from redline.model.environment import Environment
from redline.model.estimate import Metric, Verdict
from redline.model.failures import FirstFailure
from redline.model.finding import Finding
from redline.model.histogram import Histogram
from redline.model.hosts import HostFacts, host_of
from redline.model.plan import PLACES, Cell
from redline.model.recording import Failure, ServerFacts
from redline.model.traffic import AgreedTls, Counts, Ended, Engine

DUET_FORMAT: Literal["redline.duet/1"] = "redline.duet/1"


class DuetSlice(Frozen):
    """One slice of one target. Times are in nanoseconds since the epoch; counts are of all workers."""

    target: int = Field(ge=0, description="0 is the first server of the start")
    start_ns: int
    end_ns: int = Field(description="when all was answered")
    measured_ns: int = Field(description="from the end of the guard to when the end was noticed")
    measured: int = Field(description="right answers in that time")
    completed: int = Field(description="right answers in the entire slice")
    failed: int
    bytes_received: int | None = omitted_if_default(
        None, description="in the entire slice: of all its answers, heads and bodies; null in older recordings"
    )
    cpu_ns: tuple[int | None, ...] = Field(
        description="CPU time of each target's processes, null of another "
        "that is loaded at the same time; empty if not read"
    )
    engine_cpu_ns: int
    steal_ns: int | None = None


class DuetBlock(Frozen):
    """Two slices of each target, in the order in which they ran."""

    index: int
    phase: Literal["warmup", "measure"]
    slices: tuple[DuetSlice, ...]


class TargetTraffic(Frozen):
    """A target's traffic in all of its measured slices."""

    counts: Counts
    response: Histogram
    service: Histogram
    lateness: Histogram
    handshake: Histogram | None = omitted_if_default(None)
    engine_cpu_ns: int
    failures: tuple[FirstFailure, ...] = omitted_if_default(
        (), description="the first failure of each outcome, from the warm-up on, in the order of outcomes"
    )


class DuetTraffic(Frozen):
    """The traffic of a duet."""

    engine: Engine
    connections: int
    connect_ns: int
    epoch_unix_ns: int
    tls: AgreedTls | None = omitted_if_default(None)
    ended: Ended
    blocks: tuple[DuetBlock, ...]
    paused_blocks: int = omitted_if_default(0, description="left out because the engine stood still meanwhile")
    targets: tuple[TargetTraffic, ...]


class CpuOwner(Frozen):
    """Processes whose CPU time was read for a server that somebody else runs."""

    processes: tuple[str, ...] = Field(default=(), description="their names and numbers when the load began")
    unknown: str = Field(default="", description="why it is not known whose it is; empty where it is")
    behind: str = Field(default="", description="processes that they asked in turn, whose CPU time is not counted")


class DuetRecording(Frozen):
    """The raw facts of one start of all servers of a duet, without judgement.

    `cell_ids`, `servers` and the targets of `traffic` have one order: the baseline, those that are compared with it,
    and the baseline once more, as a control. The facts of a server are None if somebody else runs it.
    """

    format: Literal["redline.duet/1"] = DUET_FORMAT
    cell_ids: tuple[str, ...]
    round: int = Field(ge=0, description="the number of the start, from 0")
    position: int = Field(ge=0, description="in the order of the run")
    seed: int
    started_unix_ns: int
    took_ns: int = Field(default=0, ge=0, description="from the launch of the first server to the end of the last")
    places: tuple[int, ...] = omitted_if_default((), description=PLACES)
    servers: tuple[ServerFacts | None, ...] = ()
    owners: tuple[CpuOwner, ...] = omitted_if_default(
        (), description="of each server, whose CPU time was read; empty if all were started for the duet"
    )
    traffic: DuetTraffic | None = None
    failure: Failure | None = None
    hosts: tuple[HostFacts, ...] = omitted_if_default((), description="the hosts it ran on; empty if it was one")

    @property
    def is_complete(self) -> bool:
        """Whether it ended without a failure or an interrupt."""
        return self.failure is None and self.traffic is not None and self.traffic.ended == "complete"

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt ended it."""
        return self.failure is None and not self.is_complete

    @property
    def host(self) -> str:
        """The host of its servers; empty for this machine."""
        return host_of(self.hosts)


class DuetPlan(Frozen):
    """What is started together, and for how long: cells that differ in their variants alone, the baseline first."""

    cells: tuple[Cell, ...] = Field(min_length=2)
    seed: int
    lasts_ns: int = Field(gt=0, description="how long all starts take; there are three of them at least")
    once: bool = omitted_if_default(
        default=False, description="the servers run already and cannot be started again: one start takes all the time"
    )
    same_answers: bool = omitted_if_default(
        default=False, description="a start whose servers answer differently fails before its load"
    )
    parallel: bool = omitted_if_default(
        default=False,
        description="servers are loaded at the same time, each on cores of its own, which are drawn for each start",
    )


class CheckoutPair(Frozen):
    """Two revisions of a repository, and how to build them in the folder `below` that of the repository."""

    repository: str = Field(description="its topmost folder")
    revisions: tuple[Revision, Revision]
    build: str | None = Field(description="commands for `sh`")
    below: str


AB_PLAN_FORMAT: Literal["redline.ab-plan/1"] = "redline.ab-plan/1"


class AbPlan(Frozen):
    """`ab.json`: what `redline ab` compares, and how; written before the first start.

    `a` and `b` are what a report calls them. Servers of a checkout get their folders when they are built.
    """

    format: Literal["redline.ab-plan/1"] = AB_PLAN_FORMAT
    created_unix_ns: int
    command: str
    a: str
    b: str
    metric: Metric
    duet: DuetPlan
    checkout: CheckoutPair | None = omitted_if_default(None)
    files: dict[str, str] = omitted_if_default({}, description="SHA-256 of each file that the commands name, by path")
    environment: Environment


AB_FORMAT: Literal["redline.ab/1"] = "redline.ab/1"


class Ratio(Frozen):
    """B over A, with its 95% interval; None where there is too little to tell."""

    value: float
    low: float | None
    high: float | None

    def is_beyond(self, threshold: float) -> bool:
        """Whether the whole interval is farther from 1 than this relative difference, upwards or downwards."""
        if self.low is None or self.high is None:
            return False
        return self.low > 1 + threshold or self.high < 1 / (1 + threshold)

    def is_within(self, threshold: float) -> bool:
        """Whether the whole interval is closer to 1 than that."""
        return (
            self.low is not None
            and self.high is not None
            and 1 / (1 + threshold) < self.low <= self.high < 1 + threshold
        )


class AbMetric(Frozen):
    """One metric of B over that of A. `self_ratio` is A over A: two servers of A in the same duet."""

    metric: Metric
    ratio: Ratio
    verdict: Verdict
    self_ratio: Ratio | None = None


class AbReport(Frozen):
    """The answer of `redline ab`: the metric that was asked for, and `also` the others.

    `starts` counts the fresh starts of all servers, `seconds` is how long these took.
    """

    format: Literal["redline.ab/1"] = AB_FORMAT
    a: str
    b: str
    metric: Metric
    ratio: Ratio
    verdict: Verdict
    self_ratio: Ratio | None
    starts: int
    seconds: float
    interrupted: bool = False
    unsettled: str = omitted_if_default(
        "", description="why ratios may yet move, which their intervals allow for: servers were not warm"
    )
    also: tuple[AbMetric, ...]
    findings: tuple[Finding, ...]
