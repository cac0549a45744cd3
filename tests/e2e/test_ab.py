"""`redline ab` on real servers: it detects planted differences and reports errors."""

import shlex
import signal
import sys
from pathlib import Path

import pytest

from redline.model import Metric, Report, Verdict
from tests.e2e.compared import answer, compared, duet, kinds
from tests.e2e.conftest import Redline
from tests.e2e.lab import SERVER
from tests.e2e.leftovers import left_of, wait_for_the_second_start
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SHORTEST = ("--for", "3s", "--load", "closed:2")


def command(oracle: Path, *behaviour: str) -> str:
    return shlex.join([str(oracle), *behaviour, "--port", "{port}"])


@pytest.fixture(autouse=True)
def _own_temporary_folder(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    redline.environment["TMPDIR"] = str(tmp_path / "tmp")


def test_a_slower_server_is_found(redline: Redline, oracle: Path) -> None:
    quick, slow = (command(oracle, "fixed", "--delay", delay) for delay in ("10ms", "20ms"))
    flags = ("--load", "closed:4", "--metric", "p50", "--fail-on", "slower")
    done = compared(redline, quick, slow, *flags, lengths=("8s", "32s", "64s"), decided=True)
    report = Report.model_validate(done.json)
    found, control = answer(report), duet(report).control
    assert (found.metric, found.verdict) == (Metric.P50, Verdict.SLOWER)
    assert done.code == 3, done.err
    assert duet(report).starts >= 2
    assert found.ratio is not None
    assert 1.5 < found.ratio.value < 2.5
    assert control is not None
    assert control.low is not None
    assert control.low < 1.4  # A against itself
    metrics = {comparison.metric for comparison in report.comparisons}
    assert metrics >= {Metric.CPU_PER_REQUEST, Metric.THROUGHPUT, Metric.P99}
    assert "answer-sizes" not in kinds(report)


def test_running_servers_are_compared_by_url(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = compared(redline, url, url, "--load", "closed:2")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert duet(report).starts == 1
    assert "few-starts" in kinds(report)


def test_the_answer_stands_last_and_in_markdown(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = redline("ab", url, url, *SHORTEST, "--format", "md")
        last = redline("ab", url, url, *SHORTEST).out.rstrip().rpartition("The answer, in words")[2]
    assert "### The answer, in words\n\n- B" in done.out, done.err
    assert last.lstrip().startswith("B")


@pytest.mark.parametrize(
    ("habit", "says"),
    [
        ("exits", "B exited with code 1"),
        pytest.param("silent", "B was not ready", marks=pytest.mark.long),
        pytest.param("wrong", "status 404", marks=pytest.mark.long),
        pytest.param("elsewhere", "listens at 127.0.0.1:", marks=pytest.mark.long),
        ("taken", "B found a port in use"),
        ("dying", "B "),
        ("turns", "failed: unexpected status: "),
        ("tires", "B exited with code 1 while it was under test; its last words: out of patience"),
    ],
)
def test_a_bad_server_is_named(redline: Redline, oracle: Path, habit: str, says: str) -> None:
    bad = shlex.join([sys.executable, str(SERVER), "{port}", habit])
    done = redline("ab", command(oracle, "null"), bad, *SHORTEST)
    done.refused(1, says)
    assert done.err.count("redline:") == 1
    assert not left_of(redline)


@pytest.mark.long
def test_servers_that_answer_differently_are_refused_on_request(redline: Redline, oracle: Path) -> None:
    small, large = command(oracle, "null"), command(oracle, "null", "--body-bytes", "1000")
    redline("ab", small, large, *SHORTEST, "--same-answers").refused(
        1, "A and B answer differently: GET /", "1000 bytes"
    )
    clock = command(oracle, "null", "--server-time", "ns")
    redline("ab", clock, clock, *SHORTEST, "--same-answers").refused(1, "A does not answer alike twice")
    done = compared(redline, small, large, "--load", "closed:2")
    assert done.code == 0, done.err
    assert "answer-sizes" in kinds(Report.model_validate(done.json))


def test_an_interrupt_prints_what_is_known(redline: Redline, oracle: Path) -> None:
    same = command(oracle, "null")
    running = redline.start("ab", same, same, "--for", "600s", "--load", "closed:4")
    wait_for_the_second_start(Path(redline.environment["TMPDIR"]))
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "interrupted" in out
    assert not left_of(redline)
