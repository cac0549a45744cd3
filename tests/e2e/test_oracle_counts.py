"""What the engine says of connections, requests and first bytes, and what the server saw itself."""

import os
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.rig import SIMPLE_GET, AskedOf, Oracle, SeenByOracle, drive, running
from redline.model import Closed, Expected, Load, Request, Scenario, Traffic
from redline.model.catalogue import HttpVersion
from tests.e2e.truth import binomial_slack

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

US = 1000
SECOND = 1_000_000 * US
USERS = 3
COUNT = 1000
VERSIONS: tuple[HttpVersion, ...] = ("1.1", "2")
TRIES, CALM = 9, 3


def counted(users: int = USERS, depth: int = 1, count: int = COUNT) -> Load:
    return Load(name="closed", shape=Closed(users=users, depth=depth), duration_ns=20 * SECOND, count=count)


def observe(
    binary: Path, *arguments: str, http: HttpVersion, depth: int = 1, scenario: Scenario = SIMPLE_GET
) -> tuple[Traffic, SeenByOracle]:
    """A number of requests without a warm-up, as the engine and as the oracle counted them."""
    with running(binary, *arguments, "--report") as oracle:
        traffic = drive(oracle, counted(depth=depth), AskedOf(scenario, http), warmup_ns=0)
    assert oracle.seen is not None
    return traffic, oracle.seen


def nothing_is_lost(traffic: Traffic, seen: SeenByOracle) -> None:
    """Both sides count the same requests, answers and connections."""
    counts = traffic.counts
    assert counts.due == counts.sent == counts.outcomes.total == COUNT
    assert seen.requests + seen.passed_over == counts.sent + counts.retried + counts.resent
    assert seen.connections == USERS + counts.reconnects
    assert seen.requests == sum(seen.targets.values()) == sum(seen.statuses.values())


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("http", VERSIONS)
def test_announced_ends_of_connections_cost_no_request(oracle: Path, http: HttpVersion, depth: int) -> None:
    traffic, seen = observe(oracle, "null", "--close-after", "7", http=http, depth=depth)
    nothing_is_lost(traffic, seen)
    assert traffic.counts.outcomes.ok == seen.requests == COUNT
    assert traffic.counts.resent == seen.passed_over
    assert traffic.counts.retried == 0
    # A connection ends after its seventh answer, so only the last of each user may have had fewer.
    assert COUNT / 7 <= seen.connections <= COUNT / 7 + USERS + 1
    assert (depth == 1) == (seen.passed_over == 0)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("http", VERSIONS)
def test_unannounced_ends_of_connections_are_what_they_are(oracle: Path, http: HttpVersion, depth: int) -> None:
    traffic, seen = observe(oracle, "null", "--close-after", "7", "--close-silently", http=http, depth=depth)
    nothing_is_lost(traffic, seen)
    outcomes = traffic.counts.outcomes
    assert outcomes.ok == seen.requests
    assert outcomes.closed + outcomes.reset + traffic.counts.retried == seen.passed_over
    assert outcomes.ok + outcomes.closed + outcomes.reset == COUNT


@pytest.mark.parametrize("http", VERSIONS)
def test_resets_are_as_many_as_the_server_sent(oracle: Path, http: HttpVersion) -> None:
    traffic, seen = observe(oracle, "null", "--reset-share", "0.1", http=http)
    nothing_is_lost(traffic, seen)
    outcomes = traffic.counts.outcomes
    assert outcomes.reset + outcomes.closed == seen.reset
    assert outcomes.ok == COUNT - seen.reset
    assert abs(seen.reset / COUNT - 0.1) <= binomial_slack(0.1, COUNT)


def named(path: str, weight: int) -> Request:
    return Request(name=path, path=f"/{path}", weight=weight, expect=Expected(body=path))


@pytest.mark.parametrize("http", VERSIONS)
def test_requests_of_a_mix_are_counted_as_the_server_counts_them(oracle: Path, http: HttpVersion) -> None:
    requests = tuple(named(*each) for each in (("items", 6), ("item?id=1", 3), ("rare", 1)))
    mix = Scenario(name="Mix", request=requests[0], others=requests[1:])
    traffic, seen = observe(oracle, "null", "--close-after", "50", http=http, scenario=mix)
    nothing_is_lost(traffic, seen)
    said = {request.path[1:]: part.outcomes.ok for request, part in zip(mix.requests, traffic.requests, strict=True)}
    assert said == seen.targets
    sizes = {request.path[1:]: part.body_bytes for request, part in zip(mix.requests, traffic.requests, strict=True)}
    assert sizes == {name: count * len(name) for name, count in seen.targets.items()}


@pytest.mark.parametrize("http", VERSIONS)
def test_answers_without_a_session_are_counted_by_status(oracle: Path, http: HttpVersion) -> None:
    login = Request(name="login", method="POST", path="/login", expect=Expected(under_load="status"))
    page = Request(name="page", path="/page", expect=Expected(status=401))
    mix = Scenario(name="Mix", request=login, others=(page,))
    traffic, seen = observe(oracle, "null", "--sessions", http=http, scenario=mix)
    nothing_is_lost(traffic, seen)
    logins, pages = (part.outcomes.ok for part in traffic.requests)
    assert (seen.targets, seen.statuses) == ({"login": logins, "page": pages}, {"200": logins, "401": pages})


@dataclass(frozen=True)
class Gaps:
    """How much later than the oracle sent them a client sees the first and the last byte, in nanoseconds."""

    first: float
    last: float


