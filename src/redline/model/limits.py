"""What a search for the breaking point found: stored, shown by renderers, and printed by `redline limit --json`."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, when_said
from redline.model.environment import Environment
from redline.model.finding import Finding
from redline.model.histogram import Histogram
from redline.model.plan import Skipped

LIMIT_FORMAT: Literal["redline.limit/1"] = "redline.limit/1"

SearchEnd = Literal["converged", "exhausted", "doomed", "broken", "interrupted"]
ProbePhase = Literal["search", "curve", "confirm"]


class LimitAnswer(Frozen):
    """The answer for one set of objectives: [highest rate that passed, lowest that failed]; null: not known."""

    name: str
    passed_per_s: float | None
    failed_per_s: float | None
    confidence: float | None = Field(
        description="of the model, studied for a queue with one worker (docs/concepts/limit.md: with several it holds "
        "a little less often); null where it is by single rates: how often that is right is not known"
    )
    decided: bool = Field(description="whether it is as narrow as was asked")
    method: Literal["queue", "single rates"] = Field(description="from the model of a queue, or from rates one by one")
    binding: str = Field(description="the condition that fails first")
    conditions: tuple[str, ...] = Field(
        description="all that has to be met; `errors < 1%` where nothing is said of errors"
    )
    met_somewhere: bool = Field(description="whether some rate that was tried may have met it")
    missed_somewhere: bool = Field(description="whether some rate that was tried may have missed it")
    reason: str = Field(default="", description="why a side is not known and will not be")
    starts_differ: bool = when_said(
        default=False,
        description="the interval is by how starts of the server differ: they are few, so it may be too sure",
    )


class LimitStart(Frozen):
    """How a start of the server was warmed up before its first probe."""

    warmed_ns: int = Field(ge=0, description="for so long")
    steady: bool | None = Field(
        default=None, description="whether it was steady by then; null where it was warmed up for a fixed time"
    )


class LimitProbe(Frozen):
    """One probe: some seconds of load at one rate, in the phase of a limit that asked for it.

    A percentile is null when fewer than 10 responses lie beyond it: then it is not known.
    """

    phase: ProbePhase = Field(
        description="search: the state machine asked for it; curve: only drawn; confirm: a fresh trial at the answer"
    )
    fresh: bool = Field(description="on a server that was started for the probes at the ends of the answers")
    start: int = when_said(0, ge=0, description="which start of the server it was on, from 0")
    rate_per_s: float = Field(description="what was asked for")
    seconds: float
    offered_per_s: float = Field(description="what fell due: with Poisson arrivals not quite what was asked for")
    answered_per_s: float = Field(description="right answers while load was put on")
    errors: int = Field(description="without what had no answer when we ended the probe ourselves")
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    response: Histogram = Field(description="of all that fell due, from when each request was due")
    overloaded: bool = Field(description="its queue only grew")
    hopeless: bool = Field(description="ended early, because its queue only grew")
    client: str = Field(
        description="why the load generator, or the host, was the limit, and the probe tells nothing of the server"
    )
    why: str = Field(default="", description="why this rate was tried")


class CurvePoint(Frozen):
    """The probes of one rate together: their counts are added, and their histograms merged.

    A percentile is null when fewer than 10 responses lie beyond it. `answered_per_s` is where the curve is drawn.
    """

    rate_per_s: float
    answered_per_s: float
    seconds: float
    probes: int
    errors: int
    mean_ns: float
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    overloaded: bool


class Knee(Frozen):
    """Where a higher rate begins to cost more than it gives: the highest *power*, rate over mean response time.

    Below it, 1% more requests cost less than 1% more of the mean response time; above it more. From `low_per_s` to
    `high_per_s` the power is within 5% of its highest: the knee is no sharper than that.
    Source: L. Kleinrock, Power and deterministic rules of thumb, ICC 1979.
    """

    rate_per_s: float
    low_per_s: float
    high_per_s: float
    mean_ns: float = Field(description="the mean response time at the knee")
    share: float | None = Field(description="of the highest rate that was answered; null where no probe was past it")


class BeyondMoment(Frozen):
    """A slice of time of the load past the edge; `at_s` is its end, from the beginning of the measurement."""

    at_s: float
    stage: Literal["before", "overload", "after"]
    asked_per_s: float
    answered_per_s: float
    errors_per_s: float
    backlog: int = Field(description="requests that were due and had not ended")
    p50_ns: int | None = Field(description="of what ended in it; null when nothing did")
    p99_ns: int | None


class Beyond(Frozen):
    """What the server did past its edge, and after: one load of three stages on one server.

    First a rate that it surely bears, then more than it can do, then the first rate again.
    """

    calm_per_s: float
    overload_per_s: float
    before_s: float
    overload_s: float
    after_s: float
    capacity_per_s: float = Field(description="the most that it answered per second in any probe before")
    goodput: Literal["holds", "sags", "collapses", "not known"] = Field(
        description="right answers per second under overload: at least 90% of the capacity; less; under half of it"
    )
    goodput_share: float | None = Field(description="of the capacity, over the later three quarters of the overload")
    collapsed_after_s: float | None = Field(
        description="of overload, until it answered less than half of its capacity and no more since"
    )
    recovery: Literal["recovers", "stays slow", "does not come back", "not known"] = Field(
        description="back to what it was at the same rate; p99 stays worse; still behind when the load ended"
    )
    backlog_at_most: int
    backlog_gone_s: float | None = Field(description="after the overload, until the backlog was what it had been")
    back_s: float | None = Field(description="after the overload, until the response times were what they had been")
    p50_before_ns: int | None
    p50_after_ns: int | None = Field(description="over the last third of the time after the overload")
    p99_before_ns: int | None
    p99_after_ns: int | None
    errors_overload: int
    errors_after: int
    reason: str = Field(default="", description="why something is not known")
    course: tuple[BeyondMoment, ...]


class CellLimit(Frozen):
    """The search on one server and scenario, and what it showed."""

    slug: str
    server: str
    scenario: str
    load: str = Field(description="how probes are made, such as `open, poisson, 256 connections, 5 s after 1 s`")
    build: str = Field(default="", description="content hash of what was built; empty for what was running already")
    runtime_version: str = Field(default="", description="as the server's runtime tells it")
    ended: SearchEnd = Field(
        description="exhausted: no probes were left while a side was not known; broken: a probe could not be made"
    )
    reason: str = Field(default="", description="why there is no answer, when doomed, or why a probe could not be made")
    confirmed: bool = Field(description="whether fresh probes at both ends agreed")
    limits: tuple[LimitAnswer, ...]
    probes: tuple[LimitProbe, ...] = Field(description="in the order in which they were made")
    starts: tuple[LimitStart, ...] = when_said(
        (), description="of the server, in their order, as they were warmed up; empty where they were not"
    )
    curve: tuple[CurvePoint, ...] = Field(default=(), description="ascending; without probes that the client limited")
    knee: Knee | None = None
    no_knee: str = Field(default="", description="why the curve shows none")
    beyond: Beyond | None = None
    no_beyond: str = Field(default="", description="why nothing was tried past the edge")
    findings: tuple[Finding, ...] = when_said(
        (), description="what engine and machine did to a probe; `position` is its place among `probes`, from 0"
    )


class LimitReport(Frozen):
    """`redline limit --json`: the highest rate at which each server meets its objectives, and what is around it.

    Either `suite` or `url` says what was searched; the other is empty.
    """

    format: Literal["redline.limit/1"] = LIMIT_FORMAT
    suite: str = ""
    url: str = ""
    about: str = ""
    started_unix_ns: int
    command: str
    seed: int
    precision: float = Field(description="the half width that was asked for, relative to an interval's middle")
    environment: Environment
    cells: tuple[CellLimit, ...]
    skipped: tuple[Skipped, ...] = ()
    suite_text: str = ""
