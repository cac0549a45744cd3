"""System calls by kind: those of a program that is known to make them, counted by perf itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from redline.extras.profiling.syscalls import SystemCalls, uncounted

KNOWN = """
import os, sys
for line in sys.stdin:
    for _ in range(int(line)):
        os.sched_yield()
    print("done", flush=True)
"""


@pytest.mark.skipif(bool(uncounted()), reason="perf may not count system calls here")
def test_system_calls_are_counted_by_kind_from_start_to_stop(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KNOWN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as known:
        orders, answers = known.stdin, known.stdout
        assert orders is not None
        assert answers is not None

        def does(times: int) -> None:
            orders.write(f"{times}\n")
            answers.readline()

        does(100)
        calls = SystemCalls()
        calls.start(known.pid, tmp_path)
        does(1234)
        calls.stop()
        does(100)
        counted = {series.name: series for series in calls.series()}
        orders.close()
    assert counted["syscalls:sched_yield"].values == (0.0, 1234.0)
    assert counted["syscalls:write"].values[1] in {1.0, 2.0}  # of `print`
    assert counted["syscalls:fsync"].values[1] == 0
    first, last = counted["syscalls:others"].times_unix_ns
    assert first < last
    assert list(tmp_path.iterdir()) == []
