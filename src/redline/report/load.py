"""A load on a server: its speed, its objectives, percentiles, what became of its requests, and findings."""

from collections.abc import Iterable, Iterator

from redline.analysis import are_sent_at_once
from redline.analysis.load_result import facts_of, known_bounds, own_findings
from redline.analysis.percentile_levels import percentile_levels
from redline.document.blocks import Block, Column, Item, Items, Line, Prose, Section, Table, filled, line
from redline.document.format import (
    agreed,
    amount,
    by_status,
    compression,
    duration,
    encodings,
    integer,
    other_time,
    point_words,
    quantile_name,
    rate,
    size,
)
from redline.findings.failed import telling
from redline.findings.two_modes import unstable_percentile
from redline.model import CellReport, Counts, Metric, Recording, numbers_of
from redline.model.connections import Reach
from redline.model.load_result import LoadDeviations, LoadedServer, LoadFacts, RequestsSent
from redline.quantities import significant
from redline.report.by_journey import journey_tables
from redline.report.histogram import histogram_table, times_table
from redline.report.objectives import objective_line
from redline.report.slowest import slowest_table
from redline.report.trials import trial_text
from redline.stats import enough_beyond

_HEADLINE = (0.5, 0.99)
"""The percentiles of the response time beside the throughput."""
_OF_CONNECTIONS = ("handshake", "upgrade")
"""Times that a connection has, and no request: they stand in lines, all others in columns."""
_AT_A_GLANCE = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0)
"""The percentiles of a view that is not whole: with its heads the table has nine lines at most."""


def load_section(cell: CellReport, url: str = "", *, whole: bool = False, as_wrk: bool = False) -> Section:
    """What the command of a load prints: its numbers, and findings. `url` is what was asked for, if it is known.

    `as_wrk`: the columns of wrk are shown also where the view is not `whole`.
    """
    findings = (
        Item(line((f"{finding.grade}: {finding.message}", finding.grade)), (line((f"→ {finding.advice}", "dim")),))
        for finding in sorted(own_findings(cell), key=lambda finding: -finding.grade.weight)
    )
    blocks = (*load_numbers(cell, whole=whole, as_wrk=as_wrk), Items(tuple(findings)))
    return Section(url or facts_of(cell).url, tuple(filled(*blocks)), cell.load_text)


def load_numbers(cell: CellReport, *, whole: bool = False, as_wrk: bool = False) -> Iterator[Block]:
    """Yield the throughput and the objectives, then percentiles, and what else there is to say.

    What findings hide has its bound, or why it is not known, in its place. An interrupted load is shown as far as it
    was measured: being short is no reason to hide it. The `whole` has also the histogram of response times, the mean,
    the transfer rate, the columns of wrk, and what is as one expects: status codes, the warm-up, service times and
    lateness.
    """
    facts = facts_of(cell)
    yield from filled(
        Prose((*_answer(cell, facts), *map(objective_line, cell.objectives))),
        histogram_table(cell.response) if whole and cell.response_percentiles and not _hides_times(cell) else None,
        _percentiles(cell, facts, whole=whole),
        deviations_table(facts.deviations) if whole or as_wrk else None,
        *_by_request(cell),
        *journey_tables(cell.journeys),
        slowest_table(cell) if whole else None,
        Prose.of(tuple(_remarks(cell, facts, whole=whole))),
    )


def _answer(cell: CellReport, facts: LoadFacts) -> Iterator[Line]:
    """The messages of conversations, and the throughput."""
    if cell.streams:
        from redline.report.streams import messages_text  # noqa: PLC0415 - few loads have streams

        if messages := messages_text(cell.streams):
            yield line((f"messages  {messages}", "strong"))
    yield line((f"throughput  {_throughput(cell, facts)}", "strong"))


def spectrum_section(cell: CellReport, recording: Recording) -> Section:
    """The response times at the levels that wrk2 prints, or their bounds; empty if they are not known.

    Levels with too few requests beyond them are left out, as everywhere, except the maximum.
    """
    traffic = recording.traffic
    reached = percentile_levels(traffic.response) if traffic and cell.response_percentiles else ()
    sides = dict.fromkeys(point.bound for point in cell.response_percentiles if point.bound and _hides_times(cell))
    levels = [level for level in reached if level.q == 1 or enough_beyond(cell.counts.due, level.q)]
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


def _throughput(cell: CellReport, facts: LoadFacts) -> str:
    """`18.3 k/s, p50 1.24 ms, p99 8.30 ms`."""
    so_far = f" ({facts.ended})" if facts.ended in ("interrupted", "aborted") else ""
    level, bounds = cell.known.get(Metric.THROUGHPUT), known_bounds(cell)
    bound = bounds.get(Metric.THROUGHPUT)
    if level is None and bound is None:
        return "not known: no right answers"
    per_s = bound.words if bound else rate(level.value) if level else ""
    known = {quantile_name(point.q): point_words(point) for point in cell.response_percentiles if point.q in _HEADLINE}
    known |= {metric.value: bound.words for metric, bound in bounds.items() if metric.value not in known}
    shown = [f"{name} {known[name]}" for name in map(quantile_name, _HEADLINE) if name in known]
    return ", ".join((f"{per_s}{so_far}", *shown))


