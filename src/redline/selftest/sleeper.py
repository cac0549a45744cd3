"""How late this machine wakes one who does nothing but sleep: what no load engine can be better than."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redline.model import Histogram
from redline.plugins.linux.scheduling import on_cores

_PERIOD_S = 0.001
_SLACK = Path("/proc/self/timerslack_ns")


def wake_ups(seconds: float, cpus: tuple[int, ...]) -> Histogram:
    """The lateness of a wake-up every millisecond, on these cores (empty: any), by absolute due times."""
    late_ns = []
    with on_cores(cpus), _precise():
        due_ns = time.monotonic_ns()
        for _ in range(max(1, round(seconds / _PERIOD_S))):
            due_ns += round(_PERIOD_S * 1e9)
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
            now_ns = time.monotonic_ns()
            late_ns.append(max(0, now_ns - due_ns))
            due_ns = max(due_ns, now_ns)
    return Histogram.of(late_ns)


@contextmanager
def _precise() -> Iterator[None]:
    """With timers to the nanosecond (the kernel groups them by 50 us otherwise), and no collector."""
    slack = ""
    with suppress(OSError):
        slack = _SLACK.read_text()
        _SLACK.write_text("1")
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        with suppress(OSError):
            _SLACK.write_text(slack)
