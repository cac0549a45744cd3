"""A small HTTP server for tests of the launcher, that behaves or misbehaves as told: `server.py PORT BEHAVIOUR`."""

import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def serve(port: int, status: str = "200 OK", requests: int | None = None) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        while requests is None or requests > 0:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".encode())
            requests = None if requests is None else requests - 1


def healthy(port: int) -> None:
    serve(port)


def wrong(port: int) -> None:
    serve(port, "404 Not Found")


def slow(port: int) -> None:
    time.sleep(0.3)
    serve(port)


def silent(port: int) -> None:
    """Accepts, and never answers."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        kept = []
        while True:
            kept.append(listener.accept())


def garbage(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x00\x01\x02 this is not HTTP\r\n\r\n")


def sleeps(port: int) -> None:
    """Never listens."""
    time.sleep(600)


def deaf(port: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(port)


def scattering(port: int) -> None:
    """Starts children of children that leave its session and its group, then serves."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        os.setpgid(0, 0)
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        time.sleep(600)
    os.wait()
    serve(port)


def flooding(port: int) -> None:
    """Writes 40 MiB and a last line before it serves."""
    block = b"x" * 1023 + b"\n"
    for _ in range(40 * 1024):
        os.write(1, block)
    os.write(1, b"the last line\n")
    serve(port)


def dying(port: int) -> None:
    """Answers two requests, then ends with a message."""
    serve(port, requests=2)
    sys.exit("\x1b[31mout of patience\x1b[0m")


def tires(port: int) -> None:
    """Answers 200 requests, then ends with a message."""
    serve(port, requests=200)
    sys.exit("out of patience")


def turns(port: int) -> None:
    """Answers 20 requests well, and all others with an error."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        for served in itertools.count():
            connection, _ = listener.accept()
            status = b"200 OK" if served < 20 else b"503 Service Unavailable"
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def expires(port: int) -> None:
    """Accepts a token for two seconds from its first use; requests without a token are answered."""
    used_s: float | None = None
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                if b"authorization:" in connection.recv(65536).lower():
                    used_s = used_s or time.monotonic()
                expired = used_s is not None and time.monotonic() - used_s > 2
                status = b"401 Unauthorized" if expired else b"200 OK"
                connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def elsewhere(port: int) -> None:
    """Listens on a port of its own choice."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"listening on {listener.getsockname()[1]}", flush=True)
        time.sleep(600)


def exits(port: int) -> None:
    sys.exit("no configuration found")


def crashes(port: int) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def taken(port: int) -> None:
    """Says that its port is another's, whatever port it is given."""
    sys.exit("OSError: [Errno 98] Address already in use")


def echoes(port: int) -> None:
    """Prints its arguments, then serves."""
    print(" ".join(sys.argv[3:]), os.environ.get("GREETING"), flush=True)
    print(f"in {Path.cwd()} on {sorted(os.sched_getaffinity(0))}", flush=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    print(f"files {soft == hard}, stdin {sys.stdin.read()!r}", flush=True)
    serve(port)


def busy(port: int) -> None:
    """Burns CPU in short-lived children, 30 of 10 ms, then serves."""
    for _ in range(30):
        child = os.fork()
        if child == 0:
            while time.process_time() < 0.01:
                pass
            os._exit(0)
        os.waitpid(child, 0)
    serve(port)


if __name__ == "__main__":
    globals()[sys.argv[2]](int(sys.argv[1]))
