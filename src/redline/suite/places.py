"""Parse where connections go, as `connect` in suites and flags write it. Errors name the wrong part."""

import re
from ipaddress import ip_address

from redline.errors import WrongValueError
from redline.model.way import AccessPoint
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


def read_source(text: str) -> str:
    """A local address that connections start from. Raises WrongValueError."""
    try:
        return str(ip_address(text))
    except ValueError:
        message = f"`{clip(text)}` is not an address"
        raise WrongValueError(message, "write an address of this machine, such as 127.0.0.2") from None
