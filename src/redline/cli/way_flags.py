"""Turn the flags about the way to a running server, and about its TLS, into keys of a suite document."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from redline.cli.command_line import RequestFlags
from redline.cli.flags import split
from redline.cli.written import Given
from redline.errors import UsageError
from redline.model.catalogue import passed_names
from redline.plugins import secrets
from redline.suite.places import split_proxy
from redline.suite.urls import is_secure, read_url

OF_TLS = ("insecure", "cacert", "cert", "key", "sni", "tls_min", "tls_max", "ciphers", "no_session_resumption")
_WAY = ("unix_socket", "connect_to", "resolve", "addresses", "sources", "proxy")
OF_WAYS = frozenset((*OF_TLS, *_WAY))
"""The flags about the way to a server and its TLS."""
_HOST = r"(\[[^\]]*\]|[^:\[\]]*)"
_CONNECT_TO = re.compile(rf"{_HOST}:(\d*):{_HOST}:(\d*)")
_RESOLVE = re.compile(rf"{_HOST}:(\d+):(.+)")
_VERSIONS = ("1.2", "1.3")
Placed = Callable[[str], str]
"""Maps a file or folder that a flag names to its name in the document."""


def check_way_values(flags: RequestFlags) -> None:
    """Raise UsageError for a flag of a way whose value is empty, and for a --unix-socket that is something else."""
    for name, declared in flags.declared().items():
        if name in OF_WAYS:
            value = getattr(flags, name)
            given = value if isinstance(value, list | tuple) else () if value is None else (value,)
            # The path of an empty text is the current folder.
            if any(not str(text).strip() or text == Path() for text in given):
                flag = declared.param_decls[0]
                raise UsageError(f"{flag} has no value", hint=f"write {flag} {declared.metavar}, or leave it out")
    if flags.unix_socket is not None:
        socket = Path(flags.unix_socket)
        if socket.exists() and not socket.is_socket():
            kind = "folder" if socket.is_dir() else "file"
            hint = "name the socket that the server listens on: `ss -xl` lists them"
            raise UsageError(f"--unix-socket {socket} is a {kind}, not a socket", hint=hint)


def check_without_url(flags: RequestFlags) -> None:
    """Raise UsageError for flags that only a running server has, where none is named by its URL."""
    if asked := flags.given(among={*OF_TLS}):
        raise UsageError(f"{asked[0]} means nothing without TLS", hint="leave it out: TLS is for URLs")
    if asked := flags.given(among={*_WAY}):
        raise UsageError(f"{asked[0]} says how a running server is reached", hint="leave it out, or give its URL")


def check_ways_are_used(urls: Sequence[str], flags: RequestFlags) -> None:
    """Raise UsageError for a --connect-to or --resolve that fits none of the URLs."""
    places = [(server.host.lower(), server.port) for server, _ in map(read_url, urls)]
    moved = [_moved(host, port, flags) for host, port in places]
    for text in flags.connect_to:
        if not any(_fits(host, port, *_read_connect_to(text)[:2]) for host, port in places):
            raise UsageError(f"--connect-to {text} fits no server here", hint=_have(places))
    for text in flags.resolve:
        host, port, _ = _read_resolve(text)
        if not any((host.lower(), port) == (at.lower(), of) for at, of in moved):
            raise UsageError(f"--resolve {text} fits no server here", hint=_have(moved))
    if flags.unix_socket is not None and len(urls) > 1:
        hint = "give URLs such as http+unix://%2Frun%2Fa.sock/ and http+unix://%2Frun%2Fb.sock/"
        raise UsageError(f"--unix-socket {flags.unix_socket}: all servers would be the same", hint=hint)


def way_to(url: str, flags: RequestFlags) -> dict[str, object]:
    """Return how connections reach the server of a URL. Raises UsageError."""
    way: dict[str, object] = {}
    if (connect := _connect(url, flags)) is not None:
        way["connect"] = connect
    if flags.addresses is not None:
        way["addresses"] = Given(f"--addresses {flags.addresses}", flags.addresses)
    if flags.sources:
        way["sources"] = Given(f"--source {','.join(flags.sources)}", [*split(flags.sources)])
    if flags.proxy is not None:
        way["proxy"] = _proxy(flags.proxy)
    return way


def tls_of(url: str, flags: RequestFlags, placed: Placed) -> dict[str, object]:
    """Return the TLS settings for a URL. Raises UsageError for flags without effect there."""
    asked = flags.given(among={*OF_TLS})
    if asked and not is_secure(url):
        raise UsageError(f"{asked[0]} means nothing without TLS", hint=f"leave it out, or use https:// in {url}")
    if flags.insecure and flags.cacert is not None:
        raise UsageError("--cacert checks a certificate and --insecure takes any", hint="give either flag")
    if flags.cert is None and flags.key is not None:
        raise UsageError(f"--key {flags.key}: a key without its certificate", hint="add --cert FILE")
    named = {"ca": ("--cacert", flags.cacert), "cert": ("--cert", flags.cert), "key": ("--key", flags.key)}
    tls: dict[str, object] = {
        key: Given(f"{flag} {file}", placed(str(file))) for key, (flag, file) in named.items() if file is not None
    }
    ciphers = [name for name in re.split("[:,]", flags.ciphers or "") if name]
    others = {
        "insecure": flags.insecure and Given("--insecure", True),
        "server_name": flags.sni and Given(f"--sni {flags.sni}", flags.sni),
        "versions": _versions(flags),
        "ciphers": ciphers and Given(f"--ciphers {flags.ciphers}", ciphers),
        "resumption": Given("--no-session-resumption", False) if flags.no_session_resumption else None,
    }
    tls |= {key: value for key, value in others.items() if value}
    return {"tls": tls} if tls else {}


def _proxy(text: str) -> Given:
    """The URL of the proxy, with a reference in place of its password."""
    user, password, place = split_proxy(text)
    if password and not passed_names(password):
        scheme, mark, host = place.rpartition("://")
        reference = secrets.hold("REDLINE_PROXY_PASSWORD", unquote(password))
        secrets.hide(text, f"{scheme}{mark}{user}:***@{host}")
        text = f"{scheme}{mark}{user}:{reference}@{host}"
    return Given(f"--proxy {place}", text)


def _versions(flags: RequestFlags) -> Given | None:
    """The versions of TLS between --tls-min and --tls-max; None if neither is given."""
    if flags.tls_min is None and flags.tls_max is None:
        return None
    sources = {"--tls-min": flags.tls_min, "--tls-max": flags.tls_max}
    source = " ".join(f"{flag} {version}" for flag, version in sources.items() if version is not None)
    least, most = flags.tls_min or _VERSIONS[0], flags.tls_max or _VERSIONS[-1]
    versions = [version for version in _VERSIONS if least <= version <= most]
    if not versions:
        raise UsageError(f"{source}: no version is left", hint="give the same version for one version alone")
    return Given(source, versions)


def _connect(url: str, flags: RequestFlags) -> Given | None:
    """Where connections go in place of the URL's host and port; None for there."""
    if flags.unix_socket is not None:
        socket = Path(flags.unix_socket)
        source = f"--unix-socket {flags.unix_socket}"
        if other := flags.given(among={"connect_to", "resolve"}):
            raise UsageError(
                f"{source}: connections go to the socket, and {other[0]} names another place",
                hint=f"leave out {other[0]}",
            )
        return Given(source, f"unix:{socket.absolute()}")
    server, _ = read_url(url)
    host, port = server.host, server.port
    sources = [f"--connect-to {text}" for text in flags.connect_to if _fits(host, port, *_read_connect_to(text)[:2])]
    host, port = _moved(host, port, flags)
    for text in flags.resolve:
        named, at, addresses = _read_resolve(text)
        if (named.lower(), at) == (host.lower(), port):
            places = [_joined(address, port) for address in addresses]
            return Given(" ".join([*sources, f"--resolve {text}"]), places)
    return Given(" ".join(sources), _joined(host, port)) if sources else None


