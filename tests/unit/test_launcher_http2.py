"""A readiness request in HTTP/2: the frames that are sent, and statuses as servers encode them."""

import socket
import threading

import pytest

from redline.plugins.launchers import http2
from redline.plugins.launchers.http2 import read_status

HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 1, 3, 4, 7, 8


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (b"\x88", 200),
        (b"\x8d\x76\x01a", 404),
        (b"\x48\x03302", 302),  # RFC 7541, C.5.1
        (b"\x48\x82\x64\x02\x58\x85", 302),  # C.6.1: the same in Huffman codes
        (b"\x48\x83\x64\x0e\xff", 307),  # C.6.2
        (b"\x08\x03503", 503),
        (b"\x18\x03502", 502),
        (b"\x20\x88", 200),
        (b"\x3f\xe1\x1f\x88", 200),
    ],
)
def test_a_status_is_read_however_it_is_encoded(block: bytes, status: int) -> None:
    assert read_status(block) == status


@pytest.mark.parametrize("block", [b"", b"\x48", b"\x48\x03abc", b"\xbe", b"\x3f"])
def test_what_is_no_status_is_shown(block: bytes) -> None:
    assert "no status in the HTTP/2 header" in str(read_status(block))


def asked(answers: bytes, path: str = "/a") -> tuple[int | str, bytes]:
    """What the client makes of these answers, and what it sent."""
    ours, theirs = socket.socketpair()
    received: list[bytes] = []

    def serve() -> None:
        received.append(theirs.recv(65536))
        theirs.sendall(answers)
        theirs.shutdown(socket.SHUT_WR)
        while more := theirs.recv(65536):
            received.append(more)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        status = http2.status(ours, "localhost:1", path, tls=False)
    finally:
        ours.close()
        thread.join()
        theirs.close()
    return status, b"".join(received)


def test_a_request_and_its_answer() -> None:
    settings = frame(SETTINGS, 0, 0, b"") + frame(SETTINGS, 1, 0, b"") + frame(WINDOW_UPDATE, 0, 0, b"\0\0\1\0")
    status, sent = asked(settings + frame(HEADERS, 4, 1, b"\x88"))
    assert status == 200
    assert sent.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
    assert frame(HEADERS, 5, 1, b"\x82\x86\x04\x02/a\x01\x0blocalhost:1") in sent
    assert sent.endswith(frame(SETTINGS, 1, 0, b""))


def test_padding_and_priority_are_skipped() -> None:
    status, _ = asked(frame(HEADERS, 4 | 8 | 32, 1, b"\x02" + b"\0" * 5 + b"\x8d" + b"\0\0"))
    assert status == 404


def test_a_long_path_has_a_long_length() -> None:
    _, sent = asked(frame(GOAWAY, 0, 0, b"\0" * 8), "/" + "a" * 299)
    assert b"\x04\x7f\xad\x01/aaa" in sent  # 300 = 127 + 173, in groups of 7 bits


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no answer in HTTP/2 but b'HTTP/1.1 400"),
        (b"", "no answer in HTTP/2 but b''"),
        (frame(GOAWAY, 0, 0, b"\0" * 8), "refused in HTTP/2"),
        (frame(RST_STREAM, 0, 1, b"\0" * 4), "refused in HTTP/2"),
    ],
)
def test_what_is_no_answer(answer: bytes, says: str) -> None:
    status, _ = asked(answer)
    assert says in str(status)
