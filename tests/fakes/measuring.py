"""Another process that measures, as others on the same machine do."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redline.watching.measurements import Measurement, State

HOLDS = """
import sys
from pathlib import Path
from redline.watching.measurements import Measurements
with Measurements(Path(sys.argv[1])).entered(sys.argv[2], sys.argv[3]):
    print("entered", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holding(folder: Path, command: str, state: State) -> Iterator[subprocess.Popen[str]]:
    """Another process that measures, until the block ends."""
    arguments = [sys.executable, "-c", HOLDS, str(folder), command, state]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "entered\n"
        try:
            yield process
        finally:
            with suppress(BrokenPipeError):
                process.communicate()


def named(others: tuple[Measurement, ...]) -> list[tuple[str, State]]:
    return [(other.command, other.state) for other in others]
