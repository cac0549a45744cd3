"""The readiness request against sockets that answer in every odd way."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import Ready
from redline.plugins.launchers import readiness
from redline.plugins.launchers.readiness import request_status, wait_until_ready

HEAD = b"HTTP/1.1 204 No Content\r\n"


@contextmanager
def answering(*parts: bytes, keep_open: bool = False) -> Iterator[int]:
    """A listener that sends these parts to its first client, and then closes or waits."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                for part in parts:
                    connection.sendall(part)
                if keep_open:
                    done.wait(20)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("parts", "keep_open"),
    [
        ((HEAD + b"\r\n",), False),
        ((HEAD + b"content-LENGTH: 3\r\n\r\nabc",), True),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",), True),
        ((b"H", b"TTP/1", b".1 204 X\r\nContent-Length: 0\r", b"\n\r\n"), True),
        ((HEAD + b"Content-Length: 99999999\r\n\r\n" + b"x" * (1 << 20),), True),
    ],
)
def test_the_status_of_a_whole_answer(parts: tuple[bytes, ...], keep_open: bool) -> None:
    with answering(*parts, keep_open=keep_open) as port:
        assert request_status("127.0.0.1", port, "/", 20) == 204


@pytest.mark.parametrize(
    ("parts", "keep_open", "seen"),
    [
        ((HEAD + b"Content-Length: 3\r\n\r\nab",), True, "no answer within 0.2 s"),
        ((HEAD,), True, "no answer within 0.2 s"),
        ((), True, "no answer within 0.2 s"),
        ((), False, "no HTTP answer but b''"),
        ((b"SSH-2.0-OpenSSH",), True, "no HTTP answer but b'SSH-2.0-OpenSSH'"),
        ((b"HTTP/2.0 200 OK\r\n\r\n",), False, "no HTTP answer but b'HTTP/2.0 200 OK\\r\\n\\r\\n'"),
    ],
)
def test_what_is_reported_of_other_answers(parts: tuple[bytes, ...], keep_open: bool, seen: str) -> None:
    with answering(*parts, keep_open=keep_open) as port:
        assert request_status("127.0.0.1", port, "/", 0.2) == seen


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert request_status("127.0.0.1", free.getsockname()[1], "/", 1) == "nothing listened"


def test_a_dead_server_is_not_waited_for() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        waited = wait_until_ready("127.0.0.1", free.getsockname()[1], Ready(), lambda _pause: False, since_ns=1 << 62)
        assert waited.ended == "died"


def test_a_request_cut_short_by_the_time_limit_hides_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline_ns = time.monotonic_ns() + 50_000_000

    def status(*_: object, **__: object) -> int | str:
        if time.monotonic_ns() < deadline_ns - 20_000_000:
            return 404
        time.sleep(max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9) + 0.001)
        return "no answer within 0.004 s"

    monkeypatch.setattr(readiness, "request_status", status)
    ready = Ready(within_ns=50_000_000)
    waited = wait_until_ready("127.0.0.1", 1, ready, lambda _pause: True, deadline_ns - 50_000_000)
    assert (waited.ended, waited.last_answer) == ("late", 404)


@given(st.binary(max_size=200))
def test_no_answer_is_ever_taken_for_another_status(noise: bytes) -> None:
    with answering(noise) as port:
        seen = request_status("127.0.0.1", port, "/", 5)
    assert isinstance(seen, str) or noise.startswith((b"HTTP/1.0 ", b"HTTP/1.1 "))
