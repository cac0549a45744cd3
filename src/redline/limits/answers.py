"""The published form of a search: its answers and probes, with the curve, the knee and the overload test."""

from collections.abc import Iterator, Mapping, Sequence
from math import log

from redline.analysis.bounds import Times
from redline.analysis.percentiles import LoadedRequests, request_reports, requests_due, stream_report
from redline.findings import touched_by
from redline.limits.doubts import Seen
from redline.model import (
    Cell,
    Finding,
    Histogram,
    JourneyReport,
    Objective,
    ObjectiveState,
    RequestReport,
    Scenario,
    Traffic,
)
from redline.model.failures import FirstFailure
from redline.model.limits import (
    PROBE_QUANTILES,
    Beyond,
    CellLimit,
    LimitAnswer,
    LimitProbe,
    ProbePhase,
    ProbeState,
)
from redline.model.percentile import Effect
from redline.model.streams import MESSAGE_TIMES, StreamReport
from redline.search import Evidence, Limit, Search
from redline.search.curve import curve, knee, quantile_known
from redline.search.evidence import RequestSeen, overloaded, stall_ns
from redline.search.steps import joint, reason, shows, state_of
from redline.stats.objectives import LoadTotals


def with_curve(limit: CellLimit, beyond: Beyond | str) -> CellLimit:
    """Add the curve and the knee of its probes to a search. `beyond`: the overload test, or why there was none."""
    points = curve(limit.probes)
    return limit.with_curve(points, knee(points), beyond)


def answer(limit: Limit, search: Search, seen_by: Seen) -> LimitAnswer:
    """The answer for a set of objectives, with its conditions, and with what all its probes say against it."""
    met_at, missed_at = seen_by.met_at(limit.name), seen_by.missed_at(limit.name)
    changed = seen_by.changed(limit.name, search.change)
    low, high, by_users = limit.low_per_s, limit.high_per_s, limit.by_users
    conditions = search.sets[limit.name]
    seen = [_state(evidence, conditions) for evidence in search.evidence if shows(evidence, *conditions)]
    return LimitAnswer(
        name=limit.name,
        by_users=by_users,
        passed_per_s=None if by_users else low,
        failed_per_s=None if by_users else high,
        confidence=limit.confidence,
        decided=limit.decided and not (changed and changed.answers),
        method="queue" if limit.modelled else "single users" if by_users else "single rates",
        binding=limit.binding,
        conditions=tuple(condition.text for condition in conditions),
        met_somewhere=met_at is not None or any(state != "missed" for state in seen),
        missed_somewhere=missed_at is not None or any(state != "met" for state in seen),
        reason="its answers changed while it was searched" if changed and changed.answers else limit.reason,
        starts_differ=limit.starts_differ,
        probes_differ=limit.probes_differ,
        binds_alone=limit.binds_alone,
        passed_speed=_speed(low, search),
        failed_speed=_speed(high, search),
        passed_users=low if by_users else _users(low, search),
        failed_users=high if by_users else _users(high, search),
        met_at_per_s=None if by_users else met_at,
        missed_at_per_s=None if by_users else missed_at,
        met_at_users=met_at if by_users else None,
        missed_at_users=missed_at if by_users else None,
        doubts=tuple(seen_by.doubts(limit.name, low, high, changed, modelled=limit.modelled)),
        changed=changed,
    )


def _speed(rate_per_s: float | None, search: Search) -> float | None:
    recorded_per_s = search.settings.recorded_per_s
    return None if rate_per_s is None or recorded_per_s is None else rate_per_s / recorded_per_s


def _users(rate_per_s: float | None, search: Search) -> float | None:
    """How many conversations are under way at once at a rate: times how long they took in the probes nearest to it.

    None for other requests, of several, or if the server kept up with no rate that was tried. Source: Little (1961).
    """
    steady = [seen for seen in search.evidence if not overloaded(seen) and seen.response.count]
    if rate_per_s is None or not steady or not all(seen.messages and not seen.requests for seen in steady):
        return None
    nearest = min(steady, key=lambda seen: abs(log(seen.rate_per_s / rate_per_s)))
    near = [seen.response for seen in steady if seen.rate_per_s == nearest.rate_per_s]
    return rate_per_s * Histogram.merged(near).mean_ns / 1e9


