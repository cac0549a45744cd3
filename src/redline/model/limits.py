"""The result of a search: stored, shown by renderers, and printed by `redline limit --json`."""

from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from redline.model.base import Frozen, omitted_if_default
from redline.model.by_request import RequestReport
from redline.model.environment import Environment
from redline.model.estimate import Estimate, Verdict
from redline.model.failures import FirstFailure
from redline.model.finding import Finding
from redline.model.histogram import Histogram
from redline.model.hosts import UsedHost
from redline.model.journey_traffic import JourneyReport
from redline.model.judged import ObjectiveState
from redline.model.load import SentStretch
from redline.model.percentile import Effect, Percentile
from redline.model.plan import Skipped
from redline.model.report import Report
from redline.model.run import SameBuilds
from redline.model.streams import STREAMS, StreamReport
from redline.model.timeline import SearchedLoad
from redline.model.traffic import ENCODED
from redline.quantities import paced, users

FAR_BELOW = 0.85
"""The share of a rate below which another is far below it: nearer to a limit, chance alone makes probes differ."""
PROBE_QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
"""The percentiles of a probe, by name."""
LIMIT_FORMAT: Literal["redline.limit/1"] = "redline.limit/1"

SearchEnd = Literal["converged", "exhausted", "doomed", "broken", "interrupted"]
ProbePhase = Literal["search", "curve", "confirm"]


def tried_text(number: float, *, by_users: bool, speed: float | None = None) -> str:
    """What a search tried, in words: `1,769/s`, of a recording `4.2x (930/s)`, by users `40 users`."""
    return users(number) if by_users else paced(f"{number:,.0f}/s", speed)


class LimitChange(Frozen):
    """How a server changed while its limit was searched: rates of probes before and since, null where none is known.

    Of a search by users, the numbers of these stand in the fields for them.
    """

    slower: bool = Field(description="whether it serves less since; else it serves more")
    answers: bool = Field(description="whether objectives that were met are missed since, or the other way round")
    until_s: float | None = Field(description="when the last probe before it began, since the search began")
    since_s: float | None = Field(description="when the first probe after it began")
    met_before_per_s: float | None = Field(description="the highest rate that met the objectives before")
    missed_before_per_s: float | None = Field(description="the lowest rate that missed them before")
    met_since_per_s: float | None
    missed_since_per_s: float | None
    met_before_users: float | None = omitted_if_default(None)
    missed_before_users: float | None = omitted_if_default(None)
    met_since_users: float | None = omitted_if_default(None)
    missed_since_users: float | None = omitted_if_default(None)
    when: str = Field(description="in words, such as `20 s into the search`")
    text: str = Field(description="what shows it")

    def at(self, which: str) -> float | None:
        """The users, else the rate, of `met_before`, `missed_before`, `met_since` or `missed_since`."""
        number: float | None = getattr(self, f"{which}_users")
        rate_per_s: float | None = getattr(self, f"{which}_per_s")
        return rate_per_s if number is None else number

    def shown(self, text: str) -> "LimitChange":
        """The same change with what shows it."""
        return self.model_copy(update={"text": text})

    @property
    def without_answers(self) -> "LimitChange":
        """The same change, which does not say that answers changed."""
        return self.model_copy(update={"answers": False})


