"""Where a process of ours begins."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def on_cores(cpus: tuple[int, ...]) -> Iterator[None]:
    """This thread, and what it starts meanwhile, on these cores; where there are none told, as before."""
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
