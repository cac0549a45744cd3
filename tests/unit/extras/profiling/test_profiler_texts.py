"""The output of profilers becomes stacks by thread and slice, and stacks become a file of speedscope."""

import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.profiling.texts import (
    MOST_SLICES,
    in_slices,
    native_memory,
    perf_stacks,
    py_spy_stacks,
    slices_of,
    speedscope,
    unreadable,
)
from redline.model import Slice, Stack, Stacks, Thread
from redline.model.profile import UNKNOWN_CALLER
from redline.stats.stacks import cut_weight, normal

GOLDEN = Path(__file__).parents[3] / "golden"
MS = 1_000_000
FIRST, SECOND = Slice(10_000 * MS, 10_100 * MS), Slice(10_100 * MS, 10_200 * MS)

PERF = """\
tokio-rt worker 1234     4.050000000:\x20
\tffffffff821f46a1 sysvec_apic_timer_interrupt ([kernel.kallsyms])
\t            115a <impl [T; N]>::hot+0x1a (/srv/app)
\t           2724a __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)

tokio-rt worker 1234     4.150000001:\x20
\t    7f00deadbeef [unknown] (/usr/lib/libssl.so.3)

app 99     4.160000000:\x20

app 99     9.000000000:\x20
\t            115a later (/srv/app)

"""


def test_perf_samples_are_put_into_slices_by_their_time() -> None:
    stacks, lost = perf_stacks(iter(PERF.splitlines(keepends=True)), (FIRST, SECOND), offset_ns=6_000 * MS)
    worker = Thread("tokio-rt worker", 1234)
    callers = ("__libc_start_call_main", "<impl [T, N]>::hot", "sysvec_apic_timer_interrupt_[k]")
    assert stacks.weights == {Stack(callers, worker, FIRST): 1, Stack(("[libssl.so.3]",), worker, SECOND): 1}
    assert stacks.slices == (FIRST, SECOND)
    assert lost == 1
    assert Stacks.from_text(stacks.to_text()) == stacks


def test_without_slices_every_sample_counts() -> None:
    stacks, lost = perf_stacks(PERF.split("\n"), (), offset_ns=0)
    assert (stacks.total, lost) == (3, 1)
    assert perf_stacks([], (), 0) == (Stacks(), 0)


def sampled(*frames: str) -> list[str]:
    """A sample of perf, whose frames begin with the outermost."""
    lines = [f"\t            115a {frame} (/srv/app)" for frame in reversed(frames)]
    return ["app 99     4.100000000: ", *lines, ""]


RECURSION = ("walk",) * 125
MIDDLEWARE = tuple(f"layer{number}" for number in range(150))


@pytest.mark.parametrize(
    ("deep", "is_cut"),
    [
        ((*RECURSION, "hot", "memmove"), True),
        ((*MIDDLEWARE[-126:], "hot"), True),
        (("_start", "main", *RECURSION[:124], "hot"), False),
        (("_start", "main", *RECURSION[:100], "hot"), False),
    ],
    ids=["recursion", "middleware", "as deep as it goes", "less deep"],
)
def test_a_stack_that_was_cut_has_an_unknown_caller(deep: tuple[str, ...], is_cut: bool) -> None:
    shallow = [line for _ in range(4) for line in sampled("_start", "main", "serve")]
    stacks, lost = perf_stacks([*shallow, *sampled(*deep)], (), 0, deepest=127)
    (seen,) = (stack.frames for stack in stacks.weights if len(stack.frames) > 3)
    assert seen == ((UNKNOWN_CALLER, *deep) if is_cut else deep)
    assert (stacks.total, lost, cut_weight(normal(stacks))) == (5, 0, int(is_cut))
    assert perf_stacks([*shallow, *sampled(*deep)], (), 0)[0].total == 5, "where no stack is cut nothing is marked"


def test_the_last_sample_counts_without_an_empty_line_and_further_ones_mean_nothing() -> None:
    expected = perf_stacks(PERF.split("\n"), (), 0)
    assert perf_stacks(["", *PERF.rstrip("\n").replace("\n\n", "\n\n\n\n").split("\n")], (), 0) == expected


