"""A judged cell: its numbers, its trials, and the findings about them. A report has one for each cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from redline.model.base import ROW, Frozen, omitted_if_default
from redline.model.by_request import RequestReport
from redline.model.connections import AgreedTls
from redline.model.distribution import BandedPercentile
from redline.model.estimate import Estimate, Metric
from redline.model.failures import FirstFailure
from redline.model.finding import Finding
from redline.model.histogram import Histogram
from redline.model.journey_traffic import JourneyReport
from redline.model.judged import ObjectiveResult, WarmUp
from redline.model.kept import SlowRequest
from redline.model.load_result import LoadFacts
from redline.model.percentile import OtherTime, Percentile, TooFew
from redline.model.runtime import CollectionSum, Durations, RuntimeName
from redline.model.streams import STREAMS, StreamReport
from redline.model.timeline import TrialTimeline
from redline.model.traffic import ENCODED, Counts, Outcomes
from redline.model.validity import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An interval of a trial, for plots over time; `at_s` counts from the start of its warm-up."""

    __pydantic_config__ = ROW

    position: int
    phase: Literal["warmup", "measure", "drain"]
    at_s: float
    rate_per_s: float
    p50_ns: int
    p99_ns: int


class TrialReport(Frozen):
    """The summary of a trial."""

    position: int
    round: int
    used: bool = Field(description="whether all of the cell's estimates include it")
    partly: bool = omitted_if_default(default=False, description="whether only some of the cell's estimates include it")
    ended_early: bool = omitted_if_default(default=False, description="whether it failed or was cut short")
    rate_per_s: float | None = Field(description="of right answers; null if there were none, or if it is not known")
    p50_ns: int | None
    p99_ns: int | None
    cpu_per_request_ns: float | None
    bounds: dict[Metric, Bound] = omitted_if_default({}, "what is known in place of numbers that its findings hide")
    seconds: float | None = omitted_if_default(None, "how long was measured of a trial that ended early")
    outcomes: Outcomes | None = omitted_if_default(None, "how requests ended in a trial that ended early")
    warm_up: WarmUp | None = omitted_if_default(None, "absent if the trial was too short to classify")
    core_speed: float | None = omitted_if_default(
        None, "of the server's cores: 1.4 if they were 40% faster than in the median trial; absent if not measured"
    )
    failures: tuple[FirstFailure, ...] = omitted_if_default((), "the first of each outcome, from the warm-up on")
    aborted_by: str = omitted_if_default("", "the condition of `abort_when` that ended its load")
    failure: str = ""
    log_tail: str = Field(default="", description="the end of the server's output, if the trial failed")

    def counted_in_part(self) -> "TrialReport":
        """The same trial, on which some of the estimates of its cell rest."""
        return self.model_copy(update={"partly": True})


class PartReport(Frozen):
    """CPU cost of the server alone, or of a proxy in front of it."""

    name: str = Field(description="`server`, or the slug of the proxy")
    estimates: dict[Metric, Estimate] = Field(description="CPU per request and memory")
    build: str = omitted_if_default("", "of a proxy: content hash of its build")
    runtime_version: str = omitted_if_default("", "of a proxy: as it reports it, such as `nginx/1.22.1`")


class PauseMark(Frozen):
    """A pause of a trial, for plots over time; `at_s` counts from the start of its warm-up."""

    position: int
    at_s: float
    duration_ns: int
    cause: str


class WatchedSeries(Frozen):
    """A series of a monitor of another package, over the measurements of a cell's trials.

    A trial's value is the mean of a gauge's samples, or the increase of a counter per second; `middle` is the median of
    the trials' values. All are null without samples in any measurement.
    """

    name: str = Field(description="`MONITOR.NAME`")
    subject: str
    unit: str
    kind: Literal["counter", "gauge"]
    trials: int = Field(description="the trials that have samples of it")
    middle: float | None
    lowest: float | None = Field(description="the smallest value of a trial")
    highest: float | None = Field(description="the largest value of a trial")
    most: float | None = Field(description="the largest sample of a gauge in any of the measurements")


class MemoryReport(Frozen):
    """Memory, collections and pauses of a cell's used trials, of an invalid cell all trials, as its runtime said."""

    runtime: RuntimeName
    collector: str = ""
    trials: int = Field(description="trials with facts from the runtime")
    seconds: float = Field(description="length of their measurements")
    allocated_per_s: float | None = None
    allocated_per_request: float | None = None
    live_bytes: int | None = Field(default=None, description="the live set, or an upper bound, in the median trial")
    most_used_bytes: int | None = Field(default=None, description="of the heap, before collections, in any trial")
    heap_bytes: int | None = Field(default=None, description="the largest capacity that the heap had")
    max_heap_bytes: int | None = Field(default=None, description="the maximum size of the heap")
    peak_rss_bytes: int | None = Field(default=None, description="resident memory of the server's processes")
    limit_bytes: int | None = omitted_if_default(None, "of its container")
    pauses: Durations
    paused_share: float = Field(description="of the time; with several processes, of the process that paused longest")
    to_safepoint: Durations = Field(description="the part of pauses until all threads had stopped; only for a JVM")
    stalls: Durations = omitted_if_default(Durations(), "waits of threads for memory")
    collections: tuple[CollectionSum, ...] = ()
    evacuation_failures: int = omitted_if_default(0, "collections without room for live objects")
    humongous: int = omitted_if_default(0, "collections started by an object of half a region or more")
    collector_cores: float | None = Field(default=None, description="CPU time of its threads, in cores")
    compiler_cores: float | None = Field(default=None, description="CPU time of its threads, in cores")
    compiler_waits: float | None = Field(default=None, description="their waits for a core, in threads")
    longest: tuple[PauseMark, ...] = Field(default=(), description="the longest pauses, in order of time")