class LimitAnswer(Frozen):
    """The limit for a set of objectives: [highest rate that passed, lowest that failed]; null: unknown."""

    name: str
    by_users: bool = omitted_if_default(
        default=False,
        description="the search varied the number of users: `passed_users` and `failed_users` are the limit",
    )
    passed_per_s: float | None
    failed_per_s: float | None
    confidence: float | None = Field(
        description="of the model, studied for a queue with one worker (docs/concepts/limit.md: with several workers "
        "it holds a little less often, as with different starts); null for single rates, and where probes differ: how "
        "often they are right is not known"
    )
    decided: bool = Field(description="whether the interval is as narrow as requested")
    method: Literal["queue", "single rates", "single users"] = Field(
        description="from the queue model, from single rates, or from single numbers of users"
    )
    binding: str = Field(description="the condition that fails first")
    binds_alone: bool = omitted_if_default(
        default=False, description="whether no other condition is known to fail at so low a rate"
    )
    conditions: tuple[str, ...] = Field(description="all conditions; `errors < 1%` is added if none is about errors")
    met_somewhere: bool = Field(description="whether some probed rate may have met it")
    missed_somewhere: bool = Field(description="whether some probed rate may have missed it")
    reason: str = Field(default="", description="why a side is unknown")
    starts_differ: bool = omitted_if_default(
        default=False, description="the interval rests on how few starts differ, and may be too narrow"
    )
    probes_differ: bool = omitted_if_default(
        default=False,
        description="the interval rests on how probes differ: how often it is right is not known",
    )
    passed_speed: float | None = omitted_if_default(
        None, "of a recording: how much faster than recorded it was sent at `passed_per_s`, which is its mean"
    )
    failed_speed: float | None = omitted_if_default(None, "of a recording: the same for `failed_per_s`")
    passed_users: float | None = omitted_if_default(
        None,
        "the most users with whom it passed; at a rate, of conversations: how many are under way at once at "
        "`passed_per_s`, by Little's law",
    )
    failed_users: float | None = omitted_if_default(
        None, "the fewest users with whom it failed; at a rate, of conversations: as `passed_users`, at `failed_per_s`"
    )
    met_at_per_s: float | None = omitted_if_default(None, "the highest rate at which a probe met it, if any did")
    missed_at_per_s: float | None = omitted_if_default(None, "the lowest rate at which a probe missed it, if any did")
    met_at_users: float | None = omitted_if_default(None, "the most users with whom a probe met it, if any did")
    missed_at_users: float | None = omitted_if_default(None, "the fewest users with whom a probe missed it, if any did")
    doubts: tuple[str, ...] = omitted_if_default(
        (), "what speaks against the interval: probes that contradict it, answers that changed, disturbance"
    )
    changed: LimitChange | None = omitted_if_default(None, "how the server changed while it was searched, if it did")

    @property
    def passed(self) -> float | None:
        """The most users with whom it passed, else the highest rate that passed."""
        return self.passed_users if self.by_users else self.passed_per_s

    @property
    def failed(self) -> float | None:
        """The fewest users with whom it failed, else the lowest rate that failed."""
        return self.failed_users if self.by_users else self.failed_per_s

    @property
    def met_at(self) -> float | None:
        """The most users, else the highest rate, of a probe that met it."""
        return self.met_at_users if self.by_users else self.met_at_per_s

    @property
    def missed_at(self) -> float | None:
        """The fewest users, else the lowest rate, of a probe that missed it."""
        return self.missed_at_users if self.by_users else self.missed_at_per_s

    @property
    def varied(self) -> str:
        """What the search varied, in words."""
        if self.by_users:
            return "number of users"
        return "rate" if self.passed_speed is None and self.failed_speed is None else "speed"

    def said(self, tried: float | None) -> str:
        """A number of users, or a rate, in words; of a recording with its speed."""
        known = ((self.passed_per_s, self.passed_speed), (self.failed_per_s, self.failed_speed))
        recorded_per_s = next((rate / speed for rate, speed in known if rate and speed), None)
        speed = None if recorded_per_s is None or tried is None else tried / recorded_per_s
        return tried_text(tried or 0.0, by_users=self.by_users, speed=speed)

    @property
    def is_contested(self) -> bool:
        """Whether the server changed, or a probe met it above the rate from which it is missed, which is no chance."""
        if self.changed is not None:
            return True
        if self.met_at is None or self.failed is None:
            return False
        return FAR_BELOW * self.met_at > self.failed


class LimitStart(Frozen):
    """A start of the server, and its warm-up before the first probe."""

    warmed_ns: int = Field(ge=0, description="length of the warm-up")
    steady: bool | None = Field(default=None, description="whether it was steady by then; null if its length was fixed")


