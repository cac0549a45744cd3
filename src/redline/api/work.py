"""What every function does around a measurement, so that nothing of it stays in the caller's process."""

import asyncio
import io
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from selectors import SelectorKey
from urllib.parse import urlsplit

from rich.console import Console

from redline.cli.show import Terminal
from redline.errors import UsageError
from redline.plugins.git import NAMES_A_REPOSITORY
from redline.plugins.linux.owners import owner_of
from redline.refusals import as_refusal
from redline.suite.urls import is_url


@contextmanager
def at_work(*servers: str | None) -> Iterator[ExitStack]:
    """Give a stack for what ends with the work. The calling thread then has the CPUs again that it had before.

    A session keeps the thread off the cores of server and engine. Raises UsageError where the work would block the
    event loop in which one of the `servers` runs, and RefusedError where the system refuses a thread, a process, memory
    or a file.
    """
    for server in filter(None, servers):
        _refuse_to_block(server)
    before = os.sched_getaffinity(0)
    try:
        with as_refusal(), outside_the_callers_repository(), ExitStack() as stack:
            yield stack
    finally:
        os.sched_setaffinity(0, before)


def _refuse_to_block(server: str) -> None:
    """Raise UsageError if this thread runs an event loop, and the server in it: the call would wait for itself.

    A loop that does not say what it watches, such as uvloop's, counts if this process listens at the address.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    try:
        host, port = urlsplit(server).hostname, urlsplit(server).port
    except ValueError:  # a wrong URL is refused where it is read
        return
    if port is None or not is_url(server):
        return
    watched: Mapping[object, SelectorKey] = getattr(getattr(loop, "_selector", None), "get_map", dict)()
    own = {_local_port(key.fd) for key in watched.values()}
    if port in own or (not watched and os.getpid() in owner_of(host or "", port).pids):
        raise UsageError(
            f"{server} runs in the event loop of this thread, and would not answer while this call blocks the loop",
            hint="measure in another thread: `await asyncio.to_thread(redline.load, …)`; or run the server in one",
        )


def _local_port(fd: int) -> int | None:
    """The port of a listening socket; None for any other file."""
    try:
        with socket.socket(fileno=os.dup(fd)) as of:
            listens = of.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            return of.getsockname()[1] if listens and of.family in (socket.AF_INET, socket.AF_INET6) else None
    except OSError:
        return None


@contextmanager
def outside_the_callers_repository() -> Iterator[None]:
    """Leave out, for a block, the variables that git sets for its hooks: see `leave_the_callers_repository`."""
    kept = {name: os.environ.pop(name) for name in NAMES_A_REPOSITORY if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def console(*, progress: bool) -> Console:
    """Where progress is printed: stderr, or nowhere."""
    return Terminal(stderr=True) if progress else Console(file=io.StringIO(), quiet=True)


def folder_for(keep: str | Path | None, stack: ExitStack) -> Path:
    """Where recordings go: a folder that the caller names, or one that goes with the stack."""
    if keep is not None:
        return Path(keep)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redline-"))) / "measured"
