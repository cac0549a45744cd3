"""The requests of mixes in duets: how the response time of each compares with the baseline's."""

from collections.abc import Iterator, Mapping

from redline.analysis.duet import Duet
from redline.model import Plan, RequestRatio

QUANTILES = (0.5, 0.99)


def request_ratios(duets: Mapping[tuple[str, str], Duet], plan: Plan) -> Iterator[RequestRatio]:
    """Yield the ratios of every request of a scenario with several, at the median and p99, where starts can tell.

    They describe where a difference comes from, and are no verdicts: a mix has one primary metric.
    """
    for (cell_id, baseline_id), duet in duets.items():
        cell = plan.cells[cell_id]
        labels = cell.scenario.labels if len(cell.scenario.requests) > 1 and duet.failing is None else ()
        for at, label in enumerate(labels):
            for q in QUANTILES:
                if (ratio := duet.of_request(at, q)) is not None:
                    yield RequestRatio(
                        cell_id=cell_id,
                        baseline_id=baseline_id,
                        request=label,
                        quantile=q,
                        ratio=ratio.contrast.ratio,
                    )
