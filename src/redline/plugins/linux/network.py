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
        try:
            sent, again = _counters(self._read("snmp"), b"Tcp:", b"OutSegs", b"RetransSegs")
            overflows, drops, cookies = _counters(
                self._read("netstat"), b"TcpExt:", b"ListenOverflows", b"ListenDrops", b"TCPReqQFullDoCookies"
            )
        except (IndexError, ValueError):
            return None
        return TcpCounts(
            segments_sent=sent,
            segments_retransmitted=again,
            listen_overflows=overflows,
            listen_drops=drops,
            syn_cookies=cookies,
        )

    def time_wait(self) -> int | None:
        """How many sockets are in TIME_WAIT now."""
        match = _TIME_WAIT.search(self._read("sockstat"))
        return int(match[1]) if match else None

    def _read(self, name: str) -> bytes:
        return read_bytes(os.path.join(self.root, "proc", str(self.pid), "net", name))  # noqa: PTH118 -- three a sample


def _counters(text: bytes, group: bytes, *names: bytes) -> tuple[int, ...]:
    """Values of a group, whose names stand in one line and values in the next. Raises IndexError or ValueError."""
    start = text.index(group)
    told = [line.split() for line in text[start:].split(b"\n", 2)[:2]]
    return tuple(int(told[1][told[0].index(name)]) for name in names)
