"""Observe which process listens where, for a server that is not at its address. Nothing is inferred."""

import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from ipaddress import ip_address
from operator import attrgetter
from typing import NamedTuple, Self

from redline.lazily import dataclass
from redline.linux import procfs
from redline.linux.cgroup import started_by
from redline.linux.network import Namespace
from redline.linux.owners import owner_of
from redline.linux.sockets import At, Tcp, answering, is_this_machine, listeners

_MOST_NAMED = 4
_LISTENS_WITHIN_S = 3.0


class Listener(NamedTuple):
    """A process that listens at an address; 0 if it is hidden from this user. Its name stays after it ends."""

    pid: int
    name: str
    at: At

    @classmethod
    def of(cls, pid: int, at: At) -> Self:
        """The listener, with the process's current name."""
        return cls(pid, procfs.name_of(pid) if pid else "a process that is hidden from this user", at)

    @property
    def order(self) -> tuple[int, str, int, At]:
        """The sort key of listeners: IPv4 and IPv6 addresses do not compare."""
        return self.pid, self.name, self.at.ip.version, self.at

    @property
    def is_ours(self) -> bool:
        """Whether this process has started it."""
        return self.pid in procfs.tree(os.getpid())


@dataclass(frozen=True)
class Whereabouts:
    """Observations of a server that is not ready: the names of its living processes, and where they listen.

    `reached`: connections to its address reach it. `holders` are others who listen on its port.
    """

    living: tuple[str, ...] = ()
    listening: tuple[Listener, ...] = ()
    holders: tuple[Listener, ...] = ()
    reached: bool = False

    @classmethod
    def of(cls, pid: int, host: str, port: int) -> Self:
        """Look at the server that began as this process, and should listen at this address."""
        mine, own = started_by(pid), listening(pid)
        reached = any(listener.at.port == port for listener in own)
        if Namespace.of(pid).ours:
            with suppress(OSError):
                at = {listener.at for listener in own}
                reached = any(tcp.local in at for tcp in answering(listeners(), At(ip_address(host), port)))
        stats = ((child, procfs.read_stat(child)) for child in mine)
        living = tuple(procfs.name_of(child) for child, stat in stats if stat and stat.state not in "ZX")
        return cls(living, own, holders_of(port, mine), reached)

    @classmethod
    def of_those_left(cls, pid: int, host: str, port: int) -> Self:
        """Look at a server that ended: its descendants get a moment to listen."""
        deadline = time.monotonic() + _LISTENS_WITHIN_S
        while (seen := cls.of(pid, host, port)).living and not seen.listening and time.monotonic() < deadline:
            time.sleep(0.02)
        return seen


def said(listening: Collection[Listener]) -> str:
    """`python3 (4711) listens at [::1]:8080`, by process."""
    by_process: dict[str, list[str]] = {}
    for listener in listening:
        by_process.setdefault(listener.name, []).append(str(listener.at))
    return "; ".join(
        f"{name} listens at {', '.join(places[:_MOST_NAMED])}{', …' if len(places) > _MOST_NAMED else ''}"
        for name, places in by_process.items()
    )


def listens(host: str, port: int, pid: int, inside: int | None = None) -> bool:
    """Whether connections here reach only the process or its descendants; True if the kernel does not say.

    In another network it is only known that a process listens on the port, which may be called `inside` there.
    """
    try:
        answer = answering(listeners(), At(ip_address(host), port))
    except OSError:
        return True
    if not Namespace.of(pid).ours and (inside or port) in {listener.at.port for listener in listening(pid)}:
        return True
    held = _sockets_of(started_by(pid))
    return all(tcp.inode in held for tcp in answer)


def listening(pid: int) -> tuple[Listener, ...]:
    """Return where a process, its descendants or its group listen, as far as the kernel says."""
    namespace = Namespace.of(pid)
    if not namespace.ours and (heard := namespace.listening()):
        return tuple(sorted({Listener.of(pid, at) for at, _ in heard}, key=attrgetter("order")))
    owners = {at: child for child in reversed(started_by(pid)) for at in _addresses(child)}
    return tuple(sorted((Listener.of(owner, at) for at, owner in owners.items()), key=attrgetter("order")))


def is_out_of_reach(port: int, listening: Iterable[Listener]) -> bool:
    """Whether a server listens on this port, and only at loopback addresses of its own network."""
    heard = [listener.at.ip for listener in listening if listener.at.port == port]
    return bool(heard) and all(ip.is_loopback for ip in heard)


def holders_of(port: int, but: Iterable[int] = ()) -> tuple[Listener, ...]:
    """Return other processes that listen on this port of this machine, at any address."""
    own = _sockets_of(but)
    return _holding(lambda tcp: tcp.local.port == port and tcp.inode not in own)


def ours() -> tuple[Listener, ...]:
    """Return where the descendants of this process listen."""
    held = _sockets_of(set(procfs.tree(os.getpid())) - {os.getpid()})
    return _holding(lambda tcp: tcp.inode in held)


def who_answers(host: str, port: int) -> str:
    """Describe the process that answers at an address, or say why it is unknown."""
    return said(holders_of(port)) or owner_of(host, port).unknown


def listens_elsewhere(host: str, port: int) -> str:
    """Describe processes that listen on this port at other addresses; empty if the host is another machine."""
    return said(holders_of(port)) if is_this_machine(host) else ""


def _holding(wanted: Callable[[Tcp], bool]) -> tuple[Listener, ...]:
    """Return the matching listeners; empty if the kernel does not tell."""
    chosen: list[Tcp] = []
    with suppress(OSError):
        chosen = [listener for listener in listeners() if wanted(listener)]
    held = {pid: procfs.open_sockets(pid) or frozenset() for pid in procfs.process_ids()} if chosen else {}
    first = (Listener.of(min((pid for pid in held if tcp.inode in held[pid]), default=0), tcp.local) for tcp in chosen)
    return tuple(sorted(set(first), key=attrgetter("order")))


def _sockets_of(pids: Iterable[int]) -> set[int]:
    return {inode for pid in pids for inode in procfs.open_sockets(pid) or ()}


def _addresses(pid: int) -> set[At]:
    held = procfs.open_sockets(pid) or ()
    return {at for at, inode in Namespace.of(pid).listening() if inode in held}
