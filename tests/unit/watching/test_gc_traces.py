"""The traces of Node's and Go's collectors are recognized among a server's other output."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from redline.findings import judge
from redline.model import Pause, Recording
from redline.model.runtime import Collection, RuntimeFacts
from redline.watching.gc_traces import Traced, read_go, read_node
from redline.watching.jvm_log import Allocated, Event
from redline.watching.runtime_tally import RuntimeTally
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

FOLDER = Path(__file__).parents[2] / "golden/gc-traces"
NODE = (FOLDER / "node20.log").read_text().splitlines()
GO = (FOLDER / "go1.26.log").read_text().splitlines()
BEGAN = 1_790_000_000 * 10**9
MS, MIB = 10**6, 1 << 20


def of_node(lines: list[str]) -> list[Event]:
    return [event for _, event in read_node(lines, lambda _pid: BEGAN)]


def test_each_line_of_node_is_a_collection_that_stops_its_process() -> None:
    found = of_node(NODE)
    written = [line for line in NODE if " ms: " in line]
    assert len(written) == len(NODE) - 1, "one line is of the server"
    collections = [each for each in found if isinstance(each, Collection)]
    assert len(collections) == len([each for each in found if isinstance(each, Pause)]) == len(written)
    assert sum(each.kind == "full" for each in collections) == sum("Mark-Compact" in line for line in written) > 0
    took = [re.search(r"MB, ([\d.]+) /", line) for line in written]
    assert sum(one.duration_ns for one in collections) == pytest.approx(sum(float(one[1]) for one in took if one) * MS)
    assert "task" in {one.cause for one in collections}
    first = collections[0]
    at = re.search(r"(\d+) ms:", written[0])
    assert at
    assert first.end_unix_ns == BEGAN + int(at[1]) * MS
    assert (first.before_bytes or 0) > (first.after_bytes or 0) > 0


def test_the_line_of_a_later_node_has_a_pool() -> None:
    line = (
        "[77:0x5a]   31 ms: Scavenge 3.9 (4.1) -> 3.7 (5.1) MB, pooled: 0 MB, 0.41 / 0.00 ms  (average mu = 1.000, "
        "current mu = 1.000) allocation failure; "
    )
    (one,) = [each for each in of_node([line]) if isinstance(each, Collection)]
    assert (one.duration_ns, one.kind, one.cause) == (410_000, "young", "allocation failure")


def test_processes_of_a_cluster_have_heaps_of_their_own() -> None:
    template = "[{}:0x5a] {} ms: Scavenge {} (90.0) -> {} (90.0) MB, {:.2f} / 0.00 ms  (average mu = 1.0) task; "
    lines = [
        template.format(*each)
        for each in ((1, 10, 8.0, 2.0, 1), (2, 11, 50.0, 40.0, 2), (1, 20, 9.0, 2.0, 1), (2, 31, 60.0, 1.0, 3))
    ]
    tally = RuntimeTally((BEGAN, BEGAN + 100 * MS))
    for heap, event in read_node(lines, lambda _pid: BEGAN):
        tally.add(event, heap)
    facts = tally.facts("node", None)
    # 7 MiB in 10 ms by one process, and at the same time 20 MiB in 20 ms by the other.
    assert (facts.allocated_per_s or 0) / MIB == pytest.approx(700 + 1000)
    assert facts.pauses.total_ns == 7 * MS
    assert facts.paused_ns == 5 * MS, "of the one that paused longest: no process stops the others"


def test_each_line_of_go_is_a_cycle_with_two_pauses() -> None:
    """The program allocates 60,000 times 4 KiB."""
    found = list(read_go(["listening", *GO], BEGAN))
    cycles = [each for each in found if isinstance(each, Collection)]
    pauses = [each for each in found if isinstance(each, Pause)]
    assert (len(cycles), len(pauses)) == (len(GO), 2 * len(GO))
    assert {(one.kind, one.concurrent) for one in cycles} == {("cycle", True)}
    assert [one.cause for one in cycles if one.cause] == ["forced"]
    for cycle, first, last in zip(cycles, pauses[::2], pauses[1::2], strict=True):
        assert (first.start_unix_ns, last.end_unix_ns) == (cycle.start_unix_ns, cycle.end_unix_ns)
    allocated = sum(each.bytes for each in found if isinstance(each, Allocated))
    assert allocated == pytest.approx(60_000 * 4096, rel=0.1)


@given(which=some.booleans(), at=some.integers(0, 14), cut=some.integers(0, 150), more=some.text(max_size=40))
def test_cut_lines_and_garbage_never_raise(which: bool, at: int, cut: int, more: str) -> None:
    lines = NODE if which else GO
    broken = [*lines[:at], lines[at][:cut], lines[at][:cut] + more, more, *lines[at:]]
    assert of_node(broken)
    assert list(read_go(broken, BEGAN))


@pytest.mark.parametrize(
    ("command", "environment", "runtime"),
    [
        ("node\0--trace-gc\0server.js", "", "node"),
        ("server\0-address", "A=1\0GODEBUG=http2debug=1,gctrace=1", "go"),
        ("server\0-address", "GODEBUG=http2debug=1", None),
        ("node\0server.js", "", None),
    ],
)
def test_a_process_is_traced_if_its_start_asks_for_it(
    tmp_path: Path, command: str, environment: str, runtime: str | None
) -> None:
    folder = tmp_path / "4711"
    folder.mkdir()
    (folder / "cmdline").write_text(command)
    (folder / "environ").write_text(environment)
    (tmp_path / "log").write_text("hello\n" + "\n".join(NODE if runtime == "node" else GO) + "\n")
    traced = Traced.of(4711, str(tmp_path))
    assert (traced is not None) == (runtime is not None)
    if traced is not None:
        facts = traced.facts((0, 1 << 62), tmp_path / "log")
        assert facts is not None
        assert facts.runtime == runtime
        assert facts.pauses.count >= len(NODE) - 1
        size = (tmp_path / "log").stat().st_size
        assert size - 40 < facts.traced_bytes < size
        assert traced.facts((0, 1 << 62), None) is None
        assert traced.facts((0, 1 << 62), tmp_path / "none") is None


def test_a_process_that_a_script_started_is_traced_as_well(tmp_path: Path) -> None:
    for pid, command in ((1, "sh\0-c\0node --trace-gc a.js; true"), (2, "node\0--trace-gc\0a.js")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_text(command)
    (tmp_path / "log").write_text("\n".join(NODE) + "\n")
    assert Traced.among((1,), str(tmp_path)) is None
    traced = Traced.among((1, 2), str(tmp_path))
    assert traced is not None
    facts = traced.facts((0, 1 << 62), tmp_path / "log")
    assert facts is not None
    assert facts.runtime == "node"


def test_a_trace_that_the_lab_asked_for_is_no_logging_of_the_server() -> None:
    cell = simulated_cell(load=SATURATE)
    chatty = simulated_recording(cell, Behaviour(log_bytes=400_000))

    def kinds(recording: Recording) -> set[str]:
        return {one.kind for one in judge(cell, recording)}

    assert kinds(chatty) == {"debug-logging"}
    facts = RuntimeFacts(runtime="go", traced_bytes=399_000)
    assert kinds(chatty.model_copy(update={"runtime": facts})) == set()
    assert kinds(simulated_recording(cell, GOOD).model_copy(update={"runtime": facts})) == set()


def go(at_s: float, before: int, end: int, live: int) -> str:
    times, sizes = "0.010+2.0+0.020 ms clock, 0.1+0/0/0+0.1 ms cpu", f"{before}->{end}->{live} MB"
    return f"gc 1 @{at_s}s 1%: {times}, {sizes}, 9 MB goal, 0 MB stacks, 0 MB globals, 2 P"


def test_go_allocates_between_and_during_its_collections() -> None:
    found = [one for one in read_go([go(1.0, 4, 4, 2), go(2.0, 2, 3, 2)], BEGAN) if isinstance(one, Allocated)]
    assert [one.bytes // MIB for one in found] == [0, 0, 1], "equal sizes are no allocation, and known as such"
    shrunk = [one for one in read_go([go(1.0, 4, 4, 3), go(2.0, 2, 2, 2)], BEGAN) if isinstance(one, Allocated)]
    assert [one.bytes for one in shrunk] == [0, 0], "between them it shrank: nothing is known"


def of_go(*lines: str) -> list[Event]:
    return [*read_go(lines, BEGAN)]


CYCLE = (
    "gc 1 @{at}s 2%: 0.5+3.0+0.25 ms clock, 1+1/1/1+1 ms cpu, {before}->{end}->4 MB, 9 MB goal, 0 MB stacks, "
    "0 MB globals, 2 P"
)


def test_a_cycle_of_go_has_a_pause_at_either_end_and_what_was_allocated_in_it() -> None:
    first, second = (
        CYCLE.format(at=at, before=before, end=end, live=4) for at, before, end in ((1.0, 8, 9), (2.0, 10, 9))
    )
    found = of_go(first, f"{second} (forced)")
    pauses = [one for one in found if isinstance(one, Pause)]
    start = BEGAN + 10**9
    assert [(one.start_unix_ns, one.duration_ns) for one in pauses[:2]] == [
        (start, MS // 2),
        (start + 3_500_000, MS // 4),
    ]
    cycles = [one for one in found if isinstance(one, Collection)]
    assert [(one.start_unix_ns, one.duration_ns, one.cause, one.live_bytes) for one in cycles] == [
        (start, 3_750_000, "", 4 * MIB),
        (start + 10**9, 3_750_000, "forced", 4 * MIB),
    ]
    allocated = [one for one in found if isinstance(one, Allocated)]
    assert [tuple(one) for one in allocated] == [
        (start + 3_750_000, 1 * MIB, 3_750_000),
        (start + 10**9, 6 * MIB, 10**9 - 3_750_000),
    ], "in the second cycle the heap shrank"
