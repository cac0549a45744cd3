"""Flags of the way to a server without a value, and Unix sockets that are none."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from redline.asking.asks import RequestAsk
from redline.asking.requests import servers
from redline.asking.ways import OF_WAYS, check_way_values
from redline.cli.command_line import LoadFlags
from redline.errors import UsageError
from redline.wording import part
from tests.fakes import asks

VALUES = sorted(
    name for name, declared in LoadFlags.declared().items() if name in OF_WAYS and declared.default in (None, [])
)


def empty(name: str) -> Any:
    """An empty value as a command line gives it."""
    listed = isinstance(LoadFlags.declared()[name].default, list)
    return [""] if listed else Path() if name in {"unix_socket", "cacert", "cert", "key"} else ""


@pytest.mark.parametrize("kind", [asks.load, asks.search, asks.comparison])
@pytest.mark.parametrize("name", VALUES)
def test_a_flag_without_a_value_is_named(kind: Callable[..., RequestAsk], name: str) -> None:
    ask = kind(**{name: empty(name)})
    with pytest.raises(UsageError, match="has no value") as refused:
        servers({"server": "https://127.0.0.1:1"}, ask, str)
    flag = part(name)
    assert refused.value.message == f"{flag} has no value"
    assert f"write {flag} " in refused.value.hint


def test_what_is_no_socket_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, kind in ((".", "folder"), ("file", "file")):
        with pytest.raises(UsageError, match=f"is a {kind}, not a socket"):
            check_way_values(asks.load(unix_socket=tmp_path / name))
    check_way_values(asks.load(unix_socket=tmp_path / "not-there-yet"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        check_way_values(asks.load(unix_socket=tmp_path / "socket"))