def _moved(host: str, port: int, flags: RequestFlags) -> tuple[str, int]:
    """The host and port after --connect-to, of which the first that fits counts."""
    for text in flags.connect_to:
        from_host, from_port, to_host, to_port = _read_connect_to(text)
        if _fits(host, port, from_host, from_port):
            return to_host or host, to_port or port
    return host, port


def _fits(host: str, port: int, from_host: str, from_port: int | None) -> bool:
    return (not from_host or from_host.lower() == host.lower()) and (from_port is None or from_port == port)


def _read_connect_to(text: str) -> tuple[str, int | None, str, int | None]:
    parts = _CONNECT_TO.fullmatch(text)
    if parts is None:
        hint = "write HOST1:PORT1:HOST2:PORT2, such as app.example:443:127.0.0.1:8443; an empty part stays as it is"
        raise UsageError(f"--connect-to {text} does not say where connections go", hint=hint)
    from_host, from_port, to_host, to_port = parts.groups()
    source = f"--connect-to {text}"
    return _bare(from_host), _port(source, from_port), _bare(to_host), _port(source, to_port)


def _read_resolve(text: str) -> tuple[str, int, list[str]]:
    parts = _RESOLVE.fullmatch(text)
    if parts is None or not parts[1]:
        hint = "write HOST:PORT:ADDRESS, such as app.example:443:127.0.0.1"
        raise UsageError(f"--resolve {text} does not name a host, a port and an address", hint=hint)
    return _bare(parts[1]), _port(f"--resolve {text}", parts[2]) or 0, [_bare(part) for part in parts[3].split(",")]


def _port(source: str, text: str) -> int | None:
    if text and not 1 <= int(text[:6]) <= 65535:
        raise UsageError(f"{source}: there is no port {text}", hint="a port is a number from 1 to 65535")
    return int(text) if text else None


def _bare(host: str) -> str:
    return host.removeprefix("[").removesuffix("]")


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _have(places: Sequence[tuple[str, int]]) -> str:
    return f"the servers are {', '.join(_joined(*place) for place in dict.fromkeys(places))}"
