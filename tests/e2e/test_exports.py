"""What other tools read while a load runs: lines of JSON, and metrics of every command that loads."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from redline.cli.commands.load import exit_code
from redline.model.load_result import LoadResult
from tests.e2e.conftest import CHECKOUT, LIMIT_S, Redline
from tests.e2e.lab import Lab
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SCHEMA = CHECKOUT / "docs" / "reference" / "intervals.schema.json"


def test_a_stream_has_every_interval_and_then_the_result(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = redline("load", url, "-c", "2", "-d", "500ms", "--warmup", "200ms", "--stream")
    rows = [json.loads(line) for line in done.out.splitlines()]
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for row in rows:
        validator.validate(row)
    *intervals, summary = rows
    result = LoadResult.model_validate(summary["result"])
    assert [row["kind"] for row in rows] == [*["interval"] * len(intervals), "summary"]
    assert [row["index"] for row in intervals] == [*range(len(intervals))]
    measured = [row for row in intervals if row["phase"] != "warmup"]
    assert sum(row["due"] for row in measured) == result.counts.due
    assert sum(sum(row["outcomes"].values()) for row in measured) == result.counts.outcomes.total
    assert done.code == exit_code(result), done.err


def test_lines_come_while_the_load_runs_and_a_reader_may_leave(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        running = redline.start("load", url, "-c", "1", "-d", "60s", "--warmup", "0s", "--stream")
        try:
            assert running.stdout is not None
            assert json.loads(running.stdout.readline())["kind"] == "interval"
            assert running.poll() is None
            running.stdout.close()
            assert running.wait(30) == 1
        finally:
            running.kill()
            running.wait()
    assert running.stderr is not None
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()


@pytest.mark.parametrize("flag", ["--json", "--spectrum"])
def test_a_stream_is_all_of_stdout(redline: Redline, flag: str) -> None:
    redline("load", "http://127.0.0.1:1/", "--stream", flag).refused(2, f"takes no {flag}")


def scraped(port: int, running: "subprocess.Popen[str]") -> str:
    """The metrics of a command, once there is a request among them."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        assert running.poll() is None, running.communicate()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                text: str = answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            text = ""
        if "redline_requests_total{" in text:
            return text
        time.sleep(0.05)
    raise AssertionError("no metrics came")


def commands(url: str, oracle: Path, suite: Path) -> Iterator[tuple[tuple[str | Path, ...], str]]:
    server = f"{oracle} null --port {{port}}"
    yield ("load", url, "-c", "1", "-d", "20s", "--warmup", "0s"), "trial-1"
    yield ("run", suite, "-d", "5s", "--warmup", "100ms", "--trials", "1"), "trial-1"
    yield ("ab", server, server, "--for", "20s", "--load", "closed:1"), "start-1"
    yield ("limit", url, "--objective", "p99 < 1s", "-d", "1s", "--probes", "2", "--start", "100"), "search"


@pytest.mark.parametrize("place", range(4), ids=["load", "run", "ab", "limit"])
def test_every_load_shows_itself(redline: Redline, oracle: Path, place: int) -> None:
    suite, port = Lab(redline.folder, oracle).suite("good.one", trials=1), targets.unused_port()
    with targets.target(targets.healthy) as url:
        command, trial = [*commands(url, oracle, suite)][place]
        running = redline.start(*command, "--openmetrics", str(port))
        try:
            read: Iterator[Metric] = text_string_to_metric_families(scraped(port, running))  # type: ignore[no-untyped-call]
            families = {family.name: family for family in read}
        finally:
            running.terminate()
            _, err = running.communicate(timeout=60)
    assert {sample.labels["redline_trial"] for sample in families["redline_requests"].samples} >= {trial}
    assert f"metrics: http://127.0.0.1:{port}/metrics" in err
    assert "Traceback" not in err
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)


def test_a_port_in_use_is_said_before_anything_starts(redline: Redline, oracle: Path) -> None:
    server = f"{oracle} null --port {{port}}"
    with targets.target(targets.healthy) as url:
        port = str(urlsplit(url).port)
        for command in (("load", url), ("ab", server, server), ("limit", url, "--objective", "p99 < 1s")):
            redline(*command, "--openmetrics", port).refused(2, f"127.0.0.1:{port} cannot be listened on")
    assert not (redline.folder / "runs").exists()


def test_what_measures_nothing_shows_nothing(redline: Redline) -> None:
    flags = ("--write-suite", "x.yaml", "--otlp", "http://127.0.0.1:4318")
    redline("ab", "./a", "./b", *flags).refused(2, "--write-suite measures nothing, and takes no --otlp")
