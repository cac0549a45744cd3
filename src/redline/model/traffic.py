"""Traffic, as the engine saw it. Its JSON is the engine's event format; see docs/reference/engine-protocol.md."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from pydantic import Field, model_validator

from redline.lazily import LateModule
from redline.model.base import Frozen, omitted_if_default
from redline.model.connections import REACH, AgreedTls, Reach
from redline.model.failures import FirstErrors, FirstFailure, with_labels
from redline.model.histogram import Histogram
from redline.model.journey_traffic import JourneyTraffic
from redline.model.kept import KEPT, KeptRequests
from redline.model.streams import MESSAGE_TIMES, STREAMS, StreamTraffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LateModule("numpy")

MOST_CLOCK_ERROR = 0.1
"""The largest error of a median one-way time that is still shown."""

_LATE = 0.02
"""The largest delay of the last clock reading, as a share of the window: later the server may be idle."""

_COVERED = 0.9
"""The least share of the window between the two readings."""

_SHRINKS, _SURE = 0.05, 4.0
"""A load shrinks if its rate falls by at least this share, and by this number of standard deviations."""

_OFTEN = 0.5
"""From this share of requests with a new connection on, connecting is part of the load."""

_NESTED = {"status", "grpc_status", "outcomes"}

UPGRADE = "from the request that opens a WebSocket to its answer"
FIRST_BYTE = "from due to the first byte of the answer, of complete answers; absent in earlier recordings"
ENCODED = "how encoded answers came before the load: `GET /: gzip, 1,234 bytes, 9,876 decoded`"
_TELLING = (0.5, 0.9, 0.99)
TICK_NS = 50_000_000
"""The length of a tick."""

_TICKS = "right answers by 50 ms from the start on, the last maybe shorter; of measured intervals of 100 ms or more"
_PAUSED = "how long the engine's workers were paused: the sum over the workers"

Phase = Literal["warmup", "measure", "drain"]
Ended = Literal["complete", "interrupted", "deadline", "failing", "aborted"]
"""How a load ended. By the lab: `failing`, because every request failed from the first on; `aborted`: as asked."""


class Outcomes(Frozen):
    """The outcomes of requests, by kind: each request that fell due has exactly one."""

    ok: int = 0
    unexpected_status: int = 0
    unexpected_body: int = 0
    malformed: int = 0
    connect: int = 0
    tls: int = 0
    reset: int = 0
    closed: int = 0
    refused: int = 0
    timeout: int = 0
    in_flight: int = 0
    unsent: int = 0

    @property
    def total(self) -> int:
        """All requests that fell due."""
        return sum(vars(self).values())

    @property
    def errors(self) -> int:
        """All failed requests."""
        return self.total - self.ok


class Counts(Frozen):
    """Counters of an interval or of the whole measurement; the protocol defines them."""

    due: int = 0
    sent: int = 0
    completed: int = Field(default=0, description="right answers received in this window, whenever they were due")
    late: int = Field(default=0, description="answered only after the measurement window had ended")
    waited: int = Field(default=0, description="requests that waited for a connection's room, or a paced user's answer")
    retried: int = Field(
        default=0,
        description="written again, because the server refused them or closed an idle connection; at most twice each",
    )
    resent: int = omitted_if_default(0, "written again, because the server announced that it would not process them")
    reconnects: int = 0
    surplus: int = omitted_if_default(0, "answers followed by bytes that nobody requested")
    handshakes: int = Field(default=0, description="TLS handshakes that were completed")
    resumed: int = Field(default=0, description="part of handshakes: resumed an earlier connection's session")
    bytes_sent: int = 0
    bytes_received: int = 0
    plain_bytes: int = omitted_if_default(0, "of messages of WebSockets that compress them, both ways, as they are")
    packed_bytes: int = omitted_if_default(0, "the same, compressed")
    saturated: int = Field(default=0, description="durations beyond the histogram's range, recorded at its end")
    exhausted: int = Field(
        default=0, description="part of outcomes.connect: the engine lacked ports, descriptors or memory"
    )
    with_errors: int = omitted_if_default(
        0, "part of outcomes.ok: JSON with `errors` at its top, where the answer before the load had none"
    )
    status: dict[str, int] = Field(default={}, description="responses by class: 1xx to 5xx")
    grpc_status: dict[str, int] = omitted_if_default({}, "failed gRPC calls by status, in outcomes.unexpected_status")
    outcomes: Outcomes = Outcomes()

    @classmethod
    def merged(cls, parts: Iterable["Counts"]) -> Self:
        """The sums of the parts."""
        given = list(parts)
        rows, ends = [vars(part) for part in given], [vars(part.outcomes) for part in given]
        sums = {name: sum([row[name] for row in rows]) for name in cls.model_fields if name not in _NESTED}
        outcomes = {name: sum([row[name] for row in ends]) for name in Outcomes.model_fields}
        status = _sums_by_name([part.status for part in given])
        grpc_status = _sums_by_name([part.grpc_status for part in given])
        return cls(**sums, status=status, grpc_status=grpc_status, outcomes=Outcomes(**outcomes))

    @property
    def outcomes_on_the_way(self) -> Outcomes:
        """The outcomes without connections that the engine's own side could not open: they reached no server."""
        return self.outcomes.model_copy(update={"connect": self.outcomes.connect - self.exhausted})

    def with_in_flight(self, requests: int) -> "Counts":
        """The same counts with more requests in flight at the end."""
        outcomes = self.outcomes.model_copy(update={"in_flight": self.outcomes.in_flight + requests})
        return self.model_copy(update={"outcomes": outcomes})

    def by_status(self, expected: Iterable[int]) -> dict[str, int]:
        """Complete answers by status: `{"200": 480000, "5xx": 12}`.

        The engine counts classes. A number is known where all requests expect the same status: that of answers with it.
        """
        known, statuses = dict(self.status), set(expected)
        if len(statuses) == 1 and not self.grpc_status:
            status = str(statuses.pop())
            of_class, having = f"{status[0]}xx", self.outcomes.ok + self.outcomes.unexpected_body
            rest = known.get(of_class, 0) - having
            if having and rest >= 0:
                known = {**known, status: having, of_class: rest}
        return {name: known[name] for name in sorted(known) if known[name]}

    @property
    def connects_often(self) -> bool:
        """Whether about every request opened a connection: connecting is then part of the load."""
        return self.reconnects > _OFTEN * self.due

    @property
    def grpc_statuses(self) -> str:
        """`grpc-status 13`, or `grpc-status 13 and 14`; empty where no call failed."""
        return f"grpc-status {' and '.join(sorted(self.grpc_status, key=int))}" if self.grpc_status else ""


