"""The monitor of process trees: every series covers its window, and no series without reports."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.linux import procfs
from redline.linux.host import Host
from redline.model import OTHER_LOAD, Series, Subject
from redline.watching.process_tree import ProcessTreeMonitor
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
