"""`turning.py PORT HABIT`: answers rightly until four connections are open at once, and then by its habit.

So readiness and verification, which ask one thing at a time, find nothing wrong, and any load does.
"""

import contextlib
import socket
import sys
import threading

RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HABITS = {
    "malformed": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    "unavailable": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "good": RIGHT,
}


class Turning:
    """How many connections are open, and whether four ever were."""

    def __init__(self, wrong: bytes) -> None:
        self._wrong, self._open, self._turned, self._lock = wrong, 0, False, threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        """Answer each request on a connection until it ends."""
        with self._lock:
            self._open += 1
            self._turned |= self._open > 3
        with contextlib.suppress(OSError), connection:
            while connection.recv(65536):
                connection.sendall(self._wrong if self._turned else RIGHT)
        with self._lock:
            self._open -= 1


def main(port: int, habit: str) -> None:
    """Serve until killed."""
    turning = Turning(HABITS[habit])
    with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
        sys.stdout.write(f"listening on {listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=turning.serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
