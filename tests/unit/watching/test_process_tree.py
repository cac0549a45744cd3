"""The monitor of process trees: every series covers its window, and no series without reports."""

import os
import shutil
import socket
import subprocess
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

from redline.linux import procfs
from redline.linux.host import Host
from redline.model import OTHER_LOAD, Series, Subject
from redline.watching import process_tree
from redline.watching.process_tree import (
    MOST_SAMPLES,
    KeptSamples,
    MachineShare,
    Neighbours,
    ProcessTreeMonitor,
    _Paced,
    _series,
    _timed,
)
from redline.watching.tree import OwnedProcesses
from tests.fakes.servers.entries import eventually
from tests.fakes.workers import Worker, started

TREE_SERIES = {
    "cpu_ns": "counter",
    "context_switches_voluntary": "counter",
    "context_switches_involuntary": "counter",
    "preemptions": "counter",
    "run_delay_ns": "counter",
    "processes_started": "counter",
    "processes_ended": "counter",
    "minor_faults": "counter",
    "major_faults": "counter",
    "rss_bytes": "gauge",
    "threads": "gauge",
    "processes": "gauge",
    "processes_replaced": "gauge",
}


@pytest.fixture
def worker() -> Iterator[Worker]:
    with started() as one:
        yield one


def found(series: tuple[Series, ...], name: str, subject: Subject = "server") -> Series:
    (one,) = [each for each in series if each.name == name and each.subject == subject]
    return one


def test_a_monitor_gives_every_series_at_both_ends(worker: Worker) -> None:
    with started() as other:
        monitor = ProcessTreeMonitor(period_s=60)
        monitor._other_loads = None  # those of tests beside this one
        monitor.follow("server", worker.pid)
        monitor.follow("engine", other.pid)
        burned = worker.do("burn 30000000")
        series = monitor.finish()
    assert not monitor.perturbs
    for subject in ("server", "engine"):
        kinds = {each.name: each.kind for each in series if each.subject == subject}
        assert kinds.items() >= TREE_SERIES.items()
    network = {"tcp_segments_sent", "listen_drops", "time_wait", "local_ports"}
    assert {each.name for each in series if each.subject == "machine"} >= {"busy_ns", "steal_ns", *network}
    for each in series:
        assert len(each.times_unix_ns) >= 2
        assert list(each.times_unix_ns) == sorted(set(each.times_unix_ns))
        if each.kind == "counter":
            assert list(each.values) == sorted(each.values)
    assert found(series, "cpu_ns").values[-1] >= burned
    assert found(series, "processes").values[-1] == 1
    assert found(series, "rss_bytes").unit == "B"


def test_a_monitor_samples_again_and_again(worker: Worker) -> None:
    monitor = ProcessTreeMonitor(period_s=0.001)
    monitor.follow("server", worker.pid)
    assert eventually(lambda: len(monitor._kept["server", "cpu_ns"].values) > 20)
    series = monitor.finish()
    assert len(found(series, "cpu_ns").values) > 20
    assert len(found(series, "run_delay_ns").values) <= len(found(series, "cpu_ns").values)


def test_a_process_that_ends_while_it_is_watched(worker: Worker) -> None:
    monitor = ProcessTreeMonitor(period_s=0.001)
    monitor.follow("server", worker.pid)
    burned = worker.do("burn 20000000")
    assert eventually(lambda: monitor._kept["server", "cpu_ns"].values[-1] >= burned)
    worker.process.kill()
    worker.process.wait()
    series = monitor.finish()
    cpu = found(series, "cpu_ns").values
    assert list(cpu) == sorted(cpu)
    assert cpu[-1] >= burned


def test_a_monitor_that_never_followed_anything_has_nothing_to_report() -> None:
    assert ProcessTreeMonitor().finish() == ()


