"""`redline limit` on a queue with a known limit: short here; the study has the figures."""

import shlex
import signal
from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from bench.rig import running
from redline.model import Verdict
from redline.model.limits import LimitReport
from redline.running.cell_search import AGAIN
from redline.search.change import LOOKS
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab
from tests.e2e.preloaded import PATIENT

pytestmark = pytest.mark.e2e

TRUTH_PER_S = 2000 - log(100) / 0.050
"""The limit of M/M/1 at 2000/s with p99 < 50 ms is 1908/s."""
SLACK = 0.03
"""One in twenty intervals misses by design; hardly any by as much again as its requested width."""

SHORT = ("-d", "2s", "--warmup", "500ms", "--start", "500")


@pytest.fixture
def url(oracle: Path) -> Iterator[str]:
    with running(oracle, "exponential", "--rate", "2000", "--seed", "11") as server:
        yield f"http://{server.endpoint.host}:{server.endpoint.port}/path0"


@pytest.mark.long
@pytest.mark.alone
def test_the_limit_of_a_queue_is_between_its_bounds(redline: Redline, url: str) -> None:
    redline.environment[PATIENT] = "1"
    done = redline("limit", url, "--objective", "p99 < 50ms", "--probes", "9", "--json", *SHORT)
    assert done.out, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    (limit,) = cell.limits
    assert cell.ended == "converged", cell.reason
    assert done.code == 0, done.err
    assert sum(not probe.client for probe in cell.probes) <= 9 + LOOKS, "others were made again"
    assert limit.conditions == ("p99 < 50ms", "errors < 1%")
    assert limit.passed_per_s is not None
    assert limit.failed_per_s is not None
    assert limit.passed_per_s < limit.failed_per_s
    if limit.confidence is not None:  # by single rates it claims no limit
        assert limit.passed_per_s <= TRUTH_PER_S * (1 + SLACK)
        assert limit.failed_per_s >= TRUTH_PER_S * (1 - SLACK)


@pytest.mark.long
@pytest.mark.alone
def test_what_cannot_be_met_is_doomed_with_a_reason(redline: Redline, url: str) -> None:
    flags = ("--start", "200", "-d", "1s", "--warmup", "0s", "--json")
    done = redline("limit", url, "--objective", "p50 < 1us", *flags)
    assert done.code == 1
    (cell,) = LimitReport.model_validate(done.json).cells
    assert cell.limits[0].passed_per_s is None
    # A host that takes the cores in all repetitions of a probe leaves the cause unknown.
    assert cell.ended == "doomed"
    assert "even 100/s does not meet" in cell.reason or "not the server" in cell.reason


def test_a_wrong_answer_is_not_measured(redline: Redline, url: str) -> None:
    redline("limit", url, "--objective", "p99 < 50ms", "--status", "201", *SHORT).refused(
        1, "does not answer as expected", "201"
    )


def test_a_wrong_objective_is_refused(redline: Redline) -> None:
    redline("limit", "http://127.0.0.1:1/", "--objective", "p98 < 1ms").refused(2, "--objective", "p98")


