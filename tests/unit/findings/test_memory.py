"""Findings about memory and collectors: each by its cause, and none on a good server."""

import re
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.findings import judge, judge_cell, judge_probe, memory, warm_up
from redline.model import (
    Cell,
    Container,
    Durations,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    Load,
    Pause,
    Recording,
    RuntimeFacts,
    Series,
)
from redline.model.runtime import CollectionSum, CounterCheck
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

MIB, SECOND, MS = 1 << 20, 10**9, 10**6
HEAP = 512 * MIB
MINUTE = SATURATE.model_copy(update={"duration_ns": 60 * SECOND})
MEMORY = {
    "heap-pressure",
    "allocation-stall",
    "leak-suspected",
    "pauses-in-tail",
    "collector-log",
}


def a_cell(load: Load = SATURATE) -> Cell:
    return simulated_cell(load=load)


def recorded(cell: Cell, **fields: object) -> Recording:
    facts = RuntimeFacts.model_validate({"runtime": "jvm", "collector": "G1", "max_heap_bytes": HEAP, **fields})
    return simulated_recording(cell).model_copy(update={"runtime": facts})


def found(cell: Cell, recording: Recording) -> dict[FindingKind, Finding]:
    return {one.kind: one for one in judge(cell, recording) if one.kind in MEMORY}


