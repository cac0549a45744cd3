"""The hosts that may be loaded: this machine, and hosts that users have confirmed as theirs.

A load can take a server down. `--target-is-mine HOST` is needed once; it is kept in the user's configuration.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from redline.cli.own_loop import refuse_to_block
from redline.driving.certificates import check_certificate
from redline.driving.headers import headers_of, names_of
from redline.driving.protocol import authorization_of
from redline.errors import StoreError, UsageError
from redline.files import read_regular, write_atomically
from redline.launching.variables import offer_variables
from redline.linux.sockets import is_this_machine
from redline.model import AttachedServer, Suite
from redline.wording import part

_MOST_BYTES = 1 << 20


def config_file() -> Path:
    """The file with the user's hosts, one per line."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "redline" / "targets"


def check_targets(suite: Suite, mine: Iterable[str] | None = None) -> None:
    """Raise UsageError for a running server of a suite on a host that is not the user's. See `check_target`.

    The certificates that the load shows to servers have to be usable too, and the password of a proxy known. So have
    secrets in headers, by the environment or the `env_file` of a server; and requests to AWS are signed once to see
    whether they can be. A server that this very thread runs would never answer.
    """
    refuse_to_block(suite.variants)
    requests = [request for scenario in suite.scenarios for request in scenario.requests]
    offer_variables(suite.variants, {name for request in requests for name in names_of(request)})
    for request in requests:
        headers_of(request, "localhost")
    for variant in suite.variants:
        if variant.tls is not None and variant.tls.cert is not None:
            check_certificate(variant.tls.cert)
        if isinstance(variant.entry, AttachedServer):
            way = variant.entry.way
            if way.proxy is not None:
                check_target(way.proxy.host, mine)
                authorization_of(way.proxy)
            for host in [place.host for place in way.connect if place.host] if way.connect else [variant.entry.host]:
                check_target(host, mine)


def check_target(host: str, mine: Iterable[str] | None) -> None:
    """Raise UsageError for a host that is neither this machine nor the user's.

    `mine` are the hosts of the flag, or None for a command without it. They are remembered. Raises StoreError if
    they cannot be written.
    """
    given = {_plain(name) for name in mine or ()}
    if is_this_machine(host):
        return
    known = _known()
    if _plain(host) in given and _plain(host) not in known:
        _remember(known | {_plain(host)})
    elif _plain(host) not in known:
        way = (
            f"add a line `{_plain(host)}` to {config_file()}" if mine is None else part("target_is_mine", _plain(host))
        )
        raise UsageError(
            f"{host} is another machine, and a load can take a server down",
            hint=f"if it is yours, confirm that once: {way}",
        )


def _plain(host: str) -> str:
    """Normalize a host for comparison: in lower case, and without the brackets and escapes of a URL."""
    return host.strip().removeprefix("[").removesuffix("]").replace("%25", "%").rstrip(".").lower()


def _known() -> set[str]:
    try:
        lines = read_regular(config_file(), _MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return set()
    return {_plain(line) for line in lines if line.strip() and not line.startswith("#")}


def _remember(hosts: set[str]) -> None:
    file = config_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, "".join(f"{host}\n" for host in sorted(hosts)).encode())
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror}", hint="make that folder writable, or set XDG_CONFIG_HOME"
        ) from error
