"""When is a server ready? When it answers a real request as its entry says, and not before."""

import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from redline.model import HttpVersion, Leg, Ready
from redline.model.catalogue import has_tls, http_of
from redline.plugins.launchers import http2
from redline.plugins.timed import connect

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.020
_FIRST_ATTEMPT_S = 0.25
_LONGEST_ATTEMPT_S = 5.0
_LONGEST_ANSWER = 1 << 20
NOTHING = "nothing listened"
_PREFIX = re.compile(rb"HTTP/|HTTP$|HTT$|HT$|H$|$")
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)")
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d+)", re.IGNORECASE | re.MULTILINE)
_CHUNKED = re.compile(rb"^transfer-encoding:.*chunked", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class WaitEnd:
    """How the wait ended, and the answer to the last request in time: a status, or what went wrong in words."""

    ended: Literal["ready", "died", "late"]
    at_ns: int
    last_answer: int | str


def wait_until_ready(  # noqa: PLR0913 - where, what, until when, and over what
    host: str, port: int, ready: Ready, alive: Callable[[float], bool], since_ns: int, *, leg: Leg = "h1"
) -> WaitEnd:
    """Poll, at first every millisecond, then every 20, until the right answer, death or the time limit.

    Another status does not end the wait: a server may answer 503 or 404 while its routes are being set up. `alive` is
    given the seconds to pause; `since_ns` is the start on CLOCK_MONOTONIC, from which `ready.within_ns` counts.
    Over TLS any certificate will do: the verification checks it.
    """
    deadline = since_ns + ready.within_ns
    pause, attempt = _FIRST_PAUSE_S, _FIRST_ATTEMPT_S
    context, http = unverified("h2" if http_of(leg) == "2" else None) if has_tls(leg) else None, http_of(leg)
    last_answer: int | str | None = None
    while True:
        started = time.monotonic_ns()
        left_s = (deadline - started) / 1e9
        answer = request_status(host, port, ready.path, min(attempt, max(left_s, _FIRST_PAUSE_S)), context, http=http)
        now = time.monotonic_ns()
        # What the deadline cut short says nothing of the server: the request before it does.
        if last_answer is None or now <= deadline:
            last_answer = answer
        if last_answer == ready.status and now <= deadline:
            return WaitEnd("ready", now, last_answer)
        if not alive(pause):
            return WaitEnd("died", time.monotonic_ns(), last_answer)
        if time.monotonic_ns() >= deadline:
            return WaitEnd("late", time.monotonic_ns(), last_answer)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        # A request that nobody answers must not hide for long that the server died; a slow first answer gets its time.
        if now - started >= attempt * 1e9:
            attempt = min(attempt * 2, _LONGEST_ATTEMPT_S)


def unverified(*protocols: str | None) -> ssl.SSLContext:
    """The TLS settings of a client that accepts any certificate, and offers these protocols by ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if offered := [protocol for protocol in protocols if protocol]:
        context.set_alpn_protocols(offered)
    return context


def request_status(  # noqa: PLR0913 - where, what, until when, and over what
    host: str,
    port: int,
    path: str,
    within_s: float,
    tls: ssl.SSLContext | None = None,
    *,
    http: HttpVersion = "1.1",
) -> int | str:
    """The status of `GET path`, on a connection of its own; or why there was no complete answer in that time."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode()
    try:
        with connect(host, port, within_s, tls) as connection:
            if http == "2":
                return http2.status(connection, f"{host}:{port}", path, tls=tls is not None)
            connection.sendall(request)
            answer = b""
            # One answer, or as much as is enough to see that it is none.
            while not _is_whole(answer) and (more := connection.recv(1 << 16)):
                answer += more
    except ConnectionRefusedError:
        return NOTHING
    except TimeoutError:
        return f"no answer within {within_s:.3g} s"
    except OSError as error:
        return f"no answer ({error.strerror or type(error).__name__})"
    status = _STATUS.match(answer)
    return int(status[1]) if status else f"no HTTP answer but {answer[:60]!r}"


def _is_whole(answer: bytes) -> bool:
    """Whether an answer ends here (RFC 9112, section 6.3), is longer than is worth waiting for, or is not HTTP."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return len(answer) > _LONGEST_ANSWER or not _PREFIX.match(answer[:5])
    length = _LENGTH.search(head)
    if length is not None:
        return len(body) >= min(int(length[1]), _LONGEST_ANSWER)
    return len(body) > _LONGEST_ANSWER or (_CHUNKED.search(head) is not None and body.endswith(b"0\r\n\r\n"))
