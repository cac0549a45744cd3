"""The result of a load on a server in its published form, of its judged cell."""

from redline.model import Bound, CellReport, Finding, Metric, numbers_of
from redline.model.load_result import LoadFacts, LoadResult

_BOUNDED = ("throughput", "response times")
"""The numbers whose bounds it has."""


def facts_of(cell: CellReport) -> LoadFacts:
    """The facts of a load that sent something."""
    assert cell.load_facts is not None, f"{cell.slug} is not the cell of a load that sent something"
    return cell.load_facts


def known_bounds(cell: CellReport) -> dict[Metric, Bound]:
    """What is known in place of a load's throughput and response times; empty if no answer came."""
    bounds = {metric: bound for metric, bound in cell.bounds.items() if numbers_of(metric) in _BOUNDED}
    return bounds if cell.counts.completed else {}


def own_findings(cell: CellReport) -> tuple[Finding, ...]:
    """Those about the load itself; that a cell has few trials is so of every load."""
    return tuple(finding for finding in cell.findings if finding.position is not None)


def load_result(cell: CellReport, url: str = "") -> LoadResult:
    """The result of a load that sent something in its published form; `url` is what was asked for, if it is known."""
    facts, (trial,), known = facts_of(cell), cell.trials, cell.known
    return LoadResult(
        **dict(facts) | {"url": url or facts.url},
        load=cell.load_text,
        valid=cell.valid and facts.measured_ns > 0,
        bounds=known_bounds(cell),
        throughput=known.get(Metric.THROUGHPUT),
        received=known.get(Metric.RECEIVED),
        mean=known.get(Metric.MEAN),
        response=cell.response_percentiles,
        service=cell.service_percentiles,
        other_times=cell.other_times,
        streams=cell.streams,
        tls=next(iter(cell.tls), None),
        warm_up=trial.warm_up,
        counts=cell.counts,
        answers=cell.answers,
        failures=trial.failures,
        requests=cell.requests,
        slowest=cell.slowest,
        encoded=cell.encoded,
        journeys=cell.journeys,
        objectives=cell.objectives,
        findings=own_findings(cell),
    )