def _sums_by_name(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    names = sorted({name for count in counts for name in count})
    return {name: sum(count.get(name, 0) for count in counts) for name in names}


class Signed(Frozen):
    """A distribution of differences: `negative` holds the absolute values of those below 0."""

    negative: Histogram
    positive: Histogram

    @classmethod
    def merged(cls, parts: Sequence["Signed"]) -> Self:
        """The sum of the parts' counts."""
        return cls(
            negative=Histogram.merged(part.negative for part in parts),
            positive=Histogram.merged(part.positive for part in parts),
        )

    @property
    def count(self) -> int:
        """The number of recorded differences."""
        return self.negative.count + self.positive.count

    @property
    def max_ns(self) -> int:
        """The largest recorded difference; 0 if none was recorded."""
        return self.quantiles_ns((1.0,))[0]

    def buckets(self) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """The non-empty buckets: a difference in ns, ascending, and its count, of equal length."""
        below, below_counts = self.negative.buckets()
        above, above_counts = self.positive.buckets()
        return np.concatenate((-below[::-1], above)), np.concatenate((below_counts[::-1], above_counts))

    def quantiles_ns(self, qs: Sequence[float]) -> tuple[int, ...]:
        """The differences at these quantiles (0 to 1); 0 if none was recorded."""
        values, counts = self.buckets()
        if not len(values):
            return (0,) * len(qs)
        cumulative = np.cumsum(counts)
        ranks = np.clip(np.ceil(np.asarray(qs) * cumulative[-1]), 1, cumulative[-1])
        return tuple(int(ns) for ns in values[np.searchsorted(cumulative, ranks)])


class OneWay(Frozen):
    """The server's clock minus ours at the time of writing; ours at the end of the answer minus the server's."""

    to_server: Signed
    from_server: Signed

    @classmethod
    def merged(cls, parts: Iterable["OneWay"]) -> Self | None:
        """The sum of the parts' counts; None for no parts."""
        given = list(parts)
        if not given:
            return None
        return cls(
            to_server=Signed.merged([part.to_server for part in given]),
            from_server=Signed.merged([part.from_server for part in given]),
        )

    @property
    def shortest_ns(self) -> int | None:
        """The shorter median; None without any. Pushes have a time from the server alone."""
        medians = [side.quantiles_ns((0.5,))[0] for side in (self.to_server, self.from_server) if side.count]
        return min(medians, default=None)

    def is_known(self, clock_bound_ns: int | None) -> bool:
        """Whether there are any, and the clocks are close enough: the bound is a small part of each median.

        `clock_bound_ns` is how far the clocks may be apart: 0 on a machine, None where nobody says it.
        """
        shortest_ns = self.shortest_ns
        if shortest_ns is None or clock_bound_ns is None:
            return False
        return not clock_bound_ns or clock_bound_ns <= MOST_CLOCK_ERROR * shortest_ns


def earlier_first_byte(parts: "Iterable[HasFirstByte]") -> Histogram | None:
    """The times to the first byte of all parts; None if they are not known, or the same as the response times.

    They are the same where all answers come in one piece.
    """
    given = list(parts)
    known = [part.first_byte for part in given if part.first_byte is not None]
    if not known or len(known) < len(given):
        return None
    first, response = Histogram.merged(known), Histogram.merged(part.response for part in given)
    return first if first.count and first.quantiles_ns(_TELLING) != response.quantiles_ns(_TELLING) else None


class HasFirstByte(Protocol):
    """Times of answers: of traffic, an interval, or a target of a duet."""

    @property
    def response(self) -> Histogram:
        """Response times."""

    @property
    def first_byte(self) -> Histogram | None:
        """Times to the first byte."""


class Interval(Frozen):
    """A slice of time; starts and ends in nanoseconds since the schedule's epoch (warm-up starts at 0)."""

    phase: Phase
    index: int
    start_ns: int
    end_ns: int
    counts: Counts
    response: Histogram
    service: Histogram
    lateness: Histogram
    first_byte: Histogram | None = omitted_if_default(None, FIRST_BYTE)
    handshake: Histogram | None = omitted_if_default(None, "only with TLS")
    upgrade: Histogram | None = omitted_if_default(None, UPGRADE)
    one_way: OneWay | None = omitted_if_default(None, "only if answers contain the server's clock")
    streams: StreamTraffic | None = omitted_if_default(None, STREAMS)
    engine_cpu_ns: int
    paused_ns: int = omitted_if_default(0, _PAUSED)
    ticks: tuple[int, ...] = omitted_if_default((), _TICKS)

    workers: tuple[int, ...] = omitted_if_default(
        (), "right answers by worker of the engine, if there are several whose intervals are the same"
    )

    def with_steps(self, ticks: tuple[int, ...], workers: tuple[int, ...] = ()) -> "Interval":
        """The same interval with these ticks, and right answers by worker."""
        return self.model_copy(update={"ticks": ticks, "workers": workers})

    def as_warm_up(self) -> "Interval":
        """The same interval, of a load that only warms a server up."""
        return self.model_copy(update={"phase": "warmup"})

    @classmethod
    def merged(cls, parts: Sequence["Interval"], index: int, start_ns: int, end_ns: int) -> Self:
        """An interval with these bounds and the sums of the parts: at least one part, all of the same phase.

        It has no ticks and workers: parts may follow one another, or be of the same time.
        """
        return cls(phase=parts[0].phase, index=index, start_ns=start_ns, end_ns=end_ns, **sums(parts))

    def pack(self) -> None:
        """Keep its histograms encoded, as they came: decoded ones take ten times the memory."""
        one_way, streams = self.one_way, self.streams
        sides = (one_way.to_server, one_way.from_server) if one_way else ()
        apart = [histogram for side in sides for histogram in (side.negative, side.positive)]
        messages = [streams.times(name) for name in MESSAGE_TIMES] if streams else []
        own = (self.response, self.service, self.lateness, self.first_byte, self.handshake, self.upgrade)
        for histogram in (*own, *apart, *messages):
            if histogram is not None:
                histogram.pack()

    @property
    def lasts_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


def _known(times: Iterable[Histogram | None]) -> Histogram | None:
    """All that are known together; None if none are."""
    known = [part for part in times if part is not None]
    return Histogram.merged(known) if known else None


def sums(parts: "Sequence[Interval] | Sequence[Traffic]") -> dict[str, Any]:
    """Sums over parts of intervals, or of traffic: counts, histograms and times of the engine."""
    first_bytes = [part.first_byte for part in parts if part.first_byte is not None]
    return {
        "counts": Counts.merged(part.counts for part in parts),
        "response": Histogram.merged(part.response for part in parts),
        "service": Histogram.merged(part.service for part in parts),
        "lateness": Histogram.merged(part.lateness for part in parts),
        "first_byte": Histogram.merged(first_bytes) if len(first_bytes) == len(parts) else None,
        "handshake": _known(part.handshake for part in parts),
        "upgrade": _known(part.upgrade for part in parts),
        "one_way": OneWay.merged(part.one_way for part in parts if part.one_way is not None),
        "streams": StreamTraffic.merged(part.streams for part in parts),
        "engine_cpu_ns": sum(part.engine_cpu_ns for part in parts),
        "paused_ns": sum(part.paused_ns for part in parts),
    }


class RequestTraffic(Frozen):
    """What the engine saw of one of several requests of a scenario, of those that were due in the measurement."""

    completed: int = Field(default=0, description="right answers received in the window, whenever they were due")
    body_bytes: int = Field(default=0, description="bytes of the bodies of complete answers")
    status: dict[str, int] = Field(default={}, description="complete answers by class: 1xx to 5xx")
    outcomes: Outcomes = Outcomes()
    response: Histogram
    first_byte: Histogram | None = omitted_if_default(None, FIRST_BYTE)
    streams: StreamTraffic | None = omitted_if_default(None, STREAMS)

    @classmethod
    def merged(cls, parts: Sequence["RequestTraffic"]) -> Self:
        """The sums of the parts, which belong to the same request."""
        first_bytes = [part.first_byte for part in parts if part.first_byte is not None]
        counts = Counts.merged(Counts(status=part.status, outcomes=part.outcomes) for part in parts)
        return cls(
            completed=sum(part.completed for part in parts),
            body_bytes=sum(part.body_bytes for part in parts),
            status=counts.status,
            outcomes=counts.outcomes,
            response=Histogram.merged(part.response for part in parts),
            first_byte=Histogram.merged(first_bytes) if len(first_bytes) == len(parts) else None,
            streams=StreamTraffic.merged(part.streams for part in parts),
        )

    @property
    def answers(self) -> int:
        """Complete answers, right or wrong."""
        return sum(self.status.values())

    def timed_by(self, other: "RequestTraffic") -> "RequestTraffic":
        """The same counts with the response times of another load."""
        return self.model_copy(update={"response": other.response, "first_byte": other.first_byte})

    def by_status(self, expected: Iterable[int]) -> dict[str, int]:
        """Complete answers by status, as `Counts.by_status` gives them; `expected` are the request's statuses."""
        return Counts(status=self.status, outcomes=self.outcomes).by_status(expected)


Requests = tuple[RequestTraffic, ...]

BY_REQUEST = "by request, in the order of the scenario; empty for a single request, and where the engine did not say it"


def merged_requests(parts: Iterable[Requests]) -> Requests:
    """Sums by request over several engines or loads; nothing if a part does not know them."""
    given = list(parts)
    if not given or len({len(part) for part in given}) > 1:
        return ()
    return tuple(RequestTraffic.merged(same) for same in zip(*given, strict=True))


def nothing_is_lost_by_request(counts: Counts, requests: Requests) -> None:
    """Raise ValueError unless the outcomes by request add up to the outcomes of all."""
    if not requests:
        return
    by_request = Counts.merged(Counts(outcomes=request.outcomes) for request in requests).outcomes
    if by_request != counts.outcomes or any(request.outcomes.total != request.response.count for request in requests):
        raise ValueError("outcomes and response times by request do not add up to those of all requests")


class Engine(Frozen):
    """The engine that drove the load."""

    name: str
    version: str
    backend: str
    workers: int
    cpus: tuple[int, ...] = ()
    processes: int = omitted_if_default(1, "several if one may not open all connections", ge=1)


class Clocks(Frozen):
    """Increases of clocks between two readings by the engine, near both ends of the measurement window."""

    start_ns: int
    end_ns: int
    server_cpu_ns: int | None = Field(description="null if processes of the server began or ended during the load")
    steal_ns: int | None


class Traffic(Frozen):
    """What the engine saw in a trial. The measured totals are the sums of the measure and drain intervals.

    `counts.due`, the sum of `counts.outcomes` and the count of `response` have to be equal.
    """

    engine: Engine
    connections: int
    connect_ns: int
    epoch_unix_ns: int
    measure_start_ns: int
    measure_end_ns: int
    clocks: Clocks | None = omitted_if_default(None, "readings at both ends of the window")
    ended: Ended
    counts: Counts
    response: Histogram
    service: Histogram
    lateness: Histogram
    first_byte: Histogram | None = omitted_if_default(None, FIRST_BYTE)
    handshake: Histogram | None = omitted_if_default(None)
    upgrade: Histogram | None = omitted_if_default(None, UPGRADE)
    one_way: OneWay | None = omitted_if_default(None)
    streams: StreamTraffic | None = omitted_if_default(None, STREAMS)
    tls: AgreedTls | None = omitted_if_default(None)
    addresses: tuple[str, ...] = omitted_if_default((), "where the connections went, in turn; empty in a duet")
    encoded: tuple[str, ...] = omitted_if_default((), ENCODED)
    engine_cpu_ns: int
    paused_ns: int = omitted_if_default(0, _PAUSED)
    failures: tuple[FirstFailure, ...] = omitted_if_default((), "the first of each outcome, from the warm-up on")
    first_errors: FirstErrors | None = omitted_if_default(None, "of `counts.with_errors`")
    own_driver: bool = omitted_if_default(default=False, description="`engine` is a driver of another package")
    requests: Requests = omitted_if_default((), BY_REQUEST)
    journeys: JourneyTraffic | None = omitted_if_default(None, "of a scenario that is a journey")
    aborted_by: str = omitted_if_default("", "if aborted: the condition, and what was measured of it")
    reach: Reach | None = omitted_if_default(None, REACH)
    kept: KeptRequests | None = omitted_if_default(None, KEPT)
    intervals: tuple[Interval, ...]

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> "Traffic":
        """Check that each request that fell due has one outcome and one response time."""
        with contextlib.suppress(ValueError):  # whoever reads one of them says what is wrong with it
            Histogram.decode_all(self.main_times)
        due, outcomes, responses = self.counts.due, self.counts.outcomes.total, self.response.count
        if not due == outcomes == responses:
            raise ValueError(
                f"{due} requests that fell due have {outcomes} outcomes and {responses} response times:"
                " all three have to be equal"
            )
        nothing_is_lost_by_request(self.counts, self.requests)
        return self

    @property
    def main_times(self) -> list[Histogram]:
        """What every judgement reads: its response and service times, lateness, and the responses by interval."""
        return [self.response, self.service, self.lateness, *(interval.response for interval in self.intervals)]

    def driven_by(self, name: str, version: str) -> "Traffic":
        """The same traffic, from the driver of another package; what it read of clocks is left out."""
        engine = self.engine.model_copy(update={"name": name, "version": version})
        return self.model_copy(update={"engine": engine, "clocks": None, "own_driver": True})

    def without_server_cpu(self) -> "Traffic":
        """The same traffic, without the server's CPU time."""
        clocks = self.clocks and self.clocks.model_copy(update={"server_cpu_ns": None})
        return self.model_copy(update={"clocks": clocks})

    def with_encoded(self, encoded: tuple[str, ...]) -> "Traffic":
        """The same traffic, with how its encoded answers came before the load."""
        return self.model_copy(update={"encoded": encoded})

    def with_labels(self, labels: Sequence[str]) -> "Traffic":
        """The same traffic; its failures say by these labels which of several requests they were."""
        return self.model_copy(update=with_labels(self.failures, self.first_errors, labels))

    def ended_failing(self) -> "Traffic":
        """The same traffic, which the lab ended because every request failed."""
        return self.model_copy(update={"ended": "failing"})

    def ended_as_asked(self, why: str) -> "Traffic":
        """The same traffic, which the lab ended because a condition held that the user had given."""
        return self.model_copy(update={"ended": "aborted", "aborted_by": why})

    def until_last_answer(self) -> "Traffic":
        """The same traffic, measured until its last right answer: for a load whose last request ended it."""
        ends_ns = [part.end_ns for part in self.intervals if part.phase == "drain" and part.counts.completed]
        if not ends_ns:
            return self
        measured = sums([part for part in self.intervals if part.phase != "warmup" and part.end_ns <= ends_ns[-1]])
        of_window: Counts = measured["counts"]
        counts = {
            "completed": self.counts.outcomes.ok,
            "late": self.counts.late - of_window.late,
            "bytes_sent": of_window.bytes_sent,
            "bytes_received": of_window.bytes_received,
        }
        requests = [request.model_copy(update={"completed": request.outcomes.ok}) for request in self.requests]
        return self.model_copy(
            update={
                "measure_end_ns": ends_ns[-1],
                "counts": self.counts.model_copy(update=counts),
                "engine_cpu_ns": measured["engine_cpu_ns"],
                "streams": self.streams and self.streams.with_events_of(measured["streams"]),
                "requests": tuple(requests),
            }
        )

    @property
    def all_handshakes(self) -> Histogram | None:
        """All handshakes from the beginning: most are over before the measurement. None without TLS."""
        return _known(interval.handshake for interval in self.intervals) or self.handshake

    @property
    def all_upgrades(self) -> Histogram | None:
        """The same of handshakes of WebSockets."""
        return _known(interval.upgrade for interval in self.intervals) or self.upgrade

    @property
    def measured_one_way(self) -> OneWay | None:
        """One-way times of the requests that were due in the measurement; None without timestamps in answers."""
        if self.one_way is not None:
            return self.one_way
        return OneWay.merged(
            interval.one_way for interval in self.intervals if interval.one_way and interval.phase != "warmup"
        )

    @property
    def seconds(self) -> float:
        """Length of the measurement window."""
        return (self.measure_end_ns - self.measure_start_ns) / 1e9

    def clock_increase(self, name: str, subject: str) -> float | None:
        """The increase of a counter over the window by the engine's own readings; None without timely readings."""
        clocks, length = self.clocks, self.measure_end_ns - self.measure_start_ns
        if clocks is None or clocks.end_ns - self.measure_end_ns > _LATE * length:
            return None
        by_series = {("cpu_ns", "server"): clocks.server_cpu_ns, ("steal_ns", "machine"): clocks.steal_ns}
        read, span = by_series.get((name, subject)), clocks.end_ns - clocks.start_ns
        return None if read is None or span < _COVERED * length else read * length / span

    @property
    def paused_share(self) -> float:
        """Share of the window in which a worker of the engine was paused, on average."""
        return self.paused_ns / self.engine.workers / 1e9 / self.seconds if self.seconds > 0 else 0.0

    @property
    def window_unix_ns(self) -> tuple[int, int]:
        """Start and end of the measurement window in Unix time."""
        return self.epoch_unix_ns + self.measure_start_ns, self.epoch_unix_ns + self.measure_end_ns

    @property
    def carried_in(self) -> int:
        """Right answers within the window to requests that were due before it."""
        measured = (interval.counts.outcomes.ok for interval in self.intervals if interval.phase == "measure")
        return max(0, self.counts.completed - sum(measured))

    @property
    def carried_out(self) -> int:
        """Requests that were due within the window and had no outcome at its end."""
        measured = (interval.counts.outcomes.total for interval in self.intervals if interval.phase == "measure")
        return max(0, self.counts.due - sum(measured))

    @property
    def backlog(self) -> int:
        """Right answers within the window beyond its own requests: the server caught up with earlier requests.

        A load that shrinks always carries more requests into a window than out of it.
        """
        carried_in = self.carried_in
        beyond = carried_in - self.carried_out if carried_in else 0
        return beyond if beyond > 0 and not self._shrinks else 0

    @property
    def _shrinks(self) -> bool:
        """Whether significantly less falls due in the last third of the window than in the first."""
        measured = [interval for interval in self.intervals if interval.phase == "measure"]
        third = -(-len(measured) // 3)
        (first, first_ns), (last, last_ns) = (
            (sum(interval.counts.due for interval in part), sum(interval.lasts_ns for interval in part))
            for part in (measured[:third], measured[len(measured) - third :])
        )
        expected = first * last_ns / first_ns if first_ns else 0.0
        return last < (1 - _SHRINKS) * expected and expected - last > _SURE * math.sqrt(first + last)

    @property
    def answered(self) -> int:
        """Right answers to requests due in the window, or due before it up to the number that is pending at its end."""
        return self.counts.completed - self.backlog

    @property
    def rate_per_s(self) -> float:
        """Right answers per second within the measurement window, without answers that reduced a backlog."""
        return self.answered / self.seconds if self.seconds > 0 else 0.0