def living(cell: Cell, sizes: Iterable[float]) -> dict[str, object]:
    """Live sets, evenly over the window of the cell's simulated recording."""
    traffic = simulated_recording(cell).traffic
    assert traffic is not None
    start, end = traffic.window_unix_ns
    given = [round(each) for each in sizes]
    times = [start + (end - start) * at // len(given) for at in range(len(given))]
    return {"live_unix_ns": tuple(times), "live_bytes": tuple(given)}


def durations(*ns: int) -> Durations:
    return Durations(count=len(ns), total_ns=sum(ns), histogram=Histogram.of(ns))


@pytest.mark.parametrize(
    ("live", "grade"), [(0.3, None), (0.7, None), (0.75, Grade.NOTE), (0.85, Grade.NOTE), (0.9, Grade.WARN)]
)
def test_a_heap_that_is_nearly_full_of_what_lives_is_under_pressure(live: float, grade: Grade | None) -> None:
    cell = a_cell()
    one = found(cell, recorded(cell, **living(cell, [0.1 * HEAP, live * HEAP, live * HEAP])))
    assert {kind: each.grade for kind, each in one.items()} == ({"heap-pressure": grade} if grade else {})
    if grade:
        assert f"{live * 512:.0f} MiB of 512 MiB alive" in one["heap-pressure"].message


def test_without_a_collection_of_the_whole_heap_nobody_knows_what_lives() -> None:
    cell = a_cell()
    assert found(cell, recorded(cell, most_used_bytes=HEAP)) == {}
    assert found(cell, recorded(cell, max_heap_bytes=None, **living(cell, [HEAP]))) == {}


@pytest.mark.parametrize(("limit", "grade"), [(40, None), (26, Grade.NOTE), (21, Grade.WARN)])
def test_a_process_near_the_limit_of_its_container_is_under_pressure_whatever_it_runs_on(
    limit: int, grade: Grade | None
) -> None:
    """The simulated server uses 20 MB."""
    cell = a_cell()
    box = Container(memory_bytes=limit * 10**6)
    cell = cell.model_copy(update={"variant": cell.variant.model_copy(update={"container": box})})
    one = found(cell, simulated_recording(cell))
    assert {kind: each.grade for kind, each in one.items()} == ({"heap-pressure": grade} if grade else {})


def test_memory_of_before_and_after_the_measurement_is_no_pressure() -> None:
    cell = a_cell()
    box = Container(memory_bytes=40 * 10**6)
    cell = cell.model_copy(update={"variant": cell.variant.model_copy(update={"container": box})})
    plain = simulated_recording(cell)
    assert plain.traffic is not None
    start, end = plain.traffic.window_unix_ns
    resident = Series(
        name="rss_bytes",
        unit="B",
        subject="server",
        kind="gauge",
        times_unix_ns=(start - 1, start, end, end + 1),
        values=(39e6, 20e6, 20e6, 39e6),
    )
    others = tuple(each for each in plain.series if each.name != "rss_bytes")
    assert found(cell, plain.model_copy(update={"series": (resident, *others)})) == {}


@pytest.mark.parametrize(
    ("fields", "grade", "words"),
    [
        ({"stalls": durations(3 * MS, MS)}, Grade.NOTE, "threads waited 2 times for memory to be freed, up to 3"),
        ({"stalls": durations(*[6 * MS] * 4)}, Grade.WARN, "threads waited 4 times"),
        ({"evacuation_failures": 2}, Grade.NOTE, "2 collections found no room"),
        (
            {"collections": (CollectionSum(kind="full", cause="G1 Compaction Pause", count=2, total_ns=40 * MS),)},
            Grade.WARN,
            "2 collections came too late and stopped the application for 40",
        ),
        (
            {"collections": (CollectionSum(kind="degenerated", cause="Mark", count=1, total_ns=5 * MS),)},
            Grade.NOTE,
            "1 collections came too late",
        ),
    ],
)
def test_threads_that_wait_for_memory_are_a_collector_that_does_not_keep_up(
    fields: dict[str, object], grade: Grade, words: str
) -> None:
    cell = a_cell()
    one = found(cell, recorded(cell, **fields))
    assert {kind: each.grade for kind, each in one.items()} == {"allocation-stall": grade}
    assert words in one["allocation-stall"].message


@pytest.mark.parametrize(
    ("collector", "kind", "cause"),
    [
        ("G1", "full", "System.gc()"),
        ("G1", "young", "G1 Evacuation Pause"),
        ("G1", "mixed", "G1 Evacuation Pause"),
        ("Parallel", "full", "Ergonomics"),
        ("Serial", "full", "Allocation Failure"),
        ("Z", "cycle", "Proactive"),
    ],
)
def test_collections_as_the_collector_makes_them_are_no_stall(collector: str, kind: str, cause: str) -> None:
    cell, sums = a_cell(), {"kind": kind, "cause": cause, "count": 9, "total_ns": SECOND}
    assert found(cell, recorded(cell, collector=collector, collections=(sums,))) == {}


def test_what_lives_and_grows_all_the_time_is_perhaps_a_leak() -> None:
    cell = a_cell(MINUTE)
    one = found(cell, recorded(cell, **living(cell, np.linspace(100 * MIB, 160 * MIB, 60))))
    assert {kind: each.grade for kind, each in one.items()} == {"leak-suspected": Grade.WARN}
    message = one["leak-suspected"].message
    assert message.startswith("What lived after collections of the whole heap grew from 10")
    assert "MiB over the measurement, by 1.0" in message, "60 MiB in a minute"
    assert "MiB a second: at this pace the heap is full in" in message


def test_the_pace_of_a_leak_is_that_of_the_time_in_which_it_was_seen() -> None:
    """From 60 to 400 MiB, in the last 8 of 20 parts of a minute; before, nothing was collected."""
    cell = a_cell(MINUTE)
    start, end = living(cell, [0, 0])["live_unix_ns"], SECOND
    assert isinstance(start, tuple)
    times = tuple(start[0] + 36 * end + 24 * end * at // 80 for at in range(80))
    sizes = tuple(round(size) for size in np.linspace(60 * MIB, 400 * MIB, 80))
    (one,) = found(cell, recorded(cell, live_unix_ns=times, live_bytes=sizes)).values()
    pace = re.search(r"by ([\d.]+) MiB a second", one.message)
    assert pace
    assert float(pace[1]) == pytest.approx(340 / 24, rel=0.05)


def test_a_heap_without_a_limit_may_grow_by_little() -> None:
    cell = a_cell(MINUTE)
    little = {**living(cell, np.linspace(2 * MIB, 5 * MIB, 60)), "max_heap_bytes": None, "runtime": "go"}
    assert found(cell, recorded(cell, **little)) == {}
    much = {**living(cell, np.linspace(2 * MIB, 50 * MIB, 60)), "max_heap_bytes": None, "runtime": "go"}
    (one,) = found(cell, recorded(cell, **much)).values()
    assert "heap is full" not in one.message


@pytest.mark.parametrize(
    ("load", "sizes"),
    [
        (MINUTE, 100 * MIB + np.random.default_rng(3).normal(0, 20 * MIB, 80)),
        (MINUTE, np.linspace(160 * MIB, 100 * MIB, 60)),
        (MINUTE, np.linspace(1 * MIB, 4 * MIB, 60)),
        (MINUTE, [100 * MIB, 130 * MIB, 160 * MIB, 200 * MIB]),
        (MINUTE, np.tile([300 * MIB, 200 * MIB, 100 * MIB], 30)),
        (SATURATE, np.linspace(100 * MIB, 160 * MIB, 60)),
    ],
    ids=["noise", "shrinks", "little", "few", "cycles of a collector", "a second"],
)
def test_other_courses_of_what_lives_are_no_leak(load: Load, sizes: Iterable[float]) -> None:
    cell = a_cell(load)
    assert found(cell, recorded(cell, **living(cell, sizes))) == {}


def test_growth_hides_in_what_cycles_leave_for_the_next() -> None:
    cell = a_cell(MINUTE)
    sizes = np.linspace(1.0, 1.6, 90) * np.tile([300 * MIB, 200 * MIB, 100 * MIB], 30)
    assert "leak-suspected" in found(cell, recorded(cell, **living(cell, sizes)))


@pytest.mark.parametrize(
    ("name", "logged", "counted", "grade"),
    [
        ("safepoints", 100, 100, None),
        ("safepoints", 98, 100, None),
        ("safepoints", 100, 0, Grade.WARN),
        ("safepoints", 90, 100, Grade.NOTE),
        ("safepoints", 60, 100, Grade.WARN),
        ("collections", 101, 100, None),
        ("collections", 60, 100, Grade.WARN),
        ("safepoint_ns", 400 * MS, 408 * MS, None),
        ("safepoint_ns", 360 * MS, 400 * MS, Grade.NOTE),
        ("safepoint_ns", 400 * MS, 200 * MS, Grade.WARN),
    ],
)
def test_a_log_that_says_another_thing_than_the_counters_is_reported(
    name: str, logged: int, counted: int, grade: Grade | None
) -> None:
    cell = a_cell()
    check = CounterCheck.model_validate({"name": name, "logged": logged, "counted": counted})
    one = found(cell, recorded(cell, checks=(check,)))
    assert {kind: each.grade for kind, each in one.items()} == ({"collector-log": grade} if grade else {})


TEN_S = STEADY.model_copy(update={"duration_ns": 10 * SECOND})
FIRST = 3
"""The first measured interval, after those of the warm-up."""


def of_tail(slow: Iterable[int], paused: Iterable[int], trials: int = 2) -> tuple[Finding, ...]:
    """The findings if requests are slow in some of 100 intervals, and the log has pauses in some."""
    cell, used = a_cell(TEN_S), []
    behaviour = replace(GOOD, pauses_s={FIRST + at: 0.05 for at in slow})
    intervals = [FIRST + at for at in paused]
    for position in range(trials):
        recording = simulated_recording(cell, behaviour, seed=position, position=position)
        assert recording.traffic is not None
        ends = [recording.traffic.epoch_unix_ns + one.end_ns for one in recording.traffic.intervals]
        pauses = tuple(
            Pause(start_unix_ns=ends[at] - 60 * MS, duration_ns=50 * MS, cause="G1CollectForAllocation")
            for at in intervals
        )
        facts = RuntimeFacts(runtime="jvm", longest_pauses=pauses, pauses=durations(*[50 * MS] * len(pauses)))
        used.append(Trial(recording.model_copy(update={"runtime": facts})))
    return tuple(one for one in judge_cell(cell, used, planned=trials) if one.kind == "pauses-in-tail")


def test_requests_that_are_slow_where_pauses_are_are_explained_by_them() -> None:
    (one,) = of_tail(range(0, 100, 7), range(0, 100, 7))
    assert one.grade is Grade.NOTE
    assert one.position is None
    assert "in the 30 of 200 intervals with a pause long enough" in one.message


@pytest.mark.parametrize(
    ("slow", "paused"),
    [
        (range(0, 100, 7), range(3, 100, 7)),
        (range(0, 100, 7), ()),
        ((), range(0, 100, 7)),
        (range(100), range(100)),
        (sorted(np.random.default_rng(5).choice(100, 12, replace=False)), range(0, 100, 9)),
    ],
    ids=["elsewhere", "no pauses", "no tail", "everywhere", "by chance"],
)
def test_pauses_that_do_not_meet_slow_requests_explain_nothing(slow: Iterable[int], paused: Iterable[int]) -> None:
    assert of_tail([int(at) for at in slow], paused) == ()


@pytest.mark.parametrize(
    ("used", "waited", "grade"),
    [(0.03, 0.02, None), (0.08, 0.04, Grade.NOTE), (0.1, 0.9, Grade.WARN), (0.6, 0.0, Grade.WARN)],
)
def test_compilers_that_have_work_in_the_measurement_are_reported(
    used: float, waited: float, grade: Grade | None
) -> None:
    cell = a_cell()
    plain = simulated_recording(cell)
    assert plain.traffic is not None
    start, end = plain.traffic.window_unix_ns
    series = tuple(
        Series(
            name=f"compiler_{clock}_ns",
            unit="ns",
            subject="server",
            kind="counter",
            times_unix_ns=(start, end),
            values=(7e9, 7e9 + share * (end - start)),
        )
        for clock, share in (("cpu", used), ("wait", waited))
    )
    compiling = plain.model_copy(update={"series": (*plain.series, *series)})
    long = a_cell(TEN_S)
    steady = simulated_recording(long)
    assert steady.traffic is not None
    start, end = steady.traffic.window_unix_ns
    stretched = tuple(
        each.model_copy(
            update={"times_unix_ns": (start, end), "values": (0.0, each.values[-1] and share * (end - start))}
        )
        for each, share in zip(series, (used, waited), strict=True)
    )
    seen = warm_up(long, Trial(steady.model_copy(update={"series": (*steady.series, *stretched)})))
    assert seen is not None
    assert seen.kind == ("still compiling" if grade else "flat"), "whatever its speed says"
    for found in (judge(cell, compiling), judge_probe(cell, compiling)):
        assert {one.kind: one.grade for one in found} == ({"still-compiling": grade} if grade else {})


def test_a_server_without_a_runtime_that_speaks_has_no_such_finding() -> None:
    cell = a_cell()
    assert found(cell, simulated_recording(cell)) == {}


def test_live_sets_are_those_of_the_parts_of_the_window() -> None:
    """The window is 100 to 200 ns, whose parts are equally long; what is outside does not count."""
    times = (99, 100, 104, 150, 199, 200)
    facts = RuntimeFacts.model_validate(
        {"runtime": "jvm", "collector": "G1", "live_unix_ns": times, "live_bytes": (1, 50, 40, 0, 70, 2)}
    )
    middle = memory.BLOCKS // 2
    assert memory._smallest(facts, 100, 200) == {0: 40, middle: 1, memory.BLOCKS - 1: 70}


@pytest.mark.parametrize(
    ("name", "logged", "counted", "share"),
    [
        ("collections", 12, 10, 0.0),
        ("collections", 10, 13, 1 / 13),
        ("safepoint_ns", 30_000_000, 20_000_000, 0.0),
        ("safepoint_ns", 20_000_000, 40_000_000, 0.25),
        ("collections", 0, 0, 0.0),
    ],
)
def test_a_log_may_be_off_by_two_safepoints_or_ten_milliseconds(
    name: str, logged: int, counted: int, share: float
) -> None:
    checks = [SimpleNamespace(name=name, logged=logged, counted=counted)]
    judged: Any = memory.collector_log.function
    found = judged(SimpleNamespace(checks=checks))
    assert found.value == pytest.approx(share)
    assert bool(found.message) is (share > 0)