class ProbeState(Frozen):
    """A single probe's evidence about a set of objectives. The answer rests on all probes together."""

    name: str
    state: ObjectiveState
    why: str = omitted_if_default("", "where the numbers alone do not say it")


class LimitProbe(Frozen):
    """A probe: some seconds of load at a rate. A percentile is null if fewer than 10 responses lie beyond it."""

    phase: ProbePhase = Field(
        description="search: for the limit; curve: for the curve only; confirm: at an end of the limit"
    )
    fresh: bool = Field(description="on a server that was started to confirm the ends of the limits")
    start: int = omitted_if_default(0, "number of the start of the server, from 0", ge=0)
    rate_per_s: float = Field(description="the requested rate, of a recording its mean, of users what they asked for")
    users: int | None = omitted_if_default(None, "of a search by users: how many there were")
    began_s: float | None = omitted_if_default(None, "when its load began, in seconds since the search began")
    speed: float | None = omitted_if_default(None, "of a recording: how much faster than recorded it was sent")
    seconds: float
    offered_per_s: float = Field(description="requests that fell due; Poisson arrivals scatter around the rate")
    answered_per_s: float = Field(description="right answers during the load")
    errors: int = Field(description="without requests in flight when the probe was aborted")
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    p75_ns: int | None = omitted_if_default(None)
    p95_ns: int | None = omitted_if_default(None)
    max_ns: int | None = omitted_if_default(None)
    bounds: dict[str, Effect] = omitted_if_default(
        {}, "what is known of percentiles by name, such as `p99: at most`, if a late client or a fault hides the rest"
    )
    response: Histogram = Field(description="response times of all requests that fell due")
    overloaded: bool = Field(description="its queue kept growing")
    hopeless: bool = Field(description="aborted early, because its queue could only grow")
    aborted_by: str = omitted_if_default("", "the condition of `abort_when` that ended it, and what was measured of it")
    client: str = Field(description="why client or host was the limit: objectives that were not met are then not known")
    stalled_ns: int = omitted_if_default(0, "the longest time in which it ended no request although some waited", ge=0)
    why: str = Field(default="", description="why this rate was probed")
    counts: tuple[ProbeState, ...] = omitted_if_default((), "its evidence, by set of objectives")
    failures: tuple[FirstFailure, ...] = omitted_if_default((), "the first of each outcome, in that order")
    requests: tuple[RequestReport, ...] = omitted_if_default((), "by request, if the scenario has several")
    journeys: JourneyReport | None = omitted_if_default(None, "of a scenario that is a journey")
    streams: StreamReport | None = omitted_if_default(None, STREAMS)
    recording: str = omitted_if_default("", "the file of its recording in the search's directory; empty if not kept")

    def time(self, name: str) -> Percentile | None:
        """A percentile by its name, or what bounds it; None if it is not known."""
        left, q = self.bounds.get(name), PROBE_QUANTILES[name]
        ns = getattr(self, f"{name.replace('.', '')}_ns")
        return None if ns is None or left == "unknown" else Percentile(q=q, ns=ns, bound=left or "")

    @property
    def tried(self) -> float:
        """What the search varied: the number of users, else the rate."""
        return self.rate_per_s if self.users is None else self.users

    @property
    def said(self) -> str:
        """The number of users, or the rate, in words; of a recording with its speed."""
        return tried_text(self.tried, by_users=self.users is not None, speed=self.speed)

    @property
    def is_void(self) -> bool:
        """Whether it shows nothing about the server."""
        return bool(self.client) and all(verdict.state == "not known" for verdict in self.counts)


class CurvePoint(Frozen):
    """The sum of all probes of a rate, or of a number of users; the curve is drawn at `answered_per_s`, or at `users`.

    A percentile is null if fewer than 10 responses lie beyond it.
    """

    rate_per_s: float
    users: int | None = omitted_if_default(None, "of a search by users: how many there were")
    answered_per_s: float
    seconds: float
    probes: int
    errors: int
    mean_ns: float
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    p75_ns: int | None = omitted_if_default(None)
    p95_ns: int | None = omitted_if_default(None)
    max_ns: int | None = omitted_if_default(None)
    overloaded: bool


