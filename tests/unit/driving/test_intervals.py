"""However long a load lasts, the lab keeps a bounded number of its intervals and samples, and loses no request."""

import gc
import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.driving import intervals
from redline.driving.intervals import KeptIntervals, kept_ns
from redline.driving.protocol import LONGEST_INTERVAL_NS, Transcript
from redline.extras.hosts.parts import merged_intervals
from redline.model import Histogram, Interval
from redline.model.traffic import TICK_NS
from redline.watching.process_tree import MOST_SAMPLES, KeptSamples
from tests.unit.extras.hosts.test_parts import interval, shape

LENGTH_NS = 100
MOST_INTERVALS = 80
"""Fewer than users keep, so that a long load has few."""


@pytest.fixture(autouse=True)
def _keeps_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST_INTERVALS", MOST_INTERVALS)


def kept(loaded: list[Interval]) -> tuple[Interval, ...]:
    keeping = KeptIntervals(LENGTH_NS)
    for each in loaded:
        keeping.add(each)
    return keeping.all()


def measured(count: int, start_ns: int = 250) -> list[Interval]:
    """This many intervals in a row, the last shorter than the others."""
    ends = [start_ns + (number + 1) * LENGTH_NS for number in range(count)]
    ends[-1] -= LENGTH_NS // 2
    return [interval("measure", start, end) for start, end in itertools.pairwise([start_ns, *ends])]


def test_a_load_of_usual_length_keeps_every_interval() -> None:
    usual = [
        interval("warmup", 0, 250),
        *measured(MOST_INTERVALS),
        interval("drain", 250 + MOST_INTERVALS * 100, 10**6),
    ]
    assert shape(kept(usual)) == shape(tuple(usual))


def test_longer_intervals_keep_all_ticks() -> None:
    length_ns, count = 2 * TICK_NS, MOST_INTERVALS + 3
    keeping = KeptIntervals(length_ns)
    for number in range(count):
        whole = interval("measure", 250 + number * length_ns, 250 + (number + 1) * length_ns)
        keeping.add(whole.with_steps((number, number)))
    keeping.add(interval("drain", 250 + count * length_ns, 250 + count * length_ns + 10))
    *found, drain = keeping.all()
    assert [tick for each in found for tick in each.ticks] == [number for number in range(count) for _ in range(2)]
    assert not drain.ticks
    assert {len(each.ticks) * TICK_NS == each.lasts_ns for each in found} == {True}


