"""The engine's vectors as servers that answer every request with the bytes or frames of a vector."""

import contextlib
import re
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

_CRATES = Path(__file__).parents[2] / "engine" / "crates"
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)")
_CONTROL = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING = 0, 1, 3, 4, 6
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4


@dataclass(frozen=True)
class Vector:
    """An answer: its name, the status to expect, the outcome of a request for it, and its bytes."""

    name: str
    http: Literal["1.1", "2"]
    status: int
    outcome: str
    answer: bytes
    closes: bool

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests on a connection."""
        if self.http == "2":
            self._serve_http2(connection)
        else:
            self._serve_http1(connection)

    def _serve_http1(self, connection: socket.socket) -> None:
        request = b""
        while more := connection.recv(65536):
            request += more
            while b"\r\n\r\n" in request:
                _, _, request = request.partition(b"\r\n\r\n")
                connection.sendall(self.answer)
                if self.closes:
                    if isinstance(connection, ssl.SSLSocket):
                        connection.unwrap()  # without it, an end is a truncation
                    return

    def _serve_http2(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        stream.read(len(_PREFACE))
        connection.sendall(bytes((0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0)))
        while len(head := stream.read(9)) == 9:
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:9])
            payload = stream.read(int.from_bytes(head[:3]))
            if kind in (_SETTINGS, _PING) and not flags & _ACK:
                answer = payload if kind == _PING else b""
                connection.sendall(len(answer).to_bytes(3) + bytes((kind, _ACK, 0, 0, 0, 0)) + answer)
            elif kind == _HEADERS and flags & _END_STREAM:
                connection.sendall(_on_stream(self.answer, number))


@cache
def vectors() -> dict[str, Vector]:
    """All vectors, by name."""
    return {vector.name: vector for vector in (*_http1(), *_http2())}


def _http1() -> list[Vector]:
    text = (_CRATES / "wire" / "tests" / "vectors" / "responses.txt").read_bytes()
    lines = [line for line in text.split(b"\n") if line and not line.startswith(b"#")]
    return [_http1_vector(number, *line.split(b"|", 2)) for number, line in enumerate(lines, 1)]


def _http1_vector(number: int, _section: bytes, verdict: bytes, answer: bytes) -> Vector:
    said = verdict.decode().split()
    good = said[0].isdigit()
    outcome = _outcome_of(said[0]) if good else {"cut": "closed"}.get(said[0], "malformed")
    return Vector(
        name=f"h1-{number}",
        http="1.1",
        status=int(said[0]) if outcome == "ok" else 200,
        outcome=outcome,
        answer=_unescaped(answer[1:]),
        closes=not good or said[-1] == "close",
    )


def _http2() -> list[Vector]:
    made: list[Vector] = []
    heads = re.compile(r"^[0-9.]+ +\| +(.+)$")
    verdict, frames = "", b""
    text = (_CRATES / "http2" / "tests" / "vectors" / "answers.txt").read_text()
    for line in [*text.splitlines(), "9 | end"]:
        if not line or line.startswith("#"):
            continue
        if begins := heads.match(line):
            if verdict:
                made.append(_http2_vector(len(made) + 1, verdict, frames))
            verdict, frames = begins[1], b""
        else:
            frames += _frame(line)
    return made


def _http2_vector(number: int, verdict: str, frames: bytes) -> Vector:
    said = verdict.split(maxsplit=1)[0]
    if said.isdigit():
        outcome = _outcome_of(said)
    elif said == "connection":
        outcome = _ended_before(frames) or "malformed"
    else:
        outcome = {"refused": "refused", "unprocessed": "refused", "none": "timeout"}.get(said, "malformed")
    status = int(said) if said.isdigit() and outcome == "ok" else 200
    return Vector(name=f"h2-{number}", http="2", status=status, outcome=outcome, answer=frames, closes=False)


def _outcome_of(status: str) -> str:
    """Whether the status cannot be expected: below 200 or above 599."""
    return "ok" if 200 <= int(status) <= 599 else "unexpected_status"


def _ended_before(frames: bytes) -> str:
    """How stream 1 ended before the last frame; empty if it did not. Later frames fail no answer."""
    for kind, flags, number, is_last in _heads(frames):
        if number == 1 and not is_last:
            if kind == _RESET:
                return "refused"
            if ((kind == _HEADERS and flags & _END_HEADERS) or kind == _DATA) and flags & _END_STREAM:
                return "ok"
    return ""


def _heads(frames: bytes) -> Iterator[tuple[int, int, int, bool]]:
    """Kind, flags and stream of every frame, and whether it is the last."""
    at = 0
    while at + 9 <= len(frames):
        end = at + 9 + int.from_bytes(frames[at : at + 3])
        yield frames[at + 3], frames[at + 4], int.from_bytes(frames[at + 5 : at + 9]), end >= len(frames)
        at = end


def _frame(line: str) -> bytes:
    return b"".join(
        _unescaped(text.encode()) if text or not digits else bytes.fromhex(digits)
        for text, digits in re.findall(r'"((?:[^"\\]|\\.)*)"|((?:[0-9a-f]{2})+)', line)
    )


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _CONTROL.get(found[1]) or bytes.fromhex(found[1][1:].decode()), text)


def _on_stream(frames: bytes, number: int) -> bytes:
    """The frames, with those of stream 1 on the stream with this number."""
    moved, at = b"", 0
    while at + 9 <= len(frames):
        end = at + 9 + int.from_bytes(frames[at : at + 3])
        stream = int.from_bytes(frames[at + 5 : at + 9])
        moved += frames[at : at + 5] + (number if stream == 1 else stream).to_bytes(4) + frames[at + 9 : end]
        at = end
    return moved + frames[at:]


def _serve(listener: socket.socket, vector: Vector) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection, vector), daemon=True).start()


def _answer(connection: socket.socket, vector: Vector) -> None:
    with contextlib.suppress(OSError), connection:
        vector.serve(connection)


if __name__ == "__main__":
    # A server of its own: `vectors.py PORT NAME`.
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64) as its:
        _serve(its, vectors()[sys.argv[2]])
