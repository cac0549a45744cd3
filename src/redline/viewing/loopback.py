"""A server on a port of the loopback address, with a thread for each connection, and a limit of connections.

Every user of the machine can connect to it. Whoever opens connections and sends nothing must neither use up the threads
nor keep others out.
"""

import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, TCPServer, ThreadingMixIn
from typing import Any

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = 64
"""At the same time; a browser opens six."""


class LoopbackServer(ThreadingMixIn, TCPServer):
    """Not an HTTPServer, which asks the resolver for the name of its address.

    With one connection more than `MOST_CONNECTIONS`, the oldest is closed: answers take much less time than it takes
    others to open so many.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS  # with fewer, a burst of connections waits a second and more for the kernel
    block_on_close = False  # a connection that is kept open must not hold up the end of the command

    def __init__(self, port: int, handler: type[BaseRequestHandler]) -> None:
        super().__init__((ADDRESS, port), handler)
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, after room was made for it."""
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):  # its thread wakes up, and closes it
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._open.pop(request, None)
            super().shutdown_request(request)
