"""`redline ab` on real servers: what was planted is found, and what is wrong is said."""

import shlex
import sys
from pathlib import Path

import pytest

from redline.model import Metric, Verdict
from redline.model.duet import AbReport
from tests.e2e.conftest import Redline
from tests.e2e.lab import SERVER
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SHORT = ("--for", "8s", "--load", "closed:4")


def command(oracle: Path, *behaviour: str) -> str:
    return shlex.join([str(oracle), *behaviour, "--port", "{port}"])


def test_a_slower_server_is_found(redline: Redline, oracle: Path) -> None:
    quick, slow = (command(oracle, "fixed", "--delay", delay) for delay in ("2ms", "4ms"))
    done = redline("ab", quick, slow, *SHORT, "--metric", "p50", "--fail-on", "slower", "--json")
    assert done.code == 3, done.err
    report = AbReport.model_validate(done.json)
    assert (report.metric, report.verdict) == (Metric.P50, Verdict.SLOWER)
    assert report.starts >= 2
    assert 1.5 < report.ratio.value < 2.5
    assert report.self_ratio is not None
    assert 0.7 < report.self_ratio.value < 1.4
    assert {each.metric for each in report.also} >= {Metric.CPU_PER_REQUEST, Metric.THROUGHPUT, Metric.P99}


def test_running_servers_are_compared_by_url(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = redline("ab", url, url, *SHORT, "--json")
    assert done.code == 0, done.err
    report = AbReport.model_validate(done.json)
    assert report.starts == 1
    assert "one-start" in {each.kind for each in report.findings}


def test_the_answer_stands_last_and_in_markdown(redline: Redline, oracle: Path) -> None:
    same = command(oracle, "fixed", "--delay", "1ms")
    done = redline("ab", same, same, *SHORT, "--format", "md")
    assert done.code == 0, done.err
    assert done.out.strip().splitlines()[-1].startswith(("**B ", "**A and B "))


@pytest.mark.parametrize(
    ("habit", "says"),
    [("exits", "exited"), ("silent", "not ready"), ("wrong", "status 404"), ("dying", "B ")],
)
def test_a_bad_server_is_named(redline: Redline, oracle: Path, habit: str, says: str) -> None:
    bad = shlex.join([sys.executable, str(SERVER), "{port}", habit])
    done = redline("ab", command(oracle, "null"), bad, *SHORT)
    assert done.code == 1
    assert says in done.err
    assert "Traceback" not in done.err
