"""What every function does around a measurement, so that nothing of it stays in the caller's process."""

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from redline.cli.show import Terminal
from redline.git import outside_the_callers_repository
from redline.refusals import as_refusal


@contextmanager
def at_work() -> Iterator[ExitStack]:
    """Give a stack for what ends with the work. The calling thread then has the CPUs again that it had before.

    A session keeps the thread off the cores of server and engine. Raises RefusedError where the system refuses a
    thread, a process, memory or a file.
    """
    before = os.sched_getaffinity(0)
    try:
        with as_refusal(), outside_the_callers_repository(), ExitStack() as stack:
            yield stack
    finally:
        os.sched_setaffinity(0, before)


def console(*, progress: bool) -> Console:
    """Where progress is printed: stderr, or nowhere."""
    return Terminal(stderr=True) if progress else Console(file=io.StringIO(), quiet=True)


def folder_for(keep: str | Path | None, stack: ExitStack) -> Path:
    """Where recordings go: a folder that the caller names, or one that goes with the stack."""
    if keep is not None:
        return Path(keep)
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redline-"))) / "measured"