def probe(  # noqa: PLR0913
    evidence: Evidence,
    sets: Mapping[str, Sequence[Objective]],
    why: str = "",
    phase: ProbePhase = "search",
    *,
    fresh: bool = False,
    start: int = 0,
    began_s: float | None = None,
    failures: tuple[FirstFailure, ...] = (),
    requests: tuple[RequestReport, ...] = (),
    journeys: JourneyReport | None = None,
    streams: StreamReport | None = None,
    bounds: Mapping[str, Effect] | None = None,
    recording: str = "",
) -> LimitProbe:
    """The published form of a probe; `why` is a message for users, `start` the number of the server's start.

    `began_s`: when it began, in seconds since the search began. `bounds`: the percentiles that are not known, and what
    is.
    """
    response, bounds = evidence.response, bounds or {}
    times = {name: quantile_known(response, q) for name, q in PROBE_QUANTILES.items()}
    times["max"] = response.max_ns if response.count else None
    times |= dict.fromkeys([name for name, left in bounds.items() if left == "unknown"])
    return LimitProbe(
        phase=phase,
        fresh=fresh,
        start=start,
        rate_per_s=evidence.offered_per_s if evidence.by_users else evidence.rate_per_s,
        users=round(evidence.rate_per_s) if evidence.by_users else None,
        began_s=began_s,
        speed=evidence.speed,
        seconds=evidence.seconds,
        offered_per_s=evidence.offered_per_s,
        answered_per_s=evidence.answered_per_s,
        errors=sum(slice_.errors for slice_ in evidence.slices),
        p50_ns=times["p50"],
        p90_ns=times["p90"],
        p99_ns=times["p99"],
        p999_ns=times["p99.9"],
        p75_ns=times["p75"],
        p95_ns=times["p95"],
        max_ns=times["max"],
        response=response,
        overloaded=overloaded(evidence),
        hopeless=evidence.hopeless,
        aborted_by=evidence.aborted,
        client=evidence.client,
        stalled_ns=stall_ns(evidence),
        why=why,
        counts=tuple(_state_for(name, evidence, conditions) for name, conditions in sets.items()),
        failures=failures,
        requests=requests,
        journeys=journeys,
        streams=streams,
        bounds=dict(bounds),
        recording=recording,
    )


def _state_for(name: str, evidence: Evidence, conditions: Sequence[Objective]) -> ProbeState:
    """Whether a single probe met a set of objectives, and why: the first condition that decides it."""
    if not shows(evidence, *conditions):
        return ProbeState(name=name, state="not known", why=evidence.client)
    state = _state(evidence, conditions)
    deciding = next(condition for condition in conditions if state_of((evidence,), condition) == state)
    return ProbeState(name=name, state=state, why=reason(evidence, deciding))


def _state(evidence: Evidence, conditions: Sequence[Objective]) -> ObjectiveState:
    """Whether a single probe met all conditions."""
    return joint([state_of((evidence,), condition) for condition in conditions])


def probe_bounds(cell: Cell, traffic: Traffic, findings: tuple[Finding, ...]) -> dict[str, Effect]:
    """What the findings about a probe leave of its percentiles, by name; those that are not named are known."""
    touch = touched_by(cell, findings).get("response times")
    if touch is None:
        return {}
    times = Times.of([traffic], findings)
    known = ((name, times.left_at(q, touch)) for name, q in PROBE_QUANTILES.items())
    return {name: left.leaves for name, left in known if left is not None}


def requests_seen(scenario: Scenario, traffic: Traffic, *, cut: bool) -> Iterator[tuple[str, RequestSeen]]:
    """What a probe showed of each of several requests, by label. `cut`: what we ended is no error of theirs."""
    for label, seen in zip(scenario.several_labels, traffic.requests, strict=False):
        outcomes = seen.outcomes
        ended_by_us = outcomes.in_flight + outcomes.unsent if cut else 0
        yield label, RequestSeen(outcomes.total, outcomes.ok, outcomes.errors - ended_by_us, seen.response)


def messages_seen(scenario: Scenario, traffic: Traffic) -> Iterator[tuple[tuple[str | None, str], RequestSeen]]:
    """The times of messages that a probe showed, of all requests and of each of several; each time stands as a request.

    A conversation that was due and not good is an error of the goodput.
    """
    everything = LoadTotals.of_load(traffic, scenario)
    for label in (None, *everything.requests):
        totals = everything if label is None else everything.of_request(label)
        if totals is None or totals.streams is None:
            continue
        for name in MESSAGE_TIMES:
            times = totals.streams.times(name)
            if times is not None:
                yield (label, name), RequestSeen(times.count, times.count, 0, times)
        if totals.conversations:
            good = totals.streams.good
            yield (label, "goodput"), RequestSeen(totals.conversations, good, totals.conversations - good, Histogram())


def report_of_messages(
    scenario: Scenario, traffic: Traffic, evidence: Evidence, bounds: Mapping[str, Effect]
) -> StreamReport | None:
    """What a report says of the messages of a probe; None if it had no conversations."""
    due = requests_due(scenario, traffic.counts.due, traffic.requests)
    report, leaves = stream_report([traffic.streams], evidence.seconds, due), next(iter(bounds.values()), None)
    return report and report.bounded(leaves, leaves if leaves == "unknown" else None)


def reports_by_request(
    scenario: Scenario, traffic: Traffic, evidence: Evidence, bounds: Mapping[str, Effect]
) -> tuple[RequestReport, ...]:
    """What a report says of each of several requests of a probe; their rates add up to that of the probe.

    Where percentiles of all requests are bounds, those of each of them are.
    """
    if not scenario.others:
        return ()
    seconds, leaves = evidence.seconds, next(iter(bounds.values()), None)
    counted = LoadedRequests(traffic.requests, round(evidence.answered_per_s * seconds), seconds)
    service = leaves if leaves == "unknown" else None
    return tuple(report.bounded(leaves, service, rated=True) for report in request_reports(scenario, [counted]))