class Knee(Frozen):
    """The knee of the curve: the rate with the highest *power*, rate over mean response time.

    From `low_per_s` to `high_per_s` the power is within 5% of its maximum.
    Source: L. Kleinrock, Power and deterministic rules of thumb, ICC 1979.
    """

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    mean_ns: float = Field(description="the mean response time at the knee")
    share: float | None = Field(description="of the highest rate that was answered; null if no probe exceeded it")


class BeyondMoment(Frozen):
    """A slice of time of an overload test; `at_s` is its end, from the start of the measurement."""

    at_s: float
    stage: Literal["before", "overload", "after"]
    asked_per_s: float
    answered_per_s: float
    errors_per_s: float
    backlog: int = Field(description="requests that were due and had no outcome yet")
    p50_ns: int | None = Field(description="of requests that ended in this slice; null if none did")
    p99_ns: int | None


class Beyond(Frozen):
    """The result of an overload test: a sustained rate, a rate above the server's limit, and the first rate again."""

    calm_per_s: float
    overload_per_s: float
    before_s: float
    overload_s: float
    after_s: float
    capacity_per_s: float = Field(description="the highest rate that it answered in any earlier probe")
    goodput: Literal["holds", "sags", "collapses", "not known"] = Field(
        description="right answers per second under overload: at least 90% of the capacity; less; under half of it"
    )
    goodput_share: float | None = Field(description="of the capacity, over the last three quarters of the overload")
    collapsed_after_s: float | None = Field(description="of overload, until it answered under half of its capacity")
    recovery: Literal["recovers", "stays slow", "does not come back", "not known"] = Field(
        description="as before at the same rate; p99 stays worse; still a backlog when the load ended"
    )
    backlog_at_most: int
    backlog_gone_s: float | None = Field(description="after the overload, until the backlog was as before")
    back_s: float | None = Field(description="after the overload, until the response times were as before")
    p50_before_ns: int | None
    p50_after_ns: int | None = Field(description="over the last third of the time after the overload")
    p99_before_ns: int | None
    p99_after_ns: int | None
    errors_overload: int
    errors_after: int
    reason: str = Field(default="", description="why something is unknown")
    course: tuple[BeyondMoment, ...]


class CellLimit(Frozen):
    """The search of a cell, and its result."""

    slug: str
    server: str
    target: str = omitted_if_default("", "the command, URL or revision of a server that is not catalogued")
    scenario: str
    load: str = Field(description="how probes are made, such as `open, poisson, 256 connections, 5 s after 1 s`")
    stretch: SentStretch | None = omitted_if_default(None, "of a recording: the beginning of it that every probe sends")
    build: str = Field(default="", description="content hash of the build; empty for a server that was already running")
    runtime_version: str = Field(default="", description="as the server's runtime reports it")
    encoded: tuple[str, ...] = omitted_if_default((), ENCODED)
    host: str = omitted_if_default("", "the host of its server, if that was not this machine")
    ended: SearchEnd = Field(description="exhausted: no probes left, a side unknown; broken: a probe could not be made")
    reason: str = Field(default="", description="why there is no limit, if doomed, or why a probe could not be made")
    confirmed: bool = Field(description="whether new probes at both ends agreed")
    left_out: str = omitted_if_default("", "what the time of the search did not allow any more")
    limits: tuple[LimitAnswer, ...]
    probes: tuple[LimitProbe, ...] = Field(description="in chronological order")
    starts: tuple[LimitStart, ...] = omitted_if_default((), "the server's starts with their warm-ups, in order")
    curve: tuple[CurvePoint, ...] = Field(default=(), description="by rate, ascending; without void probes")
    knee: Knee | None = None
    no_knee: str = Field(default="", description="why there is no knee")
    beyond: Beyond | None = None
    no_beyond: str = Field(default="", description="why there was no overload test")
    findings: tuple[Finding, ...] = omitted_if_default((), "about probes; `position` is an index into `probes`")
    loads: SkipJsonSchema[tuple[SearchedLoad, ...]] = Field(default=(), exclude=True)  # in their order, for pages alone

    @property
    def by_users(self) -> bool:
        """Whether the search varied the number of users."""
        return any(probe.users is not None for probe in self.probes)

    def with_curve(self, curve: tuple[CurvePoint, ...], knee: Knee | str, beyond: Beyond | str) -> "CellLimit":
        """The same search with its curve, its knee and its overload test; a text says why a part is missing."""
        knees = {"no_knee": knee} if isinstance(knee, str) else {"knee": knee}
        tests = {"no_beyond": beyond} if isinstance(beyond, str) else {"beyond": beyond}
        return self.model_copy(update={"curve": curve, **knees, **tests})

    @property
    def without_recordings(self) -> "CellLimit":
        """The same search without paths of its recordings."""
        probes = tuple(probe.model_copy(update={"recording": ""}) for probe in self.probes)
        return self.model_copy(update={"probes": probes})