class CellReport(Frozen):
    """A cell. If `valid` is false, the findings say why, and only some numbers are known.

    Its `estimates` then hold these alone, and `bounds` what is known in place of the others.
    """

    cell_id: str
    slug: str
    server: str
    build: str = Field(default="", description="content hash of the build; empty if no trial got that far")
    runtime_version: str = Field(default="", description="as the server's runtime reports it, such as `rustc 1.95.0`")
    scenario: str
    load: str
    load_text: str = Field(description="such as `closed, 64 users, 1s`")
    warmed_up_before: str = omitted_if_default("", "by another load, before its timeline begins: `1 min by 2 users`")
    role: Literal["subject", "ceiling"]
    is_baseline: bool
    valid: bool
    trials_planned: int
    trials: tuple[TrialReport, ...]
    estimates: dict[Metric, Estimate]
    bounds: dict[Metric, Bound] = omitted_if_default({}, "what is known in place of numbers that findings hide")
    counts: Counts = Field(description="sums over the used trials; of an invalid cell over all of them")
    answers: dict[str, int] = omitted_if_default(
        {}, "complete answers over the used trials by status: `200` where all requests expect it, else `5xx`"
    )
    response: Histogram = Field(description="merged over the used trials")
    response_percentiles: tuple[Percentile, ...]
    service_percentiles: tuple[Percentile, ...]
    requests: tuple[RequestReport, ...] = omitted_if_default(
        (), "by request, over the used trials, if the scenario has several; absent in earlier reports"
    )
    slowest: tuple[SlowRequest, ...] = omitted_if_default(
        (), "the slowest requests of the used trials, or starts; absent if response times are not known"
    )
    journeys: JourneyReport | None = omitted_if_default(None, "what became of the journeys of a scenario of steps")
    response_curve: tuple[BandedPercentile, ...] = omitted_if_default(
        (), "more percentiles, with intervals, as deep as the count supports; absent in earlier reports"
    )
    service_curve: tuple[BandedPercentile, ...] = omitted_if_default(
        (), "the same; absent if equal to `response_curve`"
    )
    too_few: tuple[TooFew, ...] = omitted_if_default((), "omitted percentiles, and the requests that they need")
    other_times: tuple[OtherTime, ...] = omitted_if_default(
        (), "first byte, if it differs from the response time; handshakes; one-way times"
    )
    streams: StreamReport | None = omitted_if_default(None, STREAMS)
    full_slug: str = omitted_if_default(
        "", "server with the values of all its axes, scenario, load, threads of the engine, connections and duration"
    )
    tls: tuple[AgreedTls, ...] = omitted_if_default((), "the distinct settings that its trials' handshakes negotiated")
    encoded: tuple[str, ...] = omitted_if_default((), ENCODED)
    route: str = omitted_if_default("", "`h1 → proxy.nginx → h1`; absent if the load goes to the server")
    settings: dict[str, str] = omitted_if_default(
        {}, "the axes on which its server's variants differ: options, `flags`, `route`, `in`"
    )
    parts: tuple[PartReport, ...] = omitted_if_default(
        (), "the server and its proxies, separately; absent without a proxy. `estimates` has the sums"
    )
    memory: MemoryReport | None = omitted_if_default(None, "memory and pauses, if the server's runtime reports them")
    watched: tuple[WatchedSeries, ...] = omitted_if_default((), "what monitors of other packages saw")
    timeline: tuple[Moment, ...] = Field(description="of the used trials")
    findings: tuple[Finding, ...]
    objectives: tuple[ObjectiveResult, ...] = ()
    load_facts: LoadFacts | None = omitted_if_default(None, "what `redline load` shows besides")
    trial_timelines: SkipJsonSchema[tuple[TrialTimeline, ...]] = Field(default=(), exclude=True)  # for pages alone

    @property
    def ended_early(self) -> tuple[TrialReport, ...]:
        """The trials that failed or were cut short, on which no estimate of an invalid cell rests."""
        return tuple(trial for trial in self.trials if trial.ended_early)

    @property
    def says_what_is_known(self) -> bool:
        """Whether its estimates are those that are known: an invalid cell of an earlier report does not say which."""
        some = bool(self.bounds or self.ended_early) or any(trial.partly for trial in self.trials)
        return self.valid or some

    @property
    def known(self) -> dict[Metric, Estimate]:
        """The estimates that may be shown."""
        return self.estimates if self.says_what_is_known else {}

    @property
    def shows_numbers(self) -> bool:
        """Whether it is valid, or any of its numbers, or a bound, is known."""
        return self.valid or bool(self.known) or any(bound.says_something for bound in self.bounds.values())

    def hides(self, metric: Metric) -> bool:
        """Whether a finding hides the metric itself, and with it what was measured in the same way."""
        return not self.valid and (metric in self.bounds or not self.shows_numbers)

    def with_courses(
        self, trials: tuple[TrialReport, ...], timeline: tuple[Moment, ...], timelines: tuple[TrialTimeline, ...]
    ) -> "CellReport":
        """The cell with these trials and their courses."""
        courses = {"trials": trials, "timeline": timeline, "trial_timelines": timelines}
        return self.model_copy(update=courses)

    def in_run(self, speeds: Mapping[int, float], findings: tuple[Finding, ...]) -> "CellReport":
        """The cell with facts from the whole run: the speed of its trials' cores by position, and findings."""
        trials = tuple(trial.model_copy(update={"core_speed": speeds.get(trial.position)}) for trial in self.trials)
        return self.model_copy(update={"trials": trials, "findings": (*self.findings, *findings)})
