"""Runs a command beside a server with a habit, in the network of both, and exits with the command's code.

python beside.py HABIT PORT COMMAND...
"""

import contextlib
import ctypes
import socket
import struct
import subprocess
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: %b\r\n\r\nok"
ACCEPTED_EVERY_S = 0.1
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
DIALS_AFTER_S = 0.5  # delay of a connection: not before the watching code has begun
BACKLOGS = {"healthy": 128, "crowded": 128, "dials": 128, "turns_away": 1, "lossy": 128, "deaf": 128}
CLOSES = ("turns_away", "deaf")
LOSES_EVERY = 200
LOSES_FOR_S, HEARS_FOR_S = 0.1, 1.4
DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)  # BPF_RET: keep 0 bytes of a packet
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
    """Serve a client. Some close after an answer; `dials` opens a connection first, as a proxy does."""
    answers, dials_from = 0, time.monotonic() + DIALS_AFTER_S
    with connection, contextlib.suppress(OSError):
        while connection.recv(65536):
            if habit == "dials" and time.monotonic() > dials_from:
                dial(behind)
            connection.sendall(ANSWER % (b"close" if habit in CLOSES else b"keep-alive"))
            answers += 1
            if habit == "lossy" and answers % LOSES_EVERY == 0:
                threading.Thread(target=lose, args=(connection, LOSES_FOR_S), daemon=True).start()
            if habit in CLOSES:
                return


def lose(receiver: socket.socket, seconds: float) -> None:
    """Lose all packets that come for this socket, for so long."""
    program = ctypes.create_string_buffer(DROP_ALL)
    receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))
    time.sleep(seconds)
    with contextlib.suppress(OSError):
        receiver.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def miss(listener: socket.socket) -> None:
    """Miss every attempt to connect for a tenth of a second, again and again."""
    while True:
        time.sleep(HEARS_FOR_S)
        lose(listener, LOSES_FOR_S)


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
    if habit == "deaf":
        threading.Thread(target=miss, args=(listener,), daemon=True).start()
    others = [socket.create_connection(("127.0.0.1", int(port))) for _ in range(CROWD * (habit == "crowded"))]
    with contextlib.ExitStack() as held:
        for other in others:
            held.enter_context(other)
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
