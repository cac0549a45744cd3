"""Runs the real `redline` as a user would."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from redline.cli.exits import COULD_NOT_RUN, DONE
from redline.driving.engine_process import ORACLE, find_engine
from redline.running.cell_search import WAITS_S
from tests.e2e.preloaded import Preloaded
from tests.e2e.skipped_truth import SkippedTruth
from tests.e2e.workshop import CHECKOUT, workshop

__all__ = ["CHECKOUT", "workshop"]
REDLINE = Path(sys.executable).with_name("redline")
LIMIT_S = 2 * sum(WAITS_S) + 180
"""The searches of a test have two cells at most, and each waits this long in total while the host takes CPU time."""


OF_A_BUSY_MACHINE = {
    *(
        "answered-late",
        "backlog",
        "client-saturated",
        "clock-stepped",
        "engine-paused",
        "late-reads",
        "latency-changed",
        "rate-changed",
    ),
    *("rate-missed", "send-lateness", "slows-as-it-serves", "too-few-trials", "unsteady"),
}
"""Kinds of invalid findings that other programs on the machine provoke, of a server that does everything right."""


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkippedTruth())


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def measured(self) -> "Done":
        """Check that it measured, whether or not a busy machine left numbers unknown.

        For what a test judges of a short load besides its numbers: what was sent, counted and written. What a server or
        the engine did wrong fails it, and so does a command that could not run.
        """
        facts = (self.code, self.out, self.err)
        assert "Traceback" not in self.err, facts
        if self.code == DONE:
            return self
        assert self.code == COULD_NOT_RUN, facts
        assert "hint:" not in self.err, facts
        assert any(words in self.out for words in ("invalid", "no valid result", "at least")), facts
        if self.out.startswith("{"):
            parts = self.json.get("cells", [self.json])
            grave = {one["kind"] for part in parts for one in part["findings"] if one["grade"] == "invalid"}
            assert grave, facts
            assert grave <= OF_A_BUSY_MACHINE, facts
        return self

    def refused(self, code: int, *words: str) -> None:
        """Check that it ended with this code, this message, a hint, and no stack trace."""
        assert self.code == code, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        assert "hint:" in self.err, self.err
        for word in words:
            assert word in self.err, (word, self.err)


class Redline:
    """The command, in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}

    def __call__(self, *args: str | Path) -> Done:
        """Run it to its end, in a process that has already imported `redline`."""
        return Done(*preloaded().call([str(arg) for arg in args], self.folder, self.environment, LIMIT_S))

    def start(self, *args: str | Path) -> "subprocess.Popen[str]":
        """Start the script and do not wait; the caller ends it."""
        return subprocess.Popen(
            [REDLINE, *args],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def in_own_mounts(self, script: str) -> Done:
        """Run a script that uses `redline` in a mount namespace of its own; skips where none can be made."""
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=self.folder,
            env={**self.environment, "PATH": f"{REDLINE.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if "unshare:" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
        return Done(done.returncode, done.stdout, done.stderr)


def for_each(commands: Sequence[object], cases: Sequence[tuple[object, ...]]) -> list[object]:
    """Parameters: every case with the first command, and the first case with each; what is left is long.

    For what one piece of code refuses, whichever command asked.
    """
    return [
        pytest.param(command, *case, marks=[] if 0 in (number, place) else [pytest.mark.long])
        for number, command in enumerate(commands)
        for place, case in enumerate(cases)
    ]


@cache
def preloaded() -> Preloaded:
    """The process that forks for every call."""
    return Preloaded(REDLINE)


def pytest_unconfigure() -> None:
    if preloaded.cache_info().currsize:
        preloaded().end()


@pytest.fixture
def redline(tmp_path: Path) -> Redline:
    return Redline(tmp_path)


@pytest.fixture(scope="session")
def oracle() -> Path:
    """The oracle's binary, which is installed with the engine."""
    return find_engine().with_name(ORACLE).absolute()
