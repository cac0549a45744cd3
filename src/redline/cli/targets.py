"""Whom a load may go to: this machine, and hosts that the user has said are theirs.

A load can take a server down. `--target-is-mine HOST` is needed once; it is kept in the user's configuration.
"""

import os
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

from redline.errors import StoreError, UsageError
from redline.files import write_atomically


def config_file() -> Path:
    """Where the user's hosts are, one a line."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "redline" / "targets"


def check_target(host: str, mine: Iterable[str]) -> None:
    """Raise UsageError for a host that is neither this machine nor the user's; `mine` are those of the flag.

    Hosts of the flag are remembered. Raises StoreError when that cannot be.
    """
    given = {_plain(each) for each in mine}
    if is_this_machine(host):
        return
    known = _known()
    if _plain(host) in given and _plain(host) not in known:
        _remember(known | {_plain(host)})
    elif _plain(host) not in known:
        raise UsageError(
            f"{host} is another machine, and a load can take a server down",
            hint=f"if it is yours, say so once: --target-is-mine {_plain(host)}",
        )


def is_this_machine(host: str) -> bool:
    """Whether this host is the loopback interface, by its address or as `localhost`."""
    name = _plain(host)
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _plain(host: str) -> str:
    """A host as it is compared: without what URLs add to an IPv6 address, and in lower case."""
    return host.strip().removeprefix("[").removesuffix("]").replace("%25", "%").rstrip(".").lower()


def _known() -> set[str]:
    try:
        lines = config_file().read_text(errors="replace").splitlines()
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
