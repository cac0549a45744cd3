"""A stopped engine reports its pause, whatever else is stopped; a stopped server is blamed itself."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redline.model import Grade, Report
from redline.model.load_result import LoadResult
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab

pytestmark = [pytest.mark.e2e]

PAUSE_S = 1.0
FLAGS = ("-c 4", "-c 4 -R 200", "-c 2 --think 5ms", "-c 2 --depth 4")
SERVER = """
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)
def serve(connection):
    while data := connection.recv(65536):
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok" * data.count(b"\\r\\n\\r\\n"))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def server() -> Iterator["subprocess.Popen[str]"]:
    """A server in a process of its own, which can be stopped."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def url_of(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    return f"http://127.0.0.1:{int(server.stdout.readline())}/"


def below(pid: int) -> Iterator[int]:
    """All descendants of this process."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from below(child)


def engine_of(lab: "subprocess.Popen[str]") -> int:
    """The engine of this lab, once it has used a connection for a while."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in below(lab.pid):
            with contextlib.suppress(OSError):
                tasks = {each.read_text().strip() for each in Path(f"/proc/{pid}/task").glob("*/comm")}
                if {"redline-engine", "worker-0"} <= tasks:
                    return pid
        time.sleep(0.02)
    raise AssertionError("the lab has no engine")


def stop_for_a_while(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(PAUSE_S)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def loaded(redline: Redline, url: str, flags: str, stopped: Callable[[int, int], list[int]]) -> LoadResult:
    """A load of two seconds, during which the processes that a function chooses from lab and engine are stopped."""
    lab = redline.start("load", url, *flags.split(), "-d", "2s", "--warmup", "100ms", "--timeout", "500ms", "--json")
    try:
        engine = engine_of(lab)
        time.sleep(0.6)
        stop_for_a_while(stopped(lab.pid, engine))
        out, err = lab.communicate(timeout=60)
    finally:
        lab.kill()
        lab.wait()
    assert out, err
    return LoadResult.model_validate(json.loads(out))


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        pytest.param(
            flags,
            whole,
            id=f"{flags} {'the-lab-too' if whole else 'the-engine'}",
            marks=[pytest.mark.long] if (whole and at > 0) or at > 1 else [],
        )
        for whole in (False, True)
        for at, flags in enumerate(FLAGS)
    ],
)
def test_an_engine_that_stood_still_is_reported_and_nothing_else_blamed(
    redline: Redline, server: "subprocess.Popen[str]", flags: str, whole: bool
) -> None:
    result = loaded(redline, url_of(server), flags, lambda lab, engine: [lab, engine] if whole else [engine])
    (pause,) = [each for each in result.findings if each.kind == "engine-paused"]
    assert pause.grade is Grade.INVALID
    assert not result.valid
    assert result.counts.outcomes.errors == 0, "answers that waited to be read did not time out"


def test_a_server_that_stood_still_is_blamed_itself(redline: Redline, server: "subprocess.Popen[str]") -> None:
    result = loaded(redline, url_of(server), "-c 4", lambda _lab, _engine: [server.pid])
    assert result.counts.outcomes.timeout > 0
    # A busy machine may keep the engine from its core for a moment, but never for a large part of the second.
    paused = [each.grade for each in result.findings if each.kind == "engine-paused"]
    assert Grade.INVALID not in paused


def test_a_trial_of_a_run_whose_engine_stood_still_is_no_result(redline: Redline, oracle: Path) -> None:
    suite = Lab(redline.folder, oracle).suite("good.one", trials=1)
    lab = redline.start("run", suite, "-d", "2s", "-o", "out", "--json")
    try:
        engine = engine_of(lab)
        time.sleep(0.6)
        stop_for_a_while([engine])
        out, err = lab.communicate(timeout=60)
    finally:
        lab.kill()
        lab.wait()
    assert out, err
    (cell,) = Report.model_validate(json.loads(out)).cells
    assert not cell.valid
    assert "engine-paused" in {each.kind for each in cell.findings}
