"""A thread that gives way to the load."""

import os
from contextlib import suppress


def give_way() -> None:
    """Let the calling thread run only when a core has nothing else to do, and be preempted at once by what has.

    The lab shares cores with the engine where there are few. SCHED_IDLE is for the thread alone and for good: any user
    may take it on, and only the privileged may leave it, so it is for threads that start no processes.
    """
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
