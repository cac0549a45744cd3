"""Connections on which one deadline holds for all that is sent and received, however slowly it trickles."""

import socket
import ssl
import time
from typing import Any


class TimedSocket(socket.socket):
    """Raises TimeoutError past its deadline, however often something arrived before it.

    A socket's own timeout begins anew with every byte that arrives.
    """

    deadline = 0.0

    def recv(self, *args: Any) -> bytes:
        """What has arrived, at most as much as requested."""
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


class TimedTls(TimedSocket, ssl.SSLSocket):
    """The same over TLS; its handshake keeps within the timeout that it is made with."""


def connect(
    host: str,
    port: int,
    within_s: float,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
) -> TimedSocket:
    """Connect, with everything to be over in that time. Raises OSError, of it TimeoutError when that is what ended it.

    A connection that the kernel made from a socket to itself (TCP's simultaneous open) is refused: nobody listens.
    With a context the connection is one of TLS, for the name of the server or else its host.
    """
    deadline = time.monotonic() + within_s
    with socket.create_connection((host, port), within_s) as plain:
        if plain.getsockname() == plain.getpeername():
            raise ConnectionRefusedError
        if tls is None:
            timed = TimedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            timed.deadline = deadline
            return timed
        # A handshake of many small pieces may take a little longer than the deadline.
        tls.sslsocket_class = TimedTls
        plain.settimeout(max(deadline - time.monotonic(), 0.001))
        secure = tls.wrap_socket(plain, server_hostname=server_name or host, do_handshake_on_connect=False)
        assert isinstance(secure, TimedTls)
        secure.deadline = deadline
        try:
            secure.do_handshake()
        except BaseException:
            secure.close()
            raise
        return secure
