"""The engine as a process: find its binary, start and end it, and read its log."""

import contextlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import IO

from redline.errors import DriveError, UsageError
from redline.refusals import refusal_of
from redline.version import VERSION

ENGINE = "redline-engine"
ORACLE = "redline-oracle"
"""The server with known answers, which is installed beside the engine."""
_log = logging.getLogger(__name__)
INSTALL = "run `make build` in a checkout; elsewhere install redline again, which brings its engine"
"""How to install the engine, for messages."""


def find_engine() -> Path:
    """Return the engine in the folder of this Python, or on the PATH. Raises DriveError if there is none."""
    installed = Path(sys.executable).with_name(ENGINE)
    path = str(installed) if installed.is_file() else shutil.which(ENGINE)
    if path is None:
        raise DriveError(f"{ENGINE} is not installed", hint=INSTALL)
    return Path(path)


def installed_folder() -> Path:
    """Return the folder of the engine and of the oracle, installed together. Raises DriveError if there is none."""
    return find_engine().absolute().parent


def check_version(engine: Path, version: str) -> None:
    """Raise UsageError for an engine of another version than this lab: they would not understand each other."""
    if version != VERSION:
        raise UsageError(
            f"this is redline {VERSION}, and {engine} is of version {version}: they have to be of the same version",
            hint=INSTALL,
        )


def start_engine(engine: Path, log: IO[str], *arguments: str) -> "subprocess.Popen[str]":
    """Start the engine; it ends with the calling thread. Raises DriveError."""
    try:
        process = subprocess.Popen(
            [engine, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "REDLINE_PARENT": str(os.getpid())},
            process_group=0,  # Ctrl-C is for the lab, which stops the engine itself
        )
    except OSError as error:
        refused = refusal_of(error)
        raise DriveError(
            f"the engine {engine} cannot be started: {refused.message if refused else error.strerror}",
            hint=refused.hint if refused else INSTALL,
        ) from error
    _log.debug("engine: pid %d, %s", process.pid, shlex.join([str(engine), *arguments]))
    return process


def say(process: "subprocess.Popen[str]", line: str, *, more: bool) -> None:
    """Write a line to the engine: the last line, unless there may be `more`."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # an engine that ends early says why in its events
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    if not more:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def end_engine(process: "subprocess.Popen[str]") -> None:
    """Kill the engine if it still runs, and close its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()


def log_tail(log: Path) -> str:
    """Return the end of an engine's log."""
    try:
        text = log.read_text(errors="replace").strip()
    except OSError:
        text = ""
    return text[-500:] or "it said nothing"


def whole_lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    """The lines of the engine's output. A line within which it ended is none: how it ended says why."""
    return takewhile(lambda line: line.endswith("\n"), process.stdout or ())
