"""A server that records arrivals of requests, in a process of its own: `python -m redline.extras.selftest.recorder`.

It is not part of the engine's workspace, so that an independent program observes the engine's arrivals. It prints its
port, answers every request with `path0`, and ends when its standard input does. It then prints the arrival times in
Unix nanoseconds, one per line.
"""

import gc
import selectors
import socket
import sys
import time

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npath0"
_BACKLOG = 1024


def serve() -> list[int]:
    """Answer until standard input ends. Return the arrival times of requests in Unix ns."""
    came_ns: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    with selectors.DefaultSelector() as ready:
        ready.register(listener, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is sys.stdin:
                    return came_ns
                if key.fileobj is listener:
                    accepted, _address = listener.accept()
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    ready.register(accepted, selectors.EVENT_READ)
                    continue
                if isinstance(key.fileobj, socket.socket) and not _answer(key.fileobj, came_ns):
                    ready.unregister(key.fileobj)
                    key.fileobj.close()


def _answer(connection: socket.socket, came_ns: list[int]) -> bool:
    """Read requests and answer them; False when the connection has ended."""
    try:
        requests = connection.recv(65536).count(b"\r\n\r\n")
        now_ns = time.time_ns()
        if requests:
            connection.sendall(_ANSWER * requests)
    except OSError:
        return False
    came_ns.extend([now_ns] * requests)
    return requests > 0


if __name__ == "__main__":
    gc.disable()
    sys.stdout.write("".join(f"{at_ns}\n" for at_ns in serve()))
