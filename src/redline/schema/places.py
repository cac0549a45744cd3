"""Parse where connections go, as `connect` in suites and flags write it. Errors name the wrong part."""

import re
from ipaddress import ip_address
from urllib.parse import unquote

from redline.errors import WrongValueError
from redline.model.catalogue import passed_names
from redline.model.way import AccessPoint, Proxy
from redline.quantities import clip

_HOST_AND_PORT = re.compile(r"(\[[^\]\s]+\]|[^:\s/\[\]]+):(\d{1,5})")
_LONGEST_PATH = 107
_HINT = "write it like 127.0.0.1:8080, app.example:443 or unix:/run/app.sock"


def read_place(text: str) -> AccessPoint:
    """A host and a port, or `unix:` and the absolute path of a socket. Raises WrongValueError."""
    if text.lower().startswith("unix:"):
        return socket_place(text[5:])
    parts = _HOST_AND_PORT.fullmatch(text)
    if parts is None or not 1 <= int(parts[2]) <= 65535:
        raise WrongValueError(f"`{clip(text)}` is not a host with a port, nor a Unix socket", _HINT)
    return AccessPoint(host=parts[1].removeprefix("[").removesuffix("]"), port=int(parts[2]))


def socket_place(path: str) -> AccessPoint:
    """The file of a Unix socket. Raises WrongValueError."""
    if not path.startswith("/"):
        raise WrongValueError(f"`{clip(path)}` is not the absolute path of a Unix socket", "begin it with a slash")
    if len(path.encode()) > _LONGEST_PATH:
        message = f"`{clip(path)}` is too long for a Unix socket, whose path has at most {_LONGEST_PATH} bytes"
        raise WrongValueError(message, "let the server listen on a shorter path, or make a symbolic link to its folder")
    return AccessPoint(socket=path)


def split_proxy(text: str) -> tuple[str, str, str]:
    """The user and the password in the URL of a proxy, with escapes, and the rest. Errors quote none of both."""
    scheme, mark, rest = text.strip().rpartition("://")
    credentials, _, place = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    return user, password, f"{scheme}{mark}{place}"


def read_proxy(text: str) -> Proxy:
    """An HTTP proxy of `http://host:port`. Raises WrongValueError.

    A user and a password may stand in front: `http://USER:${PASSWORD}@host:port`, the password as a variable.
    """
    user, password, place = split_proxy(text)
    scheme, _, authority = place.rpartition("://")
    if scheme.lower() not in {"", "http"}:
        message = f"a proxy of {clip(scheme)}:// is not supported"
        raise WrongValueError(
            message, "give an HTTP proxy that is spoken to without TLS, such as http://127.0.0.1:3128"
        )
    parts = _HOST_AND_PORT.fullmatch(authority.removesuffix("/"))
    if parts is None or not 1 <= int(parts[2]) <= 65535:
        hint = "write it like http://127.0.0.1:3128, or http://USER:PASSWORD@127.0.0.1:3128"
        raise WrongValueError(f"`{clip(place)}` is not a proxy with its port", hint)
    if password and not passed_names(password):
        hint = "write `${PROXY_PASSWORD}` in its place, and set that variable of your environment"
        raise WrongValueError("a password would be stored with the suite", hint)
    if ":" in (name := unquote(user)):
        raise WrongValueError(f"the user `{clip(name)}` has a colon, which would end it", "use a user without")
    host = parts[1].removeprefix("[").removesuffix("]")
    return Proxy(host=host, port=int(parts[2]), user=name, password=password)


def read_source(text: str) -> str:
    """A local address that connections start from. Raises WrongValueError."""
    try:
        return str(ip_address(text))
    except ValueError:
        message = f"`{clip(text)}` is not an address"
        raise WrongValueError(message, "write an address of this machine, such as 127.0.0.2") from None
