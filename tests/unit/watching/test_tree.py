"""Trees of processes: sums never fall, and are correct for processes with known behaviour."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.launching.process import ProcessLauncher
from redline.linux import cgroup, procfs
from redline.ports import Launch, Placement
from redline.watching.tree import ProcessTree, Size, Tally, process_cpu_ns
from tests.fakes.servers.entries import eventually, make_catalogue, server
from tests.fakes.workers import Worker, started


@pytest.fixture
def worker() -> Iterator[Worker]:
    with started() as one:
        yield one


@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(0, 1000), max_size=5), max_size=20))
def test_a_tally_never_falls(samples: list[dict[int, int]]) -> None:
    tally = Tally()
    totals = [tally.total(sample) for sample in samples]
    assert totals == sorted(totals)


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 100), min_size=1), min_size=1, max_size=10))
def test_a_tally_keeps_all_that_ended_parts_had(growths: list[dict[int, int]]) -> None:
    """Every part grows by some amount each time; in the last sample all have ended."""
    tally, now = Tally(), dict[int, int]()
    for growth in growths:
        now = {part: now.get(part, 0) + growth.get(part, 0) for part in now.keys() | growth.keys()}
        assert tally.total(now) == sum(now.values())
    assert tally.total({}) == sum(now.values())


def test_the_cpu_time_of_a_process_lies_between_what_it_says_itself(worker: Worker) -> None:
    before = worker.do("burn 50000000")
    seen = process_cpu_ns(worker.pid)
    after = worker.do("burn 1")
    assert seen is not None
    assert before <= seen <= after


def test_the_cpu_time_of_an_ended_process_is_not_known(worker: Worker) -> None:
    worker.process.kill()
    worker.process.wait()
    assert process_cpu_ns(worker.pid) is None
    assert procfs.read_stat(worker.pid) is None
    assert procfs.tree(worker.pid) == ()


def test_a_tree_counts_threads_and_processes_that_left_the_session(worker: Worker) -> None:
    worker.do("threads 7")
    worker.do("fork 2")
    size = ProcessTree(worker.pid).size()
    assert size is not None
    assert (size.threads, size.processes) == (8 + 2, 3)
    assert size.rss_bytes > 0


@pytest.mark.parametrize("maps", [0, 1, 3])
def test_a_file_of_memory_counts_once_however_often_it_is_mapped(maps: int) -> None:
    """Z keeps the heap in one mapping, with all committed memory, and maps it three times before JDK 23."""
    size = 64 << 20
    child = (
        "import mmap, os\n"
        f"heap = os.memfd_create('java_heap'); os.posix_fallocate(heap, 0, {size})\n"
        f"views = [mmap.mmap(heap, {size}) for _ in range({maps})]\n"
        "for view in views:\n"
        f"    for at in range(0, {size}, mmap.PAGESIZE): view[at] = 1\n"
        "print(flush=True); input()\n"
    )
    command = [sys.executable, "-I", "-S", "-c", child]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stat, found = procfs.read_stat(process.pid), ProcessTree(process.pid).size()
        process.kill()
    assert stat is not None
    assert found is not None
    assert maps * size < stat.rss_bytes < (maps + 1) * size
    assert size < found.rss_bytes < 2 * size


def test_page_faults_are_those_of_pages_that_were_touched() -> None:
    pages = 4096
    child = (
        f"import mmap; view = mmap.mmap(-1, {pages} * mmap.PAGESIZE); view.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "print(flush=True); input()\n"
        f"for at in range({pages}): view[at * mmap.PAGESIZE] = 1\n"
        "print(flush=True); input()\n"
    )
    command = [sys.executable, "-I", "-S", "-c", child]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        tree = ProcessTree(process.pid)
        before = tree.size()
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        after = tree.size()
        process.kill()
    assert before is not None
    assert after is not None
    assert pages <= after.minor_faults - before.minor_faults < 2 * pages
    assert after.major_faults >= before.major_faults


def test_a_tree_finds_later_processes_when_it_looks_around(worker: Worker) -> None:
    tree = ProcessTree(worker.pid)
    worker.do("fork 2")
    tree.look_around()
    size = tree.size()
    assert size is not None
    assert size.processes == 3


def test_a_tree_counts_the_processes_that_took_the_place_of_others(worker: Worker) -> None:
    tree = ProcessTree(worker.pid)
    worker.do("fork 2")
    tree.look_around()
    first = tree.size()
    assert first is not None
    assert (first.processes_started, first.processes_ended, first.processes_replaced) == (0, 0, 0)
    end(procfs.tree(worker.pid)[-1])
    worker.do("fork 1")
    then = looked(tree)
    assert (then.processes_started, then.processes_ended, then.processes_replaced, then.processes) == (1, 1, 1, 3)


def test_helpers_that_come_and_go_take_nobodys_place(worker: Worker) -> None:
    """Processes from before the load are workers, whatever else began and ended; and a helper is no worker."""
    worker.do("fork 1")
    tree = ProcessTree(worker.pid)
    looked(tree)
    for _ in range(3):
        worker.do("helper 2")
        worker.do("linger 1")
        looked(tree)
        end(procfs.tree(worker.pid)[-1])
    then = looked(tree)
    assert (then.processes_started, then.processes_ended, then.processes_replaced) == (3, 3, 0)
    end(procfs.tree(worker.pid)[1])
    worker.do("linger 1")
    gone = looked(tree)
    assert (gone.processes_ended, gone.processes_replaced) == (4, 0), (
        "its worker ended, and what began is another program"
    )


def end(pid: int) -> None:
    """Kill it, and wait until it is over."""
    os.kill(pid, signal.SIGKILL)

    def is_over() -> bool:
        stat = procfs.read_stat(pid)
        return stat is None or stat.state == "Z"

    assert eventually(is_over)


def looked(tree: ProcessTree) -> Size:
    """After another look."""
    tree.look_around()
    size = tree.size()
    assert size is not None
    return size


def test_voluntary_switches_are_those_of_the_process(worker: Worker) -> None:
    tree = ProcessTree(worker.pid)
    before = tree.scheduling()
    worker.do("switch 100")
    after = tree.scheduling()
    assert before is not None
    assert after is not None
    assert after.context_switches_voluntary - before.context_switches_voluntary >= 100
    assert after.run_delay_ns >= before.run_delay_ns


def test_ended_children_stay_in_the_cpu_time_of_a_server_with_its_own_group(tmp_path: Path) -> None:
    variant = server("busy")
    launcher = ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, Placement(), tmp_path / "log")) as running:
        if not running.facts.cgroup:
            pytest.skip("no control group may be made here")
        tree = ProcessTree(running.facts.pid)
        whole, own = tree.cpu_ns(), process_cpu_ns(running.facts.pid)
        group = cgroup.own_group_of(running.facts.pid)
        assert group is not None
        assert cgroup.processes(group) == (running.facts.pid,)
    assert whole is not None
    assert own is not None
    assert whole - own >= 30 * 10_000_000, "30 children burned 10 ms each"
    assert cgroup.cpu_ns(group) is None


def test_a_thread_that_gives_way_does_not_count_as_having_waited() -> None:
    """It waits deliberately; counted, this would make an engine with time to spare look saturated."""
    core = min(os.sched_getaffinity(0))
    idle = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    child = f"import os, sys; {idle}; print('on', flush=True)\nwhile True: pass"
    parent = (
        f"import os, subprocess, sys, time; os.sched_setaffinity(0, [{core}])\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True)\n"
        "while True:\n"
        "    until = time.monotonic() + 0.05\n"
        "    while time.monotonic() < until: pass\n"
        "    time.sleep(0.002)\n"  # a wait is booked when it ends
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        runs_when_idle = int(process.stdout.readline())
        time.sleep(0.5)
        tree = ProcessTree(process.pid)
        tree.look_around()
        seen = tree.scheduling()
        itself_ns, gave_way_ns = (
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in (process.pid, runs_when_idle)
        )
        os.kill(runs_when_idle, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert seen is not None
    assert gave_way_ns > 0
    assert seen.run_delay_ns <= itself_ns, gave_way_ns
