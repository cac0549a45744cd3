"""Where `redline load` sends its requests, and which: its URL and the flags of the request."""

import re
from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import ValidationError

from redline.errors import UsageError
from redline.model import AttachedServer, Body, Request, Tls, Variant
from redline.model.template import Pick, for_each_literal, placeholders
from redline.ports import Endpoint
from redline.suite import WrongValueError, read_body, read_data, read_entries
from redline.suite.schema.scenario import (
    CONNECTION_HEADERS,
    ExpectedSchema,
    check_header_name,
    check_header_text,
    check_placeholders,
)
from redline.suite.validate.checking import first_mistake
from redline.suite.validate.referenced_files import wrong_entry

_SAFE = "!#$%&'()*+,/:;=?@[]~"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL_HINT = "write it like http://127.0.0.1:8080/path"
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
_METHOD = re.compile(r"[A-Z]+")


def read_url(url: str) -> tuple[Endpoint, str]:
    """Host and port, and the path with its query. Raises UsageError for what the engine cannot reach."""
    if not url.isprintable():
        raise UsageError(f"{url!r}: a URL is one line, without control characters", hint=_URL_HINT)
    try:
        parts = _split(url)
        port = _DEFAULT_PORTS.get(parts.scheme, 80) if parts.port is None else parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint=_URL_HINT) from None
    if parts.username is not None or parts.password is not None:
        hint = "leave them out, and give -H 'Authorization: Basic ...' with `user:password` in base64"
        raise UsageError(f"the URL of {parts.hostname} holds a user or a password, which would not be sent", hint=hint)
    if parts.scheme not in _DEFAULT_PORTS:
        raise UsageError(
            f"{url}: cannot load {parts.scheme}://", hint="the engine speaks HTTP: use http:// or https://"
        )
    if not parts.hostname or port == 0:
        raise UsageError(f"{url}: no {'port' if parts.hostname else 'host'} to connect to", hint=_URL_HINT)
    if not _HOST.fullmatch(parts.hostname):
        hint = "use letters, digits, `.` and `-`, or an address" + (
            "" if parts.hostname.isascii() else "; see Punycode"
        )
        raise UsageError(f"{url}: `{parts.hostname}` is not a host name", hint=hint)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.hostname, port), for_each_literal(path, lambda text: quote(text, safe=_SAFE))


def read_tls(url: str, cacert: Path | None, *, insecure: bool) -> Tls | None:
    """The TLS of an https URL, None for another. Raises UsageError for flags that mean nothing there."""
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


def read_request(
    path: str, method: str | None, headers: list[str], body: str | None, status: int, *, http2: bool = False
) -> Request:
    """The request and its expected status. Raises UsageError, which names the flag."""
    try:
        expected = ExpectedSchema(status=status).expected()
    except ValidationError as error:
        mistake = first_mistake(error, ExpectedSchema)
        raise UsageError(f"--status {status}: {mistake.message}", hint=mistake.hint) from None
    try:
        check_placeholders(path)
    except WrongValueError as error:
        raise UsageError(f"the URL's path: {error.message}", hint=error.hint) from None
    return Request(
        method=_method(("GET" if body is None else "POST") if method is None else method),
        path=path,
        headers=_headers(headers, http2=http2),
        body=None if body is None else _body(body),
        expect=expected,
    )


def read_picks(request: Request) -> dict[str, tuple[str, ...]]:
    """The entries of the files that the request picks from. Raises UsageError."""
    named = {part.name for text in request.texts for part in placeholders(text) if isinstance(part, Pick)}
    picks = {name: read_entries(read_data(Path(name)), name) for name in sorted(named)}
    if (wrong := wrong_entry(request, picks)) is not None:
        raise UsageError(wrong.message, hint=wrong.hint)
    return picks


def _method(text: str) -> str:
    method = text.upper()
    if not _METHOD.fullmatch(method):
        raise UsageError(f"-X {text!r}: is not a method", hint="write letters alone, such as -X PUT")
    if method == "CONNECT":
        hint = "use another, such as GET or POST"
        raise UsageError(f"-X {text}: CONNECT opens a tunnel, which the engine does not do", hint=hint)
    return method


def _headers(lines: list[str], *, http2: bool) -> dict[str, str | tuple[str, ...]]:
    """By name; one that is given several times is sent as often, under the name that it was first given."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in lines:
        name, colon, value = (part.strip(" \t") for part in line.partition(":"))
        if not colon or not name:
            raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
        try:
            check_header_name(name)
            check_header_text(value)
        except WrongValueError as error:
            raise UsageError(f"-H {line!r}: {error.message}", hint=error.hint) from None
        if http2 and name.lower() in CONNECTION_HEADERS and (name.lower(), value) != ("te", "trailers"):
            message = f"-H {line!r}: HTTP/2 forbids `{name}` (RFC 9113, section 8.2.2)"
            raise UsageError(message, hint="leave out -H or --http2")
        found.setdefault(name.lower(), (name, []))[1].append(value)
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in found.values()}


def _body(text: str) -> Body:
    try:
        return Body(raw=read_body(Path(text[1:]))) if text.startswith("@") else Body(text=check_placeholders(text))
    except UsageError as error:
        raise UsageError(f"--body {text}: {error.problems[0].message}", hint=error.hint) from None
    except WrongValueError as error:
        raise UsageError(f"--body: {error.message}", hint=error.hint) from None
