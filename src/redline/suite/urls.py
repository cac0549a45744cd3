"""Parse URLs as users write them into server and path. Errors name the wrong part."""

import re
import socket
from ipaddress import IPv6Address
from shlex import quote as quoted
from urllib.parse import quote, unquote

from redline.errors import UsageError, WrongValueError
from redline.model import AttachedServer
from redline.model.template import for_each_literal
from redline.model.way import Access
from redline.quantities import clip
from redline.schema.http_texts import check_placeholders
from redline.schema.places import socket_place
from redline.wording import part

ALONE = "a URL is given alone, with its path, and flags of init stand before it"
_SCHEME = re.compile(r"\w+://")
_SAFE = "!#$%&'()*+,/:;=?@[]~"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OF_WEBSOCKETS = {"ws": "http", "wss": "https"}
"""The schemes of WebSockets (RFC 6455, section 3), which HTTP opens."""
UNIX = "http+unix"
"""The scheme of HTTP over a Unix socket."""
_HINT = "write it like http://127.0.0.1:8080/path"
_IPV6_HINT = "write it like http://[::1]:8080/path"
_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#]*)([^#]*)")
_ONE_SLASH = re.compile(r"(https?):/?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([^:]*))?")
_NAME = re.compile(r"(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?")
_HAR = re.compile(r"[^\s{]+\.har", re.IGNORECASE)
_LIKE_A_URL = re.compile(r"\w+://\S*|[^/\s]+:\d+(/\S*)?|localhost(/\S*)?")
_PORT_ALONE = re.compile(r":?(\d{1,5}(?:/\S*)?)")
_COMMAND = re.compile(r"\.{0,2}/(?!/)\S|~|[^\s/:]+\s", re.DOTALL)


def check_is_reachable(target: str) -> None:
    """Raise UsageError for a bare Unix socket or a file of requests in place of a server."""
    if target.lower().startswith("unix:"):
        path = f"/{target[5:].lstrip('/')}"
        hint = f"write {UNIX}://{quote(path, safe='')}/, or http://localhost/ and {part('unix_socket', path)}"
        raise UsageError(f"{target} names a Unix socket, and not what is requested there", hint=hint)
    if _HAR.fullmatch(target) and not is_url(target):
        shows = f"`redline import {target}` shows its requests"
        hint = f"give it as {part('requests', target)}, and the server's URL; {shows}"
        raise UsageError(f"{target} is a recording of a browser, not a server", hint=hint)


def check_has_a_host(target: str) -> None:
    """Raise UsageError for a port in place of a URL, such as `8080` or `:8080`."""
    if match := _PORT_ALONE.fullmatch(target):
        port, _, path = match[1].partition("/")
        raise UsageError(f"{target} is a port without a host", hint=f"write http://127.0.0.1:{port}/{path}")


def is_url(text: str) -> bool:
    """Whether a text is a URL of http, https, ws or wss, or of HTTP over a Unix socket."""
    return re.match(r"(https?|wss?|http\+unix)://", text, re.IGNORECASE) is not None


def is_websocket(url: str) -> bool:
    """Whether a URL is one of a WebSocket."""
    return re.match(r"wss?://", url.strip(), re.IGNORECASE) is not None


def is_like_a_url(text: str) -> bool:
    """Whether a text is an incomplete URL, such as `localhost:8080`, or has another scheme."""
    return not is_url(text) and _LIKE_A_URL.fullmatch(text) is not None


def as_url(text: str) -> str:
    """The URL that was probably meant."""
    return f"http://{text.partition('://')[2] or text}"


def is_secure(url: str) -> bool:
    """Whether a URL asks for TLS."""
    return _split(url)[0] == "https"


def base_of(url: str) -> str:
    """The URL of HTTP without its path: scheme, host and port. Raises UsageError."""
    scheme, authority, _ = _split(url)
    return f"{scheme}://{authority}"


def read_url(url: str) -> tuple[AttachedServer, str]:
    """Split a URL into the server, and the path with its query. Raises UsageError if the engine cannot reach it.

    The host is without brackets; an IPv6 address may have a zone, `fe80::1%eth0`. A fragment is never sent.
    """
    scheme, authority, path = _split(url)
    if scheme == UNIX:
        return _of_socket(url, authority), _sent(path)
    if scheme not in _DEFAULT_PORTS:
        raise UsageError(
            f"{url}: cannot load {scheme}://",
            hint="use http:// or https://, or ws:// or wss:// for a WebSocket",
        )
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        is_bare = any(map(_is_ipv6, (authority, authority.rpartition(":")[0])))
        message = "an IPv6 address needs brackets" if is_bare else f"`{clip(authority)}` is not a host with a port"
        raise UsageError(f"{url}: {message}", hint=_IPV6_HINT if is_bare else _HINT)
    host, port = parts.groups()
    read = _address(url, host[1:-1]) if host.startswith("[") else _name(url, host)
    server = AttachedServer(host=read, port=_port(url, port) if port else _DEFAULT_PORTS[scheme])
    return server, _sent(path)


