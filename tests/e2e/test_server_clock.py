"""The CPU time of a server as the engine reads it equals the kernel's."""

from pathlib import Path

import psutil
import pytest

from bench.rig import drive, running
from redline.model import Closed, Load

pytestmark = pytest.mark.e2e

TICK_NS = 10_000_000
LOAD = Load(name="closed", shape=Closed(users=4), duration_ns=1_000_000_000)


def cpu_ns(pid: int) -> float:
    """The kernel's count in /proc, in ticks."""
    times = psutil.Process(pid).cpu_times()
    return (times.user + times.system) * 1e9


def test_the_engine_reads_what_the_kernel_counts(oracle: Path) -> None:
    """Without a warm-up the window holds all of the load, and the server hardly does anything but answer it."""
    with running(oracle, "null") as server:
        before_ns = cpu_ns(server.pid)
        clocks = drive(server, LOAD, warmup_ns=0).clocks
        spent_ns = cpu_ns(server.pid) - before_ns
    assert clocks is not None
    assert clocks.steal_ns is not None
    assert clocks.server_cpu_ns is not None
    assert spent_ns > 10 * TICK_NS
    assert 0.8 * spent_ns - 2 * TICK_NS <= clocks.server_cpu_ns <= spent_ns + 2 * TICK_NS