def test_where_the_kernel_reports_nothing_there_is_no_series(worker: Worker, tmp_path: Path) -> None:
    monitor = ProcessTreeMonitor(period_s=60)
    monitor._other_loads = None  # those of tests beside this one
    monitor._host = Host(tmp_path)
    monitor.follow("server", worker.pid)
    series = monitor.finish()
    assert {each.subject for each in series} == {"server"}
    assert "cores_busy_ns" not in {each.name for each in series}


def test_other_processes_are_named_with_their_cpu_time(worker: Worker) -> None:
    with started() as neighbour:
        other = f"other_cpu_ns:{Path(f'/proc/{neighbour.pid}/comm').read_text().strip()}"
        quiet, monitor = ProcessTreeMonitor(period_s=60), ProcessTreeMonitor(period_s=60)
        monitor.follow("server", worker.pid)
        quiet.follow("server", neighbour.pid)
        neighbour.do("burn 300000000")
        one = found(monitor.finish(), other, "machine")
        own = [each for each in quiet.finish() if each.name == other]
    assert one.values[-1] >= 0.25e9
    assert not own or own[0].values[-1] < one.values[-1]


@pytest.mark.parametrize("followed", [True, False])
def test_an_engine_that_has_ended_is_another_load_only_if_nobody_followed_it(
    worker: Worker, tmp_path: Path, *, followed: bool
) -> None:
    """The tree of a process is empty once it has ended."""
    engine = tmp_path / "redline-engine"
    shutil.copy2(str(shutil.which("sleep")), engine)
    monitor = ProcessTreeMonitor()
    monitor.follow("server", worker.pid)
    with subprocess.Popen([engine, "60"]) as process:
        assert monitor._other_loads is not None
        monitor._other_loads._has_arguments = lambda _pid: False
        if followed:
            monitor.follow("engine", process.pid)
        monitor._other_loads.look()
        process.kill()
    named = [series.name for series in monitor.finish() if series.name.startswith(OTHER_LOAD)]
    assert ("another thread" in "".join(named)) is not followed


