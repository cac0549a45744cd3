"""A load in parts: how workers are numbered, and that merging loses nothing."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.hosts.parts import Part, merged, merged_intervals, parts_of
from redline.model import Counts, Histogram, Interval, Traffic
from tests.fakes.behaviour import GOOD
from tests.fakes.observed import INTERVAL_NS, observed_traffic
from tests.fakes.recordings import EPOCH_UNIX_NS, simulated_cell


def interval(phase: str, start_ns: int, end_ns: int, requests: int = 1) -> Interval:
    values = Histogram.of(range(1000, 1000 + requests))
    counts = Counts(due=requests, sent=requests)
    parts = {"response": values, "service": values, "lateness": values}
    return Interval.model_validate(
        {
            "phase": phase,
            "index": 0,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "counts": counts,
            **parts,
            "engine_cpu_ns": 1,
        }
    )


def shape(intervals: tuple[Interval, ...]) -> list[tuple[str, int, int, int]]:
    return [(each.phase, each.start_ns, each.end_ns, each.counts.due) for each in intervals]


def test_workers_are_numbered_through_all_hosts() -> None:
    assert parts_of((2, 3), 64) == (Part(0, 2, 5), Part(2, 3, 5))
    assert parts_of((2, 3), 64)[1].keys() == {
        "workers": 3,
        "part": {"first_worker": 2, "all_workers": 5},
        "commands": True,
    }


def test_each_worker_has_a_connection_and_a_host_without_one_has_no_part() -> None:
    assert parts_of((2, 2, 2), 3) == (Part(0, 2, 3), Part(2, 1, 3))
    assert parts_of((4,), 1) == (Part(0, 1, 1),)


def test_very_many_hosts_have_fewer_workers_each() -> None:
    parts = parts_of((16,) * 100, 10**6)
    assert {part.workers for part in parts} == {10}
    assert parts[-1].all_workers == 1000
    assert len(parts_of((2,) * 2000, 10**6)) == 1024


@given(st.lists(st.integers(1, 16), min_size=1, max_size=50), st.integers(1, 2000))
def test_parts_cover_all_workers_once(workers: list[int], connections: int) -> None:
    parts = parts_of(workers, connections)
    numbers = [part.first_worker + worker for part in parts for worker in range(part.workers)]
    assert numbers == list(range(min(sum(workers), connections)))
    assert all(part.all_workers == len(numbers) and part.workers > 0 for part in parts)


def test_the_traffic_of_parts_is_their_sum() -> None:
    cell = simulated_cell()
    parts = [observed_traffic(cell, GOOD, np.random.default_rng(seed), EPOCH_UNIX_NS) for seed in range(3)]
    whole = merged(parts, INTERVAL_NS)
    assert whole.counts == Counts.merged(part.counts for part in parts)
    assert whole.response == Histogram.merged(part.response for part in parts)
    assert whole.connections == 3 * parts[0].connections
    assert (whole.engine.workers, whole.engine.processes, whole.engine.cpus) == (3, 3, ())
    assert whole.engine_cpu_ns == sum(part.engine_cpu_ns for part in parts)
    assert (whole.measure_start_ns, whole.measure_end_ns) == (parts[0].measure_start_ns, parts[0].measure_end_ns)
    assert [(each.phase, each.start_ns, each.end_ns) for each in whole.intervals] == [
        (each.phase, each.start_ns, each.end_ns) for each in parts[0].intervals
    ]
    assert merged(parts[:1], INTERVAL_NS) == parts[0]


def test_what_cut_one_part_has_cut_the_load() -> None:
    cell = simulated_cell()
    part = observed_traffic(cell, GOOD, np.random.default_rng(1), EPOCH_UNIX_NS)
    cut: list[Traffic] = [part.model_copy(update={"ended": ended}) for ended in ("complete", "deadline", "interrupted")]
    assert merged(cut, INTERVAL_NS).ended == "interrupted"
    assert merged(cut[:2], INTERVAL_NS).ended == "deadline"


def test_an_interval_that_one_part_made_of_several_is_merged_where_it_ends() -> None:
    steady = [interval("measure", at, at + 100) for at in range(0, 400, 100)]
    slow = [interval("measure", 0, 300, 10), interval("measure", 300, 400, 10)]
    found = merged_intervals([steady, slow], 100)
    assert shape(found) == [
        ("measure", 0, 100, 1),
        ("measure", 100, 200, 1),
        ("measure", 200, 300, 11),
        ("measure", 300, 400, 11),
    ]
    assert [each.index for each in found] == [0, 1, 2, 3]


def test_phases_stay_apart() -> None:
    one = [interval("warmup", 0, 100), interval("warmup", 100, 150), interval("measure", 150, 250)]
    other = [*one[:2], interval("measure", 150, 250), interval("drain", 250, 260)]
    assert shape(merged_intervals([one, other], 100)) == [
        ("warmup", 0, 100, 2),
        ("warmup", 100, 150, 2),
        ("measure", 150, 250, 2),
        ("drain", 250, 260, 1),
    ]


@given(st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=5))
def test_nothing_is_lost_and_time_has_no_gaps(kept: list[list[bool]]) -> None:
    """However parts extend intervals: see the engine's own test of the same rule."""
    ends = [100, 200, 250, 350, 450, 550, 650, 750, 760]

    def part(of: list[bool]) -> list[Interval]:
        found, start_ns, requests = [], 0, 0
        for end_ns, is_kept in zip(ends, of, strict=True):
            requests += 1
            if is_kept or end_ns in (250, 650, 760):
                phase = "warmup" if end_ns <= 250 else "measure" if end_ns <= 650 else "drain"
                found.append(interval(phase, start_ns, end_ns, requests))
                start_ns, requests = end_ns, 0
        return found

    parts = [part(of) for of in kept]
    found = merged_intervals(parts, 100)
    assert sum(each.counts.due for each in found) == sum(each.counts.due for of in parts for each in of)
    assert all(one.end_ns == next_.start_ns for one, next_ in itertools.pairwise(found))
    assert all(each.start_ns < each.end_ns for each in found)
    last = {each.phase: each.end_ns for each in found}
    assert last == {"warmup": 250, "measure": 650, "drain": 760}
