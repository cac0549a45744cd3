"""How late this machine wakes one who does nothing but sleep: what no load engine can be better than."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redline.model import Histogram

_PERIOD_S = 0.001
_SLACK = Path("/proc/self/timerslack_ns")


def wake_ups(seconds: float, cpus: tuple[int, ...]) -> Histogram:
    """The lateness of a wake-up every millisecond, on these cores (empty: any), by absolute due times."""
    late_ns = []
    with _precise(cpus):
        due_ns = time.monotonic_ns()
        for _ in range(max(1, round(seconds / _PERIOD_S))):
            due_ns += round(_PERIOD_S * 1e9)
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            now_ns = time.monotonic_ns()
            late_ns.append(max(0, now_ns - due_ns))
            due_ns = max(due_ns, now_ns)
    return Histogram.of(late_ns)


@contextmanager
def _precise(cpus: tuple[int, ...]) -> Iterator[None]:
    """On these cores, with timers to the nanosecond (the kernel groups them by 50 us otherwise), and no collector."""
    before, slack = os.sched_getaffinity(0), ""
    with suppress(OSError):
        slack = _SLACK.read_text()
        _SLACK.write_text("1")
    if cpus:
        os.sched_setaffinity(0, cpus)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        os.sched_setaffinity(0, before)
        with suppress(OSError):
            _SLACK.write_text(slack)
