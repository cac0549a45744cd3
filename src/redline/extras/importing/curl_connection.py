"""Options of curl about the way to a server: sockets, other places, certificates, versions of TLS and HTTP. Pure."""

import argparse
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

from redline.errors import UsageError
from redline.schema.places import split_proxy

_TLS13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_VALUES = {
    "--cacert": "cacert",
    "-E --cert": "cert",
    "--key": "key",
    "--unix-socket": "unix_socket",
    "--interface": "sources",
    "--tls-max": "tls_max",
    "--ciphers": "ciphers",
    "--tls13-ciphers": "tls13_ciphers",
    "-x --proxy": "proxy",
    "-U --proxy-user": "proxy_user",
}
_REPEATED = {"--resolve": "resolve", "--connect-to": "connect_to"}
_SWITCHES = {
    "-k --insecure": "insecure",
    "--http2 --http2-prior-knowledge": "http2",
    "--no-sessionid": "no_session_resumption",
    "--tlsv1 --tlsv1.2": "tls12",
    "--tlsv1.3": "tls13",
}
_PASSWORD = "write the key without a password: openssl pkey -in KEY -out plain.pem"  # noqa: S105 - advice


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a parser read these options."""
    for options, name in _VALUES.items():
        parser.add_argument(*options.split(), dest=name)
    for options, name in _REPEATED.items():
        parser.add_argument(*options.split(), dest=name, action="append")
    for options, name in _SWITCHES.items():
        parser.add_argument(*options.split(), dest=name, action="store_true")


def connection_of(values: argparse.Namespace) -> dict[str, Any]:
    """How the server is reached, by names of Redline's flags, without what is not given. Raises UsageError."""
    if values.cert is not None and ":" in values.cert:
        raise UsageError(f"curl --cert {values.cert.partition(':')[0]}:…: the key has a password", hint=_PASSWORD)
    if values.tls_max not in (None, "default", "1.2", "1.3"):
        raise UsageError(f"curl --tls-max {values.tls_max}: the engine has TLS 1.2 and 1.3", hint="leave it out")
    way = {
        **{name: getattr(values, name) for name in ("cacert", "cert", "key", "unix_socket", "resolve", "connect_to")},
        **{name: getattr(values, name) for name in ("insecure", "http2", "no_session_resumption")},
        "tls_min": "1.3" if values.tls13 else None,
        "tls_max": None if values.tls_max == "default" else values.tls_max,
        "ciphers": _ciphers(values),
        "sources": _source(values.sources),
        "proxy": _proxy(values.proxy, values.proxy_user),
    }
    return {name: value for name, value in way.items() if value}


def _ciphers(values: argparse.Namespace) -> str | None:
    """Suites of all versions: curl takes those of TLS 1.3 by another option, whose default is all of them."""
    if values.ciphers is None and values.tls13_ciphers is None:
        return None
    newest = values.tls13_ciphers or ("" if values.tls_max == "1.2" else ":".join(_TLS13))
    older = "" if values.tls13 else values.ciphers
    if older is None:
        hint = "give --ciphers too, or --tlsv1.3"
        raise UsageError("curl --tls13-ciphers leaves the suites of TLS 1.2 open", hint=hint)
    return ":".join(filter(None, [older, newest]))


def _proxy(url: str | None, user: str | None) -> str | None:
    """The URL of the proxy, with the user and password that stand in an option of their own."""
    if url is None or user is None:
        return url
    _, _, place = split_proxy(url)
    scheme, mark, authority = place.rpartition("://")
    name, _, password = user.partition(":")
    return f"{scheme}{mark}{quote(name, safe='')}:{quote(password, safe='')}@{authority}"


def _source(interface: str | None) -> list[str]:
    if interface is None:
        return []
    try:
        return [str(ip_address(interface.removeprefix("host!")))]
    except ValueError:
        message = f"curl --interface {interface}: this is not an address"
        raise UsageError(message, hint="give an address of that interface, as `ip address` shows it") from None
