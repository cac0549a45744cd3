"""Runs a command beside a server with a habit, in the network of both, and exits with the command's code.

python beside.py HABIT PORT COMMAND...
"""

import contextlib
import socket
import subprocess
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: %b\r\n\r\nok"
ACCEPTED_EVERY_S = 0.1
DIALS_AFTER_S = 0.5  # delay of a connection: not before the watching code has begun
BACKLOGS = {"healthy": 128, "crowded": 128, "dials": 128, "turns_away": 1}
CROWD = 12


def serve(listener: socket.socket, habit: str) -> None:
    """Accept connections; with the habit `turns_away` ten a second."""
    behind = socket.create_server(("127.0.0.1", 0))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, habit, behind), daemon=True).start()
        if habit == "turns_away":
            time.sleep(ACCEPTED_EVERY_S)


def answer(connection: socket.socket, habit: str, behind: socket.socket) -> None:
    """Serve a client. `turns_away` closes after an answer; `dials` opens a connection first, as a proxy does."""
    dials_from = time.monotonic() + DIALS_AFTER_S
    with connection, contextlib.suppress(OSError):
        while connection.recv(65536):
            if habit == "dials" and time.monotonic() > dials_from:
                dial(behind)
            connection.sendall(ANSWER % (b"close" if habit == "turns_away" else b"keep-alive"))
            if habit == "turns_away":
                return


def dial(behind: socket.socket) -> None:
    """Open a connection and close it first, which leaves its port in TIME_WAIT; without a port left there is none."""
    with contextlib.suppress(OSError):
        client = socket.create_connection(behind.getsockname())
        accepted, _ = behind.accept()
        client.close()
        with accepted:
            accepted.recv(1)


def main(habit: str, port: str, *command: str) -> int:
    """Serve, run the command, and end. With the habit `crowded` others already hold their connections, and ports."""
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=BACKLOGS[habit])
    threading.Thread(target=serve, args=(listener, habit), daemon=True).start()
    others = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(CROWD * (habit == "crowded"))]
    with contextlib.ExitStack() as held:
        for other in others:
            held.enter_context(other)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
