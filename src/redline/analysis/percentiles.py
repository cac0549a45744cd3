"""Distributions of times on a grid of nines, and what a load says of each of its requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from redline.lazily import dataclass
from redline.model import (
    Histogram,
    JourneyReport,
    JourneyTraffic,
    OneWay,
    OtherTime,
    Percentile,
    Request,
    RequestReport,
    RequestTraffic,
    Scenario,
    Signed,
    StreamReport,
    StreamTraffic,
)
from redline.model.hdr import PRECISION
from redline.model.percentile import TimeName
from redline.model.traffic import Requests, earlier_first_byte, merged_requests
from redline.stats import enough_beyond
from redline.stats.late_reads import is_sure
from redline.stats.trials import enough

_COARSE = (0.0, 0.25, 0.5, 0.75)
_DEEPEST = 9
_AT_ONCE_NS = 1_000
"""A request that is sent at most this late was sent when it was due."""


def percentiles(times: Histogram | Signed) -> tuple[Percentile, ...]:
    """The distribution on a grid of nines, as deep as its count supports, and its maximum; empty without requests."""
    count = times.count
    if count == 0:
        return ()
    shares = [q for q, least in _least_counts() if count >= least]
    values = times.quantiles_ns(shares)
    points = [Percentile(q=q, ns=ns) for q, ns in zip(shares, values, strict=True)]
    return (*points, Percentile(q=1.0, ns=times.max_ns))


def are_sent_at_once(
    response: Sequence[Percentile], service: Sequence[Percentile], lateness: Sequence[Percentile]
) -> bool:
    """Whether no request was sent late, so that service times are response times but for a slot of their histograms."""
    return (
        all(point.ns <= _AT_ONCE_NS for point in lateness)
        and [point.q for point in response] == [point.q for point in service]
        and all(
            abs(our.ns - their.ns) <= max(_AT_ONCE_NS, 2 * PRECISION * our.ns)
            for our, their in zip(response, service, strict=True)
        )
    )


def _nines() -> Iterator[float]:
    """0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999 and so on."""
    yield from _COARSE
    for nines in range(1, _DEEPEST + 1):
        yield round(1 - 10**-nines, nines)
        yield round(1 - 5 * 10 ** -(nines + 1), nines + 1)


@cache
def _least_counts() -> list[tuple[float, int]]:
    """The nines, and the fewest requests that support each."""
    return [(q, enough(q)) for q in _nines()]


@dataclass(frozen=True)
class LoadedRequests:
    """What a load counted by request. `answered` are its right answers that its rate counts, in `seconds`."""

    requests: Requests
    answered: int
    seconds: float


def stream_report(
    parts: Iterable[StreamTraffic | None], seconds: float | None, requests: Iterable[tuple[Request, int]] = ()
) -> StreamReport | None:
    """What loads of so many seconds together saw of conversations; None without any. No seconds: no rate.

    `requests`: those of which these are, and how many of each were due in all.
    """
    streams = StreamTraffic.merged(parts)
    if streams is None:
        return None
    of = list(requests)
    due = sum(due for asked, due in of if asked.stream and asked.stream.good)
    units = {asked.stream.unit for asked, _ in of if asked.stream} - {""}
    amount = streams.amount if len(units) <= 1 else 0  # different units have no sum
    return StreamReport(
        begun=streams.begun,
        events=streams.events,
        events_of_begun=streams.events_of_begun,
        events_per_s=streams.events / seconds if seconds else None,
        stalls=streams.stalls,
        first_event=_of_messages(streams, "first-message"),
        gaps=_of_messages(streams, "gap"),
        slowest_gap=_of_messages(streams, "slowest-gap"),
        per_message=_of_messages(streams, "per-message"),
        push=_of_messages(streams, "push"),
        jitter=_of_messages(streams, "jitter"),
        aside=streams.aside,
        amount=amount,
        amount_per_s=amount / seconds if seconds and amount else None,
        unit=next(iter(units), "amount") if amount else "",
        early=streams.early,
        goodput=streams.good / due if due else None,
    )


def _of_messages(streams: StreamTraffic, name: str) -> tuple[Percentile, ...]:
    """The distribution of these times, without what messages that were read late may have moved."""
    points = percentiles(streams.times(name) or Histogram())
    return tuple(point for point in points if is_sure(streams, name, point.q))


def requests_due(scenario: Scenario, due: int, requests: Requests) -> tuple[tuple[Request, int], ...]:
    """How many of each request were due; nothing where a mix was not counted by request."""
    if len(scenario.requests) == 1:
        return ((scenario.requests[0], due),)
    totals = [traffic.outcomes.total for traffic in requests]
    return tuple(zip(scenario.requests, totals, strict=True)) if len(totals) == len(scenario.requests) else ()


def request_reports(
    scenario: Scenario, loads: Iterable[LoadedRequests], *, has_rates: bool = True
) -> tuple[RequestReport, ...]:
    """What loads together counted by request; empty if one of them did not. Without rates for slices of duets."""
    made = list(loads)
    merged = merged_requests(load.requests for load in made)
    if len(merged) != len(scenario.requests):
        return ()
    rates = _rates(merged, made) if has_rates else [None] * len(merged)
    return tuple(
        RequestReport(
            request=label,
            name=request.name,
            method=request.method,
            path=request.path,
            rate_per_s=rate,
            response=percentiles(traffic.response),
            first_byte=() if (early := earlier_first_byte([traffic])) is None else percentiles(early),
            outcomes=traffic.outcomes,
            answers=traffic.by_status(request.expect.statuses),
            body_bytes=traffic.body_bytes,
            streams=stream_report(
                [traffic.streams],
                sum(load.seconds for load in made) if has_rates else None,
                [(request, traffic.outcomes.total)],
            ),
        )
        for at, (label, request, traffic, rate) in enumerate(
            zip(scenario.labels, scenario.requests, merged, rates, strict=True)
        )
        if at >= scenario.unmeasured or traffic.outcomes.total
    )


def journey_report(
    scenario: Scenario, journeys: Iterable[JourneyTraffic | None], seconds: float | None
) -> JourneyReport | None:
    """What became of the journeys of loads together; None without journeys, and where a load did not count them.

    `seconds`: the length of all measurements together; None for slices of duets, which give no rates.
    """
    made = JourneyTraffic.merged(journeys)
    if made is None or scenario.journey is None:
        return None

    def by_step(counts: Iterable[int]) -> dict[str, int]:
        return {label: count for label, count in zip(scenario.labels, counts, strict=False) if count}

    return JourneyReport(
        begun_per_s=made.due / seconds if seconds else None,
        begun=made.due,
        completed=made.completed,
        abandoned=by_step(made.abandoned),
        skipped=by_step(made.skipped),
        unfinished=made.unfinished,
        again=made.again,
        rows_used_up=made.rows_used_up,
        response=percentiles(made.response),
    )


def _rates(merged: Sequence[RequestTraffic], loads: Sequence[LoadedRequests]) -> list[float | None]:
    """The parts of the rate that requests have; they add up to it, although it leaves out the work on a backlog."""
    seconds, completed = sum(load.seconds for load in loads), sum(traffic.completed for traffic in merged)
    if not completed or seconds <= 0:
        return [None] * len(merged)
    rate_per_s = sum(load.answered for load in loads) / seconds
    return [rate_per_s * traffic.completed / completed for traffic in merged]


def other_times(
    first_byte: Histogram | None,
    opening: Mapping[TimeName, Iterable[Histogram | None]],
    one_way: Iterable[OneWay | None],
    resolution_ns: int | None,
    clock_bound_ns: int | None = 0,
) -> tuple[OtherTime, ...]:
    """Times to the first byte, if given, those of `opening` connections of several trials together, and one-way times.

    One-way times are known if answers carry the server's clock.

    `resolution_ns` is the resolution of the server's clock, `clock_bound_ns` its largest distance from the client's, if
    known: one-way times are left out unless that is a small part of both medians.
    """
    shown = [] if first_byte is None else [_time("first byte", first_byte, None)]
    for name, times in opening.items():
        merged = Histogram.merged(part for part in times if part is not None)
        if merged.count:
            shown.append(_time(name, merged, None))
    ways = OneWay.merged(way for way in one_way if way is not None)
    if ways is not None and ways.is_known(clock_bound_ns):
        if ways.to_server.count:
            shown.append(_time("to server", ways.to_server, resolution_ns, clock_bound_ns))
        shown.append(_time("from server", ways.from_server, resolution_ns, clock_bound_ns))
    return tuple(shown)


def _time(
    name: TimeName,
    times: Histogram | Signed,
    resolution_ns: int | None,
    clock_bound_ns: int | None = 0,
) -> OtherTime:
    p50, p99, most = times.quantiles_ns((0.5, 0.99, 1.0))
    return OtherTime(
        name=name,
        count=times.count,
        p50_ns=p50,
        p99_ns=p99 if enough_beyond(times.count, 0.99) else None,
        max_ns=most,
        resolution_ns=resolution_ns,
        clock_bound_ns=clock_bound_ns or 0,
        percentiles=percentiles(times),
    )
