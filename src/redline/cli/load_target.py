"""What `redline load` is asked for: where to, which request, how hard."""

from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from redline.cli.selection import at_least_one
from redline.errors import UsageError
from redline.model import Body, Build, Closed, Expected, Open, Request, ServerEntry, Start
from redline.ports import Endpoint
from redline.suite import WrongValueError, parse_rate

_DEFAULT_PORT = 80
_URL_HINT = "write it like http://127.0.0.1:8080/path"
_FLAGS = {"method": "-X", "path": "URL", "status": "--status"}


class Arrivals(StrEnum):
    """When the requests of an open load fall due."""

    POISSON = "poisson"
    UNIFORM = "uniform"


def read_url(url: str) -> tuple[Endpoint, str]:
    """Host and port, and the path with its query. Raises UsageError for what the engine cannot reach."""
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        port = _DEFAULT_PORT if parts.port is None else parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint=_URL_HINT) from None
    if parts.scheme != "http":
        raise UsageError(f"{url}: cannot load {parts.scheme}://", hint="the engine speaks plain HTTP/1.1: use http://")
    if not parts.hostname or port == 0:
        raise UsageError(f"{url}: no {'port' if parts.hostname else 'host'} to connect to", hint=_URL_HINT)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.hostname, port), quote(path, safe="!#$%&'()*+,/:;=?@[]~")


def read_request(path: str, method: str | None, headers: list[str], body: str | None, status: int) -> Request:
    """The request and its right status. Raises UsageError, naming the flag."""
    try:
        return Request(
            method=(method or ("GET" if body is None else "POST")).upper(),
            path=path,
            headers=_headers(headers),
            body=None if body is None else _body(body),
            expect=Expected(status=status),
        )
    except ValidationError as error:
        first = error.errors()[0]
        flag = _FLAGS.get(str(first["loc"][-1]), str(first["loc"][-1]))
        raise UsageError(
            f"{flag} {first['input']}: {first['msg']}", hint="`redline load --help` shows each flag"
        ) from None


def read_shape(connections: int, rate: str | None, arrivals: Arrivals) -> Closed | Open:
    """Closed, or open when there is a rate. Raises UsageError."""
    at_least_one("-c", connections)
    if rate is None:
        return Closed(users=connections)
    try:
        rate_per_s = parse_rate(rate)
    except WrongValueError as error:
        raise UsageError(f"-R {rate}: {error.message}", hint=error.hint) from None
    return Open(rate_per_s=rate_per_s, arrivals=arrivals.value, connections=connections)


def running_server(endpoint: Endpoint) -> ServerEntry:
    """The entry of a server that somebody else built and runs."""
    theirs = ("already running",)
    return ServerEntry(
        name=f"{endpoint.host}:{endpoint.port}",
        about="already running",
        runtime="",
        family_folder="",
        build=Build(run=theirs, inputs=theirs, outputs=theirs),
        start=Start(command=theirs),
    )


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
        if name.strip().lower() in {known.lower() for known in headers}:
            raise UsageError(
                f"-H {name.strip()} is given twice", hint="give a header once, its values joined by commas"
            )
        headers[name.strip()] = value.strip()
    return headers


def _body(text: str) -> Body:
    if not text.startswith("@"):
        return Body(text=text)
    try:
        return Body(raw=Path(text[1:]).read_bytes())
    except OSError as error:
        raise UsageError(
            f"--body {text}: {error.strerror}", hint="name a file that can be read: --body @FILE"
        ) from None