@pytest.mark.alone
def test_two_servers_are_searched_in_turn_and_compared(redline: Redline, oracle: Path) -> None:
    quick, slow = (
        shlex.join([str(oracle), "exponential", "--rate", rate, "--seed", "11", "--port", "{port}"])
        for rate in ("2000", "500")
    )
    asked = ("--objective", "p99 < 100ms", "--path", "/path0", "--fail-on", "slower", "--json")
    flags = ("-d", "1s", "--warmup", "200ms", "--start", "400", "--probes", "6", "--trials", "2", "--no-beyond")
    done = redline("limit", quick, slow, *asked, *flags, "-o", "found")
    assert done.out, done.err
    report = LimitReport.model_validate(done.json)
    assert [cell.server for cell in report.cells] == ["A", "B"]
    assert [shlex.split(cell.target) for cell in report.cells] == [shlex.split(quick), shlex.split(slow)]
    assert all(cell.probes for cell in report.cells)
    lines = [line for line in done.err.splitlines() if "/s  p50" in line or "/s  hopeless" in line]
    in_turn = [line.split()[0] for line in lines if AGAIN not in line]  # a repeated probe belongs to the same turn
    assert in_turn[:4] == ["A", "B", "A", "B"]
    (comparison,) = report.comparisons
    assert (comparison.baseline, comparison.slug) == (report.cells[0].slug, report.cells[1].slug)
    if comparison.ratio is None:  # few probes on a busy machine may leave a side of a limit unknown
        assert comparison.verdict is Verdict.INCONCLUSIVE
        sides = [(limit.passed_per_s, limit.failed_per_s) for cell in report.cells for limit in cell.limits]
        assert any(None in side for side in sides) or len(sides) < 2
    else:  # the truth is (500 - 46) / (2000 - 46)
        assert comparison.ratio.value < 1
        assert comparison.ratio.low is not None
        assert comparison.ratio.low < 0.3
    failed = any(cell.ended != "converged" for cell in report.cells)
    assert done.code == (1 if failed else 3 if comparison.verdict is Verdict.SLOWER else 0), done.err
    shown = redline("report", "found").out
    assert "The answer, in words" in shown
    assert "B" in shown.rpartition("The answer, in words")[2]


QUEUES = """\
about: queues whose limit is known
runtime: native
build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}
ready: {path: /path0, within: 10s}
servers:
  slow: {about: 1000/s, start: {command: ['ORACLE', exponential, --rate, '1000', --port, '{port}']}}
  fast: {about: 2000/s, start: {command: ['ORACLE', exponential, --rate, '2000', --port, '{port}']}}
"""

SUITE = """\
servers: [queue.slow, queue.fast]
scenarios: [SimpleGet]
loads:
  probe: {open: {rate: 500, connections: 256}, for: 1s}
objective: p99 < 100ms
warmup: 200ms
"""


@pytest.fixture
def suite(redline: Redline, oracle: Path) -> Path:
    """A suite over two queues, in a project of its own."""
    Lab(redline.folder, oracle)
    family = redline.folder / "catalogue" / "queue"
    family.mkdir()
    (family / "server.yaml").write_text(QUEUES.replace("ORACLE", str(oracle)))
    file = redline.folder / "queues.yaml"
    file.write_text(SUITE)
    return file


@pytest.mark.long
@pytest.mark.alone
def test_a_suite_is_searched_on_fresh_servers(redline: Redline, suite: Path) -> None:
    done = redline("limit", suite, "-o", "found", "--probes", "7", "--trials", "2", "-s", "queue.fast", "--json")
    assert done.code in {0, 1}, done.err  # so few and short probes may not be enough on a busy machine
    (cell,) = LimitReport.model_validate(done.json).cells
    assert cell.slug == "queue.fast.SimpleGet.probe"
    assert cell.ended in {"converged", "exhausted"} or "not the server" in cell.reason
    assert cell.probes
    folder = redline.folder / "found"
    assert (folder / "logs" / cell.slug / "start-0" / "server.log").exists()
    assert {"results.json", "report.html"} <= {file.name for file in folder.iterdir()}
    assert "queue.fast" in redline("report", "found").out
    if cell.ended == "converged":
        assert {probe.start for probe in cell.probes if probe.phase == "confirm"} == {1, 2}
        assert cell.beyond is not None
        assert cell.beyond.course


def test_a_search_that_is_interrupted_is_resumed(redline: Redline, suite: Path) -> None:
    flags = ("-o", "found", "--probes", "2", "--trials", "2", "--no-beyond")
    with redline.start("limit", suite, *flags) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "to begin with" in line:
                process.send_signal(signal.SIGINT)
                break
        process.communicate(timeout=60)
    assert process.returncode == 130
    kept = LimitReport.model_validate_json((redline.folder / "found" / "results.json").read_text())
    assert [cell.ended for cell in kept.cells] == ["interrupted"]
    done = redline("limit", "--resume", "found", "--json")
    assert done.out, done.err
    assert done.code in {0, 1}
    ended = {cell.server: cell.ended for cell in LimitReport.model_validate(done.json).cells}
    assert ended.keys() == {"queue.slow", "queue.fast"}
    assert "interrupted" not in ended.values()
