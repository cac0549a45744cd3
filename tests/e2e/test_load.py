"""`redline load` against servers of every habit: a load ends in counted outcomes, never in a hang or a stack trace."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redline.cli.commands.load import exit_code
from redline.model import Metric
from redline.model.load_result import LoadResult
from redline.suite.urls import read_url
from tests.e2e.conftest import Redline
from tests.e2e.judged import judged
from tests.fakes import targets
from tests.fakes.certificates import Certificate

pytestmark = pytest.mark.e2e

SHORT = ("-c", "4", "-d", "300ms", "--warmup", "100ms")


def load(redline: Redline, habit: targets.Habit, *more: str) -> LoadResult:
    """The result. Whether it is valid depends on the machine too, and the exit code agrees with it."""
    short = [part for i, part in enumerate(SHORT) if SHORT[i - i % 2] not in more]
    with targets.target(habit) as url:
        done = redline("load", url, *short, "--json", *more)
    result = LoadResult.model_validate(done.json)
    assert done.code == exit_code(result), done.err
    assert result.counts.outcomes.total == result.counts.due
    return result


def test_a_healthy_server_is_measured(redline: Redline) -> None:
    result = load(redline, targets.healthy)
    outcomes = result.counts.outcomes
    assert outcomes.ok > 0
    assert outcomes.errors == 0
    assert (result.throughput is None) is (Metric.THROUGHPUT in result.bounds), "a busy machine hides it, and says so"
    if result.throughput is not None:
        assert result.throughput.value == pytest.approx(result.counts.completed / result.measured_ns * 1e9)
    assert not result.response or result.response[-1].q == 1.0


UNUSED = {"jinja2", "psutil", "redline.model.report", "redline.running.duet", "scipy", "ssl"}
"""What some commands need, and no plain load."""


def test_a_load_imports_nothing_that_it_does_not_use() -> None:
    script = (
        "import sys; from redline.cli.main import main\ntry: main()\nfinally: sys.stderr.write(repr([*sys.modules]))"
    )
    with targets.target(targets.healthy) as url:
        command = [sys.executable, "-c", script, "load", url, *SHORT]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "throughput" in done.stdout, done.stderr
    assert not {name for name in UNUSED if repr(name) in done.stderr}


def test_an_open_load_offers_its_rate(redline: Redline) -> None:
    result = load(redline, targets.healthy, "-R", "200", "--arrivals", "uniform")
    assert result.counts.due == 60
    assert result.load.startswith("open")


def test_the_backend_can_be_set_and_workers_may_poll(redline: Redline) -> None:
    # Long enough for a first answer if the polling worker keeps the server from its core.
    result = load(redline, targets.healthy, "--backend", "epoll", "--spin", "-d", "3s")
    assert result.engine.backend == "epoll"
    assert result.counts.outcomes.ok > 0


def test_http_2_over_tls_is_reported(redline: Redline, tmp_path: Path) -> None:
    certificate = Certificate(tmp_path)
    with targets.target(targets.speaks_http2, certificate.context("h2")) as url:
        done = redline("load", url, *SHORT, "--json", "--http2", "--insecure")
    result = LoadResult.model_validate(done.json)
    assert result.tls is not None
    assert (result.tls.alpn, result.tls.insecure) == ("h2", True)
    assert result.counts.outcomes.ok > 0
    assert result.counts.outcomes.errors == 0


def test_the_same_seed_offers_the_same_arrivals(redline: Redline) -> None:
    due = [load(redline, targets.healthy, "-R", "500", "--seed", "7").counts.due for _ in range(2)]
    assert due[0] == due[1]


@pytest.mark.parametrize(
    ("habit", "kinds"),
    [
        (targets.turning(targets.resets), {"reset", "closed"}),
        (targets.turning(targets.stalls), {"timeout", "in_flight"}),
        (targets.turning(targets.garbage), {"malformed"}),
        (targets.turning(targets.fails), {"unexpected_status"}),
    ],
)
def test_a_bad_server_is_counted_by_kind(redline: Redline, habit: targets.Habit, kinds: set[str]) -> None:
    # Longer than the timeout; otherwise users who wait send nothing in it.
    result = load(redline, habit, "--timeout", "400ms", "-d", "900ms")
    ended = {kind for kind, count in result.counts.outcomes.model_dump().items() if count}
    assert ended & kinds
    assert ended <= kinds | {"connect", "timeout"}  # users wait for a connection, which is tried again ever more slowly
    assert not result.valid
    assert any(finding.grade == "invalid" for finding in result.findings)


def test_of_several_requests_the_wrongly_answered_is_named(redline: Redline) -> None:
    asked: list[bytes] = []

    def fails_for_items(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            asked.append(request)
            fails = request.startswith(b"GET /items ") and len(asked) > 2  # each is asked once before the load
            connection.sendall(b"HTTP/1.1 500 Broken\r\nContent-Length: 4\r\n\r\nlost" if fails else targets.ANSWER)

    (redline.folder / "requests.yaml").write_text("- get: /\n- get: /items\n")
    with targets.target(fails_for_items) as url:
        done = redline("load", url.rpartition("/")[0], *SHORT, "--requests", "requests.yaml")
    assert done.code == 1
    assert "asked once more, GET /items: status 500 in place of 200, body 'lost'" in done.out.splitlines()


def test_what_is_expected_can_be_set(redline: Redline) -> None:
    assert load(redline, targets.fails, "--status", "500").counts.outcomes.errors == 0


def test_a_body_is_sent(redline: Redline) -> None:
    (redline.folder / "body").write_bytes(b"\x00\xff" * 10)
    assert load(redline, targets.healthy, "--body", "@body", "-H", "X-One: 1").counts.outcomes.ok > 0


def test_a_target_that_refuses_is_reported(redline: Redline) -> None:
    url = f"http://127.0.0.1:{targets.unused_port()}/"
    redline("load", url, *SHORT).refused(1, "refused")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("ftp://127.0.0.1/",), "http://"),
        (("http://127.0.0.1:99999/",), "99999"),
        (("http://127.0.0.1:1/", "-c", "0"), "-c 0"),
        (("http://127.0.0.1:1/", "-R", "0"), "-R 0"),
        (("http://127.0.0.1:1/", "--arrivals", "uniform"), "--arrivals uniform"),
        (("http://127.0.0.1:1/", "-d", "10x"), "10x"),
        (("http://127.0.0.1:1/", "-d", "0s"), "-d 0s"),
        (("http://127.0.0.1:1/", "-H", "nonsense"), "nonsense"),
        (("http://127.0.0.1:1/", "--body", "@none"), "none"),
        (("http://127.0.0.1:1/", "-R", "1000000000000"), "-R"),
        (("http://127.0.0.1:1/", "-X", "G T"), "-X"),
        (("http://127.0.0.1:1/", "--status", "99"), "--status"),
        (("http://127.0.0.1:0/",), "no port"),
        (("http://[::1/",), "[::1"),
        (("http:///path",), "no host"),
    ],
)
def test_wrong_input_is_reported(redline: Redline, args: tuple[str, ...], word: str) -> None:
    redline("load", *args).refused(2, word)


def test_more_connections_than_descriptors_is_reported_before_it_starts(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        redline("load", url, "-c", "5000000", "-d", "1s").refused(2, "5000000")


def test_ctrl_c_keeps_what_was_measured(redline: Redline) -> None:
    asked: list[float] = []

    def answers_and_records(connection: socket.socket) -> None:
        while connection.recv(65536):
            asked.append(time.monotonic())
            connection.sendall(targets.ANSWER)

    with targets.target(answers_and_records) as url:
        process = redline.start("load", url, "-c", "2", "-d", "60s", "--warmup", "100ms", "--json")
        deadline = time.monotonic() + 60
        while (not asked or asked[-1] - asked[0] < 1) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    result = LoadResult.model_validate_json(out)
    assert result.ended == "interrupted"
    assert result.counts.outcomes.ok > 0
    assert result.measured_ns < 30_000_000_000


def test_ctrl_c_before_the_measurement_is_an_interrupt_too(redline: Redline) -> None:
    """The result has no numbers, and says why."""
    asked: list[float] = []

    def answers_and_records(connection: socket.socket) -> None:
        while connection.recv(65536):
            asked.append(time.monotonic())
            connection.sendall(targets.ANSWER)

    with targets.target(answers_and_records) as url:
        process = redline.start("load", url, "-c", "2", "-d", "60s", "--warmup", "60s", "--json")
        deadline = time.monotonic() + 60
        while (not asked or asked[-1] - asked[0] < 1) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    result = LoadResult.model_validate_json(out)
    assert (result.ended, result.valid, result.measured_ns) == ("interrupted", False, 0)


def test_an_invalid_load_shows_why_in_place_of_its_numbers(redline: Redline) -> None:
    with targets.target(targets.turning(targets.garbage)) as url:
        done = redline("load", url, *SHORT)
    assert done.code == 1
    assert "invalid:" in done.out
    assert "malformed" in done.out
    assert "throughput  not known: no right answers" in done.out


@pytest.mark.parametrize(
    ("habit", "objective", "code", "line"),
    [
        (targets.healthy, "max < 1m", 0, "✓ max "),
        (targets.healthy, "max < 1ns", 3, "✗ max "),
        (targets.turning(targets.garbage), "errors < 1%", 3, "✗ errors < 1% is missed: the load is invalid by "),
    ],
)
def test_an_objective_decides_the_exit_code(
    redline: Redline, habit: targets.Habit, objective: str, code: int, line: str
) -> None:
    with targets.target(habit) as url:
        done = judged(redline, url, "-c", "4", objective=objective, code=code, line=line)
    _, answer, verdict, *_ = done.out.splitlines()
    assert answer.startswith("throughput  ")
    assert verdict.startswith((line, "?"))


def test_what_urls_may_hold_is_sent_encoded() -> None:
    endpoint, path = read_url("http://localhost/a b?q=caf\u00e9&x=%20")
    assert (endpoint.host, endpoint.port, path) == ("localhost", 80, "/a%20b?q=caf%C3%A9&x=%20")


@pytest.mark.alone
def test_the_summary_is_for_people(redline: Redline) -> None:
    with targets.target(targets.healthy) as url:
        done = redline("load", url, *SHORT)
    assert done.code == 0, done.err
    for word in ("throughput", "p50", "p99", "max", "ok"):
        assert word in done.out
    assert done.out.index("throughput") < done.out.index("max"), "the answer stands first"
    assert "\x1b" not in done.out
