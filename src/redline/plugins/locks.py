"""File locks that last as long as the processes started under them.

A lock is that of an open file (flock(2)), which whatever is started under it shares: see `commands.started`. So when
the lab is killed, the lock is held until the last process of its build has ended.
"""

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_held: set[int] = set()
_changing = threading.Lock()


@contextmanager
def held() -> Iterator[tuple[int, ...]]:
    """The descriptors of all locks that this process holds. No thread releases a lock until the block is left."""
    with _changing:
        yield tuple(_held)


@contextmanager
def locked(descriptor: int, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock of an open file, which is closed at the end. Raises OSError.

    Calls `waiting` first where somebody else holds it.
    """
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            with _changing:
                _held.add(descriptor)
            yield
        finally:
            with _changing:
                _held.discard(descriptor)
            # To close it would not do: a daemon that a build left has inherited it.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)
