"""What a server gets of a recording is, byte for byte, what was recorded: the request line, the headers, the body."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Redline
from tests.unit.extras.importing.test_recorded_files import LOGS, SCRIPT, without_boundary

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parents[1] / "recorded"
OUR_OWN = {"host", "content-length", "connection", "accept-encoding", "user-agent"}
"""Headers that belong to the connection, or to whoever sends."""


@dataclass(frozen=True)
class Got:
    """A request, as bytes."""

    line: bytes
    headers: tuple[tuple[str, bytes], ...]
    body: bytes

    @property
    def key(self) -> tuple[str, str]:
        """Its method and its target."""
        method, target, _ = self.line.split(b" ")
        return method.decode(), target.decode("latin-1")


@dataclass
class RawServer:
    """A server that keeps the bytes of each request, and answers with the status that was recorded for it."""

    statuses: dict[tuple[str, str], int]
    got: list[Got] = field(default_factory=list)
    port: int = 0

    def serve(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as stream:
            while line := stream.readline():
                headers = tuple(self._headers(stream))
                length = next((int(value) for name, value in headers if name == "content-length"), 0)
                got = Got(line.rstrip(b"\r\n"), headers, stream.read(length))
                self.got.append(got)
                status = self.statuses.get(got.key, 200)
                bodiless = status in (204, 304) or got.key[0] == "HEAD"
                head = f"HTTP/1.1 {status} X\r\n" + ("" if bodiless else "Content-Length: 2\r\n") + "\r\n"
                peer.sendall(head.encode() + (b"" if bodiless else b"ok"))

    @staticmethod
    def _headers(stream: Any) -> Iterator[tuple[str, bytes]]:
        while (line := stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            yield name.decode().lower(), value.strip()


@contextmanager
def serving(statuses: dict[tuple[str, str], int]) -> Iterator[RawServer]:
    server = RawServer(statuses)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=server.serve, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def entries(name: str) -> list[dict[str, Any]]:
    har = json.loads((RECORDED / "har" / f"{name}.har").read_text())
    return [entry for entry in har["log"]["entries"] if not entry["request"]["url"].startswith("data:")]


def target_of(url: str) -> str:
    return "/" + re.sub(r"^https?://[^/]*/?", "", url).partition("#")[0]


@pytest.mark.parametrize("name", sorted(file.stem for file in (RECORDED / "har").glob("*.har")))
def test_a_recording_of_a_browser_is_sent_as_it_was(name: str, redline: Redline) -> None:
    recorded = {(entry["request"]["method"], target_of(entry["request"]["url"])): entry for entry in entries(name)}
    lines = (RECORDED / "har" / f"{name}.received.jsonl").read_text().splitlines()
    received = {
        (method, target): (body.encode("latin-1"), kind) for method, target, body, kind in map(json.loads, lines)
    }
    statuses = {key: entry["response"]["status"] or 200 for key, entry in recorded.items()}
    with serving(statuses) as server:
        file = str(RECORDED / "har" / f"{name}.har")
        done = redline("load", f"http://127.0.0.1:{server.port}", "--requests", file, "--count", "200", "-c", "1")
    done.measured()
    assert server.got
    for got in server.got:
        body, kind = received[got.key]
        assert without_boundary(got.body) == without_boundary(body), got.line
        sent = {name: value.decode("latin-1") for name, value in got.headers if name not in OUR_OWN}
        wanted = {header["name"].lower(): header["value"] for header in recorded[got.key]["request"]["headers"]}
        assert {name: value for name, value in sent.items() if wanted.get(name) != value and kind is None} == {}
        if kind is not None and "boundary=" not in kind:
            assert sent["content-type"] == kind


@pytest.mark.parametrize("name", ["caddy.json", "gunicorn.log", "haproxy-http.log", "nginx-combined.log", "squid.log"])
def test_a_log_is_sent_with_the_targets_that_were_requested(name: str, redline: Redline) -> None:
    with serving({}) as server:
        file = str(RECORDED / "access" / name)
        done = redline("load", f"http://127.0.0.1:{server.port}", "--requests", file, "--count", "200", "-c", "1")
    assert {got.key for got in server.got} == {SCRIPT[letter] for letter in LOGS[name]}, done.out + done.err
    assert not any(got.body for got in server.got)