@contextmanager
def beside(binary: Path, *arguments: str) -> Iterator[Oracle]:
    """The oracle on a core, and this process with what it starts on another: to wake a virtual core takes some 30 us.

    Else a client has that in its times or not, as the scheduler places it.
    """
    cores = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, {cores[0]})
        with running(binary, *arguments) as oracle:
            os.sched_setaffinity(0, {cores[-1]})
            yield oracle
    finally:
        os.sched_setaffinity(0, set(cores))


def seen_by_a_socket(binary: Path, *arguments: str, http: HttpVersion, count: int = 200) -> Gaps:
    """The medians of a plain client with one connection, which does nothing else."""
    first, last = [], []
    with beside(binary, *arguments, "--report") as oracle:
        address = (oracle.endpoint.host, oracle.endpoint.port)
        with socket.create_connection(address, timeout=10) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if http == "2":
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
                told = b""
                while frame(SETTINGS, ACK, 0) not in told:
                    told += received(connection)
                connection.sendall(frame(SETTINGS, ACK, 0))
                time.sleep(0.01)  # No request comes together with it.
            for number in range(count):
                stream = 2 * number + 1
                request = b"GET /path0 HTTP/1.1\r\nHost: a\r\n\r\n" if http == "1.1" else get_by_http2(stream)
                began = time.perf_counter_ns()
                connection.sendall(request)
                got = received(connection)
                first.append(time.perf_counter_ns() - began)
                # A server that a busy machine delays may send both parts at once, and by HTTP/2 in a single frame.
                while not got.endswith(b"th0"):
                    got += received(connection)
                last.append(time.perf_counter_ns() - began)
    return gaps(oracle, statistics.median(first), statistics.median(last))


def received(connection: socket.socket) -> bytes:
    """The next bytes; fails after the socket's timeout, and at the end of the connection."""
    data = connection.recv(4096)
    assert data, "the oracle closed the connection"
    return data


HEADERS, SETTINGS = 1, 4
ACK = END_STREAM = 1
END_HEADERS = 4


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """RFC 9113, section 4.1."""
    return struct.pack(">I", len(content))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + content


def get_by_http2(stream: int) -> bytes:
    """`GET /path0`, with fields of HPACK's static table (RFC 7541, appendix A): method, scheme, path and authority."""
    fields = b"\x82\x86\x04\x06/path0\x01\x01a"
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, fields)


def seen_by_the_engine(binary: Path, *arguments: str, http: HttpVersion) -> Gaps:
    with beside(binary, *arguments, "--report") as oracle:
        traffic = drive(oracle, counted(users=1, count=200), AskedOf(http=http), warmup_ns=0)
    assert traffic.counts.outcomes.ok == 200
    assert traffic.first_byte is not None
    return gaps(oracle, traffic.first_byte.quantile_ns(0.5), traffic.response.quantile_ns(0.5))


def gaps(oracle: Oracle, first_ns: float, last_ns: float) -> Gaps:
    assert oracle.seen is not None
    assert oracle.seen.first_byte.count == oracle.seen.answer.count == 200
    return Gaps(first_ns - oracle.seen.first_byte.p50_ns, last_ns - oracle.seen.answer.p50_ns)


IN_TWO_PARTS = ("null", "--first-byte-after", "2ms", "--rest-after", "3ms")


def test_no_byte_is_seen_before_it_was_sent(oracle: Path) -> None:
    for http in VERSIONS:
        with running(oracle, *IN_TWO_PARTS, "--report") as server:
            traffic = drive(server, counted(users=1, count=200), AskedOf(http=http), warmup_ns=0)
        assert traffic.first_byte is not None
        assert traffic.first_byte.quantile_ns(0) >= 2_000 * US
        assert traffic.response.quantile_ns(0) >= 5_000 * US
        # The first half is not the answer: most of the 3 ms between them is seen, whatever the machine does.
        assert traffic.response.mean_ns - traffic.first_byte.mean_ns >= 2_500 * US


@pytest.mark.upper_bound
@pytest.mark.parametrize("http", VERSIONS)
def test_first_and_last_bytes_are_seen_when_they_were_sent(oracle: Path, http: HttpVersion) -> None:
    """As a plain client sees them, at most 20 us later; on a slow machine a fifth of its own distance from the truth.

    Earlier by 20 us too, or half of that distance: a machine that wakes a sleeping client late may wake the engine
    sooner. What it may never be is before the truth.

    What is left is the way, and the machine's sleep. The medians of three tries are judged, because the machine may do
    something else during one of them. A try counts if a plain client saw the same before and after it.
    """
    first, last, plain = list[float](), list[float](), list[float]()
    for _ in range(TRIES):
        if len(first) == CALM:
            break
        before, ours, after = (
            seen_by_a_socket(oracle, *IN_TWO_PARTS, http=http),
            seen_by_the_engine(oracle, *IN_TWO_PARTS, http=http),
            seen_by_a_socket(oracle, *IN_TWO_PARTS, http=http),
        )
        if max(abs(before.first - after.first), abs(before.last - after.last)) <= 10 * US:
            first.append(ours.first - (before.first + after.first) / 2)
            last.append(ours.last - (before.last + after.last) / 2)
            plain.append((before.first + after.first) / 2)
    if len(first) < CALM:
        reason = f"a plain client's own medians differ by more than 10 us in {TRIES - len(first)} of {TRIES} tries"
        pytest.skip(f"this machine is too noisy now: {reason}")
    distance = statistics.median(plain)
    for differences in (first, last):
        assert -max(20 * US, distance / 2) <= statistics.median(differences) <= max(20 * US, distance / 5), (
            differences,
            plain,
        )
