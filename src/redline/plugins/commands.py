"""Commands that the lab runs and reads line by line: builds and installers."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redline.plugins import locks

OUT_OF_RESOURCES = "this machine is out of processes, memory or open files: end what is not needed (`ulimit -a`)"
# Isolated, and without site packages: it needs none, and starts in a few milliseconds.
_SUPERVISOR = (
    *(sys.executable, "-I", "-S", "-c"),
    "import sys; sys.path.append(sys.argv[1]); from redline.plugins import supervisor; supervisor.main()",
    str(Path(__file__).parents[2]),
)
_READ_AT_MOST = 65_536


@contextmanager
def started(command: Sequence[str], folder: Path | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command behind a supervisor, with both outputs in the same pipe.

    It ends with all that it started when the block is left before, or when the lab is killed. Until then it holds
    the locks that the lab holds. Raises OSError when it cannot be run.
    """
    stdin, alive = os.pipe()
    failed, failing = os.pipe()
    try:
        try:
            with locks.held() as held:
                process = subprocess.Popen(
                    [*_SUPERVISOR, str(failing), *command],
                    cwd=folder,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(failing, *held),
                )
        finally:
            os.close(stdin)
            os.close(failing)
        try:
            if errno := os.read(failed, 64):
                raise OSError(int(errno), os.strerror(int(errno)), command[0])
            yield process
        finally:
            os.close(alive)
            alive = -1
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    finally:
        os.close(failed)
        if alive >= 0:
            os.close(alive)


def lines_of(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    """Its lines as it prints them; a line without an end, such as a progress bar, in pieces of 64 KiB."""
    while process.stdout and (raw := process.stdout.readline(_READ_AT_MOST)):
        yield raw
