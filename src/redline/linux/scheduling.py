"""Scheduling of the lab's threads: policy and cores."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def run_when_idle() -> None:
    """Let the calling thread run only on idle cores (SCHED_IDLE), permanently: the engine may share its core.

    Threads that start processes must not give way: children inherit it, and only the privileged may leave it.
    """
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def runs_when_idle(thread: int) -> bool:
    """Whether a thread is in SCHED_IDLE; False for a thread that has ended."""
    try:
        return os.sched_getscheduler(thread) == os.SCHED_IDLE
    except OSError:
        return False


@contextmanager
def on_cores(cpus: tuple[int, ...]) -> Iterator[None]:
    """Pin this thread, and processes that it starts meanwhile, to these cores. Empty changes nothing."""
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
