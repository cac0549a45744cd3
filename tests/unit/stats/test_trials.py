"""What each metric reads from a trial: totals of its measured intervals, and when a number is known."""

from dataclasses import replace

import pytest

from redline.model import Histogram, Metric
from redline.stats.trials import MeasuredTraffic, PartNumbers, Trial, enough_beyond, requests_needed
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording
from tests.fakes.series import showing

CELL = simulated_cell(load=SATURATE)


def trial() -> Trial:
    return Trial(simulated_recording(CELL, GOOD))


@pytest.mark.parametrize(
    ("q", "fewest"), [(0.5, 1), (0.75, 40), (0.9, 100), (0.99, 1_000), (0.999, 10_000), (0.9999, 100_000)]
)
def test_ten_requests_beyond_a_percentile_are_enough(q: float, fewest: int) -> None:
    assert requests_needed(q) == fewest
    assert enough_beyond(fewest, q)
    assert not enough_beyond(fewest - 1, q)


def test_a_metric_is_there_where_what_it_rests_on_is() -> None:
    numbers = trial().numbers
    assert numbers.traffic is not None
    assert all(numbers.has_metric(metric) for metric in (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST, Metric.P99))
    assert not replace(numbers, traffic=None).has_metric(Metric.P99)
    assert not replace(numbers, server_cpu_ns=None).has_metric(Metric.CPU_PER_REQUEST)
    assert not replace(numbers, most_memory_bytes=None).has_metric(Metric.MEMORY)
    empty = replace(numbers.traffic, seconds=0.0, response=Histogram())
    assert not replace(numbers, traffic=empty).has_metric(Metric.THROUGHPUT)
    assert not replace(numbers, traffic=empty).has_metric(Metric.P50)
    assert empty.rate_per_s == 0
    one = replace(numbers.traffic, response=Histogram.of([1e6]))
    assert replace(numbers, traffic=one).has_metric(Metric.P50)
    none_right = replace(numbers.traffic, counts=numbers.traffic.counts.model_copy(update={"completed": 0}))
    assert not replace(numbers, traffic=none_right).has_metric(Metric.CPU_PER_REQUEST)


def test_a_rate_is_of_right_answers_within_the_window() -> None:
    numbers = trial().numbers.traffic
    assert numbers is not None
    assert numbers.rate_per_s == pytest.approx(numbers.in_window / numbers.seconds)
    assert sum(numbers.lasted_s) == pytest.approx(numbers.seconds)
    assert len(numbers.answered) == len(numbers.lasted_s) == len(numbers.responses)


def test_answers_after_the_end_belong_to_the_last_measured_interval() -> None:
    recording = simulated_recording(CELL, GOOD)
    assert recording.traffic is not None
    last = recording.traffic.intervals[-1]
    late = last.model_copy(update={"phase": "drain", "index": last.index + 1, "response": Histogram.of([5e9] * 3)})
    before = MeasuredTraffic.of(recording.traffic)
    after = MeasuredTraffic.of(recording.traffic.model_copy(update={"intervals": (*recording.traffic.intervals, late)}))
    assert len(after.responses) == len(before.responses)
    assert after.responses[:-1] == before.responses[:-1]
    assert after.responses[-1].count == before.responses[-1].count + 3
    assert after.answered == before.answered


def test_the_cost_of_a_request_is_that_of_right_answers() -> None:
    one = trial()
    assert one.traffic is not None
    assert one.server_cpu_ns is not None
    assert one.cpu_per_request_ns == one.server_cpu_ns / one.traffic.counts.completed


def test_memory_is_the_most_that_was_seen() -> None:
    recording = showing(simulated_recording(CELL, GOOD), "server", rss_bytes=(5e6, 9e6))
    most = Trial(recording).numbers.most_memory_bytes
    assert most is not None
    assert 8e6 < most <= 9e6


def test_a_part_has_its_own_cpu_time_and_memory() -> None:
    both = replace(trial().numbers, parts=(PartNumbers("server", 5.0, 6.0), PartNumbers("proxy", 7.0, None)))
    assert (both.of_part(1).server_cpu_ns, both.of_part(1).most_memory_bytes) == (7.0, None)
    assert trial().numbers.parts == (), "a server without a proxy has no parts"


def test_quantiles_of_intervals_are_theirs() -> None:
    one = Trial(simulated_recording(simulated_cell(load=STEADY), GOOD))
    for interval, quantiles in zip(one.intervals, one.interval_quantiles_ns, strict=True):
        expected = (
            tuple(interval.response.quantile_ns(q) for q in (0.5, 0.9, 0.99)) if interval.response.count else (0,) * 3
        )
        assert quantiles == expected


def test_what_was_made_once_is_not_made_again() -> None:
    one, made = trial(), list[int]()

    def make() -> int:
        made.append(1)
        return len(made)

    assert [one.once("name", make), one.once("name", make), one.once("another", make)] == [1, 1, 2]
