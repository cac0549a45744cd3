"""A small HTTP proxy, in threads of the test, that opens tunnels by CONNECT."""

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class FakeProxy:
    """A proxy at `port` of 127.0.0.1. `asked` are the places of its tunnels, and `credentials` what it was told."""

    port: int
    user: str = ""
    asked: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self, client: socket.socket) -> None:
        """Open the tunnel of a connection, and carry its bytes until one side ends it."""
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                byte = client.recv(1)
                if not byte:
                    return  # opened, and closed without a request
                head += byte
            lines = head.decode().split("\r\n")
            method, place, _ = lines[0].split()
            given = [line.partition(": ")[2] for line in lines if line.lower().startswith("proxy-authorization:")]
            self.asked.append(place)
            self.credentials += given
            if self.user and given != [f"Basic {base64.b64encode(self.user.encode()).decode()}"]:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            elif method != "CONNECT":
                client.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            else:
                host, _, port = place.rpartition(":")
                # A name that only the proxy knows.
                address = "127.0.0.1" if host.endswith(".example") else host.strip("[]")
                try:
                    server = socket.create_connection((address, int(port)), timeout=5)
                except OSError:
                    client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                    return
                client.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 fake\r\n\r\n")
                _carry(client, server)


def _carry(client: socket.socket, server: socket.socket) -> None:
    with server:
        server.settimeout(None)
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(user: str = "") -> Iterator[FakeProxy]:
    """Yield a proxy; with `user`, `name:password`, it takes no other."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        made = FakeProxy(listener.getsockname()[1], user)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=made.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)