def test_the_processes_of_a_server_that_somebody_else_runs_are_watched_with_what_they_start(worker: Worker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monitor = ProcessTreeMonitor(period_s=60, listens_at=listener.getsockname()[:2])
        monitor.follow_owner((worker.pid,))
        burned = worker.do("burn 30000000")
        with socket.create_connection(listener.getsockname()):
            series = monitor.finish()
    names = {each.name: each.kind for each in series if each.subject == "server"}
    assert names.items() >= TREE_SERIES.items()
    assert names.items() >= {"descriptors": "gauge", "descriptors_limit": "gauge", "close_wait": "gauge"}.items()
    assert found(series, "cpu_ns").values[-1] >= burned
    assert found(series, "descriptors").values[-1] >= 3
    assert found(series, "listen_queue").values[-1] == 1, "nobody has accepted it"


def test_processes_that_are_not_known_leave_what_the_kernel_says_of_their_sockets(worker: Worker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monitor = ProcessTreeMonitor(period_s=60, listens_at=listener.getsockname()[:2])
        monitor.follow_owner(())
        monitor.follow("engine", worker.pid)
        series = monitor.finish()
    assert {each.name for each in series if each.subject == "server"} == {"listen_drops", "listen_queue", "close_wait"}


def test_a_connection_that_its_server_does_not_close_is_half_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monitor = ProcessTreeMonitor(period_s=60, listens_at=("127.0.0.1", port))
        monitor.follow("engine", os.getpid())
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            client.shutdown(socket.SHUT_WR)
            series = monitor.finish()
            accepted.close()
    assert found(series, "close_wait").values[-1] == 1


def test_what_a_supervisor_had_started_before_is_not_of_its_server(worker: Worker) -> None:
    worker.do("linger 1")
    (before,) = procfs.children()[worker.pid]
    owned = OwnedProcesses((worker.pid,))
    assert owned() == (worker.pid,)
    worker.do("linger 1")
    assert len(owned()) == 2
    assert before not in owned()


def kept_of(kind: Literal["counter", "gauge"], values: Iterable[float]) -> list[tuple[int, float]]:
    kept = KeptSamples(kind)
    for at, value in enumerate(values):
        kept.add(at, value)
    return [*zip(kept.times_unix_ns, kept.values, strict=True)]


def test_a_series_keeps_all_samples_up_to_its_most() -> None:
    assert kept_of("counter", range(MOST_SAMPLES)) == [(at, at) for at in range(MOST_SAMPLES)]


def test_a_longer_counter_keeps_its_first_and_every_second_then_every_fourth_sample() -> None:
    twice = kept_of("counter", range(MOST_SAMPLES + 3))
    assert [at for at, _ in twice[:3]] == [0, 2, 4]
    assert [at for at, _ in twice[-2:]] == [MOST_SAMPLES + 1, MOST_SAMPLES + 2]
    assert all(at == value for at, value in twice)
    four = kept_of("counter", range(2 * MOST_SAMPLES + 8))
    assert [at for at, _ in four[:3]] == [0, 4, 8]
    assert len(four) <= MOST_SAMPLES


def test_a_longer_gauge_keeps_the_largest_of_those_that_it_merges() -> None:
    high = kept_of("gauge", (5.0 if at % 4 == 1 else float(at % 2) for at in range(MOST_SAMPLES + 1)))
    assert high[:4] == [(0, 0.0), (1, 5.0), (3, 1.0), (5, 5.0)]
    merged = KeptSamples("gauge", array("q", [0]), array("d", [9.0]))
    merged._stride, merged._in_last = 3, 3
    for at, value in enumerate((4.0, 6.0, 5.0, 1.0), start=1):
        merged.add(at, value)
    assert [*zip(merged.times_unix_ns, merged.values, strict=True)] == [(0, 9.0), (2, 6.0), (4, 1.0)]


STAT = "cpu  10 0 10 0 0 3 0 4 0 0\ncpu0 5 0 5 80 0 1 1 2 0 0\ncpu1 2 0 3 80 0 0 1 2 0 0\n"


def test_a_share_of_the_machine_is_that_of_its_cores() -> None:
    both = MachineShare((0, 1), ())
    assert both.sample(STAT) == {"cores_busy_ns": 180_000_000, "cores_interrupts_ns": 30_000_000}
    assert MachineShare((1,), ()).sample(STAT) == {"cores_busy_ns": 60_000_000, "cores_interrupts_ns": 10_000_000}
    assert MachineShare((), ()).sample(STAT) == {}
    assert MachineShare((7,), ()).sample(STAT) == {}


def test_a_quota_is_sampled_with_its_periods(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2\n")
    values = MachineShare((), (tmp_path,), 1500).sample(STAT)
    assert values == {
        "quota_periods": 4,
        "throttled_periods": 3,
        "throttled_ns": 2_000,
        "quota_millicores": 1500,
    }


def test_the_share_of_a_process_is_its_cores_and_its_narrowest_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {1: {Path("/a"): 2.0}, 2: {Path("/b"): 0.5}}
    monkeypatch.setattr(process_tree, "quotas", lambda pid: limits[pid])
    monkeypatch.setattr(process_tree.os, "sched_getaffinity", lambda _pid: {3, 1})
    monkeypatch.setattr(process_tree.os, "cpu_count", lambda: 4)
    assert MachineShare.of(1, 2) == MachineShare((1, 3), (Path("/a"), Path("/b")), 500)
    monkeypatch.setattr(process_tree.os, "cpu_count", lambda: 2)
    assert MachineShare.of(1).cores == (), "it may use the whole machine"


def test_what_is_costly_is_done_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"thread": 0, "all": 1_000}
    clock = SimpleNamespace(thread_time_ns=lambda: now["thread"], monotonic_ns=lambda: now["all"])
    monkeypatch.setattr(process_tree, "time", clock)
    paced = _Paced(0.25)
    assert paced.is_due()
    with paced.spending():
        now["thread"] += 10
    now["all"] += 39
    assert not paced.is_due()
    now["all"] += 1
    assert paced.is_due()


def test_a_reading_is_repeated_while_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*times: int) -> tuple[int, str, int]:
        left = list(times)
        monkeypatch.setattr(process_tree, "time", SimpleNamespace(time_ns=lambda: left.pop(0)))
        at, value = _timed(lambda: "read")
        return at, value, len(left)

    assert read(10, 30, 40, 50) == (20, "read", 2)
    assert read(0, 1_000_000, 2_000_000, 2_000_020) == (2_000_010, "read", 0), "a millisecond is too long"
    assert read(0, 999_999, 7, 9) == (499_999, "read", 2)
    assert read(0, 9**9, 0, 9**9, 0, 9**9, 7, 9)[2] == 2, "three times at most"


def test_units_are_those_of_the_names() -> None:
    kept = KeptSamples("gauge", array("q", [1, 2]), array("d", [3.0, 4.0]))
    units = {name: _series("server", name, kept).unit for name in ("cpu_ns", "rss_bytes", "link_bits_per_s", "threads")}
    assert units == {"cpu_ns": "ns", "rss_bytes": "B", "link_bits_per_s": "bit/s", "threads": "1"}
    made = _series("server", "threads", kept)
    assert (made.times_unix_ns, made.values, made.kind) == ((1, 2), (3.0, 4.0), "gauge")


def test_neighbours_are_the_three_that_used_most_and_two_percent_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    def processes(**cpu_ns: int) -> dict[int, SimpleNamespace]:
        names = ("ours", "big", "most", "third", "fourth", "small")
        return {
            1000 + at: SimpleNamespace(name=name.encode(), cpu_ns=cpu_ns[name])
            for at, name in enumerate(names)
            if name in cpu_ns
        }

    now = [0]
    monkeypatch.setattr(process_tree, "time", SimpleNamespace(time_ns=lambda: now[0]))
    monkeypatch.setattr(process_tree, "_processes", lambda: processes(ours=0, big=500, small=0, third=0))
    neighbours = Neighbours()
    now[0] = 10_000
    later = processes(ours=9_000, big=1_500, most=2_000, third=201, small=200)
    monkeypatch.setattr(process_tree, "_processes", lambda: later)
    found = {one.name.partition(":")[2]: one.values for one in neighbours.series({1000})}
    assert found == {"most": (0, 2_000), "big": (0, 1_000), "third": (0, 201)}
    later = processes(big=1_500, most=2_000, third=201, fourth=300)
    assert [one.name.partition(":")[2] for one in neighbours.series({1000})] == ["most", "big", "fourth"]


def test_without_a_quota_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "quotas", lambda _pid: {})
    assert MachineShare.of(os.getpid()).quota_millicores == 0


def test_half_closed_connections_are_given_a_quarter_of_a_second_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, now_s, looks = ProcessTreeMonitor(), [0.0], list[float]()
    monkeypatch.setattr(
        process_tree,
        "time",
        SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda seconds: now_s.__setitem__(0, now_s[0] + seconds)),
    )
    monkeypatch.setattr(monitor, "_keep_half_closed", lambda: looks.append(now_s[0]))
    monitor._let_close()
    assert looks == [], "none waits"
    monitor._kept["server", "close_wait"] = KeptSamples("gauge", array("q", [1]), array("d", [1.0]))
    monitor._let_close()
    assert looks[-1] == pytest.approx(0.25, abs=0.03)
    assert len(looks) in (10, 11)


def test_only_a_server_has_a_runtime(worker: Worker) -> None:
    monitor = ProcessTreeMonitor(period_s=60)
    assert monitor.runtime((0, 1), None) is None
    monitor.follow("server", worker.pid)
    assert monitor.runtime((0, 1), None) is None
    monitor.finish()
