"""A load on a server: its speed, its objectives, percentiles, what became of its requests, and findings."""

from collections.abc import Iterable, Iterator

from redline.analysis import are_sent_at_once
from redline.analysis.percentile_levels import percentile_levels
from redline.document.blocks import Block, Column, Item, Items, Prose, Section, Table, filled, line
from redline.document.format import (
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
from redline.findings.failed import telling
from redline.findings.two_modes import unstable_percentile
from redline.model import Counts, Histogram, Metric, Recording, numbers_of
from redline.model.load_result import LoadDeviations, LoadedServer, LoadResult, RequestsSent
from redline.quantities import significant
from redline.report.by_journey import journey_tables
from redline.report.histogram import histogram_table
from redline.report.objectives import objective_line
from redline.report.trials import trial_text
from redline.stats import enough_beyond

_HEADLINE = (0.5, 0.99)
"""The percentiles of the response time beside the throughput."""
_AT_A_GLANCE = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0)
"""The percentiles of a view that is not whole: with its heads the table has nine lines at most."""


def load_section(result: LoadResult, times: Histogram | None = None, *, as_wrk: bool = False) -> Section:
    """The throughput and the objectives, then percentiles, what else there is to say, and findings.

    What findings hide has its bound, or why it is not known, in its place. An interrupted load is shown as far as it
    was measured: being short is no reason to hide it. With `times`, the response times, all is shown: their histogram,
    the mean, the transfer rate, and what is as one expects: status codes, the warm-up, service times and lateness.
    Then, or `as_wrk`, the columns of wrk are shown too.
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
        deviations_table(result.deviations) if whole or as_wrk else None,
        *_by_request(result),
        *journey_tables(result.journeys),
        Prose.of(tuple(_remarks(result, whole=whole))),
        Items(tuple(findings)),
    )
    return Section(result.url, tuple(blocks), result.load)


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


def _throughput(result: LoadResult) -> str:
    """`18.3 k/s, p50 1.24 ms, p99 8.30 ms`."""
    so_far = f" ({result.ended})" if result.ended in ("interrupted", "aborted") else ""
    bound = result.bounds.get(Metric.THROUGHPUT)
    if result.throughput is None and bound is None:
        return "not known: no right answers"
    per_s = bound.words if bound else rate(result.throughput.value) if result.throughput else ""
    known = {quantile_name(point.q): point_words(point) for point in result.response if point.q in _HEADLINE}
    known |= {metric.value: bound.words for metric, bound in result.bounds.items() if metric.value not in known}
    shown = [f"{name} {known[name]}" for name in map(quantile_name, _HEADLINE) if name in known]
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
    quantiles = [q for q in sorted(set().union(*known)) if whole or q in _AT_A_GLANCE]
    rows = ((quantile_name(q), *(points.get(q, "") for points in known)) for q in quantiles)
    return Table((Column("", "right"), *(Column(name, "right") for name in times)), tuple(rows))


def deviations_table(known: LoadDeviations | None) -> Table | None:
    """Mean, standard deviation, largest value, and the share within one standard deviation of the mean."""
    if known is None:
        return None
    of_rate = f"right answers/s, by {duration(known.interval_ns)}"
    kinds = (("response", known.response, duration), (of_rate, known.rate, rate))
    rows = [(name, it, form) for name, it, form in kinds if it is not None]
    heads = ("mean", "stdev", "max", "± stdev")
    return Table(
        (Column(""), *(Column(head, "right") for head in heads)),
        tuple((name, *map(form, (it.mean, it.stdev, it.max)), f"{it.within:.1%}") for name, it, form in rows),
    )


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


def _by_request(result: LoadResult) -> Iterable[Block]:
    """The tables by request; only how requests ended if their times are not known."""
    if not result.requests:
        return ()
    from redline.report.by_request import outcomes_table, request_tables  # noqa: PLC0415 - many loads have one request

    is_timed = any(request.response for request in result.requests)
    return request_tables(result.requests) if is_timed else [outcomes_table(result.requests)]


def _remarks(result: LoadResult, *, whole: bool) -> Iterator[str]:
    """Lines of what else there is to say; some of them only for a `whole` view."""
    if whole:
        yield _levels(result)
    if result.streams:
        from redline.report.streams import streams_text  # noqa: PLC0415 - few loads have streams

        yield streams_text(result.streams)
    yield from map(other_time, result.other_times)
    yield from _connections(result)
    yield from encodings(result.encoded)
    if result.answers and (whole or len(result.answers) > 1 or result.counts.outcomes.unexpected_status):
        yield f"status codes  {by_status(result.answers)}"
    if result.users is not None and result.users_waiting is not None:
        waited, there = significant(result.users_waiting, 2), f"{result.users:.6g}"
        yield f"users  {waited} of {there} waited for an answer, on average"
    yield _reached(result)
    yield _server_text(result.server)
    if result.sent:
        yield _sent_text(result.sent)
    yield f"outcomes  {_outcomes_text(result.counts, is_open=result.load.startswith('open'))}"
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


def _reached(result: LoadResult) -> str:
    """`users  16 of 512 got an answer`; empty if all who asked did."""
    reach = result.reach
    if reach is None or not reach.stuck:
        return ""
    who = "connections" if result.load.startswith("open") else "users"
    return f"{who}  {integer(reach.answered)} of {integer(reach.asked)} got an answer"


def _server_text(server: LoadedServer | None) -> str:
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


def _sent_text(sent: RequestsSent) -> str:
    """`requests  1 to check the answer, 16,168 in 1.00 s of warm-up, 500 measured`."""
    answers = "answer" if sent.check == 1 else "answers"
    check = [f"{integer(sent.check)} to check the {answers}"] if sent.check else []
    warm_up = [f"{integer(sent.warm_up)} in {duration(sent.warm_up_ns)} of warm-up"] if sent.warm_up_ns else []
    return f"requests  {', '.join([*check, *warm_up, f'{integer(sent.measured)} measured'])}"


def _outcomes_text(counts: Counts, *, is_open: bool = True) -> str:
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