def _percentiles(cell: CellReport, facts: LoadFacts, *, whole: bool) -> Table:
    response, service = cell.response_percentiles, cell.service_percentiles
    times = {"response": response, "service": service, "engine lateness": facts.lateness}
    if _is_closed(cell) and not whole and are_sent_at_once(response, service, facts.lateness):
        times = {"response": response}
    times |= {time.name: time.points for time in cell.other_times if time.name not in _OF_CONNECTIONS}
    if cell.streams is not None:
        times |= {"first message": cell.streams.first_event, "between messages": cell.streams.gaps}
        times |= {"slowest gap": cell.streams.slowest_gap, "per message": cell.streams.per_message}
        times |= {"one way": cell.streams.push, "jitter": cell.streams.jitter}
    return times_table(times, None if whole else _AT_A_GLANCE)


def deviations_table(known: LoadDeviations | None) -> Table | None:
    """Mean, standard deviation, largest value, and the share within one standard deviation of the mean."""
    if known is None:
        return None
    by = duration(known.interval_ns)
    kinds = (
        ("response", known.response, duration),
        (f"right answers/s, by {by}", known.rate, rate),
        (f"of each thread, by {by}", known.worker_rate, rate),
    )
    rows = [(name, it, form) for name, it, form in kinds if it is not None]
    heads = ("mean", "stdev", "max", "± stdev")
    return Table(
        (Column(""), *(Column(head, "right") for head in heads)),
        tuple((name, *map(form, (it.mean, it.stdev, it.max)), f"{it.within:.1%}") for name, it, form in rows),
    )


def _levels(cell: CellReport) -> str:
    """`mean response time 1.24 ms, transfer rate 3.20 MB/s`, as far as they are known."""
    names = {Metric.MEAN: "mean response time", Metric.RECEIVED: "transfer rate"}
    known = {metric: amount(level.value, level.unit) for metric, level in cell.known.items() if metric in names}
    known |= {metric: bound.words for metric, bound in known_bounds(cell).items() if bound.says_something}
    return ", ".join(f"{name} {known[metric]}" for metric, name in names.items() if metric in known)


def _hides_times(cell: CellReport) -> bool:
    """Whether response times are not known as they were measured; those that lie in a gap of them are."""
    bounds = known_bounds(cell)
    of_times = {bound.finding for metric, bound in bounds.items() if numbers_of(metric) == "response times"}
    return any(point.bound for point in cell.response_percentiles) and of_times != {unstable_percentile.kind}


def _is_closed(cell: CellReport) -> bool:
    return cell.load_text.startswith("closed")


def _by_request(cell: CellReport) -> Iterable[Block]:
    """The tables by request; only how requests ended if their times are not known."""
    if not cell.requests:
        return ()
    from redline.report.by_request import outcomes_table, request_tables  # noqa: PLC0415 - many loads have one request

    is_timed = any(request.response for request in cell.requests)
    return request_tables(cell.requests) if is_timed else [outcomes_table(cell.requests)]


def _remarks(cell: CellReport, facts: LoadFacts, *, whole: bool) -> Iterator[str]:
    """Lines of what else there is to say; some of them only for a `whole` view."""
    trial = cell.trials[0]
    if whole:
        yield _levels(cell)
    if cell.streams:
        from redline.report.streams import streams_text  # noqa: PLC0415 - few loads have streams

        yield streams_text(cell.streams)
    # A column does not say by whose clocks it is.
    said = (time for time in cell.other_times if time.name in _OF_CONNECTIONS or time.is_one_way)
    yield from map(other_time, said)
    yield from _connections(cell, facts)
    yield from encodings(cell.encoded)
    if cell.answers and (whole or len(cell.answers) > 1 or cell.counts.outcomes.unexpected_status):
        yield f"status codes  {by_status(cell.answers)}"
    if facts.users is not None and facts.users_waiting is not None:
        waited, there = significant(facts.users_waiting, 2), f"{facts.users:.6g}"
        yield f"users  {waited} of {there} waited for an answer, on average"
    yield _reached(facts.reach, "users" if _is_closed(cell) else "connections")
    yield _server_text(facts.server)
    if facts.sent:
        yield _sent_text(facts.sent)
    yield f"outcomes  {_outcomes_text(cell.counts, is_open=not _is_closed(cell))}"
    told = " ".join(finding.message for finding in own_findings(cell))
    yield from (f"first {failure.text}" for failure in telling(trial.failures) if failure.text not in told)
    if facts.asked_again:
        yield f"asked once more, {facts.asked_again}"
    if trial.warm_up and (whole or trial.warm_up.kind != "flat"):
        yield f"warm-up  {trial_text(trial.warm_up)}"


def _connections(cell: CellReport, facts: LoadFacts) -> Iterator[str]:
    yield from map(agreed, cell.tls)
    yield from compression(cell.counts)
    if len(facts.addresses) > 1:
        yield f"connections  in turn to {', '.join(facts.addresses)}"
    if facts.proxy:
        yield f"connections  through the proxy {facts.proxy}"


def _reached(reach: Reach | None, who: str) -> str:
    """`users  16 of 512 got an answer`; empty if all who asked did."""
    if reach is None or not reach.stuck:
        return ""
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


def _outcomes_text(counts: Counts, *, is_open: bool) -> str:
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
