"""The result of a load on a server: what is known of its only trial, in its published form."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from redline.analysis.bounds import Times, load_bounds
from redline.analysis.objectives import load_objectives
from redline.analysis.percentiles import (
    LoadedRequests,
    journey_report,
    other_times,
    percentiles,
    request_reports,
    stream_report,
)
from redline.errors import DriveError
from redline.findings import Touched, judge, touched_by, warm_up
from redline.findings.load import cut_short
from redline.model import (
    AttachedServer,
    Cell,
    Closed,
    Counts,
    Estimate,
    Finding,
    Grade,
    Histogram,
    Metric,
    Numbers,
    Objective,
    Recording,
    Traffic,
)
from redline.model.load_result import Deviation, LoadDeviations, LoadedServer, LoadResult, RequestsSent
from redline.model.percentile import bounded
from redline.model.traffic import earlier_first_byte
from redline.stats import Trial
from redline.suite.load_text import load_text

_TIMES: tuple[Numbers, ...] = ("response times", "service times")
_METHOD = "one trial: no interval"


@dataclass(frozen=True)
class SingleRequests:
    """The requests that were sent beside a load: how many checked the answers before it, and what one after it showed.

    `still_wrong`: after wrong answers to several requests, which of them is answered wrongly when sent once more, and
    how; empty if none is, or if that is not known.
    """

    before: int = 0
    still_wrong: str = ""


def load_result(
    url: str,
    cell: Cell,
    recording: Recording,
    objectives: tuple[Objective, ...] = (),
    beside: SingleRequests = SingleRequests(),
) -> LoadResult:
    """Return the result of a load in its published form.

    Raises DriveError if the load ended before anything was measured.
    """
    traffic = recording.traffic
    if traffic is None or (traffic.seconds <= 0 and traffic.ended not in ("interrupted", "failing", "aborted")):
        raise DriveError("the load ended before its measurement began", hint="let it run past its warm-up (--warmup)")
    findings, completed = judge(cell, recording), traffic.counts.completed
    valid = traffic.seconds > 0 and all(finding.grade is not Grade.INVALID for finding in findings)
    touched, times = _touched(cell, traffic, findings), Times.of([traffic], findings)
    on_response, on_service = (touched[numbers].leaves if numbers in touched else None for numbers in _TIMES)
    received_per_s = traffic.counts.bytes_received / traffic.seconds if traffic.seconds > 0 else 0.0
    bounds = load_bounds(touched, times, traffic.rate_per_s, received_per_s) if completed else {}
    is_rated, users = bool(completed) and "throughput" not in touched, _users(cell)
    knows_times = bool(traffic.response.count) and Metric.MEAN not in bounds
    journeys = journey_report(cell.scenario, [traffic.journeys], traffic.seconds)
    streams = stream_report([traffic.streams], traffic.seconds)
    return LoadResult(
        url=url,
        load=load_text(cell.load),
        seed=recording.seed,
        valid=valid,
        ended=traffic.ended,
        measured_ns=traffic.measure_end_ns - traffic.measure_start_ns,
        bounds=bounds,
        throughput=_single(traffic.rate_per_s, "1/s") if is_rated else None,
        received=_single(received_per_s, "B/s") if is_rated and traffic.seconds > 0 else None,
        mean=_single(traffic.response.mean_ns, "ns") if knows_times else None,
        deviations=_deviations(traffic, times=knows_times, rate=is_rated),
        engine_cpu_per_request=_single(traffic.engine_cpu_ns / completed, "ns") if completed else None,
        response=times.points(touched.get("response times")),
        service=bounded(percentiles(traffic.service), on_service),
        lateness=percentiles(traffic.lateness),
        other_times=other_times(
            None if on_response else earlier_first_byte([traffic]),
            () if on_service else [traffic.all_handshakes],
            () if on_service else [traffic.measured_one_way],
            cell.scenario.clock_resolution_ns,
        ),
        streams=streams and streams.bounded(on_response, on_service),
        tls=traffic.tls,
        addresses=traffic.addresses,
        proxy=_proxy(cell),
        warm_up=warm_up(cell, Trial(recording)),
        users=users,
        users_waiting=None if users is None or on_service or not traffic.seconds else _waiting(traffic, users),
        reach=traffic.reach,
        server=loaded_server(recording),
        counts=traffic.counts,
        sent=_requests_sent(traffic, beside.before),
        answers=traffic.counts.by_status(cell.scenario.statuses),
        failures=traffic.failures,
        requests=tuple(
            request.bounded(on_response, on_service, rated=is_rated)
            for request in request_reports(
                cell.scenario, [LoadedRequests(traffic.requests, traffic.answered, traffic.seconds)]
            )
        ),
        encoded=traffic.encoded,
        journeys=journeys and journeys.bounded(on_response),
        asked_again=beside.still_wrong,
        engine=traffic.engine,
        objectives=load_objectives(cell, traffic, findings, objectives, recording.failure),
        findings=findings,
    )


def _deviations(traffic: Traffic, *, times: bool, rate: bool) -> LoadDeviations | None:
    """How far response times and the rate of intervals are from their means, as far as they are known."""
    measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
    if not (times or rate) or not measured:
        return None
    longest_ns = max(interval.lasts_ns for interval in measured)
    rates = [it.counts.outcomes.ok / it.lasts_ns * 1e9 for it in measured if it.lasts_ns * 2 >= longest_ns > 0]
    return LoadDeviations(
        response=response_deviation(traffic.response) if times else None,
        rate=rate_deviation(rates) if rate and rates else None,
        interval_ns=longest_ns,
    )


def response_deviation(response: Histogram) -> Deviation:
    """How far response times are from their mean."""
    return Deviation(
        mean=response.mean_ns,
        stdev=response.stdev_ns,
        max=response.max_ns,
        within=response.share_within(1),
        values=response.count,
    )


def rate_deviation(rates: Sequence[float]) -> Deviation:
    """How far the rates of intervals are from their mean."""
    mean, stdev = fmean(rates), pstdev(rates)
    near = sum(abs(rate - mean) <= stdev for rate in rates)
    return Deviation(mean=mean, stdev=stdev, max=max(rates), within=near / len(rates), values=len(rates))


def loaded_server(recording: Recording) -> LoadedServer | None:
    """What was watched of the server and of proxies in front of it; None where nobody looked."""
    trial, owner = Trial(recording), recording.owner
    if recording.server is None and owner is None:
        return None
    most = {name: recording.most(name, "server") for name in ("rss_bytes", "threads", "descriptors")}
    left = recording.find("close_wait", "server")
    return LoadedServer(
        processes=owner.processes if owner is not None else (),
        cpu_per_request_ns=trial.cpu_per_request_ns,
        **{name: None if value is None else round(value) for name, value in most.items()},
        half_closed=None if left is None else round(left.values[-1]),
        unknown=owner.unknown if owner is not None else "",
    )


def _requests_sent(traffic: Traffic, checked: int) -> RequestsSent:
    """How many requests the server got, and why."""
    warming = [interval for interval in traffic.intervals if interval.phase == "warmup"]
    return RequestsSent(
        check=checked,
        warm_up=sum(map(_written, (interval.counts for interval in warming))),
        measured=_written(traffic.counts),
        warm_up_ns=sum(interval.lasts_ns for interval in warming),
    )


def _written(counts: Counts) -> int:
    return counts.sent + counts.retried + counts.resent


def _touched(cell: Cell, traffic: Traffic, findings: Sequence[Finding]) -> Touched:
    """What findings leave of a load's numbers. What was measured until a user ended it is known, however short."""
    was_ended = traffic.ended in ("interrupted", "aborted") and traffic.seconds > 0
    return touched_by(cell, [finding for finding in findings if not (was_ended and finding.kind == cut_short.kind)])


def _users(cell: Cell) -> float | None:
    """How many users a load has who think or have a pace, each with a single request at a time; else None."""
    shape = cell.load.shape
    if not isinstance(shape, Closed) or cell.load.saturates or shape.depth > 1:
        return None
    return shape.mean_users(cell.load.duration_ns)


def _waiting(traffic: Traffic, users: float) -> float:
    """How many users waited for an answer, on average: the arrival rate times the mean service time (Little, 1961)."""
    return min(traffic.service.count * traffic.service.mean_ns / 1e9 / traffic.seconds, users)


def _proxy(cell: Cell) -> str:
    """The HTTP proxy in between; empty without any."""
    entry = cell.variant.entry
    return entry.way.proxy.text if isinstance(entry, AttachedServer) and entry.way.proxy else ""


def _single(value: float, unit: str) -> Estimate:
    return Estimate(value=value, low=None, high=None, unit=unit, n=1, method=_METHOD)
