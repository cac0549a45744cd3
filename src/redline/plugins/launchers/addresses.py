"""Ports: which to give to a server, and whether it is really that server that listens there."""

import random
import socket
from pathlib import Path

from redline.errors import LaunchError
from redline.plugins.linux import cgroup, procfs

_LOWEST = 10_000
_ENOUGH = 1_000
_TRIES = 200


def free_port(port_range: Path = Path("/proc/sys/net/ipv4/ip_local_port_range")) -> int:
    """A port on which nothing listens now. Raises LaunchError when none is found.

    It lies below the range from which the kernel takes ports for outgoing connections, where that leaves room: there no
    client, the load engine included, can take it between this moment and the server's bind, and a connection to it
    cannot be answered by its own socket (TCP's simultaneous open).
    """
    try:
        lowest_outgoing = int(port_range.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest_outgoing = 0
    chooser = random.SystemRandom()
    for _ in range(_TRIES):
        roomy = lowest_outgoing - _LOWEST >= _ENOUGH
        port = _bindable(chooser.randrange(_LOWEST, lowest_outgoing) if roomy else 0)
        if port:
            return port
    raise LaunchError(
        "no free TCP port was found for a server",
        hint="see what holds them with `ss -ltn`; earlier connections in TIME_WAIT end by themselves within a minute",
    )


def listens(port: int, pid: int) -> bool:
    """Whether the socket that listens on this port is held by the process, one below it, or one of its group.

    True as well when the kernel does not tell: then nothing speaks against it.
    """
    inodes = procfs.listening_inodes(port)
    if not inodes:
        return True
    group = cgroup.own_group_of(pid)
    suspects = cgroup.processes(group) if group else ()
    return any(procfs.holds_socket(each, inodes) for each in suspects or procfs.tree(pid))


def _bindable(port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return 0
        bound: int = probe.getsockname()[1]
        return bound
