"""A service that starts servers for its clients, as a container engine does: the listeners are this process's."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class Service:
    """Listens on every port that a client names, until it is closed."""

    def __init__(self, name: str) -> None:
        self._asked = socket.socket(socket.AF_UNIX)
        self._asked.bind(name)
        self._asked.listen()
        self._opened, self._threads = [self._asked], list[threading.Thread]()
        self._start(self._asked, self._listen)

    def _start(self, listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
        def work() -> None:
            with suppress(OSError):  # it was closed
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        answer(connection)

        self._threads.append(threading.Thread(target=work, daemon=True))
        self._threads[-1].start()

    def _listen(self, client: socket.socket) -> None:
        listener = socket.create_server(("127.0.0.1", int(client.recv(64))))
        self._opened.append(listener)
        self._start(listener, _serve)
        client.sendall(b"!")

    def close(self) -> None:
        """End all servers that it has started."""
        for each in self._opened:
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)


def _serve(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(_ANSWER)


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """The path of its socket in the folder."""
    name = str(folder / "service")
    with closing(Service(name)):
        yield name