def _sent(path: str) -> str:
    """A path as it is sent: with a slash, and without spaces or letters that need an escape. Raises UsageError."""
    path = path if path.startswith("/") else f"/{path}"
    try:
        check_placeholders(path)
    except WrongValueError as error:
        raise UsageError(f"{clip(path)}: {error.message}", hint=error.hint) from None
    return for_each_literal(path, lambda text: quote(text, safe=_SAFE))


def _of_socket(url: str, authority: str) -> AttachedServer:
    """The server at the socket of `http+unix://%2Frun%2Fapp.sock`, which is asked as localhost."""
    if not authority:
        hint = f"escape its slashes: {UNIX}://%2Frun%2Fapp.sock/path"
        raise UsageError(f"{url}: no socket is named", hint=hint)
    try:
        place = socket_place(unquote(authority))
    except WrongValueError as error:
        raise UsageError(f"{url}: {error.message}", hint=error.hint) from None
    return AttachedServer(host="localhost", port=80, way=Access(connect=(place,)))


def _split(url: str) -> tuple[str, str, str]:
    """Scheme, host with port, and the rest. Raises UsageError."""
    if not url.isprintable():
        raise UsageError(f"{url!r}: a URL is one line, without control characters", hint=_HINT)
    text = url.strip()
    if not text:
        raise UsageError("the URL is empty", hint=_HINT)
    check_is_reachable(text)
    check_has_a_host(text)
    if _COMMAND.match(text):
        hint = f"`redline init {quoted(text)}` writes it into redline.yaml; `redline load` then starts and loads it"
        raise UsageError(f"{text} is not a URL; is it a command?", hint=hint)
    if start := _ONE_SLASH.match(text):
        if not is_url(text):
            meant = f"{start[1].lower()}://{text[start.end() :]}"
            hint = f"write {meant}" if text[start.end() :] else _HINT
            raise UsageError(f"{url}: `//` is missing after `{start[1]}:`", hint=hint)
    elif _PARTS.match(text) is None:
        text = f"//{text}"
    parts = _PARTS.match(text)
    assert parts is not None
    scheme, authority, path = parts.groups()
    user, at, _ = authority.rpartition("@")
    if at:
        what = "a user and a password" if ":" in user else "a user"
        hint = f"leave it out, and give {part('headers', 'Authorization: Basic ...')} with `user:password` in base64"
        raise UsageError(f"the URL of {authority.rpartition('@')[2]} holds {what}, which would not be sent", hint=hint)
    if "\\" in authority:
        raise UsageError(f"{url}: a backslash does not separate the parts of a URL", hint=_HINT)
    scheme = (scheme or "http").lower()
    return _OF_WEBSOCKETS.get(scheme, scheme), authority, path


def _port(url: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{url}: `{clip(text)}` is not a port", hint="a port is a number from 1 to 65535")
    if not 1 <= int(text[:6]) <= 65535:
        raise UsageError(f"{url}: there is no port {clip(text)}", hint="a port is a number from 1 to 65535")
    return int(text)


def _name(url: str, host: str) -> str:
    if not host:
        raise UsageError(f"{url}: no host to connect to", hint=_HINT)
    if len(host) <= 254 and _NAME.fullmatch(host):
        return host
    hint = "use letters, digits, `.` and `-`, or an address"
    try:
        hint = hint if host.isascii() else f"DNS encodes other letters in Punycode: {host.encode('idna').decode()}"
    except UnicodeError:
        hint += "; DNS encodes others in Punycode"
    raise UsageError(f"{url}: `{clip(host)}` is not a host name", hint=hint)


def _address(url: str, inner: str) -> str:
    """An IPv6 address with its zone: `%eth0`, or `%25eth0` as RFC 6874 writes it.

    Addresses that are not link-local are the same in every zone, and resolvers refuse them with a zone.
    """
    text, percent, zone = inner.partition("%")
    if not _is_ipv6(text):
        raise UsageError(f"{url}: `{clip(text)}` is not an IPv6 address", hint=_IPV6_HINT)
    name = unquote(zone.removeprefix("25") if len(zone) > 1 else zone)
    known = [interface for _, interface in socket.if_nameindex()]
    if not percent and not IPv6Address(text).is_link_local:
        return text
    if not name:
        hint = f"write it like http://[{text}%25{known[-1]}]/; this machine has {', '.join(known)}"
        raise UsageError(f"{url}: {text} needs the name of a network interface", hint=hint)
    is_index = name.isascii() and name.isdecimal() and int(name) in dict(socket.if_nameindex())
    if name not in known and not is_index:
        raise UsageError(
            f"{url}: there is no network interface `{clip(name)}`", hint=f"this machine has {', '.join(known)}"
        )
    return f"{text}%{name}" if IPv6Address(text).is_link_local else text


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def with_scheme(url: str) -> str:
    """The URL, with `http://` in front if it has no scheme."""
    return url if _SCHEME.match(url) else f"http://{url}"
