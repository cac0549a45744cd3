"""`turning.py PORT HABIT`: answers correctly until four connections are open together, and then by its habit.

So readiness and verification, which send one request at a time, see no fault, and any load does.
"""

import contextlib
import select
import socket
import sys

RIGHT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HABITS = {
    "malformed": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    "unavailable": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "good": RIGHT,
}


def serve(listener: socket.socket, wrong: bytes) -> None:
    """Answer until killed. New connections are accepted before anybody is answered."""
    listener.setblocking(False)
    connections: list[socket.socket] = []
    turned = False
    while True:
        ready, _, _ = select.select([listener, *connections], [], [])
        with contextlib.suppress(BlockingIOError):
            while True:
                connections.append(listener.accept()[0])
        turned = turned or len(connections) > 3
        for each in ready:
            if each is not listener and not answered(each, wrong if turned else RIGHT):
                connections.remove(each)
                each.close()


def answered(connection: socket.socket, answer: bytes) -> bool:
    """Answer a request; False if the connection has ended."""
    try:
        if not connection.recv(65536):
            return False
        connection.sendall(answer)
    except OSError:
        return False
    return True


def main(port: int, habit: str) -> None:
    """Listen, print the port, and serve."""
    with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
        sys.stdout.write(f"listening on {listener.getsockname()[1]}\n")
        sys.stdout.flush()
        serve(listener, HABITS[habit])


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
