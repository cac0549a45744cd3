"""A JVM's data is read from its counters, its threads and its log, and never from other processes."""

import os
from pathlib import Path

import pytest

from redline.model.runtime import CounterCheck
from redline.watching.jvm import Jvm, RoleClocks, compilers_of, log_flag
from redline.watching.process_tree import ProcessTreeMonitor
from tests.fakes.jvms import NUMBERS, a_jvm, perf_file, write
from tests.fakes.workers import started


def a_thread(folder: Path, thread: int, name: str, cpu_ns: int, wait_ns: int, pid: int = 12) -> None:
    task = f"{pid}/task/{thread}"
    write(folder, {f"{task}/comm": f"{name}\n".encode(), f"{task}/schedstat": f"{cpu_ns} {wait_ns} 3\n".encode()})


def found(folder: Path, pid: int = 12) -> Jvm:
    one = Jvm.among([pid], str(folder))
    assert one is not None
    return one


@pytest.mark.parametrize(("release", "safepoint_ns"), [("11", 5_000_000), ("17", 7_000_000), ("25", 7_000_000)])
def test_counters_are_those_of_jstat_in_nanoseconds(tmp_path: Path, release: str, safepoint_ns: int) -> None:
    """Up to JDK 11 the time at safepoints includes the time to them; later JDKs count the two apart."""
    a_jvm(tmp_path, content=perf_file(release=release))
    assert found(tmp_path).sample() == {
        "safepoints": 7,
        "safepoint_ns": safepoint_ns,
        "compiles": 40,
        "heap_capacity_bytes": 4 << 20,
    }


def test_threads_of_compilers_and_collectors_are_reported_by_their_names(tmp_path: Path) -> None:
    a_jvm(tmp_path)
    for thread, name in enumerate(("C2 CompilerThre", "C1 CompilerThre", "GC Thread#0", "G1 Main Marker"), 100):
        a_thread(tmp_path, thread, name, cpu_ns=thread, wait_ns=1)
    for thread, name in enumerate(("java", "http-worker-1", "Z-pool", "zio-default"), 200):
        a_thread(tmp_path, thread, name, cpu_ns=10**6, wait_ns=10**6)
    clocks = RoleClocks(12, str(tmp_path))
    seen = {"compiler_cpu_ns": 201, "compiler_wait_ns": 2, "collector_cpu_ns": 205, "collector_wait_ns": 2}
    assert clocks.sample() == seen
    a_thread(tmp_path, 300, "C2 CompilerThre", cpu_ns=7, wait_ns=3)
    assert clocks.sample() == seen | {"compiler_cpu_ns": 208, "compiler_wait_ns": 5}
    for name in ("comm", "schedstat"):
        (tmp_path / "12/task/100" / name).unlink()
    (tmp_path / "12/task/100").rmdir()
    assert clocks.sample() == seen | {"compiler_cpu_ns": 208, "compiler_wait_ns": 5}, "what an ended one used stays"


def test_the_compilers_of_processes_are_read_together_and_of_others_there_are_none(tmp_path: Path) -> None:
    for pid in (12, 13):
        a_jvm(tmp_path, pid=pid)
        a_thread(tmp_path, 100 + pid, "C2 CompilerThre", cpu_ns=pid, wait_ns=1000, pid=pid)
    write(tmp_path, {"14/status": b"NSpid:\t14\n"})
    assert compilers_of((12, 13, 14), str(tmp_path))() == 2025
    assert compilers_of((14,), str(tmp_path))() is None


def test_a_thread_is_named_a_moment_after_it_began(tmp_path: Path) -> None:
    a_jvm(tmp_path)
    a_thread(tmp_path, 100, "java", cpu_ns=5, wait_ns=0)
    clocks = RoleClocks(12, str(tmp_path))
    assert clocks.sample() == {}
    a_thread(tmp_path, 100, "C2 CompilerThre", cpu_ns=9, wait_ns=0)
    assert clocks.sample()["compiler_cpu_ns"] == 9


def test_the_log_is_that_of_the_command_as_the_process_sees_it(tmp_path: Path) -> None:
    log = (
        "[2026-11-22T18:29:38.347+0000][100000000ns][info][safepoint] "
        'Safepoint "X", Time since last: 5 ns, Reaching safepoint: 40 ns, At safepoint: 60 ns, Total: 100 ns\n'
    )
    flags = ("-Xmx512m", "-Xlog:gc:file=/other", *log_flag(21, Path("/scratch/jvm.log")), "-Xmx2g", "-jar", "x.jar")
    a_jvm(tmp_path, *flags)
    assert found(tmp_path).facts((0, 1 << 62)) is None, "it is not there"
    file, head = "12/root/scratch/jvm.log", log.replace("[safepoint] Safepoint", "[gc] Using G1\n[x]")
    write(tmp_path, {file: (head + log).encode()})
    one = found(tmp_path)
    one.sample()
    begun = "[2026-11-22T18:29:38.347+0000][100000000ns][info][gc] GC(7) "
    pause = f"{begun}Pause Young (Normal) (G1 Evacuation Pause) 20M->8M(32M) 5.123ms\n"
    cycle = f"{begun.replace('(7)', '(8)')}Concurrent Mark Cycle 3.000ms\n"
    write(tmp_path, {file: (head + log + log + pause + cycle).encode()})
    later = {"sun.rt.safepoints": 9, "sun.rt.safepointTime": 6_000, "sun.gc.collector.0.invocations": 7}
    a_jvm(tmp_path, *flags, content=perf_file(NUMBERS | later))
    one.sample()
    facts = one.facts((0, 1 << 62))
    assert facts is not None
    assert (facts.runtime, facts.collector, facts.max_heap_bytes) == ("jvm", "G1", 2 << 30)
    assert (facts.pauses.count, facts.pauses.total_ns, facts.to_safepoint.total_ns) == (1, 100, 40)
    assert facts.checks == (
        CounterCheck(name="safepoints", logged=1, counted=2),
        CounterCheck(name="safepoint_ns", logged=100, counted=1_000_000),
        CounterCheck(name="collections", logged=1, counted=2),
    )
    elsewhere = one.facts((0, 1))
    assert elsewhere is not None
    assert (elsewhere.pauses.count, elsewhere.checks) == (0, facts.checks)


def test_a_jvm_of_before_unified_logging_gets_no_flag() -> None:
    assert log_flag(8, Path("/log")) == ()
    assert log_flag(11, Path("/log"))[0].startswith("-Xlog:gc,")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_process_that_is_no_jvm_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"12/status": b"NSpid:\t12\n", "12/cmdline": b"sleep\x0060"})
    assert Jvm.among([12, 13], str(tmp_path)) is None
    with started() as worker:
        monitor = ProcessTreeMonitor(period_s=60)
        monitor.follow("server", worker.pid)
        assert not {each.name for each in monitor.finish()} & {"safepoints", "compiler_cpu_ns", "heap_capacity_bytes"}
        assert monitor.runtime((0, 1 << 62), None) is None
