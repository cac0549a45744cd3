"""Why requests failed comes before any verdict, in all commands; and a load without requests blames nobody."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.model import Grade, Report
from redline.model.limits import LimitReport
from redline.model.load_result import LoadResult
from tests.e2e.conftest import Redline
from tests.e2e.lab import SCENARIOS
from tests.e2e.test_engine_pauses import engine_of
from tests.fakes import targets

OTHER_LOAD = "other-load"
"""Other tests load their servers meanwhile."""
pytestmark = pytest.mark.e2e

TURNING = Path(__file__).parents[1] / "fakes" / "servers" / "turning.py"
COMMAND = f"{sys.executable} {TURNING} {{port}}"
REASONS = {"malformed": ("malformed: ", r"5 \r\nhello"), "unavailable": ("unexpected status: ", "503")}
CATALOGUE = """\
about: what turns
runtime: python
build: {{run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}}
ready: {{path: /, within: 30s}}
servers:
  one: {{about: one, start: {{command: ['{python}', '{file}', '{{port}}', '{habit}']}}}}
"""
SUITE = """\
servers: [turning.one]
scenarios: [Ok]
loads:
  some: {load}
warmup: 1s
trials: 1
"""
CLOSED = "{closed: {users: 4}, for: 60s}"
RARE = "{open: {rate: 0.01, connections: 4}, for: 1s}"


@contextmanager
def turning(habit: str) -> Iterator[str]:
    """The server with this habit, as a URL."""
    with subprocess.Popen([sys.executable, TURNING, "0", habit], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().split()[-1]}/"
        finally:
            server.kill()


def suite(folder: Path, habit: str, load: str) -> Path:
    """A suite over this server in a catalogue of its own."""
    family = folder / "catalogue" / "turning"
    family.mkdir(parents=True)
    (family / "server.yaml").write_text(CATALOGUE.format(python=sys.executable, file=TURNING, habit=habit))
    (folder / "catalogue" / "scenarios.yaml").write_text(SCENARIOS)
    (folder / "suite.yaml").write_text(SUITE.format(load=load))
    return folder / "suite.yaml"


def named(text: str, habit: str) -> bool:
    """Whether the outcome, and the received bytes, are named."""
    return all(word in text for word in REASONS[habit])


class TestEveryAnswerIsWrong:
    """A load of a minute ends after moments, with the reason in place of any verdict."""

    @pytest.mark.parametrize("habit", REASONS)
    def test_load(self, redline: Redline, habit: str) -> None:
        with turning(habit) as url:
            done = redline("load", url, "-c", "4", "-d", "60s", "--warmup", "0s", "--objective", "p99 < 1s", "--json")
        result = LoadResult.model_validate(done.json)
        assert (done.code, result.ended, result.valid) == (3, "failing", False)
        assert [each.kind for each in result.findings if each.kind != OTHER_LOAD] == ["trial-failed"]
        assert named(result.findings[0].message, habit)
        assert result.failures[0].bytes_base64
        assert [each.state for each in result.objectives] == ["missed"]

    @pytest.mark.parametrize("habit", ["malformed", pytest.param("unavailable", marks=pytest.mark.long)])
    def test_ab(self, redline: Redline, habit: str) -> None:
        done = redline("ab", f"{COMMAND} good", f"{COMMAND} {habit}", "--for", "120s", "--load", "closed:4")
        done.refused(1, "requests to B failed")
        assert named(done.err, habit)

    @pytest.mark.parametrize("habit", ["malformed", pytest.param("unavailable", marks=pytest.mark.long)])
    def test_limit(self, redline: Redline, habit: str) -> None:
        with turning(habit) as url:
            done = redline("limit", url, "--objective", "p99 < 1s", "--warmup", "60s", "-d", "1s")
        done.refused(1, "gave no right answer while it was warmed up")
        assert named(done.err, habit)

    @pytest.mark.parametrize("habit", ["malformed", pytest.param("unavailable", marks=pytest.mark.long)])
    def test_run(self, redline: Redline, habit: str) -> None:
        done = redline("run", suite(redline.folder, habit, CLOSED), "-o", "out", "--json")
        assert done.out, done.err
        (cell,) = Report.model_validate(done.json).cells
        message = next(each.message for each in cell.findings if each.kind == "trial-failed")
        assert (done.code, cell.valid) == (1, False)
        assert named(message, habit)
        assert named(done.err, habit)
        page = (redline.folder / "out" / "report.html").read_text()
        assert REASONS[habit][0].rstrip(": ") in page


class TestNothingFallsDue:
    """This is reported, and the server is not blamed."""

    @pytest.mark.parametrize("flags", [("-R", "0.01"), ("-c", "2", "--think", "1h")], ids=["rare", "thinking"])
    def test_load(self, redline: Redline, flags: tuple[str, ...]) -> None:
        with targets.target(targets.healthy) as url:
            done = redline("load", url, *flags, "-d", "1s", "--warmup", "1s", "--objective", "p99 < 1s", "--json")
        result = LoadResult.model_validate(done.json)
        assert (done.code, [each.state for each in result.objectives]) == (1, ["not known"])
        found = [(each.kind, each.grade) for each in result.findings if each.kind != OTHER_LOAD]
        assert found == [("nothing-due", Grade.INVALID)]
        assert "Nothing fell due in 1.00 s" in result.findings[0].message

    def test_ab(self, redline: Redline) -> None:
        with targets.target(targets.healthy) as url:
            done = redline("ab", url, url, "--for", "3s", "--load", "open:0.01/s")
        done.refused(1, "nothing fell due in ", "measure for longer")

    def test_run(self, redline: Redline) -> None:
        done = redline("run", suite(redline.folder, "good", RARE), "-o", "out", "--json")
        assert done.out, done.err
        (cell,) = Report.model_validate(done.json).cells
        assert "Traceback" not in done.err, done.err
        assert "nothing-due" in {each.kind for each in cell.findings}
        assert "trial-failed" not in {each.kind for each in cell.findings}


def test_limit_asks_for_every_request_before_it_loads_any(redline: Redline) -> None:
    asked: list[bytes] = []

    def lacks_b(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            asked.append(request.split()[1])
            connection.sendall(
                targets.ANSWER if asked[-1] == b"/a" else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
            )

    (redline.folder / "list.yaml").write_text("- {name: a, get: /a}\n- {name: b, get: /b}\n")
    with targets.target(lacks_b) as url:
        at = url.removesuffix("/path0")
        done = redline("limit", at, "--requests", "list.yaml", "--objective", "p99 < 1s", "-o", "out")
        done.refused(1, "does not answer as expected: GET /b: status 404 in place of 200", "nothing was timed")
        assert asked == [b"/a", b"/b"]
        redline("load", at, "--requests", "list.yaml").refused(1, "expected: GET /b: status 404 in place of 200")
    refused = redline("limit", f"http://127.0.0.1:{targets.unused_port()}/", "--objective", "p99 < 1s")
    refused.refused(1, "redline: nothing listens at 127.0.0.1:")


@pytest.mark.parametrize("command", ["load", pytest.param("limit", marks=pytest.mark.long)])
def test_a_server_that_ends_every_connection_meets_nothing_silently(redline: Redline, command: str) -> None:
    """Ends every connection by a GOAWAY after one stream of HTTP/2."""
    flags = {"load": ("-c", "2"), "limit": ("--objective", "p99 < 2s", "--probes", "3", "--start", "100")}[command]
    with targets.target(targets.goes_away) as url:
        done = redline(command, url, "--http2", *flags, "-d", "1s", "--warmup", "100ms", "--json")
    assert done.out, done.err
    kinds = (
        {each.kind for each in LoadResult.model_validate(done.json).findings}
        if command == "load"
        else {each.kind for cell in LimitReport.model_validate(done.json).cells for each in cell.findings}
    )
    assert "reconnecting" in kinds


@pytest.mark.parametrize(
    "words",
    [
        ("load", "-c", "2", "-d", "120s", "--warmup", "0s"),
        ("limit", "--objective", "p99 < 1s", "--warmup", "120s", "-d", "1s"),
        ("ab", "--for", "120s", "--load", "closed:2"),
    ],
    ids=lambda words: words[0],
)
def test_an_engine_that_is_killed_is_named(redline: Redline, words: tuple[str, ...]) -> None:
    with targets.target(targets.healthy) as url:
        lab = redline.start(words[0], *([url] * (1 + (words[0] == "ab"))), *words[1:])
        try:
            os.kill(engine_of(lab), signal.SIGKILL)
            out, err = lab.communicate(timeout=60)
        finally:
            lab.kill()
            lab.wait()
    assert lab.returncode == 1, err
    assert "the engine was killed (signal 9, SIGKILL)" in " ".join((out + err).split())
    assert "Traceback" not in err


def test_a_port_without_tls_is_no_matter_of_certificates(redline: Redline) -> None:
    with turning("good") as url:
        done = redline("load", url.replace("http:", "https:"), "--insecure", "-d", "1s")
    done.refused(1, "the TLS handshake failed", "speaks HTTP without TLS: write http://")
    assert "--insecure" not in done.err
