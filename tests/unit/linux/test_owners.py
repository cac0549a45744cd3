"""The owner of a listening address: real servers on this machine, which hold their sockets in different ways."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from redline.linux.owners import members, owner_of
from redline.linux.sockets import listening_for
from tests.fakes.servers.owned import free_port, listen, owned


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
@pytest.mark.parametrize(
    ("host", "bystander"),
    [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "::1"), ("::1", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"), ("::1", "::")],
)
def test_a_neighbour_at_another_address_of_the_port_is_not_the_server(host: str, bystander: str, order: int) -> None:
    port = free_port(host)
    hosts = [host, bystander][::order]
    with ExitStack() as stack:
        how = {each: "alone" if each == host else "shared" for each in hosts}
        if bystander in ("0.0.0.0", "::"):
            how = dict.fromkeys(hosts, "shared")
        pids = {each: stack.enter_context(owned(how[each], each, port)) for each in hosts}
        assert set(owner_of(host, port).pids) == pids[host]


def test_all_who_share_a_port_are_the_server() -> None:
    port = free_port("127.0.0.1")
    with owned("shared", "127.0.0.1", port) as one, owned("shared", "127.0.0.1", port) as other:
        assert set(owner_of("127.0.0.1", port).pids) == one | other


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost", "0.0.0.0"])
def test_a_socket_of_ipv6_takes_ipv4_too_unless_it_says_otherwise(host: str) -> None:
    port = free_port("::")
    with owned("both", "::", port) as both:
        assert set(owner_of(host, port).pids) == both


def test_a_socket_that_takes_ipv6_alone_is_not_the_server_of_ipv4() -> None:
    port = free_port("127.0.0.1", "::")
    with owned("alone", "0.0.0.0", port) as fourth, owned("alone", "::", port) as sixth:
        assert set(owner_of("127.0.0.1", port).pids) == fourth
        assert set(owner_of("::1", port).pids) == sixth
        assert set(owner_of("::ffff:127.0.0.1", port).pids) == fourth


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "::ffff:127.0.0.1", "0.0.0.0", "localhost"])
def test_the_same_socket_is_found_however_its_address_is_written(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert [str(at) for at in listening_for(host, port)] == [f"127.0.0.1:{port}"]
        assert owner_of(host, port).pids


@pytest.mark.parametrize("how", ["forks", "supervises"])
def test_all_who_hold_the_socket_are_the_server_and_no_neighbour_of_theirs(how: str) -> None:
    port = free_port("127.0.0.1")
    with owned(how, "127.0.0.1", port) as pids:
        assert set(owner_of("127.0.0.1", port).pids) == pids


def test_of_who_started_this_process_nothing_else_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        parent = os.getppid()
        assert members([parent], []) == (parent,)
        assert members([parent, child.pid], []) == (child.pid,)


@pytest.mark.parametrize("name", ["docker-proxy", "rootlessport", "socat", "ssh"])
def test_a_program_that_only_passes_on_is_named_and_not_the_server(name: str) -> None:
    port = free_port("127.0.0.1")
    with owned("alone", "127.0.0.1", port, name=name) as (pid,):
        owner = owner_of("127.0.0.1", port)
    assert owner.pids == ()
    assert f"127.0.0.1:{port} is answered by {name} ({pid}), which passes on" in owner.unknown


def test_who_is_not_of_this_network_is_unknown() -> None:
    port = free_port("127.0.0.1")
    assert owner_of("127.0.0.1", port).unknown == f"nothing answers at 127.0.0.1:{port}"
    assert "nothing answers" in owner_of("a name that is none", port).unknown


HIDDEN = """
import os, sys
from redline.linux.owners import owner_of
owner_of("127.0.0.1", 1)
os.setgroups([]), os.setgid(65534), os.setuid(65534)
print(owner_of("127.0.0.1", int(sys.argv[1])))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_process_is_unknown_with_the_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, listen("127.0.0.2", listener.getsockname()[1]):
        port = listener.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", HIDDEN, str(port)], capture_output=True, text=True, timeout=20, check=True
        )
    assert "pids=()" in done.stdout
    assert f"listens at 127.0.0.1:{port} is another user's (root)" in done.stdout
