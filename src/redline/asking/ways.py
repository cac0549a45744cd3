"""What is asked about the way to a running server, and about its TLS, as keys of a suite."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from redline.asking.asks import RequestAsk, split
from redline.asking.written import Sourced
from redline.driving import secrets
from redline.errors import UsageError, joined
from redline.model.catalogue import passed_names
from redline.schema.places import split_proxy
from redline.suite.urls import is_secure, read_url
from redline.wording import part

OF_TLS = ("insecure", "cacert", "cert", "key", "sni", "tls_min", "tls_max", "ciphers", "no_session_resumption")
_WAY = ("unix_socket", "connect_to", "resolve", "addresses", "sources", "proxy")
OF_WAYS = frozenset((*OF_TLS, *_WAY))
"""What is asked about the way to a server and its TLS."""
_HOST = r"(\[[^\]]*\]|[^:\[\]]*)"
_CONNECT_TO = re.compile(rf"{_HOST}:(\d*):{_HOST}:(\d*)")
_RESOLVE = re.compile(rf"{_HOST}:(\d+):(.+)")
_VERSIONS = ("1.2", "1.3")
_FORMS = {
    **dict.fromkeys(("cacert", "cert", "key"), "FILE"),
    **dict.fromkeys(("tls_min", "tls_max"), "1.2|1.3"),
    "sni": "NAME",
    "ciphers": "NAME:…",
    "unix_socket": "PATH",
    "connect_to": "HOST1:PORT1:HOST2:PORT2",
    "resolve": "HOST:PORT:ADDRESS,…",
    "addresses": "first|all",
    "sources": "ADDRESS,…",
    "proxy": "http://[USER:PASSWORD@]HOST:PORT",
}
"""How the values of ways are written."""
Placed = Callable[[str], str]
"""Maps a file or folder that is named to its name in the suite."""


def check_way_values(ask: RequestAsk) -> None:
    """Raise UsageError for a part of a way whose value is empty, and for a Unix socket that is something else."""
    for name, form in _FORMS.items():
        value = getattr(ask, name)
        given = value if isinstance(value, tuple) else () if value is None else (value,)
        # The path of an empty text is the current folder.
        if any(not str(text).strip() or text == Path() for text in given):
            raise UsageError(part(name) + " has no value", hint=f"write {part(name, form)}, or leave it out")
    socket = ask.unix_socket
    if socket is not None and socket.exists() and not socket.is_socket():
        kind = "folder" if socket.is_dir() else "file"
        hint = "name the socket that the server listens on: `ss -xl` lists them"
        raise UsageError(part("unix_socket", socket) + f" is a {kind}, not a socket", hint=hint)


def check_without_url(ask: RequestAsk) -> None:
    """Raise UsageError for what only a running server has, where none is named by its URL."""
    if asked := ask.given(OF_TLS):
        raise UsageError(f"{asked[0]} means nothing without TLS", hint="leave it out: TLS is for URLs")
    if asked := ask.given(_WAY):
        raise UsageError(f"{asked[0]} says how a running server is reached", hint="leave it out, or give its URL")


def check_ways_are_used(urls: Sequence[str], ask: RequestAsk) -> None:
    """Raise UsageError for other places that are for none of the URLs."""
    places = [(server.host.lower(), server.port) for server, _ in map(read_url, urls)]
    moved = [_moved(host, port, ask) for host, port in places]
    for text in ask.connect_to:
        if not any(_fits(host, port, *_read_connect_to(text)[:2]) for host, port in places):
            raise UsageError(part("connect_to", text) + " fits no server here", hint=_have(places))
    for text in ask.resolve:
        host, port, _ = _read_resolve(text)
        if not any((host.lower(), port) == (at.lower(), of) for at, of in moved):
            raise UsageError(part("resolve", text) + " fits no server here", hint=_have(moved))
    if ask.unix_socket is not None and len(urls) > 1:
        hint = "give URLs such as http+unix://%2Frun%2Fa.sock/ and http+unix://%2Frun%2Fb.sock/"
        raise UsageError(part("unix_socket", ask.unix_socket) + ": all servers would be the same", hint=hint)


def way_to(url: str, ask: RequestAsk) -> dict[str, object]:
    """Return how connections reach the server of a URL. Raises UsageError."""
    way: dict[str, object] = {}
    if (connect := _connect(url, ask)) is not None:
        way["connect"] = connect
    if ask.addresses is not None:
        way["addresses"] = Sourced(part("addresses", ask.addresses), ask.addresses)
    if ask.sources:
        way["sources"] = Sourced(part("sources", ",".join(ask.sources)), [*split(ask.sources)])
    if ask.proxy is not None:
        way["proxy"] = _proxy(ask.proxy)
    return way


def tls_of(url: str, ask: RequestAsk, placed: Placed) -> dict[str, object]:
    """Return the TLS settings for a URL. Raises UsageError for what has no effect there."""
    asked = ask.given(OF_TLS)
    if asked and not is_secure(url):
        raise UsageError(f"{asked[0]} means nothing without TLS", hint=f"leave it out, or use https:// in {url}")
    if ask.insecure and ask.cacert is not None:
        raise UsageError(
            part("cacert") + " checks a certificate and " + part("insecure") + " takes any", hint="give either"
        )
    if ask.cert is None and ask.key is not None:
        raise UsageError(part("key", ask.key) + ": a key without its certificate", hint=f"add {part('cert', 'FILE')}")
    named = {"ca": ("cacert", ask.cacert), "cert": ("cert", ask.cert), "key": ("key", ask.key)}
    tls: dict[str, object] = {
        key: Sourced(part(name, file), placed(str(file))) for key, (name, file) in named.items() if file is not None
    }
    ciphers = [name for name in re.split("[:,]", ask.ciphers or "") if name]
    others = {
        "insecure": ask.insecure and Sourced(part("insecure"), True),
        "server_name": ask.sni and Sourced(part("sni", ask.sni), ask.sni),
        "versions": _versions(ask),
        "ciphers": ciphers and Sourced(part("ciphers", ask.ciphers), ciphers),
        "resumption": Sourced(part("no_session_resumption"), False) if ask.no_session_resumption else None,
    }
    tls |= {key: value for key, value in others.items() if value}
    return {"tls": tls} if tls else {}


def _proxy(text: str) -> Sourced:
    """The URL of the proxy, with a reference in place of its password."""
    user, password, place = split_proxy(text)
    if password and not passed_names(password):
        scheme, mark, host = place.rpartition("://")
        reference = secrets.hold("REDLINE_PROXY_PASSWORD", unquote(password))
        secrets.hide(text, f"{scheme}{mark}{user}:***@{host}")
        text = f"{scheme}{mark}{user}:{reference}@{host}"
    return Sourced(part("proxy", place), text)


def _versions(ask: RequestAsk) -> Sourced | None:
    """The versions of TLS between the oldest and the newest; None if neither is given."""
    if ask.tls_min is None and ask.tls_max is None:
        return None
    sources = {"tls_min": ask.tls_min, "tls_max": ask.tls_max}
    source = joined(" ", [part(name, version) for name, version in sources.items() if version is not None])
    least, most = ask.tls_min or _VERSIONS[0], ask.tls_max or _VERSIONS[-1]
    versions = [version for version in _VERSIONS if least <= version <= most]
    if not versions:
        raise UsageError(source + ": no version is left", hint="give the same version for one version alone")
    return Sourced(source, versions)


def _connect(url: str, ask: RequestAsk) -> Sourced | None:
    """Where connections go in place of the URL's host and port; None for there."""
    if ask.unix_socket is not None:
        source = part("unix_socket", ask.unix_socket)
        if other := ask.given({"connect_to", "resolve"}):
            raise UsageError(
                source + ": connections go to the socket, and " + other[0] + " names another place",
                hint=f"leave out {other[0]}",
            )
        return Sourced(source, f"unix:{ask.unix_socket.absolute()}")
    server, _ = read_url(url)
    host, port = server.host, server.port
    sources = [part("connect_to", text) for text in ask.connect_to if _fits(host, port, *_read_connect_to(text)[:2])]
    host, port = _moved(host, port, ask)
    for text in ask.resolve:
        named, at, addresses = _read_resolve(text)
        if (named.lower(), at) == (host.lower(), port):
            places = [_joined(address, port) for address in addresses]
            return Sourced(joined(" ", [*sources, part("resolve", text)]), places)
    return Sourced(" ".join(sources), _joined(host, port)) if sources else None


