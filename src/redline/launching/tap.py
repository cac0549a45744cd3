"""Observe which protocol a proxy really speaks to its upstream, by a relay that reads the start of connections.

Over TLS it reads which protocols the proxy offers by ALPN (RFC 7301), and offers them to the server itself.
"""

import re
import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from redline.model import Leg
from redline.ports import Endpoint

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WITHIN_S = 5.0
_KEPT = 1 << 14
_CHUNK = 1 << 16
_ALPN = 16
_REQUEST = re.compile(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n")
_SWITCHED = re.compile(rb"HTTP/1\.1 101 .*\r\n[Uu]pgrade: *h2c\b", re.DOTALL)


@dataclass
class Beginning:
    """The first bytes of a connection, in both directions."""

    sent: bytes = b""
    answered: bytes = b""


@dataclass
class Tap:
    """A relay to a server. `beginnings` has its connections in the order in which they were made."""

    endpoint: Endpoint
    server: Endpoint
    beginnings: list[Beginning] = field(default_factory=list)

    def leg(self) -> Leg | None:
        """Return the protocol of the last connection that carried data; None without any, or for another protocol."""
        used = [beginning for beginning in self.beginnings if beginning.sent]
        if not used:
            return None
        last = used[-1]
        if last.sent.startswith(b"\x16\x03"):
            offered = offered_by(last.sent)
            return None if offered is None else "h2+tls" if self._chosen(offered) == "h2" else "h1+tls"
        if last.sent.startswith(PREFACE[:16]) or _SWITCHED.match(last.answered):
            return "h2c"
        return "h1" if _REQUEST.match(last.sent) else None

    def _chosen(self, offered: tuple[str, ...]) -> str | None:
        """Return the protocol that the server chooses among the offered protocols."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if offered:
            context.set_alpn_protocols(offered)
        address = self.server.host, self.server.port
        with (
            suppress(OSError),
            socket.create_connection(address, _WITHIN_S) as plain,
            context.wrap_socket(plain, server_hostname=self.server.host) as secure,
        ):
            return secure.selected_alpn_protocol()
        return None


@contextmanager
def tapped(server: Endpoint) -> Iterator[Tap]:
    """Yield a relay to this server, on its own port. Its connections are closed at the end. Raises OSError."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=128))
        wake, waker = socket.socketpair()
        stack.enter_context(wake)
        tap = Tap(Endpoint("127.0.0.1", listener.getsockname()[1], server.ca_pem), server)
        thread = threading.Thread(target=_relay, args=(tap, listener, wake), name="tap", daemon=True)
        thread.start()
        try:
            yield tap
        finally:
            waker.close()
            thread.join()


def _relay(tap: Tap, listener: socket.socket, wake: socket.socket) -> None:
    """Relay data until `wake` ends."""
    with selectors.DefaultSelector() as selector, ExitStack() as open_sockets:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is wake:
                    return
                with suppress(OSError):
                    if key.fileobj is listener:
                        _accept(tap, listener, selector, open_sockets)
                    else:
                        _pass_on(key, selector)


def _accept(tap: Tap, listener: socket.socket, selector: selectors.BaseSelector, open_sockets: ExitStack) -> None:
    client = open_sockets.enter_context(listener.accept()[0])
    try:
        server = open_sockets.enter_context(socket.create_connection((tap.server.host, tap.server.port), _WITHIN_S))
    except OSError:
        client.close()
        raise
    beginning = Beginning()
    tap.beginnings.append(beginning)
    for end, other, is_client in ((client, server, True), (server, client, False)):
        end.settimeout(_WITHIN_S)
        selector.register(end, selectors.EVENT_READ, (other, beginning, is_client))


def _pass_on(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    sender = key.fileobj
    assert isinstance(sender, socket.socket)
    other, beginning, is_client = key.data
    try:
        data = sender.recv(_CHUNK)
    except OSError:
        data = b""
    if not data:
        selector.unregister(sender)
        other.shutdown(socket.SHUT_WR)
        return
    if is_client:
        beginning.sent += data[: _KEPT - len(beginning.sent)]
    else:
        beginning.answered += data[: _KEPT - len(beginning.answered)]
    other.sendall(data)


def offered_by(hello: bytes) -> tuple[str, ...] | None:
    """Return the protocols that a ClientHello offers by ALPN, in its order; None for anything else."""
    message = b""
    while len(hello) >= 5 and hello[0] == 0x16:  # a ClientHello may be spread over several records
        length = int.from_bytes(hello[3:5])
        message, hello = message + hello[5 : 5 + length], hello[5 + length :]
    if len(message) < 4 or message[0] != 1 or len(message) < 4 + int.from_bytes(message[1:4]):
        return None
    at = 4 + 2 + 32  # type and length, version, random
    at += 1 + message[at]  # session
    at += 2 + int.from_bytes(message[at : at + 2])  # ciphers
    at += 1 + message[at]  # compression
    end = at + 2 + int.from_bytes(message[at : at + 2])
    at += 2
    while at + 4 <= end:
        kind, length = int.from_bytes(message[at : at + 2]), int.from_bytes(message[at + 2 : at + 4])
        if kind == _ALPN:
            names, listed = [], message[at + 6 : at + 4 + length]
            while listed:
                names.append(listed[1 : 1 + listed[0]].decode("latin-1"))
                listed = listed[1 + listed[0] :]
            return tuple(names)
        at += 4 + length
    return ()