def test_what_perf_wrote_gives_the_stacks_of_the_golden_file() -> None:
    """As `perf record -g` and `perf script` wrote it for a C program that burns time in two functions."""
    stacks, lost = perf_stacks(iter((GOLDEN / "perf-script" / "script.txt").read_text().splitlines()), (), 0)
    assert lost == 0
    assert stacks.to_text() == (GOLDEN / "perf-script" / "stacks.txt").read_text()


def test_reading_more_samples_takes_no_more_memory() -> None:
    sample = PERF.split("\n\n", maxsplit=1)[0].split("\n")

    def peak(samples: int) -> int:
        tracemalloc.start()
        try:
            assert perf_stacks((line for _ in range(samples) for line in (*sample, "")), (), 0)[0].total == samples
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2_000)  # what is cached
    assert peak(20_000) < 1.5 * peak(2_000)


def test_py_spy_names_threads_and_the_process_is_no_frame() -> None:
    text = (
        'process 7:"/usr/bin/python3 main.py";thread (7): MainThread;<module> (main.py);hot (main.py) 12\n'
        "thread (8): idle one;run (threading.py) 3\n"
    )
    assert py_spy_stacks(text).weights == {
        Stack(("<module> (main.py)", "hot (main.py)"), Thread("MainThread", 7)): 12,
        Stack(("run (threading.py)",), Thread("idle one", 8)): 3,
    }


def test_collapsed_stacks_of_slices_stay_apart() -> None:
    stacks = in_slices([(FIRST, "[main tid=1];a;b 2\n"), (SECOND, "[main tid=1];a;b 3\n"), (None, "a 1\n")])
    assert stacks.slices == (FIRST, SECOND)
    assert stacks.weights[Stack(("a", "b"), Thread("main", 1), SECOND)] == 3
    assert stacks.total == 6


def test_stacks_that_could_not_be_walked_are_counted() -> None:
    assert (
        unreadable(in_slices([(None, "[main tid=1];[unknown_Java] 2\n[main tid=1];[not_walkable_Java];a 3\na 9\n")]))
        == 5
    )


@pytest.mark.parametrize("release", [11, 17, 21, 25])
def test_what_a_jvm_counts_is_read_by_purpose(release: int) -> None:
    summary = (GOLDEN / "native-memory" / f"jdk{release}.txt").read_text()
    found = {one.purpose: one.committed_bytes >> 10 for one in native_memory(summary)}
    assert {"Java Heap", "Class", "Thread", "Code", "GC", "Symbol", "Other"} <= found.keys()
    total = int(summary.partition("Total: reserved=")[2].partition("committed=")[2].partition("KB")[0])
    assert abs(sum(found.values()) - total) <= len(found)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert native_memory("Native memory tracking is not enabled\n") == ()


@given(st.integers(0, 500), st.integers(1, 2_000_000_000))
def test_slices_are_few_adjacent_and_cover_the_intervals(number: int, length_ns: int) -> None:
    intervals = [Slice(at * length_ns, (at + 1) * length_ns) for at in range(number)]
    slices = slices_of(intervals)
    assert len(slices) <= MOST_SLICES
    assert all(one.end == other.start for one, other in pairwise(slices))
    assert all(bound % MS == 0 for one in slices for bound in one)
    if slices:
        assert abs(slices[-1].end - number * length_ns) <= MS


def test_speedscope_has_all_threads_and_then_each() -> None:
    stacks = in_slices([(FIRST, "[one tid=1];a;b 2\n[two tid=2];a 5\n"), (SECOND, "[one tid=1];a;b 1\n")])
    made = json.loads(speedscope(stacks, "name", "bytes"))
    assert [(one["name"], one["endValue"], one["unit"]) for one in made["profiles"]] == [
        ("all threads", 8, "bytes"),
        ("[two tid=2]", 5, "bytes"),
        ("[one tid=1]", 3, "bytes"),
    ]
    names = [frame["name"] for frame in made["shared"]["frames"]]
    assert [names[place] for place in made["profiles"][2]["samples"][0]] == ["a", "b"]
    assert all(sum(one["weights"]) == one["endValue"] for one in made["profiles"])
