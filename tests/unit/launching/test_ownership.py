"""The watch over a server under load: which processes answer its connections, and which it calls, is reported."""

import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from redline.launching import ownership
from redline.launching.attached import RunningElsewhere
from redline.launching.ownership import AttachedWatch, watch
from redline.linux import procfs
from redline.linux.cgroup import started_by
from redline.linux.sockets import Tcp, connections, listeners
from redline.model import CpuOwner
from redline.model.way import Access
from redline.ports import Endpoint
from tests.fakes.servers.owned import free_port, owned


def watched(port: int, *, looks: int = 2) -> CpuOwner:
    """What a watch knows in the end, if there was a load while it looked."""
    server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        for _ in range(looks):
            for _ in range(200):
                client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
                assert client.recv(65536)
            assert isinstance(server, AttachedWatch)
            server._due_s = 0.0
            server.look()
        return server.finish()


def test_a_server_that_answers_itself_is_known() -> None:
    port = free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", port) as (pid,):
        found = watched(port)
        assert (found.unknown, found.behind) == ("", "")
        assert [name.rpartition(" ")[2] for name in found.processes] == [f"({pid})"]


def test_who_answers_connections_that_a_server_accepted_is_named() -> None:
    port = free_port("127.0.0.1")
    with owned("hands", "127.0.0.1", port) as (pid,):
        found = watched(port)
    assert f"connections to 127.0.0.1:{port} are answered by python" in found.unknown
    assert f"({pid})" not in found.unknown


def test_a_relay_is_known_by_its_bytes_and_whoever_else_asks_is_named() -> None:
    behind, port = free_port("127.0.0.1"), free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", behind):
        with owned("relays", "127.0.0.1", port, "127.0.0.1", str(behind)):
            assert f"which passes on what it gets from 127.0.0.1:{behind}" in watched(port).unknown
        with owned("asks", "127.0.0.1", port, "127.0.0.1", str(behind)):
            found = watched(port)
    assert (found.unknown, found.behind) == ("", f"127.0.0.1:{behind}")


MORE_TIME = "load it for longer, and leave the machine more time for Redline"


def test_a_load_without_time_for_a_look_says_so() -> None:
    port = free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", port):
        found = watched(port, looks=0)
    assert found.unknown == f"Redline had no time to look which process answers at 127.0.0.1:{port}"
    assert found.hint == MORE_TIME


def test_looks_that_came_when_nothing_was_open_are_told_from_a_hidden_process() -> None:
    port = free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", port):
        server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
        server.look()
        found = server.finish()
    assert (found.unknown, found.hint) == (
        f"no connection to 127.0.0.1:{port} was open whenever Redline looked",
        MORE_TIME,
    )


def test_a_connection_that_ends_while_redline_looks_is_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", port) as (pid,):
        server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
        assert isinstance(server, AttachedWatch)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert client.recv(65536)

            def listed_and_closed() -> tuple[Tcp, ...]:
                held, found = procfs.open_sockets(pid), connections()
                client.close()
                while procfs.open_sockets(pid) == held:
                    time.sleep(0.001)
                return found

            monkeypatch.setattr(ownership, "connections", listed_and_closed)
            server.look()
        assert server.finish().unknown == ""


@pytest.mark.parametrize("lasts", [False, True])
def test_short_connections_are_told_from_those_of_a_hidden_process(
    monkeypatch: pytest.MonkeyPatch, *, lasts: bool
) -> None:
    port, number = free_port("127.0.0.1"), 4_000_000_000
    with owned("alone", "127.0.0.1", port):
        server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
        assert isinstance(server, AttachedWatch)
        for look in range(3):
            (listener, *_) = (tcp for tcp in listeners() if tcp.local.port == port)
            seen = replace(listener, listens=False, inode=number + (0 if lasts else look))
            monkeypatch.setattr(ownership, "connections", lambda seen=seen: (seen,))
            server._due_s = 0.0
            server.look()
        found = server.finish()
    if lasts:
        assert found.unknown.endswith("are answered by a process that is hidden from this user")
    else:
        assert found.unknown.startswith(f"no connection to 127.0.0.1:{port} was open for long enough")
        assert found.hint == "load it for longer, by connections that are kept"


@pytest.mark.parametrize(("host", "is_one"), [("127.0.0.1", True), ("::1", True), ("localhost", False)])
def test_an_address_has_no_others(host: str, *, is_one: bool) -> None:
    endpoint = Endpoint(host, 80, way=Access(addresses="all"))
    assert endpoint.address == ((host, 80) if is_one else None)


def test_connections_that_nobody_accepted_yet_say_nothing_of_who_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
        with socket.create_connection(("127.0.0.1", port)):
            server.look()
        found = server.finish()
    assert found.unknown == f"no connection to 127.0.0.1:{port} was open whenever Redline looked"


def test_who_begins_to_answer_during_the_load_is_named() -> None:
    port = free_port("127.0.0.1")
    with owned("shared", "127.0.0.1", port):
        server = watch(RunningElsewhere(Endpoint("127.0.0.1", port)))
        with owned("shared", "127.0.0.1", port) as (new,):
            assert f"({new}) began to answer at 127.0.0.1:{port}" in server.finish().unknown


WARDEN = """
import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
server = subprocess.Popen(["sh", "-c", "(setsid sleep 60 & echo $! >&2); exec sleep 60"], stderr=subprocess.PIPE)
print(server.pid, server.stderr.readline().decode(), flush=True)
input()
"""


def test_what_outlived_its_parent_is_of_the_server_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", WARDEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as warden:
        assert warden.stdout is not None
        server, orphan = map(int, warden.stdout.readline().split())
        deadline = time.monotonic() + 10
        while set(started_by(server)) != {server, orphan} and time.monotonic() < deadline:
            time.sleep(0.01)  # its parent is about to end
        found = set(started_by(server))
        subprocess.run(["kill", str(server), str(orphan)], check=True)
    assert found == {server, orphan}