def _moved(host: str, port: int, ask: RequestAsk) -> tuple[str, int]:
    """The host and port to connect to, of which the first that fits counts."""
    for text in ask.connect_to:
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
        raise UsageError(part("connect_to", text) + " does not say where connections go", hint=hint)
    from_host, from_port, to_host, to_port = parts.groups()
    source = part("connect_to", text)
    return _bare(from_host), _port(source, from_port), _bare(to_host), _port(source, to_port)


def _read_resolve(text: str) -> tuple[str, int, list[str]]:
    parts = _RESOLVE.fullmatch(text)
    if parts is None or not parts[1]:
        hint = "write HOST:PORT:ADDRESS, such as app.example:443:127.0.0.1"
        raise UsageError(part("resolve", text) + " does not name a host, a port and an address", hint=hint)
    return _bare(parts[1]), _port(part("resolve", text), parts[2]) or 0, [_bare(part) for part in parts[3].split(",")]


def _port(source: str, text: str) -> int | None:
    if text and not 1 <= int(text[:6]) <= 65535:
        raise UsageError(source + f": there is no port {text}", hint="a port is a number from 1 to 65535")
    return int(text) if text else None


def _bare(host: str) -> str:
    return host.removeprefix("[").removesuffix("]")


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _have(places: Sequence[tuple[str, int]]) -> str:
    return f"the servers are {', '.join(_joined(*place) for place in dict.fromkeys(places))}"
