"""Names of hosts: `shop.test` and `shop.test:80` are a single host. Pure."""

from collections import Counter
from collections.abc import Mapping

_DEFAULT_PORTS = {"http": "80", "https": "443"}


def split_port(host: str) -> tuple[str, str]:
    """A host without its port, and the port, if it is the one of http:// or of https://; else the host as it is."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and port in _DEFAULT_PORTS.values() else (host, "")


def without_default_port(scheme: str, host: str) -> str:
    """A host without the port that its scheme implies."""
    return host.removesuffix(f":{_DEFAULT_PORTS.get(scheme, '')}") if scheme in _DEFAULT_PORTS else host


def one_name_each(counts: Mapping[str, int]) -> dict[str, str]:
    """The name of every host: without its port, unless both port 80 and port 443 of the host were asked.

    A name without a port then means the port that was asked more often.
    """
    ports: dict[str, Counter[str]] = {}
    for host, count in counts.items():
        name, port = split_port(host)
        ports.setdefault(name, Counter()).update({port: count} if port else {})
    names = {host: split_port(host)[0] for host in counts}
    return {
        host: name if len(ports[name]) < 2 else host if host != name else f"{name}:{ports[name].most_common(1)[0][0]}"
        for host, name in names.items()
    }
