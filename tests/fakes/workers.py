"""A process that burns, waits, and starts threads and other processes on command."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from redline.linux import procfs

# Executes commands, a line each, and answers with its CPU time when a command is done.
WORKER = """
import os, resource, subprocess, sys, threading, time
hold = threading.Event()
for line in sys.stdin:
    word, number = line.split()
    if word == "burn":
        end = time.process_time_ns() + int(number)
        while time.process_time_ns() < end: pass
    if word == "threads":
        for _ in range(int(number)): threading.Thread(target=hold.wait, daemon=True).start()
    if word == "fork":
        for _ in range(int(number)):
            if os.fork() == 0:
                os.setsid(); time.sleep(600)
    if word == "helper":
        for _ in range(int(number)): subprocess.run(["true"])
    if word == "linger":
        for _ in range(int(number)): subprocess.Popen(["sleep", "600"])
    if word == "switch":
        # Preempted on its way to sleep, a process switches involuntarily: so many sleeps can be one switch fewer.
        end = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw + int(number)
        while resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw < end: time.sleep(0.0001)
    print(time.process_time_ns(), flush=True)
"""


class Worker:
    """A process that executes commands."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.pid = process.pid

    def do(self, what: str) -> int:
        """Returns its own CPU time in nanoseconds once it is done."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def started() -> Iterator[Worker]:
    """Kill it in the end, with all that it started."""
    command = [sys.executable, "-I", "-S", "-c", WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Worker(process)
        finally:
            for pid in reversed(procfs.tree(process.pid)):
                os.kill(pid, 9)
