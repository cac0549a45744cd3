"""Limits of memory, files and processes that are too low: one clear message that names the limit, and no traceback."""

import os
import resource
import subprocess
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import REDLINE
from tests.fakes import targets

pytestmark = pytest.mark.e2e

MB = 1_000_000
DONE, COULD_NOT_RUN = 0, 1
QUICK = ("-d", "200ms", "--warmup", "0s", "-c", "4")


def limited(limit: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(limit, (value, value))


def run(folder: Path, limit: int, value: int, *command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "300"},
        preexec_fn=limited(limit, value),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def is_clear(done: "subprocess.CompletedProcess[str]", named: str) -> None:
    """Check that a command did its work, or named the limit and how to raise it in a message and a hint."""
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (DONE, COULD_NOT_RUN), (done.returncode, done.stdout, done.stderr)
    if not is_done(done):
        assert "redline: " in done.stderr, (done.stdout, done.stderr)
        assert "\n  hint: " in done.stderr, done.stderr
        assert named in done.stderr, done.stderr


def is_done(done: "subprocess.CompletedProcess[str]") -> bool:
    """Whether a command did its work, be it that a busy machine made so short a load invalid."""
    return done.returncode == DONE or " measured\n" in done.stdout


def mostly_long(values: Sequence[int], quick: Collection[int]) -> list[object]:
    """Limits as parameters, all but some among the long tests: each starts an interpreter."""
    return [pytest.param(value, marks=[] if value in quick else [pytest.mark.long]) for value in values]


@pytest.mark.parametrize("megabytes", mostly_long([60, 150, 200, 250, 258, 280, 400, 2000], (60, 250, 258, 2000)))
def test_a_limit_of_the_address_space(megabytes: int, tmp_path: Path) -> None:
    with targets.target(targets.healthy) as url:
        done = run(tmp_path, resource.RLIMIT_AS, megabytes * MB, REDLINE, "load", url, *QUICK)
    is_clear(done, f"limited to {megabytes:,} MB (`ulimit -v`)")
    assert is_done(done) is (megabytes >= 256) or 256 <= megabytes < 1000, done.stderr


@pytest.mark.parametrize("megabytes", mostly_long([30, 127, 500], (30, 500)))
def test_a_limit_of_data(megabytes: int, tmp_path: Path) -> None:
    with targets.target(targets.healthy) as url:
        done = run(tmp_path, resource.RLIMIT_DATA, megabytes * MB, REDLINE, "load", url, *QUICK)
    is_clear(done, f"limited to {megabytes:,} MB (`ulimit -d`)")


@pytest.mark.parametrize("files", mostly_long([8, 10, 24], (8, 24)))
def test_a_limit_of_open_files(files: int, tmp_path: Path) -> None:
    with targets.target(targets.healthy) as url:
        done = run(tmp_path, resource.RLIMIT_NOFILE, files, REDLINE, "load", url, *QUICK)
    is_clear(done, "(`ulimit -" if files < 10 else "")


def test_every_command_begins_with_the_check(tmp_path: Path) -> None:
    for command in (["ab", "http://127.0.0.1:1", "http://127.0.0.1:2"], ["run", "x.yaml"], ["view"], ["doctor"]):
        done = run(tmp_path, resource.RLIMIT_AS, 200 * MB, REDLINE, *command)
        assert done.returncode == COULD_NOT_RUN
        is_clear(done, "the address space of a process is limited to 200 MB (`ulimit -v`)")
    assert run(tmp_path, resource.RLIMIT_AS, 200 * MB, REDLINE, "--version").returncode == DONE
