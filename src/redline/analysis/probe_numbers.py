"""The numbers of a probe: which of its percentiles are bounds only, and what it counted by request. Pure."""

from collections.abc import Iterator, Mapping

from redline.analysis.bounds import Times
from redline.analysis.percentiles import LoadedRequests, request_reports
from redline.findings import touched_by
from redline.model import Cell, Finding, RequestReport, Scenario, Traffic
from redline.model.limits import PROBE_QUANTILES
from redline.model.percentile import Effect
from redline.search import Evidence
from redline.search.evidence import RequestSeen


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
    for label, seen in zip(scenario.told_apart, traffic.requests, strict=False):
        outcomes = seen.outcomes
        ended_by_us = outcomes.in_flight + outcomes.unsent if cut else 0
        yield label, RequestSeen(outcomes.total, outcomes.ok, outcomes.errors - ended_by_us, seen.response)


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
