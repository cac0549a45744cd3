"""A server that is started, compared with a running server: `redline ab COMMAND URL`, and the equivalent suite."""

from pathlib import Path

import pytest

from redline.model import Metric, Report
from redline.storage.runs import RunStore
from tests.e2e.compared import answer, compared, duet, in_metric, kinds
from tests.e2e.conftest import Redline
from tests.fakes.servers.owned import free_port, owned

pytestmark = pytest.mark.e2e

USERS, LENGTHS = ("--load", "closed:2"), ("5s", "20s", "60s")


def command(oracle: Path) -> str:
    return f"{oracle} null --port {{port}}"


@pytest.mark.parametrize("runs", [pytest.param("A", marks=pytest.mark.long), "B"])
def test_a_running_server_is_reached_at_each_start_of_the_other(
    redline: Redline, oracle: Path, tmp_path: Path, runs: str
) -> None:
    port = free_port("127.0.0.1")
    url = f"http://127.0.0.1:{port}/x"
    sides = (url, command(oracle)) if runs == "A" else (command(oracle), url)
    with owned("alone", "127.0.0.1", port) as pids:
        done = compared(redline, *sides, *USERS, lengths=LENGTHS, keep="kept")
    assert done.code == 0, done.err
    report, store = Report.model_validate(done.json), RunStore(tmp_path / "kept")
    assert duet(report).starts >= 3
    assert answer(report).metric is Metric.CPU_PER_REQUEST
    ratio = answer(report).ratio
    assert ratio is not None
    assert (ratio.value > 1) is (runs == "B")  # the running server burns CPU time
    assert "few-starts" in kinds(report)
    started = [server.pid for recording in store.duets() for server in recording.servers if server]
    assert len(started) == len(set(started)) == (1 if runs == "A" else 2) * duet(report).starts
    assert not set(started) & pids
    (scenario,) = store.manifest().plan.suite.scenarios
    assert scenario.request.path == "/x"
    said = {f"{name} {'(already running)' if name == runs else '(started afresh)'}" for name in "AB"}
    assert {f"{name} ({text.rpartition('(')[2]}" for name, text in report.run.servers.items()} == said
    page = (tmp_path / "kept" / "report.html").read_text()
    assert "(already running)" in page
    assert "(started afresh)" in page


@pytest.mark.long
def test_without_the_cpu_time_of_the_running_one_throughput_is_compared(
    redline: Redline, oracle: Path, tmp_path: Path
) -> None:
    behind, port = free_port("127.0.0.1"), free_port("127.0.0.1")
    relay = owned("relays", "127.0.0.1", port, "127.0.0.1", str(behind), name="docker-proxy")
    with owned("alone", "127.0.0.1", behind), relay:
        done = compared(redline, command(oracle), f"http://127.0.0.1:{port}/", *USERS, lengths=LENGTHS)
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert answer(report).metric is Metric.THROUGHPUT
    assert in_metric(report, Metric.CPU_PER_REQUEST).ratio is None


@pytest.mark.long
def test_a_suite_compares_them_as_well(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    suite = ("--write-suite", "mixed.yaml", "--load", "closed:2", "--for", "5s")
    assert redline("ab", command(oracle), f"http://127.0.0.1:{port}/x", *suite).code == 0
    with owned("alone", "127.0.0.1", port):
        done = redline("run", "mixed.yaml", "-o", "kept")
    assert done.code == 0, done.err
    assert "B: http://127.0.0.1:" in done.out
    assert "(already running)" in done.out
    redline("ab", command(oracle), "http://127.0.0.1:1/", "--parallel").refused(2, "cannot assign cores to them")
