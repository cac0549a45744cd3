"""Connections on which one deadline holds for all that is sent and received, however slowly it trickles."""

import socket
import time
from typing import Any


class TimedSocket(socket.socket):
    """A connection that raises TimeoutError past its deadline, however often something arrived before it.

    A socket's own timeout begins anew with every byte that arrives.
    """

    deadline = 0.0

    def recv(self, *args: Any) -> bytes:
        """What has arrived, at most as much as asked for."""
        self._wait_at_most()
        return super().recv(*args)

    def recv_into(self, *args: Any) -> int:
        """The same, into a buffer; what `makefile` reads with."""
        self._wait_at_most()
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        """Send all of it."""
        self._wait_at_most()
        super().sendall(*args)

    def _wait_at_most(self) -> None:
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self.settimeout(left_s)


def connect(host: str, port: int, within_s: float) -> TimedSocket:
    """Connect, with everything to be over in that time. Raises OSError, of it TimeoutError when that is what ended it.

    A connection that the kernel made from a socket to itself (TCP's simultaneous open) is refused: nobody listens.
    """
    deadline = time.monotonic() + within_s
    with socket.create_connection((host, port), within_s) as plain:
        if plain.getsockname() == plain.getpeername():
            raise ConnectionRefusedError
        timed = TimedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
    timed.deadline = deadline
    return timed
