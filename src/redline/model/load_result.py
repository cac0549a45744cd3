"""The JSON documents of `load --json` and `--stream`: published in docs/reference/cli.schema.json."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.by_request import RequestReport
from redline.model.connections import REACH, AgreedTls, Reach
from redline.model.estimate import Estimate, Metric
from redline.model.failures import FirstFailure
from redline.model.finding import Finding
from redline.model.journey_traffic import JourneyReport
from redline.model.judged import ObjectiveResult, WarmUp
from redline.model.kept import SlowRequest
from redline.model.percentile import OtherTime, Percentile
from redline.model.recording import ASKED_AGAIN
from redline.model.streams import STREAMS, StreamReport
from redline.model.traffic import ENCODED, Counts, Ended, Engine
from redline.model.validity import Bound


class RequestsSent(Frozen):
    """The requests that a load sent to its server, those that were written again included.

    What asks whether a server that was started is ready is not among them.
    """

    check: int = Field(description="before the load, to check the answers")
    warm_up: int = Field(description="those that were due and sent in the warm-up")
    measured: int = Field(description="those that were due in the measurement")
    warm_up_ns: int = Field(description="how long the warm-up took")


class LoadedServer(Frozen):
    """What the processes of a loaded server used; null for what was not watched."""

    processes: tuple[str, ...] = Field(default=(), description="of a server that ran already: their names and numbers")
    cpu_per_request_ns: float | None = Field(description="user and system time per right answer")
    rss_bytes: int | None = Field(description="the most in the measurement, as of the next two")
    threads: int | None
    descriptors: int | None = Field(description="open files and sockets")
    half_closed: int | None = Field(description="connections in CLOSE-WAIT at the end")
    unknown: str = omitted_if_default("", "why its processes are not known")


class Deviation(Frozen):
    """How far values of a load are from their mean: the columns of wrk. Deviations are those of all values, over N."""

    mean: float
    stdev: float
    max: float
    within: float = Field(description="share of values at most one standard deviation from the mean, 0 to 1")
    values: int = Field(description="how many there are")


class LoadDeviations(Frozen):
    """What wrk prints as `Thread Stats`."""

    response: Deviation | None = Field(description="of the response times, in ns; null where `mean` is")
    rate: Deviation | None = Field(
        description="right answers per second of all threads, by interval; null if the throughput is not known"
    )
    worker_rate: Deviation | None = omitted_if_default(
        None, "the same of each thread, by thread and interval; absent if there is one thread"
    )
    interval_ns: int = Field(description="the longest interval; a last one of less than half of it is left out")


class LoadFacts(Frozen):
    """What only a load that is measured by itself shows of its single trial."""

    url: str = Field(description="the address that was loaded, or the command of its server")
    seed: int
    ended: Ended
    measured_ns: int
    deviations: LoadDeviations | None = omitted_if_default(None, "absent if nothing was measured")
    engine_cpu_per_request: Estimate | None
    lateness: tuple[Percentile, ...] = Field(description="how late the engine itself was; ns")
    addresses: tuple[str, ...] = omitted_if_default(
        (),
        description="where the connections went, in turn: `127.0.0.1:8080`, `unix:/run/app.sock`",
    )
    proxy: str = omitted_if_default("", "the HTTP proxy in between, to which the connections went")
    users: float | None = omitted_if_default(None, description="of users who think or have a pace: how many there are")
    users_waiting: float | None = omitted_if_default(
        None, description="how many of them waited for an answer, on average: the rate times the response time"
    )
    reach: Reach | None = omitted_if_default(None, REACH)
    server: LoadedServer | None = omitted_if_default(None, "absent where nobody looked, as in earlier recordings")
    sent: RequestsSent | None = omitted_if_default(
        None, "all requests that the server got, the measured and the others; absent in earlier recordings"
    )
    asked_again: str = omitted_if_default("", ASKED_AGAIN)
    engine: Engine


class _LoadFormat(Frozen):
    """The document of a load begins with its format."""

    format: Literal["redline.load/1"] = "redline.load/1"


class LoadResult(LoadFacts, _LoadFormat):
    """`redline load --json`: a load on a running server.

    A single trial has no interval over trials, so `low` and `high` of its estimates are null.
    """

    load: str
    valid: bool = Field(description="if false, an `invalid` finding says why only some of the numbers are known")
    bounds: dict[Metric, Bound] = omitted_if_default(
        {}, description="what is known in place of numbers that findings hide: these are null, or left out below"
    )
    throughput: Estimate | None = Field(description="null if no right answer came")
    received: Estimate | None = omitted_if_default(None, description="bytes per second, as counted on the connections")
    mean: Estimate | None = omitted_if_default(None, description="of the response time")
    response: tuple[Percentile, ...] = Field(description="from when each request was due; ns, or a `bound`")
    service: tuple[Percentile, ...] = Field(description="from when each request was written; ns, or a `bound`")
    other_times: tuple[OtherTime, ...] = Field(
        default=(), description="first byte, if answers came in pieces; handshakes"
    )
    streams: StreamReport | None = omitted_if_default(None, description=STREAMS)
    tls: AgreedTls | None = Field(default=None, description="what the first handshake negotiated")
    warm_up: WarmUp | None = Field(default=None, description="null if the load was too short to classify")
    counts: Counts
    answers: dict[str, int] = omitted_if_default(
        {}, description="complete answers by status: `200` where all requests expect it, else by class, such as `5xx`"
    )
    failures: tuple[FirstFailure, ...] = omitted_if_default(
        (), description="the first failure of each outcome, from the warm-up on, in the order of outcomes"
    )
    requests: tuple[RequestReport, ...] = omitted_if_default(
        (), description="by request, if there are several, in the order of the scenario"
    )
    slowest: tuple[SlowRequest, ...] = omitted_if_default((), "the slowest requests; absent without response times")
    encoded: tuple[str, ...] = omitted_if_default((), ENCODED)
    journeys: JourneyReport | None = omitted_if_default(None, "what became of the journeys of a scenario of steps")
    objectives: tuple[ObjectiveResult, ...] = Field(default=(), description="of `--objective`, met or missed")
    findings: tuple[Finding, ...]


class StreamSummary(Frozen):
    """The last line of `redline load --stream`; the others are intervals."""

    kind: Literal["summary"] = "summary"
    result: LoadResult
