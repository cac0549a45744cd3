"""Text from a server is printed, and cannot control the terminal."""

import socket
from pathlib import Path

import pytest

from tests.e2e.conftest import Done, Redline
from tests.fakes import targets
from tests.fakes.certificates import Certificate
from tests.unit.test_visible import obeyed

pytestmark = pytest.mark.e2e

ACTS = "\x1b[8m\x1b]0;owned\x07\x9b31m\u202e\u2028"
SHORT = ("-c", "1", "-d", "300ms", "--warmup", "100ms")
SHORTEST = ("--for", "3s", "--same-answers")


def harmless(done: Done, *words: str) -> None:
    """The command is refused, and both streams hold these words and no control characters."""
    done.refused(1, *words)
    assert not obeyed(done.out + done.err)


def hostile_head(connection: socket.socket) -> None:
    """Answers correctly, with a content type that a terminal would obey and HTTP allows."""
    while connection.recv(65536):
        kind = b"Content-Type: text\xc2\x9b31m"
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nContent-Length: 5\r\n\r\npath0")


def hostile_body(connection: socket.socket) -> None:
    """Answers with such a body."""
    while connection.recv(65536):
        body = ACTS.encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def test_answers_that_differ(redline: Redline) -> None:
    with (
        targets.target(targets.healthy) as plain,
        targets.target(hostile_head) as head,
        targets.target(hostile_body) as body,
    ):
        harmless(redline("ab", plain, head, *SHORTEST), "content-type none", r"text\u009b31m")
        harmless(redline("ab", plain, body, *SHORTEST), "the bodies differ")


def test_controls_that_http_does_not_allow(redline: Redline) -> None:
    def habit(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: \x1b[8mtext\r\nContent-Length: 0\r\n\r\n")

    with targets.target(habit) as url:
        harmless(redline("ab", url, url, *SHORTEST), "malformed: a control character", r"\u001b[8mtext")


def test_the_name_in_a_certificate(redline: Redline, tmp_path: Path) -> None:
    certificate = Certificate(tmp_path, f"DNS:{ACTS[:4]}name")
    (tmp_path / "ca.pem").write_text(certificate.pem)
    with targets.target(targets.healthy, certificate.context()) as url:
        done = redline("load", url, *SHORT, "--cacert", str(tmp_path / "ca.pem"))
    harmless(done, r"but for \u001b[8mname")
