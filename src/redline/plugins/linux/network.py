"""What the kernel counts of TCP in one network namespace. What it does not tell is None."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux.procfs import read_bytes

_TIME_WAIT = re.compile(rb"^TCP:.* tw (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class TcpCounts:
    """Since the namespace was made, of all its sockets.

    `listen_drops`: attempts to connect that a listener dropped; those are among them whose connection was complete, but
    found the queue of those to be accepted full (`listen_overflows`). `syn_cookies`: attempts that were answered by a
    cookie, because the queue of half-open connections was full. A retransmitted segment is not among those sent.
    """

    segments_sent: int
    segments_retransmitted: int
    listen_overflows: int
    listen_drops: int
    syn_cookies: int


@dataclass(frozen=True)
class Namespace:
    """A network namespace, read by way of a process in it, for as long as that lives."""

    pid: int | str
    root: Path = Path("/")

    @classmethod
    def of(cls, pid: int, root: Path = Path("/")) -> "Namespace":
        """The one that a process is in; where that is our own too, it is read by way of us, who live longer."""
        try:
            ours = (root / f"proc/{pid}/ns/net").readlink() == (root / "proc/self/ns/net").readlink()
        except OSError:
            ours = False
        return cls("self" if ours else pid, root)

    @property
    def ours(self) -> bool:
        """Whether this process is in it: the settings of a network are told for one's own namespace only."""
        return self.pid == "self"

    def tcp(self) -> TcpCounts | None:
        """From /proc/net/snmp (RFC 4022: tcpOutSegs, tcpRetransSegs) and netstat (Linux: snmp_counter.rst)."""
        told = _counters(self._read("snmp"), b"Tcp:")
        more = _counters(self._read("netstat"), b"TcpExt:")
        try:
            return TcpCounts(
                segments_sent=int(told[b"OutSegs"]),
                segments_retransmitted=int(told[b"RetransSegs"]),
                listen_overflows=int(more[b"ListenOverflows"]),
                listen_drops=int(more[b"ListenDrops"]),
                syn_cookies=int(more[b"TCPReqQFullDoCookies"]),
            )
        except (KeyError, ValueError):
            return None

    def time_wait(self) -> int | None:
        """How many sockets are in TIME_WAIT now."""
        match = _TIME_WAIT.search(self._read("sockstat"))
        return int(match[1]) if match else None

    def _read(self, name: str) -> bytes:
        return read_bytes(os.path.join(self.root, "proc", str(self.pid), "net", name))  # noqa: PTH118 -- three a sample


def _counters(text: bytes, group: bytes) -> dict[bytes, bytes]:
    """The group's names, which stand in one line, with their values, which stand in the next."""
    lines = [line.split() for line in text.splitlines() if line.startswith(group)]
    return dict(zip(*lines, strict=False)) if len(lines) == 2 else {}
