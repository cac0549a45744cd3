"""Copies of this process: they start in milliseconds, share its memory, and end with it. Below all rooms."""

import ctypes
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20


def may_copy() -> bool:
    """Whether a copy works at the same time, and is safe: a lock that another thread holds would stay locked in it."""
    return threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


def begin_copy(parent: int) -> None:
    """Begin a copy: it ends with the process that it is a copy of, which alone hears a Ctrl-C."""
    gc.freeze()  # what is shared stays so: a collection would write to it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def keep_freed_memory() -> None:
    """Keep what is freed for what comes next: the system clears all that is given back and taken again."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # of glibc alone
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


@contextmanager
def made_beside(make: Callable[[], bytes], *, copies: bool) -> Iterator[Callable[[], bytes]]:
    """Have a copy make something while the block runs, which calls what it gets to take it.

    It is made here, and only then, if it is not to be copied or `may_copy` says no, and where the copy fails.
    """
    if not (copies and may_copy()):
        yield make
        return
    try:
        copy, ours = _begun(make)
    except OSError:  # no more processes, memory or descriptors
        yield make
        return

    def made() -> bytes:
        try:
            return ours.recv_bytes()
        except (EOFError, OSError):
            return make()

    try:
        yield made
    finally:
        ours.close()
        copy.kill()
        copy.join()


def _begun(make: Callable[[], bytes]) -> tuple[ForkProcess, Connection]:
    """A copy that makes it, and where it is received. Raises OSError."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    copy = context.Process(target=_send, args=(make, theirs, os.getpid()))
    with theirs:
        try:
            copy.start()
        except OSError:
            ours.close()
            raise
    return copy, ours


def _send(make: Callable[[], bytes], to: Connection, parent: int) -> None:
    """Send what is made, and end at once: to free memory would copy it first."""
    begin_copy(parent)
    try:
        to.send_bytes(make())
    except Exception:  # noqa: BLE001 - the other process meets it again
        os._exit(1)
    os._exit(0)
