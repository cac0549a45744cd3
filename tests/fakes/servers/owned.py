"""HTTP servers that hold their sockets in the ways of real servers: `owned.py HOW HOST PORT [MORE]`.

Prints the ids of the processes that are to count, in a line, when it listens. It ends with standard input.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\npath0"
BURN = 2_000


def answer(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(65536):
            sum(range(BURN))
            connection.sendall(ANSWER)


def serve(listener: socket.socket, habit: Callable[[socket.socket], None] = answer) -> None:
    while True:
        threading.Thread(target=habit, args=(listener.accept()[0],), daemon=True).start()


def listen(host: str, port: int, *, shared: bool = False, only: bool = True) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
    if ":" in host:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    listener.bind((host, port))
    listener.listen(128)
    return listener


def forked(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def relay(to: tuple[str, int]) -> Callable[[socket.socket], None]:
    def both(connection: socket.socket) -> None:
        onward = socket.create_connection(to)
        threading.Thread(target=copy, args=(onward, connection), daemon=True).start()
        copy(connection, onward)

    return both


def ask(to: tuple[str, int]) -> Callable[[socket.socket], None]:
    def answer_by(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.create_connection(to) as asked:
            while connection.recv(65536):
                asked.sendall(b"GET /a/part/of/it HTTP/1.1\r\nHost: behind.example\r\nAccept: */*\r\n\r\n")
                asked.recv(65536)
                connection.sendall(ANSWER.replace(b"OK", b"OK, asked"))

    return answer_by


def copy(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)


def begin(how: str, host: str, port: int, more: list[str]) -> tuple[list[int], Callable[[], None]]:
    """Listen. Returns the processes that are to count, and what to do from then on."""
    own = os.getpid()
    listener = listen(host, port, shared=how == "shared", only=how != "both")
    if how == "forks":
        return [own, *(forked(lambda: serve(listener)) for _ in range(2))], lambda: wait(listener)
    if how == "supervises":
        worker = forked(lambda: serve(listener))
        neighbour = listen(host, 0)
        closed, closes = os.pipe()

        def beside() -> None:
            listener.close()
            os.close(closes)
            serve(neighbour)

        forked(beside)
        neighbour.close()
        os.close(closes)
        os.read(closed, 1)  # until the other server no longer holds this server's socket
        return [own, worker], lambda: wait(listener)
    if how == "hands":
        return [own], hand_over(listener)
    if how == "restarts":
        first = forked(lambda: for_a_while(listener))
        return [own, first], lambda: replace(listener, first)
    if how in ("relays", "asks"):
        habit = {"relays": relay, "asks": ask}[how]((more[0], int(more[1])))
        return [own], lambda: serve(listener, habit)
    return [own], lambda: serve(listener)


def wait(_held: socket.socket) -> None:
    signal.pause()


def hand_over(listener: socket.socket) -> Callable[[], None]:
    """Accept connections for a process that is nobody's child."""
    mine, its = socket.socketpair()
    closed, closes = os.pipe()

    def serve_handed() -> None:
        listener.close()
        os.close(closes)
        while handed := socket.recv_fds(its, 1, 1)[1]:
            threading.Thread(target=answer, args=(socket.socket(fileno=handed[0]),), daemon=True).start()

    def leave() -> None:
        forked(serve_handed)

    os.waitpid(forked(leave), 0)
    os.close(closes)
    os.read(closed, 1)  # until that process no longer holds this server's socket

    def accept() -> None:
        while True:
            with listener.accept()[0] as connection:
                socket.send_fds(mine, [b"x"], [connection.fileno()])

    return accept


def for_a_while(listener: socket.socket) -> None:
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    time.sleep(0.2)  # of ten ends in two seconds, some are while this server is loaded and not the other


def replace(listener: socket.socket, worker: int) -> None:
    while True:
        os.waitpid(worker, 0)
        worker = forked(lambda: for_a_while(listener))


@contextlib.contextmanager
def owned(how: str, host: str, port: int, *more: str, name: str = "") -> Iterator[set[int]]:
    """Such a server while the block runs: the processes that are to count. `name` is the name of its command."""
    words = [sys.executable, __file__, how, host, str(port), *more]
    if name:
        words = [sys.executable, "-c", _NAMED.format(name=name, words=words[1:])]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "it did not start"
        yield set(map(int, line.split()))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


_NAMED = """
import runpy, sys
open("/proc/self/comm", "w").write({name!r})
sys.argv = {words!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def free_port(*hosts: str) -> int:
    """A port that is free at all of these addresses."""
    for _ in range(100):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            first = stack.enter_context(listen(hosts[0], 0))
            port: int = first.getsockname()[1]
            for host in hosts[1:]:
                stack.enter_context(listen(host, port))
            return port
    raise AssertionError(f"no port is free at {hosts}")


if __name__ == "__main__":
    pids, run = begin(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    print(*pids, flush=True)
    run()
