"""A cell's report: its estimates, percentiles, other times, timeline, trials and objectives."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from redline.analysis.bounds import Times, known_points
from redline.analysis.objectives import objective_results
from redline.analysis.percentiles import (
    LoadedRequests,
    journey_report,
    other_times,
    percentiles,
    request_reports,
    requests_due,
    stream_report,
)
from redline.analysis.results import CellResult
from redline.findings import Touch, left_by_all
from redline.model import (
    BandedPercentile,
    Bound,
    Cell,
    CellReport,
    Counts,
    Estimate,
    Histogram,
    JourneyReport,
    Metric,
    Moment,
    Numbers,
    PartReport,
    Percentile,
    Request,
    RequestReport,
    Scenario,
    StreamReport,
    Suite,
    TooFew,
    TrialReport,
)
from redline.model.duet import TargetTraffic
from redline.model.kept import MOST_SLOWEST, SlowRequest
from redline.model.percentile import TimeName, bounded
from redline.model.traffic import earlier_first_byte, merged_requests
from redline.quantities import duration
from redline.stats import QUANTILE_OF, enough_beyond, requests_needed, sample_of
from redline.stats.estimate import estimate
from redline.stats.trials import MeasuredTraffic, TrialNumbers
from redline.suite.load_text import load_text, warmed_by

if TYPE_CHECKING:  # trials alone need nothing of duets
    from redline.analysis.levels import SlicedCell

_SERVICE: Numbers = "service times"
_OF_MESSAGES: tuple[Numbers, ...] = ("response times", "message times")
Curve: TypeAlias = tuple[BandedPercentile, ...]


def cell_report(
    result: CellResult,
    suite: Suite,
    settings: dict[str, str],
    sliced: "SlicedCell | None",
    *,
    with_curves: bool = True,
) -> CellReport:
    """The report of a cell. `settings` are those in which the variants of its server differ.

    `sliced`: the cell was measured only in duets, so it has no trials, and its levels are those of slices.
    """
    cell = result.cell
    of_times = () if sliced else result.leaving("response times")
    timed = sliced.timed if sliced else _traffic(of_times)
    served = sliced.timed if sliced else _traffic(result.leaving("service times"))
    loaded = [trial.numbers.traffic for trial in result.trials if trial.numbers.traffic]
    loads = [start for start, _ in sliced.made] if sliced else [trial.numbers for trial in result.trials]
    agreed = [load.traffic.tls for load in loads if load.traffic]
    sent = [traffic.threads for traffic in loaded]
    response = Histogram.merged(traffic.response for traffic in timed) if sliced else result.response_of(of_times)
    counted = sliced.traffic if sliced else _counted(result)
    counts = Counts.merged(traffic.counts for traffic in counted)
    response_curve, service_curve = _curves(result, sliced) if with_curves else ((), ())
    return CellReport(
        cell_id=result.id,
        slug=cell.slug,
        server=cell.variant.slug,
        build=sliced.facts("build") if sliced else server_facts(result, "build"),
        runtime_version=sliced.facts("runtime_version") if sliced else server_facts(result, "runtime_version"),
        scenario=cell.scenario.name,
        load=cell.load.name,
        load_text=load_text(cell.load),
        warmed_up_before=_warmed_up_before(cell),
        role=cell.role,
        is_baseline=cell.role == "subject" and cell.variant.slug in (suite.baseline, *suite.baselines.values()),
        valid=bool(sliced.made and not sliced.finding) if sliced else result.valid,
        trials_planned=result.planned,
        trials=tuple(_trials(result)),
        estimates=sliced.estimates() if sliced else _estimates(result),
        bounds=sliced.bounds() if sliced else _bounds(result),
        counts=counts,
        answers=counts.by_status(cell.scenario.statuses),
        response=response,
        response_percentiles=known_points(response) if timed else _bounded_percentiles(result),
        service_percentiles=known_points(Histogram.merged(traffic.service for traffic in served))
        if served
        else _bounded_service(result),
        requests=_requests(result, sliced),
        slowest=_slowest(result, sliced, of_times),
        journeys=_journeys(result, sliced),
        response_curve=response_curve,
        service_curve=service_curve,
        too_few=too_few(response),
        other_times=other_times(
            earlier_first_byte(timed),
            sliced.opening if sliced else _opening(_traffic(result.leaving(_SERVICE))),
            (traffic.one_way for traffic in served),
            cell.scenario.clock_resolution_ns,
            clock_bound_ns(sliced.clock_bounds if sliced else [t.clock_bound_ns for t in result.leaving(_SERVICE)]),
        ),
        streams=_streams(result, sliced),
        full_slug=cell.full_slug(sliced.threads if sliced else sent),
        tls=tuple(dict.fromkeys(tls for tls in agreed if tls)),
        encoded=tuple(dict.fromkeys(line for traffic in counted for line in traffic.encoded)),
        route=cell.variant.route.text if cell.variant.route else "",
        settings=settings,
        parts=tuple(_parts(result)),
        memory=result.memory,
        watched=result.watched,
        timeline=tuple(_timeline(result)),
        findings=tuple(filter(None, (sliced.finding,))) if sliced else result.findings,
        objectives=() if sliced else objective_results(result, suite.objectives),
        load_facts=result.load_facts,
        trial_timelines=result.timelines,
    )


def _curves(result: CellResult, sliced: "SlicedCell | None") -> tuple[Curve, Curve]:
    """Those of response and service times."""
    from redline.analysis.curves import response_curve, service_curve  # noqa: PLC0415 - a load by itself shows none

    return response_curve(result, sliced), service_curve(result, sliced)


def with_courses(report: CellReport, result: CellResult) -> CellReport:
    """The report of a cell with its trials and their courses."""
    return report.with_courses(tuple(_trials(result)), tuple(_timeline(result)), result.timelines)


def _traffic(trials: Iterable[TrialNumbers]) -> list[MeasuredTraffic]:
    return [trial.traffic for trial in trials if trial.traffic]


def _trials(result: CellResult) -> Iterator[TrialReport]:
    """Its trials, each with whether some of the estimates of an invalid cell rest on it."""
    some = {trial.position for metric in Metric for trial in result.having(metric)} if not result.valid else set[int]()
    for trial in result.trials:
        report = trial.report
        partly = not report.used and report.position in some
        yield report.counted_in_part() if partly else report


def _timeline(result: CellResult) -> Iterator[Moment]:
    """The course of the trials on which it rests, as far as each is known at each time."""
    shown = {trial.position for trial in result.resting}
    for trial in result.trials:
        yield from trial.timeline if trial.report.position in shown else ()


def _streams(result: CellResult, sliced: "SlicedCell | None") -> StreamReport | None:
    """What was seen of streams, with times as far as they are known."""
    scenario = result.cell.scenario
    if sliced:
        made = stream_report((traffic.streams for traffic in sliced.traffic), None, _due(scenario, sliced.traffic))
        return made and made.bounded(sliced.leaves, sliced.leaves)
    loads, rated = _traffic(result.resting), result.valid or _left(result, "throughput") is None
    seconds = sum(load.seconds for load in loads) if rated else None
    made = stream_report((load.streams for load in loads), seconds, _due(scenario, loads))
    if made is None or result.valid:
        return made
    return made.bounded(*(left.leaves if (left := _left(result, of)) else None for of in _OF_MESSAGES))


def _opening(loads: Sequence[MeasuredTraffic]) -> dict[TimeName, list[Histogram | None]]:
    """The handshakes of TLS and of WebSockets."""
    return {"handshake": [load.handshakes for load in loads], "upgrade": [load.upgrades for load in loads]}


def _due(
    scenario: Scenario, loads: Sequence[MeasuredTraffic] | Sequence[TargetTraffic]
) -> tuple[tuple[Request, int], ...]:
    due = sum(load.counts.due for load in loads)
    return requests_due(scenario, due, merged_requests(load.requests for load in loads))


def _requests(result: CellResult, sliced: "SlicedCell | None") -> tuple[RequestReport, ...]:
    """What was counted by request over the used trials, or over the starts of duets, which give no rates."""
    scenario = result.cell.scenario
    if sliced:
        loads = [LoadedRequests(target.requests, 0, 0.0) for target in sliced.traffic]
        made = request_reports(scenario, loads, has_rates=False)
        return tuple(request.bounded(sliced.leaves, sliced.leaves, rated=False) for request in made)
    loads = [LoadedRequests(load.requests, load.in_window, load.seconds) for load in _traffic(result.resting)]
    made = request_reports(scenario, loads)
    if result.valid:
        return made
    response, later = (left.leaves if (left := _left(result, of)) else None for of in _OF_MESSAGES)
    rated = _left(result, "throughput") is None
    return tuple(request.bounded(response, later, rated=rated) for request in made)


def _slowest(
    result: CellResult, sliced: "SlicedCell | None", trials: Iterable[TrialNumbers]
) -> tuple[SlowRequest, ...]:
    """The slowest requests of the starts of duets, or of the trials whose response times are known."""
    labels = result.cell.scenario.several_labels
    numbers = {trial.report.position: at for at, trial in enumerate(result.trials, 1)}
    loads = ((numbers[trial.position], load) for trial in trials if (load := trial.traffic))
    made = sliced.kept if sliced else ((number, load.starts_ns, load.slowest) for number, load in loads)
    slowest = heapq.nlargest(
        MOST_SLOWEST,
        ((kept, number, began_ns) for number, began_ns, requests in made for kept in requests),
        key=lambda it: it[0].response_ns,
    )
    several = len(sliced.starts if sliced else numbers) > 1
    return tuple(
        SlowRequest(
            trial=number if several else 0,
            request=labels[kept.request] if labels and kept.request is not None else "",
            at_ns=kept.due_ns - began_ns,
            response_ns=kept.response_ns,
            outcome=kept.outcome,
            status=kept.status,
            trace_id=kept.trace_id,
        )
        for kept, number, began_ns in slowest
    )


def _counted(result: CellResult) -> list[MeasuredTraffic]:
    """The traffic of the used trials, of an invalid cell of all of them."""
    return _traffic(result.used if result.valid else [trial.numbers for trial in result.trials])


def _journeys(result: CellResult, sliced: "SlicedCell | None") -> JourneyReport | None:
    """What became of journeys over the used trials, or over the starts of duets, which give no rates."""
    if sliced:
        made = journey_report(result.cell.scenario, [target.journeys for target in sliced.traffic], None)
        return made and made.bounded(sliced.leaves)
    counted = _traffic(result.resting)
    seconds = sum(load.seconds for load in counted)
    made = journey_report(result.cell.scenario, [load.journeys for load in counted], seconds)
    left = None if result.valid else _left(result, "response times")
    return made.bounded(left.leaves if left else None) if made else None


def _warmed_up_before(cell: Cell) -> str:
    by = cell.warmup_by
    return f"{duration(cell.warmup_ns)} by {warmed_by(by)}" if by and cell.warmup_ns else ""


def _estimates(result: CellResult) -> dict[Metric, Estimate]:
    """Every metric that the usable trials have; percentiles only if enough requests lie beyond them."""
    return {metric: result.estimate(metric) for metric in Metric if _is_estimated(result, metric)}


def _is_estimated(result: CellResult, metric: Metric) -> bool:
    trials = result.having(metric)
    if metric not in QUANTILE_OF:
        return bool(trials)
    count = sum(trial.traffic.response.count for trial in trials if trial.traffic)
    return enough_beyond(count, QUANTILE_OF[metric])


def _bounds(result: CellResult) -> dict[Metric, Bound]:
    """What is known in place of the metrics that invalid findings hide."""
    return {metric: bound for metric in Metric if (bound := result.bound(metric)) is not None}


def _bounded_percentiles(result: CellResult) -> tuple[Percentile, ...]:
    """The response times of all trials of an invalid cell, with bounds; empty if nothing of them is known."""
    made = _traffic(result.resting)
    if len(made) < len(result.resting):
        return ()
    return Times.of(made, result.findings).points(_left(result, "response times"))


def _bounded_service(result: CellResult) -> tuple[Percentile, ...]:
    """The service times of an invalid cell as bounds; empty if nothing of them is known."""
    made = _traffic(result.resting)
    if len(made) < len(result.resting):
        return ()
    left = _left(result, _SERVICE)
    return bounded(percentiles(Histogram.merged(traffic.service for traffic in made)), left.leaves if left else None)


def _left(result: CellResult, numbers: Numbers) -> Touch | None:
    """What findings leave of these numbers over all whole trials."""
    return left_by_all([trial.touched[numbers] for trial in result.whole if numbers in trial.touched])


def _parts(result: CellResult) -> Iterator[PartReport]:
    """The server and its proxies separately; empty without proxies."""
    costing = result.leaving("CPU and memory")
    for place, part in enumerate(costing[0].parts if costing else ()):
        alone = [trial.of_part(place) for trial in costing if place < len(trial.parts)]
        estimates = {}
        for metric in (Metric.CPU_PER_REQUEST, Metric.MEMORY):
            if having := [trial for trial in alone if trial.has_metric(metric)]:
                estimates[metric] = estimate(sample_of(having, metric), metric)
        servers = [trial.numbers.server for trial in result.trials if trial.numbers.server]
        proxies = [server.hops[place - 1].process for server in servers if 1 <= place <= len(server.hops)]
        yield PartReport(
            name=part.name,
            estimates=estimates,
            build=_distinct(proxy.build for proxy in proxies),
            runtime_version=_distinct(proxy.runtime_version for proxy in proxies),
        )


def too_few(histogram: Histogram) -> tuple[TooFew, ...]:
    """The percentiles that need more requests, lowest first, with how many; empty for an empty histogram."""
    count = histogram.count
    return tuple(
        TooFew(metric=metric, needs=requests_needed(q), missing=requests_needed(q) - count)
        for metric, q in QUANTILE_OF.items()
        if count and not enough_beyond(count, q)
    )


def server_facts(result: CellResult, fact: Literal["build", "runtime_version"]) -> str:
    """The distinct values of a fact that the servers reported, since differences between trials matter."""
    servers = [trial.numbers.server for trial in result.trials if trial.numbers.server]
    return _distinct(str(getattr(server, fact)) for server in servers)


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def clock_bound_ns(bounds: Sequence[int | None]) -> int | None:
    """The most that the hosts' clocks may be apart in trials or starts, in ns; None if one of them does not say."""
    known = [bound for bound in bounds if bound is not None]
    return max(known, default=0) if len(known) == len(bounds) else None
