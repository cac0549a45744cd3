"""Determine which processes answer connections to a listening address, or why they are unknown.

A port says little: other processes may listen on it at other addresses, and several may share an address. So look
for the socket that the kernel gives these connections to, and then for all processes that hold it.
"""

import os
import pwd
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from ipaddress import ip_address

from redline.lazily import dataclass
from redline.linux import procfs
from redline.linux.sockets import At, Tcp, answering, listeners, local_end, plain

_ASKED_WITHIN_S = 1.0
_FORWARDERS = frozenset(
    (
        *("docker-proxy", "gvproxy", "kubectl", "pasta", "pasta.avx2", "passt", "passt.avx2", "rootlesskit"),
        *("rootlessport", "slirp4netns", "socat", "ssh", "sshd", "sshd-session"),
    )
)
"""Programs that only forward connections."""
_AS_THAT_USER = "run Redline as that user, or as root"
_ITSELF = "run Redline in the network of the server itself, or let Redline start it (a command, `image`, `compose`)"
THERE = "run Redline on that machine, or in that network"


@dataclass(frozen=True)
class Owner:
    """The processes that answer at an address, or, without any, why they are unknown, and what would help."""

    at: At | None = None
    pids: tuple[int, ...] = ()
    unknown: str = ""
    hint: str = ""


def owner_of(host: str, port: int) -> Owner:
    """Return the processes that provably answer at this host and port."""
    at = _address_of(host, port)
    if at is None:
        return Owner(unknown=f"nothing answers at {host}:{port}")
    if not local_end(at):
        return Owner(at, unknown=f"{at} is an address of another machine, or of another network namespace", hint=THERE)
    try:
        listening = listeners()
    except OSError as error:
        return Owner(at, unknown=f"the kernel does not say which socket listens at {at}: {error.strerror}")
    ours = answering(listening, at)
    if not ours:
        passed_on = f"no socket of this network namespace listens at {at}: the kernel passes it on"
        return Owner(at, unknown=passed_on, hint=_ITSELF)
    return _holders(at, ours, {listener.inode for listener in listening})


def _address_of(host: str, port: int) -> At | None:
    """Return the address that the engine connects to: the first of several that accepts a connection."""
    with suppress(OSError, UnicodeError):
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, kind, protocol) as asked:
                asked.settimeout(_ASKED_WITHIN_S)
                asked.connect(address)
                ip = asked.getpeername()[0].partition("%")[0]
                return At(plain(ip_address(ip)), port)
    return None


def _holders(at: At, ours: Iterable[Tcp], listening: set[int]) -> Owner:
    inodes = {listener.inode for listener in ours}
    held = {pid: sockets for pid in procfs.process_ids() if (sockets := procfs.open_sockets(pid))}
    for listener in ours:
        if not any(listener.inode in sockets for sockets in held.values()):
            whose = _of_user(listener.uid)
            hidden = f"the process that listens at {at} is {whose}, and hidden from this process"
            return Owner(at, unknown=hidden, hint=_AS_THAT_USER)
    holders = tuple(pid for pid, sockets in held.items() if inodes & sockets)
    for pid in holders:
        stat = procfs.read_stat(pid)
        if stat is not None and stat.name.decode(errors="replace") in _FORWARDERS:
            relayed = f"{at} is answered by {procfs.name_of(pid)}, which passes on what it gets"
            return Owner(at, unknown=relayed, hint=_ITSELF)
    elsewhere = {pid for pid, sockets in held.items() if sockets & listening and not sockets & inodes}
    return Owner(at, members(holders, elsewhere))


def _of_user(uid: int) -> str:
    with suppress(KeyError):
        return f"another user's ({pwd.getpwuid(uid).pw_name})"
    return f"another user's ({uid})"


def members(holders: Collection[int], elsewhere: Collection[int]) -> tuple[int, ...]:
    """Return a socket's holders and their descendants; `elsewhere` are processes that listen only at other addresses.

    A supervisor that holds the socket for its children counts, but not the other servers that it started. Ancestors of
    this process, and systemd, count without descendants, and not at all if others hold the socket.
    """
    below, above = procfs.children(), who_starts_all(holders)
    holding = [pid for pid in holders if pid not in above] or list(holders)
    grown = set[int]()

    def grow(pid: int) -> None:
        if pid in grown:
            return
        grown.add(pid)
        if pid in above:
            return
        inner = {child: set(procfs.with_descendants(child, below)) for child in below.get(pid, ())}
        passed_on = any(pids & set(holding) for pids in inner.values())
        for child, pids in inner.items():
            another = passed_on and not pids & set(holding) and pids & set(elsewhere)
            if not another and child not in above:
                grow(child)

    for pid in holding:
        grow(pid)
    return tuple(sorted(grown))


def who_starts_all(pids: Iterable[int]) -> set[int]:
    """Return the ancestors of this process, and service managers among these processes: what they start is others'."""
    return set(procfs.line_of(os.getpid())) | set(filter(_is_manager, pids))


def _is_manager(pid: int) -> bool:
    """Whether it is a service manager, which listens for services that it will start."""
    stat = procfs.read_stat(pid)
    return stat is not None and stat.name == b"systemd"
