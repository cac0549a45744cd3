"""TCP sockets of this network namespace as the kernel knows them: sock_diag(7), which anybody may ask.

/proc/net/tcp does not say which listener gets a connection: whether a listener of IPv6 takes IPv4 too.
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from redline.lazily import dataclass

_SOCK_DIAG, _BY_FAMILY, _DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_ESTABLISHED, _CLOSE_WAIT, _LISTEN = 1, 8, 10
_INFO, _MEMORY, _ONLY_IPV6 = 2, 7, 11
"""Attributes: `struct tcp_info`, the socket's memory and drops, and IPV6_V6ONLY of a listener."""
_REQUEST = struct.Struct("=IHHIIBBBxI48x")
_HEADER = struct.Struct("=IHHII")
_SOCKET = struct.Struct("=BBxx4s16s16sI8x4xIIII")
_ATTRIBUTE = struct.Struct("=HH")
_RETRANSMITTED, _ACKED, _RECEIVED = 100, 120, 128
"""Offsets in `struct tcp_info` of `tcpi_total_retrans`, `tcpi_bytes_acked` and `tcpi_bytes_received`."""
_DROPS = 32
"""Offset of SK_MEMINFO_DROPS."""

Ip = IPv4Address | IPv6Address


class At(NamedTuple):
    """An address and a port. An IPv4 address within IPv6 (`::ffff:127.0.0.1`) is that IPv4 address."""

    ip: Ip
    port: int

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}" if self.ip.version == 4 else f"[{self.ip}]:{self.port}"


@dataclass(frozen=True)
class Tcp:
    """A socket. `inode` is 0 while nobody has accepted it; `device` is 0 unless it is bound to a device.

    `takes_ipv4` says whether a listener gets IPv4 connections to its port. Bytes and segments sent again
    are those of a connection since it began; `drops` are the attempts to connect that a listener has dropped, and
    `backlog` is the length of its queue, which holds one connection more; `waiting` are those in it.
    """

    local: At
    remote: At
    listens: bool
    inode: int
    uid: int
    device: int
    of_ipv6: bool
    takes_ipv4: bool
    backlog: int = 0
    waiting: int = 0
    drops: int = 0
    acked_bytes: int = 0
    received_bytes: int = 0
    retransmitted: int = 0


ANY = (IPv4Address("0.0.0.0"), IPv6Address("::"))  # noqa: S104 - what a listener at any address has
"""The addresses of a listener at any address."""


def listeners() -> tuple[Tcp, ...]:
    """Return all listeners. Raises OSError if the kernel does not tell."""
    return tuple(_dump(1 << _LISTEN, _MEMORY))


def connections() -> tuple[Tcp, ...]:
    """Return all established connections. Raises OSError if the kernel does not tell."""
    return tuple(_dump(1 << _ESTABLISHED, _INFO))


def half_closed() -> tuple[Tcp, ...]:
    """Return all connections in CLOSE-WAIT: the other end closed them, and the process that holds them did not.

    Raises OSError if the kernel does not tell.
    """
    return tuple(_dump(1 << _CLOSE_WAIT, _INFO))


def answering(listening: Iterable[Tcp], at: At) -> tuple[Tcp, ...]:
    """Return the listeners that get connections from this machine to this address.

    As in `inet_lookup_listener`, an exact address precedes any address, and for IPv4 an IPv4 socket precedes an IPv6
    socket that takes it too. Several share the port by SO_REUSEPORT.
    """
    loopback = socket.if_nametoindex("lo")
    on_port = [tcp for tcp in listening if tcp.local.port == at.port and tcp.device in (0, loopback)]
    exact = [tcp for tcp in on_port if tcp.local.ip == at.ip]
    for_all = [
        tcp
        for tcp in on_port
        if tcp.local.ip.is_unspecified and (tcp.takes_ipv4 if at.ip.version == 4 else tcp.of_ipv6)
    ]
    chosen = exact or for_all
    best = max(((bool(tcp.device), not tcp.of_ipv6) for tcp in chosen), default=None)
    return tuple(tcp for tcp in chosen if (bool(tcp.device), not tcp.of_ipv6) == best)


def listening_for(host: str, port: int) -> frozenset[At]:
    """Return the addresses of the listeners that get connections to this host and port; empty in another network."""
    return frozenset(tcp.local for tcp in _answering(host, port))


def shortest_queue(host: str, port: int) -> int | None:
    """How many connections to this host and port may wait to be accepted; None in another network."""
    return min((tcp.backlog + 1 for tcp in _answering(host, port)), default=None)


