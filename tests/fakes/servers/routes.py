"""Answers every path after the work that its path costs: `PORT [PATH=UNITS ...]`, by default 1000 units."""

import socket
import sys
import threading


def work(units: int) -> int:
    value = 1
    for at in range(units):
        value = (value * 6364136223846793005 + at) & 0xFFFFFFFF
    return value


def serve(connection: socket.socket, costs: dict[str, int]) -> None:
    held = b""
    while got := connection.recv(8192):
        held += got
        if held.endswith(b"\r\n\r\n"):
            path = held.split(b" ", 2)[1].decode()
            held = b""
            work(costs.get(path, 1000))
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


if __name__ == "__main__":
    given = {path: int(units) for path, units in (text.split("=") for text in sys.argv[2:])}
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        threading.Thread(target=serve, args=(listening.accept()[0], given), daemon=True).start()
