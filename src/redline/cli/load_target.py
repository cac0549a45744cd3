"""What `redline load` is asked for: where to, over what, and which request."""

from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import ValidationError

from redline.errors import UsageError
from redline.model import AttachedServer, Body, Expected, Request, Tls, Variant
from redline.model.template import Pick, for_each_literal, malformed, placeholders
from redline.ports import Endpoint
from redline.suite import read_data, read_entries

_SAFE = "!#$%&'()*+,/:;=?@[]~"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_HINT = "write it like http://127.0.0.1:8080/path"
_FLAGS = {"method": "-X", "path": "URL", "status": "--status"}


def read_url(url: str) -> tuple[Endpoint, str]:
    """Host and port, and the path with its query. Raises UsageError for what the engine cannot reach."""
    try:
        parts = _split(url)
        port = _DEFAULT_PORTS.get(parts.scheme, 80) if parts.port is None else parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint=_URL_HINT) from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise UsageError(
            f"{url}: cannot load {parts.scheme}://", hint="the engine speaks HTTP: use http:// or https://"
        )
    if not parts.hostname or port == 0:
        raise UsageError(f"{url}: no {'port' if parts.hostname else 'host'} to connect to", hint=_URL_HINT)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.hostname, port), for_each_literal(path, lambda text: quote(text, safe=_SAFE))


def read_tls(url: str, cacert: Path | None, *, insecure: bool) -> Tls | None:
    """How TLS is spoken for an https URL, None for another. Raises UsageError for flags that mean nothing there."""
    if _split(url).scheme != "https":
        if insecure or cacert is not None:
            flag = "--insecure" if insecure else "--cacert"
            raise UsageError(f"{flag} means nothing without TLS", hint=f"leave it out, or use https:// in {url}")
        return None
    if cacert is None:
        return Tls(insecure=insecure)
    if insecure:
        raise UsageError("--cacert checks a certificate and --insecure takes any", hint="give one of the two")
    ca_pem = read_data(cacert)
    if "-----BEGIN CERTIFICATE-----" not in ca_pem:
        raise UsageError(f"--cacert {cacert} holds no certificate", hint="name a PEM file")
    return Tls(ca_pem=ca_pem)


def read_server(endpoint: Endpoint, tls: Tls | None, *, http2: bool) -> Variant:
    """What is loaded: a server that is already running."""
    server = AttachedServer(host=endpoint.host, port=endpoint.port)
    return Variant(entry=server, http="2" if http2 else "1.1", tls=tls)


def _split(url: str) -> SplitResult:
    return urlsplit(url if "//" in url else f"http://{url}")


def read_request(path: str, method: str | None, headers: list[str], body: str | None, status: int) -> Request:
    """The request and its right status. Raises UsageError, naming the flag."""
    try:
        request = Request(
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
    for text in request.texts:
        if (wrong := malformed(text)) is not None:
            hint = "write {seq}, {rand:1..100} or {pick:file.txt}, or double the braces"
            raise UsageError(f"`{wrong}` cannot be filled in", hint=hint)
    return request


def read_picks(request: Request) -> dict[str, tuple[str, ...]]:
    """The entries of the files that the request picks from. Raises UsageError."""
    named = {part.name for text in request.texts for part in placeholders(text) if isinstance(part, Pick)}
    return {name: read_entries(read_data(Path(name)), name) for name in sorted(named)}


def _headers(lines: list[str]) -> dict[str, str | tuple[str, ...]]:
    """By name; one that is given several times is sent as often, under the name that it was first given."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
        found.setdefault(name.strip().lower(), (name.strip(), []))[1].append(value.strip())
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in found.values()}


def _body(text: str) -> Body:
    if not text.startswith("@"):
        return Body(text=text)
    try:
        return Body(raw=Path(text[1:]).read_bytes())
    except OSError as error:
        raise UsageError(
            f"--body {text}: {error.strerror}", hint="name a file that can be read: --body @FILE"
        ) from None