def test_longer_intervals_keep_the_answers_of_each_worker() -> None:
    count = 2 * MOST_INTERVALS
    keeping = KeptIntervals(LENGTH_NS)
    for number in range(count):
        whole = interval("measure", 250 + number * LENGTH_NS, 250 + (number + 1) * LENGTH_NS)
        keeping.add(whole.with_steps((), (number, 1) if number != 0 else ()))
    first, *others = keeping.all()
    assert first.workers == (), "one of its halves does not say it"
    assert [each.workers for each in others] == [(4 * number + 1, 2) for number in range(1, count // 2)]


def test_ticks_with_a_gap_are_not_kept() -> None:
    length_ns = 2 * TICK_NS
    keeping = KeptIntervals(length_ns)
    for number in range(MOST_INTERVALS + 2):
        whole = interval("measure", 250 + number * length_ns, 250 + (number + 1) * length_ns)
        keeping.add(whole if number == 0 else whole.with_steps((1, 1)))
    first, second, *_ = keeping.all()
    assert (first.ticks, second.ticks) == ((), (1, 1, 1, 1))


@pytest.mark.parametrize("count", [MOST_INTERVALS + 1, 2 * MOST_INTERVALS + 1])
def test_a_long_one_keeps_fewer_and_longer_ones(count: int) -> None:
    warmup, load = interval("warmup", 0, 250), measured(count)
    drain = interval("drain", load[-1].end_ns, load[-1].end_ns + 10)
    found = kept([warmup, *load, drain])
    longer_ns = kept_ns(LENGTH_NS, load[-1].end_ns - load[0].start_ns)
    assert shape((found[0], found[-1])) == shape((warmup, drain))
    assert MOST_INTERVALS / 2 <= len(found) - 2 <= MOST_INTERVALS
    assert {each.lasts_ns for each in found[1:-2]} == {longer_ns}
    assert sum(each.counts.due for each in found) == count + 2
    assert sum(each.response.count for each in found) == count + 2
    assert all(one.end_ns == next_.start_ns for one, next_ in itertools.pairwise(found))
    assert [each.index for each in found] == list(range(len(found)))


@pytest.mark.parametrize(("count", "parts"), [(3, 3), (MOST_INTERVALS, 2), (3 * MOST_INTERVALS + 1, 2)])
def test_parts_of_a_long_load_are_merged_as_if_each_had_kept_all(count: int, parts: int) -> None:
    load = [interval("warmup", 0, 250), *measured(count)]
    together = merged_intervals([kept(load)] * parts, LENGTH_NS)
    assert shape(together) == [(*each[:3], parts * each[3]) for each in shape(kept(load))]


@given(st.integers(1, 5 * MOST_SAMPLES))
def test_samples_of_a_counter_are_bounded_and_have_both_ends(count: int) -> None:
    samples = KeptSamples("counter")
    for number in range(count):
        samples.add(number, 10 * number)
    assert len(samples.values) <= MOST_SAMPLES
    assert (samples.times_unix_ns[0], samples.times_unix_ns[-1]) == (0, count - 1)
    assert [*samples.values] == [10 * at for at in samples.times_unix_ns]
    steps = {later - at for at, later in itertools.pairwise(samples.times_unix_ns[:-1])}
    assert len(steps) <= 1


@given(st.integers(1, 5 * MOST_SAMPLES), st.data())
def test_samples_of_a_gauge_keep_its_peak_and_its_time(count: int, data: st.DataObject) -> None:
    peak_at = data.draw(st.integers(0, count - 1))
    samples = KeptSamples("gauge")
    for number in range(count):
        samples.add(number, 7 if number == peak_at else number % 3)
    assert len(samples.values) <= MOST_SAMPLES
    assert max(zip(samples.values, samples.times_unix_ns, strict=True)) == (7, peak_at)
    assert [*samples.times_unix_ns] == sorted(set(samples.times_unix_ns))


FULL, HOUR = 100, 300
"""Intervals of a second, of a lab that keeps a twelfth of what it keeps, and three times as many."""


def bytes_after(marks: tuple[int, ...], add: Callable[[int], object]) -> Iterator[int]:
    """The memory that is kept of so many calls, at each mark."""
    tracemalloc.start()
    try:
        before, done = tracemalloc.get_traced_memory()[0], 0
        for mark in marks:
            for at in range(done, mark):
                add(at)
            done = mark
            gc.collect()
            yield tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def line_of(second: int) -> str:
    spread = Histogram.of(range(100_000, 1_100_000, 1000))
    made = interval("measure", second * LONGEST_INTERVAL_NS, (second + 1) * LONGEST_INTERVAL_NS)
    times = {"response": spread, "service": spread, "lateness": spread, "index": second}
    return json.dumps({"event": "interval", **made.model_copy(update=times).model_dump(mode="json")})


@pytest.mark.long
def test_an_hour_of_intervals_takes_no_more_memory_than_twenty_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MOST_INTERVALS", FULL)
    template = line_of(0)
    looked = list[int]()

    def look(seen: Interval) -> None:
        """As a panel does, which decodes the histograms."""
        looked[:] = [*seen.response.quantiles_ns((0.5,)), *seen.service.quantiles_ns((0.5,)), seen.lateness.max_ns]

    transcript = Transcript(on_interval=look)

    def read(second: int) -> None:
        event = json.loads(template)
        start_ns = second * LONGEST_INTERVAL_NS
        event |= {"index": second, "start_ns": start_ns, "end_ns": start_ns + LONGEST_INTERVAL_NS}
        transcript.read(json.dumps(event))

    full, hour = bytes_after((FULL, HOUR), read)
    assert hour < 1.25 * full  # three times as much, if all were kept
    # Encoded, as they came, and the rest of the values: decoded they take 16 bytes a slot besides.
    slots = len(Histogram.of(range(100_000, 1_100_000, 1000)).buckets()[0])
    assert full / FULL < 3 * 16 * slots


def test_an_hour_of_samples_takes_no_more_memory_than_ten_minutes() -> None:
    samples = KeptSamples("counter")
    full, hour = bytes_after((MOST_SAMPLES, 6 * MOST_SAMPLES), lambda at: samples.add(10**18 + at, 1e6 + at))
    assert full < 20 * MOST_SAMPLES
    assert hour < 3 * full  # Python keeps some of the tuples that thin them out
