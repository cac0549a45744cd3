"""Commands that the lab runs and reads line by line: builds and installers."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

OUT_OF_RESOURCES = "this machine is out of processes, memory or open files: end what is not needed (`ulimit -a`)"


@contextmanager
def started(command: Sequence[str], folder: Path | None = None) -> Iterator["subprocess.Popen[bytes]"]:
    """The command with both outputs in one pipe; killed with all it started when the block is left by an exception.

    Raises OSError when it cannot be run.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
