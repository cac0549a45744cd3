"""The site on a port of the loopback address, by the server of the standard library.

docs/decisions/0039-view.md says why that one.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from typing import BinaryIO

from redline.errors import UsageError
from redline.viewing.loopback import ADDRESS, LoopbackServer
from redline.viewing.site import Answer, Site

_IDLE_S = 10.0
_LAST_PORT = 65535
_AT_ONCE = 1 << 18
_NICE = 10
"""What is measured on this machine meanwhile comes first."""


@contextmanager
def listening(site: Site, port: int) -> Iterator["ViewServer"]:
    """A server of the site, which listens; with port 0 on a free one. Raises UsageError where it cannot."""
    if not 0 <= port <= _LAST_PORT:
        raise UsageError(f"--port {port} is no port", hint=f"give one from 1 to {_LAST_PORT}, or leave it out")
    try:
        server = ViewServer(port, site)
    except OSError as error:
        raise UsageError(
            f"--port {port}: {ADDRESS}:{port} cannot be listened on: {error.strerror}",
            hint="give another port, leave --port out for a free one, or end what listens there: ss -ltnp",
        ) from None
    with server:
        yield server


class ViewServer(LoopbackServer):
    """The site's server."""

    def __init__(self, port: int, site: Site) -> None:
        super().__init__(port, _ViewHandler)
        self.site = site

    def serve(self) -> None:
        """Answer until KeyboardInterrupt, with a low priority."""
        os.nice(_NICE)
        self.serve_forever()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the listing, with the token."""
        return f"http://{ADDRESS}:{self.port}/{self.site.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say what went wrong, unless it is a browser that went away."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, OSError):
            sys.stderr.write(
                f"redline: a page could not be made: {type(error).__name__}: {error}\n"
                "  hint: this is a fault of Redline: please report it, with the run if you can\n"
            )


class _ViewHandler(BaseHTTPRequestHandler):
    server: ViewServer
    timeout = _IDLE_S

    def parse_request(self) -> bool:
        """Refuse all methods but GET and HEAD, whatever they are called."""
        if not super().parse_request():
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self._send(self.server.site.answer(self.command, self.path, ""))
        return False

    def do_GET(self) -> None:
        """Send what the site answers."""
        self._send(self.server.site.answer(self.command, self.path, self.headers.get("Host", "")))

    def do_HEAD(self) -> None:
        """Send the head of the same."""
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the status alone: it is for whoever sends what is no request."""
        del message, explain
        self._send(Answer(HTTPStatus(code)))

    def version_string(self) -> str:
        """The server's name, without versions."""
        return "redline"

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal has the address."""

    def _send(self, answer: Answer) -> None:
        self.close_connection = True
        length = len(answer.content) if answer.file is None else os.fstat(answer.file.fileno()).st_size
        try:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.content)
                if answer.file is not None:
                    send_part(answer.file, self.wfile, length)
        finally:
            if answer.file is not None:
                with suppress(OSError):
                    answer.file.close()


def send_part(file: BinaryIO, to: BinaryIO | BufferedIOBase, length: int) -> None:
    """Copy so many bytes of a file, which may grow meanwhile: the head of the answer says how many come."""
    while length > 0 and (part := file.read(min(length, _AT_ONCE))):
        to.write(part)
        length -= len(part)
