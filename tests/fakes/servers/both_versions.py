"""HTTP/1.1 and HTTP/2 (RFC 9113) on one port: `both_versions.py PORT [CERTIFICATE KEY]`, over TLS with a certificate.

Every answer is 200 and `ok`, after which an HTTP/1.1 connection is closed.
"""

import contextlib
import socket
import ssl
import sys
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
_DATA, _HEADERS, _SETTINGS, _PING = 0, 1, 4, 6
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
_STATUS_200 = b"\x88"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def serve(connection: socket.socket) -> None:
    """Answer all requests of a connection."""
    received = connection.makefile("rb")
    if not received.peek(1).startswith(b"P"):
        while received.readline().strip():
            pass
        connection.sendall(ANSWER)
        return
    received.read(len(PREFACE))
    connection.sendall(frame(_SETTINGS, 0, 0))
    while len(head := received.read(9)) == 9:
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9])
        payload = received.read(int.from_bytes(head[:3]))
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            connection.sendall(frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _HEADERS and flags & _END_STREAM:
            connection.sendall(frame(_HEADERS, _END_HEADERS, stream, _STATUS_200) + frame(_DATA, 1, stream, b"ok"))


def accepted(plain: socket.socket, context: ssl.SSLContext | None) -> None:
    """Serve one client, over TLS with a context."""
    with plain, contextlib.suppress(OSError):
        if context is None:
            serve(plain)
        else:
            with context.wrap_socket(plain, server_side=True) as secure:
                serve(secure)


def main(port: str, *files: str) -> None:
    """Serve until the end."""
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener:
        while True:
            # In threads: a connection without requests must not keep the others waiting.
            threading.Thread(target=accepted, args=(listener.accept()[0], context), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
