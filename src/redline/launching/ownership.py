"""Determine whose CPU time is read for a server, and whether that stays true under load."""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from typing import NamedTuple

from redline.launching.attached import owner_at, processes_of
from redline.launching.route import RoutedServer
from redline.lazily import dataclass
from redline.linux import procfs
from redline.linux.cgroup import started_by
from redline.linux.owners import Owner, owner_of
from redline.linux.runtimes import runtimes_of
from redline.linux.sockets import At, Tcp, connections, listeners
from redline.model import CpuOwner
from redline.ports import RunningServer, ServerWatch

_LOOKS, _MOST_LOOKS, _APART_S = 8, 100, 0.1
_SAME = 0.02
"""The share of the bytes by which both sides of a relay may differ: data in flight."""


@dataclass(frozen=True)
class KnownProcesses:
    """Processes that the lab has started, which need no watch."""

    pids: tuple[int, ...]

    def look(self) -> None:
        """Do nothing: the processes are known."""

    def finish(self) -> CpuOwner:
        """Return the processes, which were known all the time."""
        return CpuOwner()


def watch(server: RunningServer) -> ServerWatch:
    """A watch for a server that is about to be loaded."""
    if isinstance(server, RoutedServer) and server.facts is None:
        started = (pid for hop in server.hops.facts for pid in hop.process.pids)
        proxies = tuple(child for pid in started for child in started_by(pid))
        return RoutedWatch(AttachedWatch.of(server.server), proxies)
    return KnownProcesses(processes_of(server)) if server.facts else AttachedWatch.of(server)


@dataclass(frozen=True)
class RoutedWatch:
    """A watch for a server that somebody else runs, behind proxies that the lab has started."""

    behind: "AttachedWatch"
    proxies: tuple[int, ...]

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of the server and of the proxies; empty if the server's are unknown."""
        return (*self.behind.pids, *self.proxies) if self.behind.pids else ()

    def look(self) -> None:
        """Look at the server: the proxies are known."""
        self.behind.look()

    def finish(self) -> CpuOwner:
        """Return what is known of the server, with the names of the proxies."""
        return self.behind.finish().and_of(tuple(map(procfs.name_of, self.proxies)))


class _Bytes(NamedTuple):
    """Bytes received and acknowledged on some connections."""

    received: int = 0
    acked: int = 0

    def is_like(self, other: "_Bytes") -> bool:
        """Whether the bytes received here were sent there, and vice versa."""
        pairs = (self.received, other.acked), (self.acked, other.received)
        return all(min(pair) > 0 and abs(pair[0] - pair[1]) <= _SAME * max(pair) for pair in pairs)


@dataclass
class _Counted:
    """The bytes of some connections at the first and at the last look, by inode; `at` are their peers."""

    first: dict[int, _Bytes] = field(default_factory=dict)
    last: dict[int, _Bytes] = field(default_factory=dict)
    at: dict[int, At] = field(default_factory=dict)

    def add(self, connections: Iterable[Tcp], *, begins: bool) -> None:
        """Note their counts. Connections that exist when it `begins` had counted before."""
        for tcp in connections:
            now = _Bytes(tcp.received_bytes, tcp.acked_bytes)
            self.first.setdefault(tcp.inode, now if begins else _Bytes())
            self.last[tcp.inode], self.at[tcp.inode] = now, tcp.remote

    @property
    def busy(self) -> list[At]:
        """Return the peers of connections that received data meanwhile."""
        received = (inode for inode, now in self.last.items() if now.received > self.first[inode].received)
        return sorted({self.at[inode] for inode in received})

    @property
    def total(self) -> _Bytes:
        """Return the bytes of all connections since they began: a relay's connections come in pairs of the same age."""
        last = self.last.values()
        return _Bytes(sum(count.received for count in last), sum(count.acked for count in last))


