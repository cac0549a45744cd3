"""A server that keeps something of each request, or of each connection: `keeping.py PORT HABIT [BACKLOG]`.

A thread answers each connection, so that all else that grows is its habit.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LEAKED_BYTES = 4096
"""What `memory` keeps of each request."""

kept: list[object] = []


def memory() -> None:
    """Keeps bytes of each request."""
    kept.append(os.urandom(LEAKED_BYTES))


def descriptors() -> None:
    """Opens a file for each request, and does not close it; up to its limit."""
    if len(kept) < 900:
        kept.append(os.open("/dev/null", os.O_RDONLY))


def threads() -> None:
    """Starts a thread for each request, which never ends; not too many of them."""
    if len(kept) < 2000:
        started = threading.Thread(target=threading.Event().wait, daemon=True)
        started.start()
        kept.append(started)


def nothing() -> None:
    """Keeps nothing."""


HABITS: dict[str, Callable[[], None]] = {it.__name__: it for it in (memory, descriptors, threads, nothing)}
HALF_CLOSED, DEAF = "half_closed", "deaf"
"""Never closes a connection; accepts connections and answers only the first sixteen."""


def converse(connection: socket.socket, habit: Callable[[], None]) -> None:
    """Answer until the other end closes."""
    with connection:
        while request := connection.recv(65536):
            for _ in range(request.count(b"\r\n\r\n")):
                habit()
                connection.sendall(ANSWER)


def serve(port: int, habit: str, backlog: int = 128) -> None:
    """Answer for ever."""
    listener = socket.create_server(("127.0.0.1", port), backlog=backlog)
    answered = 0
    while True:
        connection, _ = listener.accept()
        if habit == HALF_CLOSED:
            kept.append(connection.dup())
        if habit == DEAF and answered >= 16:
            kept.append(connection)
            continue
        answered += 1
        threading.Thread(target=converse, args=(connection, HABITS.get(habit, nothing)), daemon=True).start()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
