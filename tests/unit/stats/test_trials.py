"""What each metric reads from a trial: totals of its measured intervals, and when a number is known."""

from dataclasses import replace

import pytest

from redline.model import Histogram, Metric, Recording
from redline.stats.samples import Ratios
from redline.stats.trials import (
    PAGE_BYTES,
    MeasuredTraffic,
    PartNumbers,
    Trial,
    TrialNumbers,
    enough_beyond,
    merged_of,
    requests_needed,
    sample_of,
)
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording
from tests.fakes.series import counting, showing

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
    before = MeasuredTraffic.of(recording.traffic, 0)
    after = MeasuredTraffic.of(
        recording.traffic.model_copy(update={"intervals": (*recording.traffic.intervals, late)}), 0
    )
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


def numbers_of(completed: int, memory: float | None = 5e6, host: str = "", seconds: float = 1.0) -> TrialNumbers:
    """A trial with so many right answers in ten intervals, 9 ns of CPU time, and as many bytes as answers."""
    made = trial().numbers
    assert made.traffic is not None
    counts = made.traffic.counts.model_copy(update={"completed": completed, "bytes_received": completed})
    changed = {"counts": counts, "in_window": completed, "seconds": seconds, "answered": (completed // 10,) * 10}
    traffic = replace(made.traffic, **changed)  # type: ignore[arg-type]
    return replace(made, traffic=traffic, server_cpu_ns=9.0, most_memory_bytes=memory, host=host)


def test_each_metric_is_a_ratio_of_sums_over_trials() -> None:
    both = [numbers_of(100), numbers_of(300, memory=7e6, seconds=3.0)]
    assert sample_of(both, Metric.THROUGHPUT).value == 100
    assert sample_of(both, Metric.RECEIVED).value == 100
    assert sample_of(both, Metric.CPU_PER_REQUEST).value == pytest.approx(18 / 400)
    memory = sample_of(both, Metric.MEMORY)
    assert memory.value == 6e6
    assert memory.resolution == pytest.approx(PAGE_BYTES / 6e6)
    assert sample_of([numbers_of(1, memory=None)], Metric.MEMORY).resolution == 1
    assert sample_of([replace(numbers_of(1), server_cpu_ns=None)], Metric.CPU_PER_REQUEST).value == 0
    assert all(numbers_of(1).has_metric(metric) for metric in (Metric.RECEIVED, Metric.MEMORY, Metric.CPU_PER_REQUEST))


def test_a_mean_counts_every_request_once() -> None:
    short, long = numbers_of(1), numbers_of(1)
    assert short.traffic is not None
    assert long.traffic is not None
    times = [replace(short.traffic, response=Histogram.of([ns] * n)) for ns, n in ((1e6, 30), (5e6, 10))]
    both = [replace(short, traffic=times[0]), replace(long, traffic=times[1])]
    assert sample_of(both, Metric.MEAN).value == pytest.approx(2e6, rel=0.01)
    assert sample_of(both, Metric.P90).value == pytest.approx(5e6, rel=0.01)
    assert sample_of(both, Metric.P50, merged_of(both)).value == pytest.approx(1e6, rel=0.01)


def test_a_rate_has_the_answers_of_batches() -> None:
    sample = sample_of([numbers_of(100)], Metric.THROUGHPUT)
    assert isinstance(sample, Ratios)
    assert sample.batches is not None
    assert sample.batches[0].tolist() == [[10.0] * 10]
    assert sample.batches[1].tolist() == [pytest.approx([0.1] * 10)]
    one = numbers_of(100)
    assert one.traffic is not None
    for intervals, batches in (((50, 50), 2), ((100,), None), ((), None)):
        few = replace(one, traffic=replace(one.traffic, answered=intervals, lasted_s=(0.5,) * len(intervals)))
        made = sample_of([few, numbers_of(100)], Metric.THROUGHPUT)
        assert isinstance(made, Ratios)
        assert (made.batches[0].shape[1] if made.batches else None) == batches


def test_hosts_are_known_if_all_are() -> None:
    assert sample_of([numbers_of(1, host="a"), numbers_of(1, host="b")], Metric.THROUGHPUT).hosts == ("a", "b")
    assert sample_of([numbers_of(1, host="a"), numbers_of(1)], Metric.THROUGHPUT).hosts == ()
    assert sample_of([numbers_of(1)], Metric.P50).hosts == ()
    with pytest.raises(ValueError, match="no traffic"):
        sample_of([replace(numbers_of(1), traffic=None)], Metric.P50)


def test_what_is_not_known_has_no_number() -> None:
    recording = simulated_recording(CELL, GOOD)
    nothing = Trial(recording.model_copy(update={"traffic": None}))
    assert nothing.intervals == ()
    assert nothing.cpu_per_request_ns is None
    assert nothing.numbers.traffic is None
    assert nothing.numbers.server_cpu_ns is None
    assert recording.traffic is not None
    unanswered = recording.traffic.model_copy(
        update={"counts": recording.traffic.counts.model_copy(update={"completed": 0})}
    )
    assert Trial(recording.model_copy(update={"traffic": unanswered})).cpu_per_request_ns is None
    unwatched = Trial(recording.model_copy(update={"series": ()}))
    assert (unwatched.server_cpu_ns, unwatched.cpu_per_request_ns, unwatched.numbers.most_memory_bytes) == (None,) * 3


def test_cpu_time_of_none_beside_answers_is_that_of_others() -> None:
    recording = simulated_recording(CELL, GOOD).model_copy(update={"series": ()})
    idle = counting(recording, "server", cpu_ns=0.0)
    assert Trial(idle).server_cpu_ns is None
    assert idle.traffic is not None
    silent = idle.traffic.model_copy(update={"counts": idle.traffic.counts.model_copy(update={"completed": 0})})
    assert Trial(idle.model_copy(update={"traffic": silent})).server_cpu_ns == 0
    busy = Trial(counting(recording, "server", cpu_ns=2e8))
    assert busy.server_cpu_ns == pytest.approx(2e8)


def test_an_increase_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, read = trial(), list[str]()
    monkeypatch.setattr(Recording, "increase", lambda _recording, name, _subject: read.append(name))
    assert one.increase("x", "server") is None
    assert one.increase("x", "server") is None
    one.increase("x", "machine")
    assert read == ["x", "x"]
