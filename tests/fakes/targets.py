"""Servers in a thread of the test, each with a bad habit that `redline load` may meet."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npath0"
_DATA, _HEADERS, _SETTINGS, _PING, _GOAWAY = 0, 1, 4, 6, 7
_ACK, _END_STREAM, _END_HEADERS = 1, 1, 4
Habit = Callable[[socket.socket], None]


def healthy(connection: socket.socket) -> None:
    """Answers every request."""
    while connection.recv(65536):
        connection.sendall(ANSWER)


def streams(connection: socket.socket, events: int = 20, gap_s: float = 0.002) -> None:
    """Answers with server-sent events, for paths with `lines` with lines of JSON, of `endless` without an end.

    For paths with `completions` they are those of a chat.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while request := connection.recv(65536):
        is_lines = b"lines" in request.split(b"\r\n")[0]
        kind = b"application/x-ndjson" if is_lines else b"text/event-stream"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head % kind)
        number = 0
        while number < events or b"endless" in request.split(b"\r\n")[0]:
            time.sleep(gap_s)
            event = b'{"n": %d}\n' % number if is_lines else b"data: %d\n\n" % number
            if b"completions" in request.split(b"\r\n")[0]:
                is_last = number == events - 1
                event = b"data: [DONE]\n\n" if is_last else b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
            connection.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            number += 1
        connection.sendall(b"0\r\n\r\n")


def resets(connection: socket.socket) -> None:
    """Resets after every request."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def stalls(connection: socket.socket) -> None:
    """Accepts requests and never answers."""
    while connection.recv(65536):
        pass


def garbage(connection: socket.socket) -> None:
    """Answers with bytes that are not HTTP."""
    while connection.recv(65536):
        connection.sendall(b"\x00\xff<script>alert(1)</script>\r\n\r\n" * 20)


def trickles(connection: socket.socket) -> None:
    """Answers with a byte now and then, without end."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def trickles_its_head(connection: socket.socket) -> None:
    """Does not get as far as a body."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def floods(connection: socket.socket) -> None:
    """Answers with an endless body."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


def leaves(connection: socket.socket) -> None:
    """Closes without an answer."""
    connection.recv(65536)


def breaks_off(connection: socket.socket) -> None:
    """Announces more than it sends."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npath0")


def answers_json(connection: socket.socket) -> None:
    """Answers every request with its clock and a total, and with the request's number of bytes."""
    while asked := connection.recv(65536):
        body = (
            f'{{"now": 1790000000000.5, "total": 3, "asked": {len(asked)}, "list": [null, {{"a/b": true}}]}}'.encode()
        )
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def echoes(connection: socket.socket) -> None:
    """Answers every request with the request."""
    while asked := connection.recv(65536):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(asked), asked))


def chunks(connection: socket.socket) -> None:
    """Answers correctly, in chunks."""
    while connection.recv(65536):
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\npa\r\n3\r\nth0\r\n0\r\n\r\n")


def fails(connection: socket.socket) -> None:
    """Answers every request with 500."""
    while connection.recv(65536):
        connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")


def turning(habit: Habit, good: Habit = healthy) -> Habit:
    """Is good on its first connection, and has the habit on others: `load` asks once before it loads."""
    first = threading.Lock()

    def turns(connection: socket.socket) -> None:
        (good if first.acquire(blocking=False) else habit)(connection)

    return turns


def speaks_http2(connection: socket.socket, fields: bytes = b"\x88") -> None:
    """Answers every HTTP/2 request (RFC 9113) with these fields in HPACK, by default `:status: 200`, and no body."""
    stream = connection.makefile("rb")
    stream.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    connection.sendall(_frame(_SETTINGS, 0, 0))
    while len(head := stream.read(9)) == 9:
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:9])
        payload = stream.read(int.from_bytes(head[:3]))
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            connection.sendall(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            connection.sendall(_frame(_HEADERS, _END_STREAM | _END_HEADERS, number, fields))


def goes_away(connection: socket.socket) -> None:
    """Answers one HTTP/2 request with 200, and ends the connection by a GOAWAY after it."""
    stream = connection.makefile("rb")
    stream.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
    connection.sendall(_frame(_SETTINGS, 0, 0))
    while len(head := stream.read(9)) == 9:
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:9])
        payload = stream.read(int.from_bytes(head[:3]))
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            connection.sendall(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            answer = _frame(_HEADERS, _END_STREAM | _END_HEADERS, number, b"\x88")
            connection.sendall(answer + _frame(_GOAWAY, 0, 0, number.to_bytes(4) + bytes(4)))
            connection.shutdown(socket.SHUT_WR)
            stream.read()  # a close with unread bytes would be a reset, and lose the answer
            return


def _frame(kind: int, flags: int, number: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + number.to_bytes(4) + payload


@contextlib.contextmanager
def target(habit: Habit, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server with this habit, over TLS with a context; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        listener.settimeout(0.2)
        over = threading.Event()
        thread = threading.Thread(target=_accept, args=(listener, habit, tls, over), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}/path0"
        finally:
            over.set()
            thread.join(5)


def unused_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _accept(listener: socket.socket, habit: Habit, tls: ssl.SSLContext | None, over: threading.Event) -> None:
    while not over.is_set():
        with contextlib.suppress(TimeoutError, OSError):
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, habit, tls), daemon=True).start()


def _serve(connection: socket.socket, habit: Habit, tls: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), connection:
        connection.settimeout(30)
        with tls.wrap_socket(connection, server_side=True) if tls else connection as stream:
            habit(stream)
