"""Distributions by percentile: as deep as requests support, on a grid of nines."""

import pytest

from redline.analysis.percentiles import are_sent_at_once, percentiles, requests_due
from redline.model import Histogram, Percentile
from tests.fakes.recordings import simulated_cell

ALIKE = (Percentile(q=0.5, ns=100_000), Percentile(q=0.99, ns=10_000_000))


def test_a_distribution_is_a_grid_of_nines_and_its_maximum() -> None:
    found = percentiles(Histogram.of([1e6] * 9_999 + [5e7]))
    assert [point.q for point in found] == [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0]
    assert [point.ns for point in found] == [pytest.approx(1e6, rel=0.01)] * 9 + [pytest.approx(5e7, rel=0.01)]
    assert percentiles(Histogram()) == ()


@pytest.mark.parametrize(
    ("service", "late_ns", "at_once"),
    [
        ((100_000, 10_000_000), 1_000, True),
        ((100_000, 10_000_000), 1_001, False),
        ((99_000, 10_000_000), 0, True),
        ((98_000, 10_000_000), 0, False),
        ((100_000, 9_000_000), 0, False),
    ],
)
def test_requests_were_sent_at_once_if_none_was_late_and_service_times_are_response_times(
    service: tuple[int, int], late_ns: int, at_once: bool
) -> None:
    served = [Percentile(q=point.q, ns=ns) for point, ns in zip(ALIKE, service, strict=True)]
    assert are_sent_at_once(ALIKE, served, [Percentile(q=1.0, ns=late_ns)]) is at_once
    assert not are_sent_at_once(ALIKE, served[:1], ())


def test_a_scenario_of_one_request_sends_all_that_is_due() -> None:
    scenario = simulated_cell().scenario
    assert requests_due(scenario, 7, ()) == ((scenario.requests[0], 7),)
    mixed = scenario.model_copy(update={"others": scenario.requests})
    assert len(mixed.requests) > 1
    assert requests_due(mixed, 7, ()) == ()
