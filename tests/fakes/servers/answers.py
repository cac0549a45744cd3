"""A server whose path selects the answer: `answers.py PORT [CERTIFICATE KEY]`, over TLS with a certificate.

It keeps every connection, except for answers that end with it. `ANSWERS` has the bytes of all answers. `/auth` wants a
header, and `/` is for readiness.
"""

import contextlib
import socket
import ssl
import sys
import threading

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HUGE = 70 << 20
"""Bytes of the body of `/huge`."""

TOKEN = b"Bearer key"


def sized(body: bytes = b"ok", head: bytes = OK) -> bytes:
    """An answer with its length."""
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


ANSWERS = {
    b"/": sized(),
    b"/hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + sized(),
    b"/interim": b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 102 Processing\r\n\r\n" * 3 + sized(),
    b"/empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    b"/unchanged": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"/trailers": CHUNKED + b"2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
    b"/closing": OK + b"\r\nok",
    b"/open": OK + b"\r\nok",
    b"/headers": sized(head=OK + b"X: y\r\n" * 127),
    b"/more-headers": sized(head=OK + b"X: y\r\n" * 128),
    b"/auth": sized(),
    b"/refused": sized(b"who?", b"HTTP/1.1 401 Unauthorized\r\n"),
    b"/space": CHUNKED + b"2 \r\nok\r\n0\r\n\r\n",
    b"/twice": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    b"/signed": OK + b"Content-Length: +2\r\n\r\nok",
}
_ENDING = {b"/closing"}


def answer(head: bytes) -> tuple[bytes, bool]:
    """The answer to a request, and whether the connection ends with it."""
    method, path = head.split(b" ", 2)[:2]
    if path == b"/auth" and b"\r\nauthorization: " + TOKEN.lower() + b"\r\n" not in head.lower() + b"\r\n":
        path = b"/refused"
    whole = sized(bytes(HUGE)) if path == b"/huge" else ANSWERS[path]
    if method == b"HEAD":
        whole = whole[: whole.index(b"\r\n\r\n") + 4]
    return whole, path in _ENDING


def serve(connection: socket.socket) -> None:
    """Answer requests without bodies, one after the other."""
    received = b""
    while True:
        head, end, rest = received.partition(b"\r\n\r\n")
        if not end:
            more = connection.recv(1 << 16)
            if not more:
                return
            received += more
            continue
        received = rest
        whole, ends = answer(head)
        connection.sendall(whole)
        if ends:
            return


def accepted(plain: socket.socket, context: ssl.SSLContext | None) -> None:
    """Serve one client, over TLS with a context."""
    with plain, contextlib.suppress(OSError):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            serve(plain)
        else:
            with context.wrap_socket(plain, server_side=True) as secure:
                serve(secure)
                secure.unwrap()


def main(port: str, *files: str) -> None:
    """Serve until the end."""
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    with socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener:
        while True:
            threading.Thread(target=accepted, args=(listener.accept()[0], context), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
