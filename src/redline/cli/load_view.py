"""Show a load: its speed so far, its published result, and the result as a section."""

from collections.abc import Iterable, Iterator, Sequence

from redline.analysis import (
    LoadedRequests,
    are_sent_at_once,
    journey_report,
    load_objectives,
    other_times,
    request_reports,
    stream_report,
)
from redline.analysis.bounds import Times, load_bounds
from redline.analysis.percentile_levels import percentile_levels
from redline.analysis.percentiles import percentiles
from redline.asking.like import Like
from redline.cli.contracts import LoadedServer, LoadResult, RequestsSent
from redline.errors import DriveError
from redline.findings import Touched, judge, touched_by, warm_up
from redline.findings.failed import telling
from redline.findings.load import cut_short
from redline.findings.two_modes import unstable_percentile
from redline.model import (
    AttachedServer,
    Cell,
    Closed,
    Counts,
    Estimate,
    Finding,
    Grade,
    Histogram,
    Interval,
    Metric,
    Numbers,
    Objective,
    Recording,
    Traffic,
    numbers_of,
)
from redline.model.percentile import bounded
from redline.model.traffic import earlier_first_byte
from redline.quantities import significant
from redline.report import sections
from redline.report.document import Block, Column, Item, Items, Prose, Section, Table, filled, line
from redline.report.format import (
    agreed,
    amount,
    by_status,
    duration,
    encodings,
    integer,
    other_time,
    point_sign,
    point_words,
    quantile_name,
    rate,
    size,
)
from redline.report.sections.by_journey import journey_tables
from redline.report.sections.histogram import histogram_table
from redline.report.sections.objectives import objective_line
from redline.report.sections.trials import trial_text
from redline.stats import Trial, enough_beyond
from redline.suite.load_text import load_text

_TIMES: tuple[Numbers, ...] = ("response times", "service times")
_METHOD = "one trial: no interval"
_SAID = (0.5, 0.99)
"""The response times that are said beside the throughput."""


def speed_text(interval: Interval, *quantiles: float, waiting: int = 0) -> str:
    """`20.1 k/s  p99 1.20 ms`: the rate, and the response times that are known.

    `waiting`: the requests that were due before its end and have not ended. Without any, nothing can be answered.
    """
    if not interval.counts.completed:
        if interval.counts.outcomes.total:
            return "no right answers"
        return "no answers yet" if waiting else "nothing is due"
    times = zip(quantiles, interval.response.quantiles_ns(quantiles), strict=True) if interval.response.count else ()
    per_s = rate(interval.counts.completed / max(interval.lasts_ns, 1) * 1e9)
    return "  ".join([per_s, *(f"{quantile_name(q)} {duration(ns)}" for q, ns in times)])


def _proxy(cell: Cell) -> str:
    """The HTTP proxy in between; empty without any."""
    entry = cell.variant.entry
    return entry.way.proxy.text if isinstance(entry, AttachedServer) and entry.way.proxy else ""