class AttachedWatch:
    """A watch for a server that somebody else runs."""

    def __init__(self, host: str, port: int, owner: Owner) -> None:
        self.pids = owner.pids
        self._host, self._port, self._at, self._unknown = host, port, owner.at, owner.unknown
        self._hint = owner.hint
        self._known = set(owner.pids)
        self._looks, self._seen, self._due_s = 0, 0, 0.0
        self._was_open = False
        self._strangers: frozenset[int] = frozenset()
        self._clients, self._others = _Counted(), _Counted()

    @classmethod
    def of(cls, server: RunningServer) -> "AttachedWatch":
        """The watch for a server at its address."""
        host, port = server.endpoint.address or (server.endpoint.host, server.endpoint.port)
        return cls(host, port, owner_at(server.endpoint))

    def look(self) -> None:
        """Check, a few times if need be, whether the processes answer the server's connections, and whom they ask."""
        now_s = time.monotonic()
        if self._unknown or self._seen == _LOOKS or self._looks == _MOST_LOOKS or now_s < self._due_s:
            return
        self._due_s = now_s + _APART_S
        with suppress(OSError):
            self._follow()
            before = self._sockets()  # of connections that end meanwhile too
            established = connections()
            held = before | self._sockets()
            accepted = {tcp.inode for tcp in established if tcp.local == self._at and tcp.inode}
            self._was_open |= bool(accepted)
            listening = {listener.local.port for listener in listeners() if listener.inode in held}
            mine = [tcp for tcp in established if tcp.inode in held]
            self._clients.add((tcp for tcp in mine if tcp.local == self._at), begins=not self._looks)
            self._others.add((tcp for tcp in mine if tcp.local.port not in listening), begins=not self._looks)
            self._looks += 1
            self._seen += any(tcp.local == self._at for tcp in mine)
            self._see_strangers(accepted - held)

    def finish(self) -> CpuOwner:
        """Return the result, once the load has ended."""
        self._unknown = self._unknown or self._newcomers() or self._relayed() or self._unseen()
        names, runtimes = tuple(map(procfs.name_of, self.pids)), tuple(sorted(runtimes_of(self.pids)))
        behind = "" if self._unknown else ", ".join(map(str, self._others.busy))
        unknown, hint = self._unknown, self._hint
        return CpuOwner(processes=names, unknown=unknown, hint=hint, runtimes=runtimes, behind=behind)

    def _follow(self) -> None:
        """Take what its processes have started for its processes too."""
        below, above = procfs.children(), procfs.line_of(os.getpid())
        grown = [pid for pid in self._known if pid not in above]
        for pid in grown:
            grown += [child for child in below.get(pid, ()) if child not in self._known]
            self._known.update(below.get(pid, ()))

    def _sockets(self) -> set[int]:
        """Return the sockets of its processes."""
        return {inode for pid in self._known for inode in procfs.open_sockets(pid) or ()}

    def _see_strangers(self, inodes: set[int]) -> None:
        """Note connections of other processes: visible processes, or unseen twice in a row, as sockets change hands."""
        if inodes:
            self._follow()
        strange = frozenset(inodes) - self._sockets()
        lasting, self._strangers = strange & self._strangers, strange
        if not strange:
            return
        for pid in procfs.process_ids():
            if strange & (procfs.open_sockets(pid) or frozenset()):
                self._unknown = f"connections to {self._at} are answered by {procfs.name_of(pid)} as well"
                return
        if lasting:
            self._unknown = f"connections to {self._at} are answered by a process that is hidden from this user"

    def _newcomers(self) -> str:
        """Return a message if other processes answer now that no known process has started."""
        self._follow()
        now = owner_of(self._host, self._port)
        new = [pid for pid in now.pids if pid not in self._known]
        return f"{procfs.name_of(new[0])} began to answer at {self._at} during the load" if new else ""

    def _relayed(self) -> str:
        """Return a message if the processes relay another listener's bytes."""
        if not self._clients.total.is_like(self._others.total):
            return ""
        to = min(self._others.at.values())
        return f"{self._at} is answered by {procfs.name_of(self.pids[0])}, which passes on what it gets from {to}"

    def _unseen(self) -> str:
        """Return a message if the processes never held a connection: Redline may have looked too rarely to see it."""
        if self._seen:
            return ""
        if not self._was_open:
            self._hint = "load it for longer, and leave the machine more time for Redline"
            if not self._looks:
                return f"Redline had no time to look which process answers at {self._at}"
            return f"no connection to {self._at} was open whenever Redline looked"
        self._hint = "load it for longer, by connections that are kept"
        return f"no connection to {self._at} was open for long enough to see which process answers"
