"""TCP counters of a network namespace, and the link to a host. Unknown is None."""

import os
import re
import socket
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from redline.lazily import dataclass
from redline.linux.procfs import read_bytes
from redline.linux.sockets import At, plain

_TIME_WAIT = re.compile(rb"^TCP:.* tw (\d+)", re.MULTILINE)
_LISTEN = b"0A"
_ANY_PORT = 9


class TcpCounts(NamedTuple):
    """Counts since the namespace was made, over all its sockets, by series.

    `listen_drops`: attempts to connect that a listener dropped, including those with a complete connection that
    overflowed the accept queue (`listen_overflows`). `syn_cookies`: attempts answered by a
    cookie, because the queue of half-open connections was full. Retransmitted segments are not counted as sent.
    """

    tcp_segments_sent: int
    tcp_segments_retransmitted: int
    listen_overflows: int
    listen_drops: int
    syn_cookies: int


@dataclass(frozen=True)
class Namespace:
    """A network namespace, read through a process in it, while that lives."""

    pid: int | str
    root: Path = Path("/")

    @classmethod
    def of(cls, pid: int, root: Path = Path("/")) -> "Namespace":
        """The namespace of a process; if it is also ours, it is read through this process, which lives longer."""
        try:
            ours = (root / f"proc/{pid}/ns/net").readlink() == (root / "proc/self/ns/net").readlink()
        except OSError:
            ours = False
        return cls("self" if ours else pid, root)

    @property
    def ours(self) -> bool:
        """Whether this process is in it: network settings can only be read in the own namespace."""
        return self.pid == "self"

    def listening(self) -> set[tuple[At, int]]:
        """Addresses of all listeners, and their inodes: proc(5), /proc/net/tcp."""
        lines = [line.split() for name in ("tcp", "tcp6") for line in self._read(name).splitlines()[1:]]
        return {(_address(words[1].decode()), int(words[9])) for words in lines if words[3:4] == [_LISTEN]}

    def tcp(self) -> TcpCounts | None:
        """From /proc/net/snmp (RFC 4022: tcpOutSegs, tcpRetransSegs) and netstat (Linux: snmp_counter.rst)."""
        try:
            sent, again = _counters(self._read("snmp"), b"Tcp:", b"OutSegs", b"RetransSegs")
            overflows, drops, cookies = _counters(
                self._read("netstat"), b"TcpExt:", b"ListenOverflows", b"ListenDrops", b"TCPReqQFullDoCookies"
            )
        except (IndexError, ValueError):
            return None
        return TcpCounts(sent, again, overflows, drops, cookies)

    def time_wait(self) -> int | None:
        """The current number of sockets in TIME_WAIT."""
        match = _TIME_WAIT.search(self._read("sockstat"))
        return int(match[1]) if match else None

    def _read(self, name: str) -> bytes:
        return read_bytes(os.path.join(self.root, "proc", str(self.pid), "net", name))  # noqa: PTH118 -- three a sample


def _counters(text: bytes, group: bytes, *names: bytes) -> tuple[int, ...]:
    """Values of a group, whose names stand in a line and values in the next. Raises IndexError or ValueError."""
    start = text.index(group)
    columns, values = (line.split() for line in text[start:].split(b"\n", 2)[:2])
    return tuple(int(values[columns.index(name)]) for name in names)


@dataclass(frozen=True)
class LinkBytes:
    """Bytes of a device since it came up, with Ethernet headers, without preambles and gaps between frames."""

    sent: int
    received: int


@dataclass(frozen=True)
class Link:
    """A network device of hardware, and its speed in each direction."""

    device: str
    bits_per_s: int
    root: Path = Path("/")

    def counted(self) -> LinkBytes | None:
        """Its current counters."""
        folder = self.root / "sys/class/net" / self.device / "statistics"
        try:
            return LinkBytes(int((folder / "tx_bytes").read_text()), int((folder / "rx_bytes").read_text()))
        except (OSError, ValueError):
            return None


def towards(host: str) -> Link | None:
    """Return the link to a host; None for this machine, and if device or speed is unknown. IPv4 only."""
    device = _device_towards(host)
    return link(device) if device else None


def link(device: str, root: Path = Path("/")) -> Link | None:
    """Return the device with its speed; None without a meaningful speed.

    Software devices (loopback, veth, bridges) have no speed, or a speed that limits nothing: so the speed counts
    only for hardware, and for bonds of hardware.
    """
    folder = root / "sys/class/net" / device
    if not (folder / "device").exists() and not (folder / "bonding").exists():
        return None
    try:
        speed = (folder / "speed").read_text().strip()
    except OSError:
        return None
    return Link(device, int(speed) * 1_000_000, root) if re.fullmatch(r"[1-9]\d*", speed) else None


def _device_towards(host: str) -> str | None:
    """Return the device from which packets to this host are sent. Sends nothing."""
    # For an invalid name the library raises TypeError or ValueError.
    with suppress(OSError, TypeError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((host, _ANY_PORT))
        own, peer = client.getsockname()[0], client.getpeername()[0]
        if own != peer and not own.startswith("127."):
            import psutil  # noqa: PLC0415 - it is slow to import, and no load on this machine needs it

            devices = psutil.net_if_addrs().items()
            return next(
                (name for name, addresses in devices if own in {address.address for address in addresses}), None
            )
    return None


def _address(text: str) -> At:
    """`0100007F:1F90`: the kernel prints every 32 bits of an address in the byte order of the machine."""
    digits, _, port = text.partition(":")
    words = bytes.fromhex(digits)
    if sys.byteorder == "little":
        words = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    return At(plain(ip_address(words)), int(port, 16))
