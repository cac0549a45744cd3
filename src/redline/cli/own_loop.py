"""Servers that run in the event loop of the calling thread: a measurement that blocks it would wait for itself."""

import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from selectors import SelectorKey

from redline.errors import UsageError
from redline.linux.owners import owner_of
from redline.linux.sockets import is_this_machine
from redline.model import AttachedServer, Variant
from redline.model.way import AccessPoint


def refuse_to_block(variants: Iterable[Variant]) -> None:
    """Raise UsageError if this thread runs an event loop, and in it a server that is to be loaded, or its proxy.

    A loop that does not say what it watches, such as uvloop's, counts if this process listens at the address.
    """
    loop = _running_loop()
    if loop is None:
        return
    watched: Mapping[object, SelectorKey] = getattr(getattr(loop, "_selector", None), "get_map", dict)()
    own = {listening for key in watched.values() if (listening := _listening(key.fd)) is not None}
    for point in (point for variant in variants for point in _points(variant)):
        if _is_at(point, own) if watched else _is_of_this_process(point):
            raise UsageError(
                f"the server at {point.text} runs in the event loop of this thread, and would not answer while this "
                "call blocks the loop",
                hint="measure in another thread: `await asyncio.to_thread(redline.load, …)`; or run the server in one",
            )


def _running_loop() -> object | None:
    asyncio = sys.modules.get("asyncio")  # who runs a loop has imported it, and a command need not
    try:
        return None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        return None


def _points(variant: Variant) -> Iterator[AccessPoint]:
    """Where the load of a running server connects to."""
    entry = variant.entry
    if not isinstance(entry, AttachedServer):
        return
    if entry.way.proxy is not None:
        yield AccessPoint(host=entry.way.proxy.host, port=entry.way.proxy.port)
    yield from entry.way.connect or (AccessPoint(host=entry.host, port=entry.port),)


def _is_at(point: AccessPoint, own: set[int | str]) -> bool:
    """Whether one of these ports and files of Unix sockets is that point."""
    return point.socket in own if point.socket else point.port in own and is_this_machine(point.host)


def _is_of_this_process(point: AccessPoint) -> bool:
    return not point.socket and os.getpid() in owner_of(point.host, point.port).pids


def _listening(fd: int) -> int | str | None:
    """The port of a listening socket, or the file of a Unix socket; None for any other file."""
    try:
        with socket.socket(fileno=os.dup(fd)) as of:
            if not of.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return None
            name = of.getsockname()
    except OSError:
        return None
    if of.family == socket.AF_UNIX:
        return str(Path(name).absolute()) if isinstance(name, str) and name else None
    return int(name[1]) if of.family in (socket.AF_INET, socket.AF_INET6) else None
