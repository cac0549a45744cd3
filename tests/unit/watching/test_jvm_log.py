"""The log of every collector on every JDK is parsed correctly; everything else in it is skipped.

The logs are from `tests/golden/jvm-logs/Churn.java`, which allocates a known number of bytes.
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from redline.model.runtime import MOST_LIVE, MOST_PAUSES, Collection, Pause, RuntimeFacts
from redline.watching.jvm import LOGGED
from redline.watching.jvm_log import Allocated, CollectorWarning, Event, JvmLog, Stall
from redline.watching.runtime_tally import RuntimeTally

LOGS = {
    path.name.removesuffix(".log.gz"): gzip.decompress(path.read_bytes()).decode().split("\n")
    for path in sorted((Path(__file__).parents[2] / "golden/jvm-logs").glob("*.gz"))
}
EVER = (0, 1 << 62)
SECOND = 1_000_000_000
MIB = 1 << 20


def events(lines: Iterable[str]) -> list[Event]:
    return list(JvmLog().read(lines))


def facts(found: Iterable[Event], window: tuple[int, int] = EVER) -> RuntimeFacts:
    tally = RuntimeTally(window)
    for event in found:
        tally.add(event)
    return tally.facts("jvm", None)


def matching(lines: Iterable[str], pattern: str) -> list[str]:
    return [line for line in lines if re.search(pattern, line)]


def test_there_is_a_log_of_each_collector_on_each_jdk() -> None:
    collectors = ("Serial", "Parallel", "G1", "Shenandoah", "Z")
    assert {f"jdk{jdk}-{gc}" for jdk in (11, 17, 21, 25) for gc in collectors} <= LOGS.keys()
    assert {"jdk21-ZGenerational", "jdk25-ShenandoahGenerational"} <= LOGS.keys()


@pytest.mark.parametrize("name", LOGS)
def test_every_safepoint_is_a_pause(name: str) -> None:
    lines = LOGS[name]
    pauses = [each for each in events(lines) if isinstance(each, Pause)]
    written = matching(lines, r"Safepoint \"|were stopped:")
    assert len(pauses) == len(written) > 5
    stopped = sum(
        float(found[1])
        if (found := re.search(r"stopped: ([\d.]+)", line))
        else int(line.split("Total:")[1].split()[0]) / 1e9
        for line in written
    )
    assert sum(pause.duration_ns for pause in pauses) / 1e9 == pytest.approx(stopped)
    assert all(0 <= pause.to_safepoint_ns <= pause.duration_ns for pause in pauses)
    assert all(earlier.end_unix_ns <= later.start_unix_ns for earlier, later in pairwise(pauses))
    assert {pause.cause for pause in pauses} >= {"jdk11-Z": {"ZOperation"}}.get(name, set())
    assert "unknown" not in {pause.cause for pause in pauses}
    first = datetime.fromisoformat(lines[0][1:29])
    assert abs(pauses[0].start_unix_ns / 1e9 - first.timestamp()) < 2


@pytest.mark.parametrize("name", LOGS)
def test_every_collection_is_found(name: str) -> None:
    lines = [line for line in LOGS[name] if re.search(r"\[gc *\]", line)]
    found = Counter(each.kind for each in events(LOGS[name]) if isinstance(each, Collection))
    # Each line of these has the heap before and after, which a line of a beginning has not.
    young = len(matching(lines, r"Pause Young (?!.*\(Mixed\)).*->")) + len(matching(lines, r"Minor Collection .*->"))
    assert found["mixed"] == len(matching(lines, r"\(Mixed\).*->"))
    assert found["full"] == len(matching(lines, r"Pause Full.*->"))
    assert found["degenerated"] == len(matching(lines, r"Degenerated.*->"))
    if "Shenandoah" in name:
        ended = {re.search(r"GC\((\d+)\)", line)[1] for line in matching(lines, "cleanup .*->")}  # type: ignore[index]
        degenerated = {re.search(r"GC\((\d+)\)", line)[1] for line in matching(lines, "Degenerated.*->")}  # type: ignore[index]
        assert found["cycle"] + found["young"] == len(ended - degenerated)
        assert ("Generational" in name) == (found["young"] > 0)
    else:
        cycles = r"(Garbage|Major) Collection .*->|Concurrent (Mark )?Cycle \d"
        assert (found["young"], found["cycle"]) == (young, len(matching(lines, cycles)))


@pytest.mark.parametrize("name", LOGS)
def test_sizes_and_times_of_collections_are_possible(name: str) -> None:
    heap = (64 if name.split("-")[1].startswith("Z") else 40) * MIB
    found = [each for each in events(LOGS[name]) if isinstance(each, Collection)]
    with_sizes = [each for each in found if each.before_bytes is not None and each.after_bytes is not None]
    assert len(with_sizes) > len(found) / 2
    for each in with_sizes:
        assert 0 < (each.before_bytes or 0) <= heap
        assert 0 < (each.after_bytes or 0) <= heap
        assert each.capacity_bytes is None or heap / 2 < each.capacity_bytes <= heap
    assert all(0 <= each.duration_ns < 5 * SECOND for each in found)
    assert {each.concurrent for each in found if each.kind in ("full", "mixed", "degenerated")} <= {False}
    assert {each.concurrent for each in found if each.kind == "cycle"} <= {True}


@pytest.mark.parametrize("name", LOGS)
def test_what_was_allocated_is_known(name: str) -> None:
    """Churn allocates 120 MiB (100 for Shenandoah), some before the first collection; Z counts whole pages."""
    allocated = [each for each in events(LOGS[name]) if isinstance(each, Allocated)]
    total = 100 if name.endswith(("Shenandoah", "ShenandoahGenerational")) else 120
    seen = sum(each.bytes for each in allocated) / MIB
    collector = name.split("-")[1]
    least = 0.5 if collector.startswith(("Z", "Shenandoah")) else 0.9
    most = 1.25 if collector.startswith("Z") else 1.05
    assert least * total < seen < most * total
    assert all(each.over_ns > 0 for each in allocated)


@pytest.mark.parametrize("name", [name for name in LOGS if name.endswith("everything")])
def test_what_the_lab_has_logged_is_all_that_is_needed(name: str) -> None:
    wanted = {selection.replace("+", ",") for selection in LOGGED.split(",")}
    fewer = [line for line in LOGS[name] if len(line.split("]")) > 3 and line.split("]")[3].strip("[ ") in wanted]
    assert len(fewer) < 0.7 * len(LOGS[name])
    part, whole = facts(events(fewer)), facts(events(LOGS[name]))
    kinds = [[(one.kind, one.cause, one.count) for one in each.collections] for each in (part, whole)]
    assert kinds[0] == kinds[1]
    assert (part.pauses, part.to_safepoint) == (whole.pauses, whole.to_safepoint)
    assert (part.allocated_bytes, part.live_bytes) == (whole.allocated_bytes, whole.live_bytes)


def test_a_collector_and_the_largest_heap_are_named() -> None:
    named = {name: facts(events(lines)) for name, lines in LOGS.items()}
    assert {name.split("-")[1].removesuffix("Generational"): each.collector for name, each in named.items()} == {
        name: name for name in ("Serial", "Parallel", "G1", "Shenandoah", "Z")
    }
    assert {each.max_heap_bytes for name, each in named.items() if "jdk11" not in name} == {40 * MIB, 64 * MIB}


@pytest.mark.parametrize("name", LOGS)
def test_what_lives_is_what_the_program_keeps(name: str) -> None:
    """Churn keeps 10 MiB once it has run for a while, with 3 MiB more at the end.

    Shenandoah counts what is allocated while it collects.
    """
    live = [size / MIB for size in facts(events(LOGS[name])).live_bytes]
    assert live
    if "Shenandoah" in name:
        assert all(4 <= size <= 40 for size in live)
        assert min(live) <= 13
    else:
        assert all((1 if name == "jdk17-Z" else 4) <= size <= 16 for size in live), live


MARKED = (
    "GC(1) Concurrent Mark Cycle",
    "GC(1) Pause Remark 400M->400M(512M) 0.4ms",
    "GC(1) Concurrent Mark Cycle 9.0ms",
)
CLOCK = "[2026-11-22T18:29:38.347+0000][{}ms][info][gc]"


@pytest.mark.parametrize(
    ("lines", "live"),
    [
        (["GC(1) Concurrent cleanup (Old) 400M->390M(512M) 0.1ms", "GC(2) Pause Full 400M->30M(512M) 9.0ms"], [30]),
        (
            ["GC(1) Concurrent cleanup (Global) 400M->40M(512M) 0.1ms", "GC(2) Pause Full 400M->30M(512M) 9.0ms"],
            [40, 30],
        ),
        (["GC(1) Concurrent cleanup (Young) 400M->40M(512M) 0.1ms", "GC(2) Pause Full 400M->30M(512M) 9.0ms"], [30]),
        (["GC(1) Pause Degenerated GC (Young) (Roots) 400M->50M(512M) 9.0ms"], []),
        (["GC(1) Pause Degenerated GC (Mark) 400M->50M(512M) 9.0ms"], [50]),
        (["GC(1) Pause Young (Mixed) (G1 Evacuation Pause) 400M->60M(512M) 9.0ms"], [60]),
        (["GC(1) Pause Young (Mixed) (G1 Evacuation Pause) (Evacuation Failure: Pinned) 400M->60M(512M) 9.0ms"], [60]),
        (["GC(1) Pause Young (Mixed) (G1 Preventive) (Evacuation Failure: Allocation) 400M->390M(512M) 9.0ms"], []),
        ([*MARKED, "GC(2) Pause Young (Normal) (G1 Evacuation Pause) 400M->70M(512M) 9.0ms"], [70]),
        (
            [*MARKED, *(f"GC({n}) Pause Young (Normal) (G1 Evacuation Pause) 400M->7{n}M(512M) 9.0ms" for n in (2, 3))],
            [72],
        ),
        ([*MARKED, "GC(2) Pause Young (Prepare Mixed) (G1 Evacuation Pause) 400M->70M(512M) 9.0ms"], []),
        (
            [
                *MARKED,
                "GC(2) Pause Young (Prepare Mixed) (G1 Evacuation Pause) 400M->390M(512M) 9.0ms",
                "GC(3) Pause Young (Mixed) (G1 Evacuation Pause) 400M->60M(512M) 9.0ms",
                "GC(4) Pause Young (Normal) (G1 Evacuation Pause) 400M->80M(512M) 9.0ms",
            ],
            [60],
        ),
        (
            [
                MARKED[0],
                "GC(2) Pause Full (G1 Compaction Pause) 400M->30M(512M) 9.0ms",
                *MARKED[1:],
                "GC(3) Pause Young (Normal) (G1 Evacuation Pause) 400M->80M(512M) 9.0ms",
            ],
            [30],
        ),
        (["GC(1) Concurrent Undo Cycle 5.0ms", "GC(2) Pause Young (Normal) (X) 400M->80M(512M) 9.0ms"], []),
        (["GC(1) To-space exhausted", "GC(1) Pause Young (Mixed) (G1 Evacuation Pause) 400M->390M(512M) 9.0ms"], []),
    ],
)
def test_a_collection_of_a_part_does_not_tell_what_lives(lines: list[str], live: list[int]) -> None:
    found = facts(events(f"{CLOCK.format(at)} {line}" for at, line in enumerate(lines, 100)))
    assert list(found.live_bytes) == [size * MIB for size in live]
    failed = any("exhausted" in line or "Allocation)" in line for line in lines)
    assert found.evacuation_failures == failed


def collection(at: int, kind: str, live: int | None) -> Collection:
    return Collection.model_validate({"start_unix_ns": at, "duration_ns": 1, "kind": kind, "live_bytes": live})


def test_of_the_mixed_collections_after_one_cycle_the_least_counts() -> None:
    course = [
        *(("cycle", None), ("mixed", 90), ("young", None), ("mixed", 50), ("mixed", 60)),
        *(("cycle", None), ("mixed", 70), ("full", 40), ("mixed", 80), ("mixed", 75)),
    ]
    found = facts(collection(at, *each) for at, each in enumerate(course))
    assert found.live_bytes == (50, 70, 40, 75)
    assert found.live_unix_ns == (4, 7, 8, 10)


def test_of_a_soak_the_sizes_that_are_kept_are_of_mixed_collections_too() -> None:
    course = [each for _ in range(1000) for each in (("cycle", None), ("mixed", 90), ("mixed", 50))]
    found = facts(collection(at, *each) for at, each in enumerate(course))
    assert MOST_LIVE / 2 <= len(found.live_bytes) <= MOST_LIVE
    assert set(found.live_bytes) == {50}


def test_threads_that_wait_for_memory_are_stalls() -> None:
    stalls = [each for each in events(LOGS["jdk25-Z"]) if isinstance(each, Stall)]
    assert len(stalls) == len(matching(LOGS["jdk25-Z"], "(Allocation|Relocation) Stall \\(.*ms"))
    assert all(each.duration_ns > 0 for each in stalls)
    assert facts(stalls).stalls.count == len(stalls)


def test_collections_without_room_and_those_of_large_objects_are_counted() -> None:
    runtime = facts(events(LOGS["jdk25-G1"]))
    assert runtime.evacuation_failures == len(matching(LOGS["jdk25-G1"], r"\[gc *\].*Evacuation Failure"))
    old = facts(events(LOGS["jdk11-G1-everything"]))
    assert old.evacuation_failures == len(matching(LOGS["jdk11-G1-everything"], "To-space exhausted")) > 0
    assert old.humongous == len(matching(LOGS["jdk11-G1-everything"], r"\[gc *\].*Humongous Allocation\) \d")) > 0


@pytest.mark.parametrize(
    ("decorations", "start_ns"),
    [
        ("[2026-11-22T18:29:38.347+0000][255840618ns][info][safepoint   ]", 347_000_000),
        ("[2026-11-22T19:29:38.347+0100][0.255s][info][safepoint]", 347_000_000),
        ("[255ms][2026-11-22T18:29:38.347+0000][safepoint]", 347_000_000),
        ("[2026-11-22T18:29:38.347+0000][info][safepoint,stats]", 347_000_000),
        ("[0.255s][info][safepoint]", None),
        ("[2026-13-42T99:99:99.347+0000][info][safepoint]", None),
        ("[2026-11-22T18:29:38.347+0000][info][gc]", None),
    ],
)
def test_a_line_is_placed_by_any_decorations_with_a_time_of_day(decorations: str, start_ns: int | None) -> None:
    text = 'Safepoint "X", Time since last: 5 ns, Reaching safepoint: 40 ns, At safepoint: 60 ns, Total: 100 ns'
    found = events([f"{decorations} {text}"])
    second = int(datetime(2026, 11, 22, 18, 29, 38, tzinfo=UTC).timestamp()) * SECOND
    wanted = (
        []
        if start_ns is None
        else [Pause(start_unix_ns=second + start_ns - 100, duration_ns=100, to_safepoint_ns=40, cause="X")]
    )
    assert found == wanted


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=some.sampled_from(sorted(LOGS)),
    at=some.integers(0, 10_000),
    cut=some.integers(0, 200),
    garbage=some.lists(some.text(max_size=80), max_size=5),
)
def test_cut_lines_and_garbage_never_raise(name: str, at: int, cut: int, garbage: list[str]) -> None:
    lines = LOGS[name][:120]
    place = at % len(lines)
    broken = [*lines[:place], lines[place][:cut], *garbage, *[f"{lines[place][:cut]}{each}" for each in garbage]]
    facts(events([*broken, *lines[place + 1 :]]))


@settings(deadline=None)
@given(
    some.lists(some.tuples(some.sampled_from(sorted(LOGS)), some.integers(0, 300), some.integers(0, 160)), max_size=40)
)
def test_lines_in_any_order_never_raise(picked: list[tuple[str, int, int]]) -> None:
    facts(events([LOGS[name][at % len(LOGS[name])][drop:] for name, at, drop in picked]))


def test_only_what_reaches_into_the_window_counts() -> None:
    pauses = [Pause(start_unix_ns=at, duration_ns=10, cause="X") for at in (80, 95, 150, 195, 201)]
    runtime = facts(pauses, (100, 200))
    assert [pause.start_unix_ns for pause in runtime.longest_pauses] == [95, 150, 195]
    assert (runtime.pauses.count, runtime.pauses.total_ns) == (3, 30)
    assert runtime.paused_ns == 20, "what lies outside of the window is no part of it"
    cycle = Collection(start_unix_ns=0, duration_ns=110, kind="cycle")
    assert [(one.count, one.total_ns) for one in facts([cycle], (100, 200)).collections] == [(1, 10)]
    half = facts([Allocated(at_unix_ns=150, bytes=1000, over_ns=100)], (100, 200))
    assert (half.allocated_bytes, half.allocating_ns, half.allocated_per_s) == (500, 50, 1e10)


def test_facts_of_a_soak_are_no_larger_than_those_of_a_minute() -> None:
    def found() -> Iterable[Event]:
        for at in range(30_000):
            yield Pause(start_unix_ns=at * 100, duration_ns=1 + at % 90, cause="X")
            yield Collection(
                start_unix_ns=at * 100,
                duration_ns=at % 90,
                kind="full",
                cause=f"cause {at}",
                before_bytes=9,
                after_bytes=at,
                live_bytes=at,
            )
            yield CollectorWarning(at, "humongous")

    runtime = facts(found())
    assert (runtime.pauses.count, runtime.pauses.histogram.count) == (30_000, 30_000)
    assert len(runtime.longest_pauses) == MOST_PAUSES
    assert min(pause.duration_ns for pause in runtime.longest_pauses) >= 88
    assert MOST_LIVE / 2 <= len(runtime.live_bytes) <= MOST_LIVE
    assert list(runtime.live_bytes) == sorted(runtime.live_bytes)
    assert sum(one.count for one in runtime.collections) == 30_000
    assert len(runtime.model_dump_json(indent=1)) < 300_000
    assert RuntimeFacts.model_validate_json(runtime.model_dump_json()) == runtime