def load_result(
    url: str,
    cell: Cell,
    recording: Recording,
    objectives: tuple[Objective, ...] = (),
    checked: int = 0,
    asked_again: str = "",
) -> LoadResult:
    """Return the result in its published form; `checked` requests were sent before the load.

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
        mean=_single(traffic.response.mean_ns, "ns") if traffic.response.count and Metric.MEAN not in bounds else None,
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
        sent=_requests_sent(traffic, checked),
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
        asked_again=asked_again,
        engine=traffic.engine,
        objectives=load_objectives(cell, traffic, findings, objectives, recording.failure),
        findings=findings,
    )


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


def server_text(server: LoadedServer | None) -> str:
    """`server  python3 (4711): 12.3 µs of CPU a request, up to 20.1 MiB, 19 threads, 22 descriptors`; or empty."""
    if server is None or server.unknown:
        return ""
    cpu, memory = server.cpu_per_request_ns, server.rss_bytes
    used = [f"{duration(cpu)} of CPU a request"] if cpu is not None else []
    used += [f"up to {size(memory)}"] if memory is not None else []
    counted = {"threads": server.threads, "open files and sockets": server.descriptors}
    used += [f"{integer(number)} {name}" for name, number in counted.items() if number is not None]
    who = f"{', '.join(server.processes)}: " if server.processes else ""
    return f"server  {who}{', '.join(used)}" if used else ""


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


def sent_text(sent: RequestsSent) -> str:
    """`requests  1 to check the answer, 16,168 in 1.00 s of warm-up, 500 measured`."""
    answers = "answer" if sent.check == 1 else "answers"
    check = [f"{integer(sent.check)} to check the {answers}"] if sent.check else []
    warm_up = [f"{integer(sent.warm_up)} in {duration(sent.warm_up_ns)} of warm-up"] if sent.warm_up_ns else []
    return f"requests  {', '.join([*check, *warm_up, f'{integer(sent.measured)} measured'])}"


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


def _single(value: float, unit: str) -> Estimate:
    return Estimate(value=value, low=None, high=None, unit=unit, n=1, method=_METHOD)


def load_section(result: LoadResult, times: Histogram | None = None) -> Section:
    """The throughput and the objectives, then percentiles, what else there is to say, and findings.

    What findings hide has its bound, or why it is not known, in its place. An interrupted load is shown as far as it
    was measured: being short is no reason to hide it. With `times`, the response times, all is shown: their histogram,
    the mean, the transfer rate, and what is as one expects: status codes, the warm-up, service times and lateness.
    """
    whole, all_times = times is not None, times if result.response and not _hides_times(result) else None
    findings = (
        Item(line((f"{finding.grade}: {finding.message}", finding.grade)), (line((f"→ {finding.advice}", "dim")),))
        for finding in sorted(result.findings, key=lambda finding: -finding.grade.weight)
    )
    blocks = filled(
        Prose((line((f"throughput  {_throughput(result)}", "strong")), *map(objective_line, result.objectives))),
        histogram_table(all_times) if all_times is not None else None,
        _percentiles(result, whole=whole),
        *_by_request(result),
        *journey_tables(result.journeys),
        Prose.of(tuple(_said(result, whole=whole))),
        Items(tuple(findings)),
    )
    return Section(result.url, tuple(blocks), result.load)


def _said(result: LoadResult, *, whole: bool) -> Iterator[str]:
    """Lines of what else there is to say; some of them only for a `whole` view."""
    if whole:
        yield _levels(result)
    if result.streams:
        yield sections.streams_text(result.streams)
    yield from map(other_time, result.other_times)
    yield from _connections(result)
    yield from encodings(result.encoded)
    if result.answers and (whole or len(result.answers) > 1 or result.counts.outcomes.unexpected_status):
        yield f"status codes  {by_status(result.answers)}"
    if result.users is not None and result.users_waiting is not None:
        waited, there = significant(result.users_waiting, 2), f"{result.users:.6g}"
        yield f"users  {waited} of {there} waited for an answer, on average"
    yield _reached(result)
    yield server_text(result.server)
    if result.sent:
        yield sent_text(result.sent)
    yield f"outcomes  {outcomes_text(result.counts, is_open=result.load.startswith('open'))}"
    told = " ".join(finding.message for finding in result.findings)
    yield from (f"first {failure.text}" for failure in telling(result.failures) if failure.text not in told)
    if result.asked_again:
        yield f"asked once more, {result.asked_again}"
    if result.warm_up and (whole or result.warm_up.kind != "flat"):
        yield f"warm-up  {trial_text(result.warm_up)}"


def _connections(result: LoadResult) -> Iterator[str]:
    if result.tls:
        yield agreed(result.tls)
    if len(result.addresses) > 1:
        yield f"connections  in turn to {', '.join(result.addresses)}"
    if result.proxy:
        yield f"connections  through the proxy {result.proxy}"


def _by_request(result: LoadResult) -> Iterable[Block]:
    """The tables by request; only how requests ended if their times are not known."""
    if not result.requests:
        return ()
    is_timed = any(request.response for request in result.requests)
    return sections.request_tables(result.requests) if is_timed else [sections.outcomes_table(result.requests)]


def spectrum_section(result: LoadResult, recording: Recording) -> Section:
    """The response times at the levels that wrk2 prints, or their bounds; empty if they are not known.

    Levels with too few requests beyond them are left out, as everywhere, except the maximum.
    """
    traffic = recording.traffic
    reached = percentile_levels(traffic.response) if traffic and result.response else ()
    sides = dict.fromkeys(point.bound for point in result.response if point.bound and _hides_times(result))
    levels = [level for level in reached if level.q == 1 or enough_beyond(result.counts.due, level.q)]
    rows = (
        (
            f"{level.ns / 1e6:,.3f}",
            f"{level.q:.6f}",
            integer(level.requests),
            f"{1 / (1 - level.q):,.2f}" if level.q < 1 else "",
        )
        for level in levels
    )
    heads = (", ".join(("response", *sides, "ms")), "percentile", "requests", "1/(1-percentile)")
    return Section(
        "Percentile spectrum", tuple(filled(Table(tuple(Column(head, "right") for head in heads), tuple(rows))))
    )


def like_section(like: "Like") -> Section:
    """Facts that the other tool does not report of such a load, and parts of its command without a counterpart."""
    said = [f"- {text[0].upper()}{text[1:]}." for text in like.says]
    ignored = [f"Without a counterpart here: {' '.join(like.ignored)}."] if like.ignored else []
    return Section(f"What {like.tool} does not say", (Prose.of((*said, *ignored)),))


def _reached(result: LoadResult) -> str:
    """`users  16 of 512 got an answer`; empty if all who asked did."""
    reach = result.reach
    if reach is None or not reach.stuck:
        return ""
    who = "connections" if result.load.startswith("open") else "users"
    return f"{who}  {integer(reach.answered)} of {integer(reach.asked)} got an answer"


def _levels(result: LoadResult) -> str:
    """`mean response time 1.24 ms, transfer rate 3.20 MB/s`, as far as they are known."""
    levels = (("mean response time", Metric.MEAN, result.mean), ("transfer rate", Metric.RECEIVED, result.received))
    known = {name: amount(level.value, level.unit) for name, _, level in levels if level}
    known |= {name: result.bounds[metric].words for name, metric, _ in levels if _is_bound(result, metric)}
    return ", ".join(f"{name} {text}" for name, text in known.items())


def _hides_times(result: LoadResult) -> bool:
    """Whether response times are not known as they were measured; those that lie in a gap of them are."""
    of_times = {bound.finding for metric, bound in result.bounds.items() if numbers_of(metric) == "response times"}
    return any(point.bound for point in result.response) and of_times != {unstable_percentile.kind}


def _is_bound(result: LoadResult, metric: Metric) -> bool:
    return metric in result.bounds and result.bounds[metric].says_something


def _throughput(result: LoadResult) -> str:
    """`18.3 k/s, p50 1.24 ms, p99 8.30 ms`."""
    so_far = f" ({result.ended})" if result.ended in ("interrupted", "aborted") else ""
    bound = result.bounds.get(Metric.THROUGHPUT)
    if result.throughput is None and bound is None:
        return "not known: no right answers"
    per_s = bound.words if bound else rate(result.throughput.value) if result.throughput else ""
    known = {quantile_name(point.q): point_words(point) for point in result.response if point.q in _SAID}
    known |= {metric.value: bound.words for metric, bound in result.bounds.items() if metric.value not in known}
    shown = [f"{name} {known[name]}" for name in map(quantile_name, _SAID) if name in known]
    return ", ".join((f"{per_s}{so_far}", *shown))


def _percentiles(result: LoadResult, *, whole: bool) -> Table:
    times = {"response": result.response, "service": result.service, "engine lateness": result.lateness}
    is_closed = result.load.startswith("closed")
    if is_closed and not whole and are_sent_at_once(result.response, result.service, result.lateness):
        times = {"response": result.response}
    times |= {time.name: time.points for time in result.other_times if time.name != "handshake"}
    if result.streams is not None:
        times |= {"first event": result.streams.first_event, "between events": result.streams.gaps}
    known = [{point.q: point_sign(point) for point in points} for points in times.values()]
    rows = ((quantile_name(q), *(points.get(q, "") for points in known)) for q in sorted(set().union(*known)))
    return Table((Column("", "right"), *(Column(name, "right") for name in times)), tuple(rows))


def outcomes_text(counts: Counts, *, is_open: bool = True) -> str:
    """`480,000 ok, 12 timeout; 2 retried`; failed gRPC calls count as unexpected status.

    At the end of a closed load every user still waits for an answer, so answers that came after it say nothing.
    """
    kinds = [f"{integer(n)} {kind.replace('_', ' ')}" for kind, n in counts.outcomes if n]
    kinds += [f"{integer(n)} with grpc-status {status}" for status, n in counts.grpc_status.items()]
    more = {
        "answered after the end": counts.late if is_open else 0,
        "waited for a connection": counts.waited,
        "retried": counts.retried,
        "sent again": counts.resent,
        "reconnects": counts.reconnects,
    }
    return "; ".join([", ".join(kinds) or "no request", *(f"{integer(n)} {name}" for name, n in more.items() if n)])
