"""Commands that are servers in unusual ways: `odd.py PORT HABIT [MORE]`."""

import os
import socket
import sys
import time


def serve(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def daemon(port: int, _more: str) -> None:
    """Ends, and leaves a server behind in a session of its own, which takes a moment to listen."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.2)
        serve("127.0.0.1", port)


def client(port: int, asked: str) -> None:
    """Has another process, behind the socket of this name, listen on the port."""
    with socket.socket(socket.AF_UNIX) as service:
        service.connect(asked)
        service.sendall(b"%d\n" % port)
        service.recv(1)


def attached_client(port: int, asked: str) -> None:
    """The same, and stays."""
    client(port, asked)
    time.sleep(600)


def second(port: int, fixed: str) -> None:
    """Needs another port of its own; does not say which port is in use."""
    with socket.socket() as other:  # without the words of create_server, which name the address
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", int(fixed)))
        other.listen()
        serve("127.0.0.1", port)


def second_said(port: int, fixed: str) -> None:
    """The same, and says which port."""
    try:
        second(port, fixed)
    except OSError:
        sys.exit(f"metrics: address already in use: 127.0.0.1:{fixed}")


def sixth(port: int, host: str) -> None:
    """Listens over IPv6 alone, at ::1 or at a host of that family."""
    serve(host or "::1", port)


def denied(port: int, _more: str) -> None:
    sys.exit("./helper: Permission denied")


if __name__ == "__main__":
    globals()[sys.argv[2]](int(sys.argv[1]), (sys.argv[3:] or [""])[0])
