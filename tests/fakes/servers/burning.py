"""Answers after 70 units of work in one function, and 30 of the same work in another, with a thread per connection."""

import socket
import sys
import threading


def often(units: int) -> int:
    value = 1
    for at in range(units):
        value = (value * 6364136223846793005 + at) & 0xFFFFFFFF
    return value


def seldom(units: int) -> int:
    value = 1
    for at in range(units):
        value = (value * 6364136223846793005 + at) & 0xFFFFFFFF
    return value


def serve(connection: socket.socket) -> None:
    held = b""
    while got := connection.recv(8192):
        held += got
        if held.endswith(b"\r\n\r\n"):
            held = b""
            often(70 * 10)
            seldom(30 * 10)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True:
        threading.Thread(target=serve, args=listening.accept()[:1], daemon=True).start()
