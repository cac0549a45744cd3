"""Whose CPU time `redline ab` of two URLs compares: real servers, whose sockets are held in many ways."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from redline.model import DuetRecording, Metric, Report
from redline.storage.runs import RunStore
from tests.e2e import compared as ab
from tests.e2e.compared import answer, duet, in_metric
from tests.e2e.conftest import Redline
from tests.fakes.servers.owned import free_port, owned

pytestmark = pytest.mark.e2e


def url(port: int, host: str = "127.0.0.1") -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def compared(
    redline: Redline, folder: Path, a: str, b: str, metric: Metric = Metric.CPU_PER_REQUEST
) -> tuple[Report, DuetRecording]:
    """The comparison, for longer where a busy machine left the metric of its verdict unknown."""
    for length in ab.LENGTHS:
        done = ab.compared(redline, a, b, "--load", "closed:2", lengths=(length,), keep="kept")
        assert done.code == 0, done.err
        report = Report.model_validate(done.json)
        if answer(report).metric is metric:
            break
    (recording,) = RunStore(folder / "kept").duets()
    assert answer(report).metric is metric, [each.message for each in duet(report).findings]
    return report, recording


def pids(recording: DuetRecording, target: int) -> set[int]:
    """Whose CPU time was read."""
    return {int(each.rpartition("(")[2].rstrip(")")) for each in recording.owners[target].processes}


def said(report: Report, kind: str) -> str:
    (message,) = (each.message for each in duet(report).findings if each.kind == kind)
    return message


@pytest.mark.parametrize("bystander", ["127.0.0.2", "::1", pytest.param("0.0.0.0", marks=pytest.mark.long)])
def test_a_bystander_on_the_port_is_not_read(redline: Redline, tmp_path: Path, bystander: str) -> None:
    with ExitStack() as stack:
        one, other = free_port("127.0.0.1", "127.0.0.2"), free_port("127.0.0.1")
        how = "shared" if bystander == "0.0.0.0" else "alone"
        stack.enter_context(owned(how, bystander, one))
        a = stack.enter_context(owned(how, "127.0.0.1", one))
        b = stack.enter_context(owned("alone", "127.0.0.1", other))
        _, recording = compared(redline, tmp_path, url(one), url(other))
    assert [pids(recording, at) for at in range(3)] == [a, b, a]


@pytest.mark.parametrize(
    "how", ["both", *(pytest.param(how, marks=pytest.mark.long) for how in ("forks", "supervises"))]
)
def test_all_processes_of_a_server_are_read(redline: Redline, tmp_path: Path, how: str) -> None:
    port, other = free_port("::") if how == "both" else free_port("127.0.0.1"), free_port("127.0.0.1")
    with (
        owned(how, "::" if how == "both" else "127.0.0.1", port) as a,
        owned("shared", "127.0.0.1", other) as one,
        owned("shared", "127.0.0.1", other) as two,
    ):
        _, recording = compared(redline, tmp_path, url(port, "localhost"), url(other))
    assert [pids(recording, at) for at in range(3)] == [a, one | two, a]


@pytest.mark.parametrize("name", [pytest.param("docker-proxy", marks=pytest.mark.long), "my-own-relay"])
def test_a_forwarder_is_named_and_its_cpu_time_not_compared(redline: Redline, tmp_path: Path, name: str) -> None:
    one, other = free_port("127.0.0.1"), free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", one), owned("relays", "127.0.0.1", other, "127.0.0.1", str(one), name=name):
        report, _ = compared(redline, tmp_path, url(one), url(other), Metric.THROUGHPUT)
    assert in_metric(report, Metric.CPU_PER_REQUEST).ratio is None
    assert f"The CPU time of B is not known: 127.0.0.1:{other} is answered by {name}" in said(report, "cpu-unknown")


def test_whom_a_server_asks_is_named(redline: Redline, tmp_path: Path) -> None:
    one, other = free_port("127.0.0.1"), free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", one), owned("asks", "127.0.0.1", other, "127.0.0.1", str(one)) as (pid,):
        report, _ = compared(redline, tmp_path, url(one), url(other))
    assert f"({pid}) alone: what was used at 127.0.0.1:{one}" in said(report, "cpu-behind")


def test_workers_that_come_and_go_are_followed(redline: Redline, tmp_path: Path) -> None:
    one, other = free_port("127.0.0.1"), free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", one), owned("restarts", "127.0.0.1", other):
        _, recording = compared(redline, tmp_path, url(one), url(other))
    assert recording.traffic is not None
    of_b = [each for block in recording.traffic.blocks for each in block.slices if each.target == 1 and each.completed]
    known = [each.cpu_ns[1] for each in of_b if each.cpu_ns[1] is not None]
    assert all(known)
    assert None in {each.cpu_ns[1] for each in of_b}  # slices in which a worker started or ended
    assert len(known) > len(of_b) / 2
