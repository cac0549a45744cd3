"""A server of many threads with a habit under load that the lab should notice: `provoking.py PORT HABIT`."""

import itertools
import os
import socket
import sys
import threading
import time
from collections.abc import Callable

LINE = b"DEBUG handler GET / from 127.0.0.1, 0 bytes read, 2 bytes to write, status 200, keep-alive, no error seen\n"
LOAD_BEGINS = 8
"""The number of connections that are open only under load."""

Answer = Callable[[], bytes]


class Threads:
    """A thread for each connection, as long as it lasts."""

    def __init__(self, listener: socket.socket, answer: Answer) -> None:
        self.listener, self.answer = listener, answer
        self.open = 0

    def serve(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        self.open += 1
        with connection:
            while request := connection.recv(65536):
                body = b"".join(self.answer() for _ in range(request.count(b"\r\n\r\n")))
                for part in self.parts(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body):
                    connection.sendall(part)
        self.open -= 1

    def parts(self, head: bytes, body: bytes) -> tuple[bytes, ...]:
        """What is sent at once."""
        return (head + body,)


class InParts(Threads):
    """Head and body are sent apart, and the kernel may hold the second back."""

    def parts(self, head: bytes, body: bytes) -> tuple[bytes, ...]:
        return head, body


def in_parts(listener: socket.socket) -> None:
    """Sends an answer in two parts, without TCP_NODELAY."""
    InParts(listener, lambda: b"ok").serve()


def waiting(listener: socket.socket) -> None:
    """All threads wait for a single lock, whose holder sleeps."""
    lock = threading.Lock()

    def answer() -> bytes:
        with lock:
            time.sleep(0.002)
        return b"ok"

    Threads(listener, answer).serve()


def pooled(listener: socket.socket) -> None:
    """Four workers, each of which waits 10 ms for something else."""
    workers = threading.Semaphore(4)

    def answer() -> bytes:
        with workers:
            time.sleep(0.01)
        return b"ok"

    Threads(listener, answer).serve()


def chatty(listener: socket.socket) -> None:
    """Logs every request, as with a log level that nobody set."""

    def answer() -> bytes:
        os.write(1, LINE)
        return b"ok"

    Threads(listener, answer).serve()


def shrinking(listener: socket.socket) -> None:
    """Answers with fewer bytes from a moment after the load began."""
    began: list[float] = []

    def answer() -> bytes:
        if not began and threads.open >= LOAD_BEGINS:
            began.append(time.monotonic())
        return b"x" * (100 if began and time.monotonic() > began[0] + 0.4 else 1000)

    threads = Threads(listener, answer)
    threads.serve()


def mortal(listener: socket.socket) -> None:
    """A master whose workers die a moment after the load began, and are replaced."""

    def answer() -> bytes:
        if threads.open >= LOAD_BEGINS:
            threading.Timer(0.2, os._exit, (1,)).start()
        return b"ok"

    while True:
        if os.fork() == 0:
            threads = Threads(listener, answer)
            threads.serve()
        os.wait()


def burning(listener: socket.socket) -> None:
    """Computes a millisecond per answer, in as many processes as it has cores."""

    def answer() -> bytes:
        until = time.thread_time() + 0.001
        while time.thread_time() < until:
            pass
        return b"ok"

    for _ in range(len(os.sched_getaffinity(0)) - 1):
        if os.fork() == 0:
            break
    Threads(listener, answer).serve()


def heavy(listener: socket.socket) -> None:
    """Answers with a megabyte, which takes longer to check than to send."""
    megabyte = b"x" * 1_000_000
    Threads(listener, lambda: megabyte).serve()


def polling(listener: socket.socket) -> None:
    """Waits for a timer of 200 ms, once or twice in turn."""
    turns = itertools.count()

    def answer() -> bytes:
        time.sleep(0.2 * (1 + next(turns) % 2))
        return b"ok"

    Threads(listener, answer).serve()


def restless(listener: socket.socket) -> None:
    """Computes 3 ms in every 30 ms, whether anybody asks or not."""

    def work() -> None:
        while True:
            until = time.thread_time() + 0.003
            while time.thread_time() < until:
                pass
            time.sleep(0.027)

    threading.Thread(target=work, daemon=True).start()
    healthy(listener)


def healthy(listener: socket.socket) -> None:
    Threads(listener, lambda: b"ok").serve()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128) as socket_of_all:
        globals()[sys.argv[2]](socket_of_all)
