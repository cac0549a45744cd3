"""Comparisons and searches that a condition of the user ends early."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from redline.model import Report
from redline.model.limits import LimitReport
from tests.e2e.conftest import Redline
from tests.fakes.serving import serving

pytestmark = pytest.mark.e2e


class Failing(BaseHTTPRequestHandler):
    """Answers every fifth request with 503, but not the first."""

    protocol_version = "HTTP/1.1"
    answered = itertools.count(1)

    def do_GET(self) -> None:
        self.send_response(200 if next(self.answered) % 5 else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def failing_often() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Failing)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def test_a_comparison_ends_when_one_of_its_servers_fails(redline: Redline, oracle: Path) -> None:
    good, failing = f"{oracle} null --port {{port}}", f"{oracle} null --port {{port}} --reset-share 0.15 --seed 3"
    ends = ("--load", "closed:2", "--for", "60s", "--abort-when", "errors > 5% for 500ms")
    done = redline("ab", good, failing, *ends, "--json")
    assert done.code == 3, done.err
    report = Report.model_validate(done.json)
    assert report.run.starts == 1
    assert report.run.seconds < 30
    assert not report.run.interrupted
    assert report.run.aborted_by.startswith("errors > 5% for 500ms: 1")
    assert " requests to B failed in " in report.run.aborted_by


def test_a_probe_ends_when_requests_fail_and_its_rate_is_too_high(redline: Redline) -> None:
    with failing_often() as url:
        short = ("-d", "6s", "--warmup", "0s", "--probes", "2", "--start", "200", "--json")
        ends = ("--abort-when", "errors > 5% for 500ms")
        done = redline("limit", url, "--objective", "p99 < 4s", *short, *ends)
    (cell,) = LimitReport.model_validate(done.json).cells
    assert cell.probes
    for probe in cell.probes:
        assert probe.aborted_by.startswith("errors > 5% for 500ms: ")
        assert probe.seconds < 5
        assert [counted.state for counted in probe.counts] == ["missed"]
    (answer,) = cell.limits
    assert answer.passed_per_s is None
    assert answer.conditions[-1] == "never errors > 5% for 500ms"
