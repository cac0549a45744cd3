"""The result of a load on a server in its published form, of its judged cell."""

from redline.model import CellReport, Metric, numbers_of
from redline.model.load_result import LoadResult

_BOUNDED = ("throughput", "response times")
"""The numbers whose bounds it has."""


def load_result(cell: CellReport, url: str = "") -> LoadResult:
    """The result of a load that sent something in its published form; `url` is what was asked for, if it is known."""
    facts = cell.load_facts
    assert facts is not None, f"{cell.slug} is not the cell of a load that sent something"
    (trial,), known = cell.trials, cell.known
    bounds = {metric: bound for metric, bound in cell.bounds.items() if numbers_of(metric) in _BOUNDED}
    return LoadResult(
        **dict(facts) | {"url": url or facts.url},
        load=cell.load_text,
        valid=cell.valid and facts.measured_ns > 0,
        bounds=bounds if cell.counts.completed else {},
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
        encoded=cell.encoded,
        journeys=cell.journeys,
        objectives=cell.objectives,
        findings=tuple(finding for finding in cell.findings if finding.position is not None),
    )