class LimitComparison(Frozen):
    """The limit of a server against that of its baseline, for a set of objectives.

    Without a `confidence` the interval spans all ratios of the two limits, and the verdict is `inconclusive`.
    """

    slug: str = Field(description="of the server's cell")
    baseline: str = Field(description="slug of the baseline's cell")
    objective: str = Field(description="name of the set of objectives")
    ratio: Estimate | None = Field(description="of the logarithmic middles; null while a side is unknown")
    confidence: float | None = Field(description="of the interval; the errors of both limits are taken as independent")
    verdict: Verdict = Field(description="slower: the server meets the objectives up to a lower rate, or fewer users")
    matters: bool | None = omitted_if_default(None, "of faster or slower: whether it may exceed the threshold")
    threshold: float = Field(description="the smallest relative difference that matters")
    p_adjusted: float | None = omitted_if_default(None, "two-sided p-value of no difference, with Holm's correction")
    family: int | None = omitted_if_default(None, "number of comparisons in the family")
    family_name: str = omitted_if_default("", "the question that the family of comparisons answers")

    @property
    def held_back(self) -> bool:
        """Whether the interval excludes 1, but the number of comparisons does not allow a verdict."""
        low, high = (self.ratio and self.ratio.interval) or (1.0, 1.0)
        return self.verdict is Verdict.INCONCLUSIVE and self.p_adjusted is not None and not low <= 1 <= high


class LimitReport(Frozen):
    """`redline limit --json`: up to which rate, or how many users, servers meet objectives, and their curves."""

    format: Literal["redline.limit/1"] = LIMIT_FORMAT
    suite: str = Field(description="name of the suite, or the search's target if there is no suite")
    about: str = ""
    started_unix_ns: int
    command: str
    seed: int
    precision: float = Field(description="the requested half width, relative to the middle of an interval")
    environment: Environment
    hosts: tuple[UsedHost, ...] = omitted_if_default((), "where servers ran, if not on this machine")
    cells: tuple[CellLimit, ...]
    comparisons: tuple[LimitComparison, ...] = omitted_if_default((), "of servers with baselines, ordered as `cells`")
    same: SameBuilds | None = omitted_if_default(
        None, "of two revisions that are not searched: they are the same server"
    )
    skipped: tuple[Skipped, ...] = ()
    suite_text: str = ""
    unrecorded: tuple[str, ...] = omitted_if_default((), "what a version before 0.1.0 did not record of it")
    unread: tuple[str, ...] = omitted_if_default((), "stored files that cannot be read, or not be used, and why")

    @property
    def without_recordings(self) -> "LimitReport":
        """The same report without paths of the recordings."""
        return self.model_copy(update={"cells": tuple(cell.without_recordings for cell in self.cells)})


AnyReport = Report | LimitReport
"""The report of a run, a comparison or a load; or the report of a search."""
