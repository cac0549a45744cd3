"""Every server with WebSockets, built and started by the lab, satisfies the contract in catalogue/README.md."""

import base64
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.launching.process import ProcessServer
from redline.model import Body
from redline.ports import Endpoint
from tests.e2e.test_petstore_contract import planned
from tests.e2e.workshop import Workshop, entries, marked, started, variant_of

pytestmark = pytest.mark.e2e

WEBSOCKETS = (
    *("rust.hyper", "rust.axum", "go.nethttp", "node.http", "python.uvicorn"),
    *("http4s.vanilla", "http4s.tapir", "http4s.blaze-vanilla", "http4s.blaze-tapir", "pekko.vanilla", "pekko.tapir"),
    *("netty.vanilla", "netty.tapir-cats", "vertx.vanilla", "zio-http.vanilla", "zio-http.tapir"),
    *("spring-boot.tomcat", "spring-boot.jetty", "spring-boot.undertow", "spring-boot.webflux", "helidon.petstore"),
)
"""The servers of the catalogue with WebSockets."""
COMPRESSING = ("node.http", "python.uvicorn", "spring-boot.tomcat", "spring-boot.jetty")
"""Those that compress messages for clients that offer it."""
WAIT_S = 20
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY, ACCEPT = base64.b64encode(bytes(range(16))).decode(), b"Bz3qJYTGdOe8gUSpLosEdiLKDrk="
MASK = b"\x01\x02\x03\x04"
GOOD_BYE = struct.pack("!H", 1000)
PUSHED = 5


class WebSocketClient:
    """A client that frames by hand what a server has to understand (RFC 6455)."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = connection.makefile("rb")

    def send(self, kind: int, payload: bytes) -> None:
        """A masked frame, which is a message."""
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack("!H", size)
        masked = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))
        self.connection.sendall(bytes([0x80 | kind]) + length + MASK + masked)

    def receive(self) -> tuple[int, bytes]:
        """The kind and payload of the next message, whose fragments are put together, or control frame."""
        kind, payload, is_final = 0, b"", False
        while not is_final:
            first, second = self.received.read(2)
            assert first & 0x70 == 0, "no extensions"
            assert second < 0x80, "a server does not mask"
            size = second if second < 126 else int.from_bytes(self.received.read(2 if second == 126 else 8))
            kind, payload, is_final = kind or first & 0x0F, payload + self.received.read(size), first >= 0x80
        return kind, payload


@contextmanager
def asked_to_open(endpoint: Endpoint, path: str) -> Iterator[tuple[bytes, WebSocketClient]]:
    """The head of the answer to a handshake, and what speaks on its connection."""
    with socket.create_connection((endpoint.host, endpoint.port), timeout=WAIT_S) as connection:
        lines = ["Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        head = "\r\n".join([f"GET {path} HTTP/1.1", *lines, f"Sec-WebSocket-Key: {KEY}", "", ""])
        connection.sendall(head.encode())
        client = WebSocketClient(connection)
        yield b"".join(iter(client.received.readline, b"\r\n")), client


@contextmanager
def opened(endpoint: Endpoint, path: str) -> Iterator[WebSocketClient]:
    with asked_to_open(endpoint, path) as (answer, client):
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        assert ACCEPT in answer
        yield client


@pytest.fixture(scope="module", params=[marked(entries()[name]) for name in WEBSOCKETS])
def server(
    request: pytest.FixtureRequest, workshop: Workshop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessServer]:
    with started(workshop, variant_of(request.param), tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize("kind", [TEXT, BINARY])
@pytest.mark.parametrize("size", [0, 5, 125, 126, 30_000])
def test_a_message_is_echoed(server: ProcessServer, kind: int, size: int) -> None:
    with opened(server.endpoint, "/ws/echo") as client:
        for number in range(2):
            message = (str(number) * size).encode()
            client.send(kind, message)
            assert client.receive() == (kind, message)


def test_a_ping_is_answered_and_a_close_too(server: ProcessServer) -> None:
    with opened(server.endpoint, "/ws/echo") as client:
        client.send(PING, b"are you there?")
        assert client.receive() == (PONG, b"are you there?")
        client.send(CLOSE, GOOD_BYE)
        kind, payload = client.receive()
        assert (kind, payload[:2]) == (CLOSE, GOOD_BYE), "a reason may follow"


def test_the_time_is_pushed_until_the_client_leaves(server: ProcessServer) -> None:
    """Ten a second, so the last of five comes half a second after the opening at the earliest."""
    before = time.time_ns()
    with opened(server.endpoint, "/ws/ts") as client:
        times = []
        for _ in range(PUSHED):
            kind, text = client.receive()
            assert kind == TEXT
            times.append(int(text))
            assert before - 1_000_000 <= times[-1] <= time.time_ns() + 1_000_000
        assert times == sorted(times)
        assert times[-1] - before > (PUSHED - 1) * 90_000_000
        client.send(CLOSE, GOOD_BYE)
        on_their_way = (client.receive() for _ in range(PUSHED))
        kind, payload = next(received for received in on_their_way if received[0] != TEXT)
        assert (kind, payload[:2]) == (CLOSE, GOOD_BYE)


def test_the_scenario_echo_is_answered_right(server: ProcessServer) -> None:
    (cell,) = planned({server.name: ["h1"]}, {"h1": ["h1"]}, scenario="Echo")
    assert EngineDriver(find_engine()).verify(cell, server.endpoint) is None


def test_another_path_opens_no_websocket(server: ProcessServer) -> None:
    with asked_to_open(server.endpoint, "/ws/nothing") as (answer, _):
        assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 403 ")), answer


def test_messages_are_compressed_where_the_server_agrees(server: ProcessServer) -> None:
    (cell,) = planned({server.name: ["h1"]}, {"h1": ["h1"]}, scenario="Echo")
    request = cell.scenario.request
    assert request.websocket is not None
    packed = {
        "websocket": request.websocket.model_copy(update={"compression": True}),
        "body": Body(text="message " * 500),
    }
    scenario = cell.scenario.model_copy(update={"request": request.model_copy(update=packed)})
    wrong = EngineDriver(find_engine()).verify(cell.model_copy(update={"scenario": scenario}), server.endpoint)
    if server.name in COMPRESSING:
        assert wrong is None
    else:
        assert wrong is not None
        assert "the server agreed on no compression" in wrong
