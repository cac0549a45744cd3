"""Runs a command while the kernel reports that the host takes a third of the CPU time: `stealing.py FILE COMMAND…`.

It needs a mount namespace of its own: FILE, which is made, is mounted over /proc/stat, and rewritten all the time.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

STEAL = 8
"""The index of the field in the line `cpu`."""
LENGTH = 1 << 16


def with_steal(text: str, ticks: int) -> bytes:
    """The same with this much more steal, and of a constant length, so that no reader gets half of it."""
    first, rest = text.split("\n", 1)
    fields = first.split()
    fields[STEAL] = str(int(fields[STEAL]) + ticks)
    return f"{' '.join(fields)}\n{rest}".encode().ljust(LENGTH - 1) + b"\n"


def main(file: str, command: list[str]) -> int:
    hertz = os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
    with Path("/proc/stat").open(encoding="ascii") as real, Path(file).open("wb", buffering=0) as made:
        began, done = time.monotonic(), threading.Event()

        def rewrite() -> None:
            real.seek(0)
            os.pwrite(made.fileno(), with_steal(real.read(), round((time.monotonic() - began) * hertz / 3)), 0)

        def go_on() -> None:
            while not done.wait(0.01):
                rewrite()

        rewrite()
        subprocess.run(["mount", "--bind", file, "/proc/stat"], check=True)
        threading.Thread(target=go_on).start()
        try:
            return subprocess.run(command, check=False).returncode
        finally:
            done.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