def _answering(host: str, port: int) -> tuple[Tcp, ...]:
    try:
        asked = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listening, ips = listeners(), [connected(plain(_without_zone(str(address[0])))) for *_, address in asked]
    except (OSError, UnicodeError):
        return ()
    local = (at for ip in ips if local_end(at := At(ip, port)))
    return tuple(tcp for at in local for tcp in answering(listening, at))


def is_this_machine(host: str) -> bool:
    """Whether connections to this host stay here: it is loopback, no address (0.0.0.0), or this machine's.

    The address may be written in any form (`127.1`, `::ffff:127.0.0.1`). Only `localhost` is looked up: other names
    may mean another machine by the time of the load.
    """
    name = host.strip().removeprefix("[").removesuffix("]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        resolved = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return False
    ip = connected(plain(_without_zone(str(resolved[0][4][0]))))
    return ip.is_loopback or (local_end(At(ip, 0)) and not ip.is_multicast and not ip.is_reserved)


def connected(ip: Ip) -> Ip:
    """Return the address that a connection reaches: no address (0.0.0.0, ::) means the loopback interface."""
    return ip_address("127.0.0.1" if ip.version == 4 else "::1") if ip.is_unspecified else ip


def _without_zone(text: str) -> Ip:
    return ip_address(text.partition("%")[0])


def local_end(at: At) -> bool:
    """Whether the address belongs to this network namespace. Sends nothing."""
    if at.ip.version == 6 and at.ip.is_link_local:  # it cannot be bound without its interface
        import psutil  # noqa: PLC0415 - it is slow to import, and few addresses are link-local

        own = (entry.address for entries in psutil.net_if_addrs().values() for entry in entries)
        return any(address.partition("%")[0] == str(at.ip) for address in own)
    family = socket.AF_INET if at.ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as attempt:
            attempt.bind((str(at.ip), 0))
    except OSError:
        return False
    return True


def _dump(states: int, attribute: int) -> Iterator[Tcp]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asked:
        asked.settimeout(1.0)
        for family in (socket.AF_INET, socket.AF_INET6):
            wanted = 1 << (attribute - 1)
            asked.send(
                _REQUEST.pack(_REQUEST.size, _BY_FAMILY, _DUMP, 0, 0, family, socket.IPPROTO_TCP, wanted, states)
            )
            try:
                yield from _answers(asked)
            except FileNotFoundError:
                if family == socket.AF_INET:  # a kernel without IPv6 does not know that family
                    raise


def _answers(asked: socket.socket) -> Iterator[Tcp]:
    while True:
        data = asked.recv(1 << 18)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            body = data[at + _HEADER.size : at + length]
            if kind == _DONE:
                return
            if kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                raise OSError(number, os.strerror(number))
            yield _read(body)
            at += (length + 3) & ~3


def _read(body: bytes) -> Tcp:
    family, state, ports, source, target, device, waiting, queued, uid, inode = _SOCKET.unpack_from(body)
    of_ipv6 = family == socket.AF_INET6
    own, peer = struct.unpack(">HH", ports)
    extra = _attributes(body[_SOCKET.size :])
    memory, info = extra.get(_MEMORY, b""), extra.get(_INFO, b"")
    return Tcp(
        local=At(_ip(source, of_ipv6=of_ipv6), own),
        remote=At(_ip(target, of_ipv6=of_ipv6), peer),
        listens=state == _LISTEN,
        inode=inode,
        uid=uid,
        device=device,
        of_ipv6=of_ipv6,
        takes_ipv4=not of_ipv6 or extra.get(_ONLY_IPV6, b"\1")[:1] == b"\0",
        backlog=queued if state == _LISTEN else 0,
        waiting=waiting if state == _LISTEN else 0,
        drops=_number("=I", memory, _DROPS),
        acked_bytes=_number("=Q", info, _ACKED),
        received_bytes=_number("=Q", info, _RECEIVED),
        retransmitted=_number("=I", info, _RETRANSMITTED),
    )


def _attributes(data: bytes) -> dict[int, bytes]:
    attributes, at = {}, 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            break
        attributes[kind] = data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return attributes


def _number(form: str, data: bytes, at: int) -> int:
    """Return the number at an offset; 0 if an older kernel lacks it."""
    return int(struct.unpack_from(form, data, at)[0]) if len(data) >= at + struct.calcsize(form) else 0


def _ip(words: bytes, *, of_ipv6: bool) -> Ip:
    return plain(ip_address(words if of_ipv6 else words[:4]))


def plain(ip: Ip) -> Ip:
    """The IPv4 address in an IPv4-mapped IPv6 address; other addresses unchanged."""
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip
