"""The link by which a host is reached: how fast it is, and how much has gone over it."""

import fcntl
import re
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SIOCGIFADDR = 0x8915
_IFREQ = "16s24x"
_ADDRESS = slice(20, 24)
_ANY_PORT = 9


@dataclass(frozen=True)
class Bytes:
    """Gone over a device since it came up, with their Ethernet headers, without what the link adds between frames."""

    sent: int
    received: int


@dataclass(frozen=True)
class Link:
    """A network device of hardware, and its speed in each direction."""

    device: str
    bits_per_s: int
    root: Path = Path("/")

    def gone(self) -> Bytes | None:
        """What its counters say now."""
        folder = self.root / "sys/class/net" / self.device / "statistics"
        try:
            return Bytes(int((folder / "tx_bytes").read_text()), int((folder / "rx_bytes").read_text()))
        except (OSError, ValueError):
            return None


def towards(host: str) -> Link | None:
    """The link to this host; None for this machine itself, and where no device or no speed is told. IPv4 only."""
    device = _device_towards(host)
    return link(device) if device else None


def link(device: str, root: Path = Path("/")) -> Link | None:
    """The device with its speed; None when it has none, or one that is made up.

    Devices of software (loopback, veth, bridges) either tell no speed or one that limits nothing: it is believed of
    those that stand for hardware, and of bonds of such.
    """
    folder = root / "sys/class/net" / device
    if not (folder / "device").exists() and not (folder / "bonding").exists():
        return None
    try:
        told = (folder / "speed").read_text().strip()
    except OSError:
        return None
    return Link(device, int(told) * 1_000_000, root) if re.fullmatch(r"[1-9]\d*", told) else None


def _device_towards(host: str) -> str | None:
    """The device whose address packets to this host are sent from. Nothing is sent to find out."""
    # A name that is none is a TypeError or a ValueError of the library.
    with suppress(OSError, TypeError, ValueError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, _ANY_PORT))
        own, peer = probe.getsockname()[0], probe.getpeername()[0]
        if own == peer or own.startswith("127."):
            return None
        return next((name for _, name in socket.if_nameindex() if _address(probe, name) == own), None)
    return None


def _address(asked: socket.socket, device: str) -> str | None:
    try:
        answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack(_IFREQ, device.encode()))
    except OSError:
        return None
    return socket.inet_ntoa(answer[_ADDRESS])
