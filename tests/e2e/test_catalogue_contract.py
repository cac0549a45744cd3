"""Every server with routes, built and started by the lab's launcher, satisfies the contract in catalogue/README.md."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from redline.errors import BuildError
from redline.launching.process import ProcessServer
from redline.model import OptionValue, ServerEntry
from redline.ports import Endpoint
from tests.e2e.workshop import CEILING, UNRESOLVED, Workshop, entries, excused, marked, started, variant_of

pytestmark = pytest.mark.e2e

SERVERS = [marked(entry) for entry in entries().values() if "routes" in entry.options]
ROUTES = 128
BYTES = {"Content-Type": "application/octet-stream"}
TEXT = {"Content-Type": "text/plain; charset=utf-8"}
WAIT_S = 20
LOG = "requests.log"


def connected(endpoint: Endpoint) -> "closing[HTTPConnection]":
    return closing(HTTPConnection(endpoint.host, endpoint.port, timeout=WAIT_S))


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, workshop: Workshop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessServer]:
    with started(workshop, variant_of(request.param), tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server: ProcessServer) -> Iterator[HTTPConnection]:
    with connected(server.endpoint) as connection:
        yield connection


def ask(
    client: HTTPConnection, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    client.request(method, path, body=body, headers=headers or {})
    response = client.getresponse()
    if response.status == 200:
        assert (response.getheader("Content-Type") or "").startswith("text/plain")
    return response.status, response.read().decode()


@pytest.mark.parametrize("said", ["some.thing:1.0 could not be resolved", "Could not resolve dependencies for project"])
def test_no_other_server_may_go_unbuilt(said: str) -> None:
    unresolved = BuildError(said, hint="a network")
    assert {entry.name for entry in entries().values() if excused(entry, unresolved)} == UNRESOLVED
    assert not any(excused(entry, BuildError("it does not compile", hint="mend it")) for entry in entries().values())


def test_each_get_route_answers_with_its_own_name(client: HTTPConnection) -> None:
    answers = [ask(client, "GET", f"/path{n}") for n in range(ROUTES)]
    assert answers == [(200, f"path{n}") for n in range(ROUTES)]


def test_each_post_route_counts_its_own_body(client: HTTPConnection) -> None:
    for n in range(ROUTES):
        body = b"x" * n
        assert ask(client, "POST", f"/bytes{n}", body, BYTES) == (200, f"bytes{n} {n}")
        assert ask(client, "POST", f"/string{n}", body, TEXT) == (200, f"string{n} {n}")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/path"),
        ("GET", "/nothing"),
        ("GET", "/path00"),
        ("GET", "/path0127"),
        ("GET", "/path0/more"),
        ("GET", f"/path{ROUTES}"),
        ("POST", f"/bytes{ROUTES}"),
        ("POST", f"/string{ROUTES}"),
    ],
)
def test_what_is_not_a_route_is_not_found(client: HTTPConnection, method: str, path: str) -> None:
    status, _ = ask(client, method, path, b"" if method == "POST" else None, BYTES)
    assert status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/path0"), ("GET", "/bytes0"), ("GET", "/string127"), ("PUT", "/bytes127"), ("DELETE", "/path127")],
)
def test_a_wrong_method_is_not_allowed(client: HTTPConnection, method: str, path: str) -> None:
    status, _ = ask(client, method, path, b"body" if method in ("POST", "PUT") else None, BYTES)
    assert status == 405


@pytest.mark.parametrize("size", [0, 256, 5_000_000])
def test_a_body_is_counted_to_its_last_byte(client: HTTPConnection, size: int) -> None:
    every_byte = bytes(range(256)) * (size // 256 + 1)
    assert ask(client, "POST", "/bytes0", every_byte[:size], BYTES) == (200, f"bytes0 {size}")
    assert ask(client, "POST", "/string0", b"a" * size, TEXT) == (200, f"string0 {size}")


@pytest.mark.parametrize("text", ["åäö", "日本語", "🚀" * 1000, "a" * 8191 + "é"])
def test_a_string_is_counted_in_bytes(client: HTTPConnection, text: str) -> None:
    body = text.encode()
    assert ask(client, "POST", "/string1", body, TEXT) == (200, f"string1 {len(body)}")


def test_a_connection_is_kept(client: HTTPConnection) -> None:
    ask(client, "GET", "/path0")
    first = client.sock
    ask(client, "POST", "/bytes0", b"abc", BYTES)
    ask(client, "GET", "/nothing")
    ask(client, "GET", "/path1")
    assert first is not None
    assert client.sock is first


@pytest.mark.parametrize(("path", "per_second"), [("/ts", 10**3), ("/ts?unit=ms", 10**3), ("/ts?unit=ns", 10**9)])
def test_the_server_reports_its_time(client: HTTPConnection, path: str, per_second: int) -> None:
    before = time.time()
    status, body = ask(client, "GET", path)
    after = time.time()
    assert status == 200
    assert before - 0.001 <= int(body) / per_second <= after


def test_it_reports_it_in_no_other_unit(client: HTTPConnection) -> None:
    assert ask(client, "GET", "/ts?unit=fortnights")[0] == 400


def logging(entry: ServerEntry) -> dict[str, OptionValue]:
    return {"interceptor": "server-log"} if "interceptor" in entry.options else {}


def lines_of(log: Path, at_least: int) -> list[str]:
    """The log, once it has this many lines: a server may write a moment after it has answered."""
    deadline = time.monotonic() + WAIT_S
    lines: list[str] = []
    while len(lines) < at_least and time.monotonic() < deadline:
        lines = log.read_text().splitlines() if log.exists() else []
        time.sleep(0.02)
    return lines


@pytest.mark.parametrize("entry", SERVERS)
def test_one_route_is_one_route_and_a_log_has_a_line_for_each_request(
    workshop: Workshop, tmp_path: Path, entry: ServerEntry
) -> None:
    asked = 20
    with started(workshop, variant_of(entry, routes=1, **logging(entry)), tmp_path) as server:
        with connected(server.endpoint) as client:
            for _ in range(asked):
                assert ask(client, "GET", "/path0") == (200, "path0")
            assert ask(client, "POST", "/bytes0", b"abc", BYTES) == (200, "bytes0 3")
            assert ask(client, "GET", "/path1")[0] == 404
            assert ask(client, "POST", "/string1", b"abc", TEXT)[0] == 404
        if logging(entry):
            logged = [line for line in lines_of(server.scratch / LOG, asked + 2) if "path0" in line]
            assert len(logged) > asked, "one line for each, and one for the readiness request"


def test_nothing_is_logged_unless_asked(server: ProcessServer, client: HTTPConnection) -> None:
    for _ in range(20):
        ask(client, "GET", "/path0")
    time.sleep(0.2)
    log = server.scratch / LOG
    assert not log.exists() or log.read_text() == ""
    assert "path0" not in server.log.read_text()


@pytest.fixture(scope="module")
def ceiling(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with started(workshop, variant_of(entries()[CEILING]), tmp_path_factory.mktemp("ceiling")) as server:
        yield server.endpoint


def test_the_ceiling_answers_any_name(ceiling: Endpoint) -> None:
    with connected(ceiling) as client:
        for name in ("path0", "path127", "a/b?c=d", ""):
            assert ask(client, "GET", f"/{name}") == (200, name)
        for size in (0, 256, 5_000_000):
            assert ask(client, "POST", "/bytes0", b"\n" * size, BYTES) == (200, f"bytes0 {size}")
        assert ask(client, "POST", "/string0", "åäö".encode(), TEXT) == (200, "string0 6")


REQUESTS = b"".join(b"GET /path%d HTTP/1.1\r\nHost: a\r\n\r\n" % n for n in range(20)) + (
    b"POST /bytes0 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n"
)
BODIES = [f"path{n}" for n in range(20)] + ["bytes0 4"]


@pytest.mark.parametrize("piece", [len(REQUESTS), 7, 1], ids=["pipelined", "seven-by-seven", "byte-by-byte"])
def test_the_ceiling_takes_requests_however_they_are_cut(ceiling: Endpoint, piece: int) -> None:
    with socket.create_connection((ceiling.host, ceiling.port), timeout=WAIT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(REQUESTS), piece):
            connection.sendall(REQUESTS[start : start + piece])
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    answers = received.decode().split("HTTP/1.1 200 OK\r\n")[1:]
    assert [answer.partition("\r\n\r\n")[2] for answer in answers] == BODIES
