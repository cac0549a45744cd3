"""Commands that the lab starts: their end, their leftovers, and their locks."""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from redline.files import open_lock
from redline.launching import commands
from redline.launching.commands import locked, started
from redline.launching.supervisor import _become
from redline.linux import procfs
from tests.fakes.servers.entries import eventually

WANDERS = """
import os, sys, time
for number in range(3):  # out of the group and the session, with a parent that is gone
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(f"{sys.argv[1]}/{os.getpid()}", "w").close()
            time.sleep(600)
        os._exit(0)
time.sleep(600)
"""
LAB = """
import sys
from pathlib import Path
from redline.files import open_lock
from redline.launching import commands
from redline.launching.commands import started
from redline.launching.commands import locked
with locked(open_lock(Path(sys.argv[1]))), started(sys.argv[2:]) as process:
    print(process.pid, flush=True)
    process.wait()
"""


def is_locked(file: Path) -> bool:
    descriptor = open_lock(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def alive(folder: Path) -> list[int]:
    """The processes that have written their ids here and still run: an ended process has no command."""
    return [int(file.name) for file in folder.iterdir() if runs(int(file.name))]


def runs(pid: int) -> bool:
    return procfs.read_bytes(f"/proc/{pid}/cmdline") != b""


def a_lab(lock: Path, *command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", LAB, lock, *command], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def wanderers(tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder, and a command that starts three independent processes, which write their ids there."""
    folder = tmp_path / "wanderers"
    folder.mkdir()
    return folder, [sys.executable, "-c", WANDERS, str(folder)]


@pytest.mark.parametrize(
    ("script", "code"), [("echo out; echo err >&2; exit 3", 3), ("echo out; echo err >&2; kill -SEGV $$", -11)]
)
def test_it_ends_as_the_command_does_and_its_output_is_read(tmp_path: Path, script: str, code: int) -> None:
    with started(["sh", "-c", script], tmp_path) as process:
        assert process.communicate()[0] == b"out\nerr\n"
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == []


RESTORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""The signals that Python ignores, and that this process may have inherited as ignored, as by nohup."""


def ignored_signals() -> int:
    return next(
        int(line.split()[1], 16)
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("SigIgn:")
    )


def test_it_runs_in_its_folder_with_nothing_to_read_and_signals_as_they_are_by_default(tmp_path: Path) -> None:
    with started(["sh", "-c", "pwd; cat; grep SigIgn /proc/self/status"], tmp_path) as process:
        folder, ignored = process.communicate()[0].decode().splitlines()
    assert folder == str(tmp_path)
    assert int(ignored.split()[1], 16) == ignored_signals() & ~sum(1 << number - 1 for number in RESTORED)


@pytest.mark.parametrize(
    ("command", "error"), [("no-such-command-of-redline", FileNotFoundError), ("/", PermissionError)]
)
def test_what_cannot_be_run_is_an_error(tmp_path: Path, command: str, error: type[OSError]) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(error), started([command], tmp_path):
        pass
    with pytest.raises(FileNotFoundError), started(["true"], tmp_path / "nowhere"):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_when_it_is_left_before_nothing_of_it_is_left(wanderers: tuple[Path, list[str]]) -> None:
    folder, command = wanderers
    with contextlib.suppress(KeyboardInterrupt), started(command):
        assert eventually(lambda: len(alive(folder)) == 3)
        raise KeyboardInterrupt
    assert alive(folder) == []


def test_a_supervisor_that_is_terminated_leaves_nothing_of_it(wanderers: tuple[Path, list[str]]) -> None:
    folder, command = wanderers
    with started(command) as process:
        try:
            assert eventually(lambda: len(alive(folder)) == 3)
            process.terminate()
            assert process.wait() == 1
            assert alive(folder) == []
        finally:
            for pid in alive(folder):
                os.kill(pid, signal.SIGKILL)


def test_a_command_whose_supervisor_is_gone_before_it_could_begin_does_not(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    gone = os.getppid()  # not the parent of the child
    child = os.fork()
    if child == 0:
        _become(["touch", str(begun)], 2, ctypes.CDLL(None), gone)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 127
    assert not begun.exists()


@pytest.mark.parametrize("with_supervisor", [False, True], ids=["the lab", "the lab and the supervisor"])
def test_a_killed_lab_leaves_its_lock_to_what_it_guards(
    tmp_path: Path, wanderers: tuple[Path, list[str]], with_supervisor: bool
) -> None:
    """The supervisor ends all of the command first. Killed too, it leaves the lock to the last process."""
    folder, command = wanderers
    lock = tmp_path / "lock"
    lab = a_lab(lock, *command)
    assert lab.stdout is not None
    supervisor = int(lab.stdout.readline())
    try:
        assert eventually(lambda: len(alive(folder)) == 3)
        assert is_locked(lock)
        lab.kill()
        if with_supervisor:
            os.kill(supervisor, signal.SIGKILL)
            lab.wait()
            assert eventually(lambda: not runs(supervisor))
            for pid in alive(folder):
                assert is_locked(lock)
                os.kill(pid, signal.SIGKILL)
        lab.wait()
        while is_locked(lock):
            time.sleep(0.001)
        assert alive(folder) == []
    finally:
        for pid in alive(folder):
            os.kill(pid, signal.SIGKILL)
        lab.communicate()


def test_what_a_command_left_running_holds_no_lock_and_goes_on(tmp_path: Path) -> None:
    """As the daemon of a compiler, which the next build is faster with."""
    lock, said = tmp_path / "lock", tmp_path / "said"
    has_left = 'until [ "$(ps -o sid= -p $! | tr -d " ")" = $! ]; do sleep 0.01; done'
    daemon = f"setsid sleep 600 > /dev/null 2>&1 & echo $! > {said}; {has_left}"
    with locked(open_lock(lock)), started(["sh", "-c", daemon]) as process:
        process.wait()
        assert is_locked(lock)
    pid = int(said.read_text())
    try:
        assert runs(pid)
        assert not is_locked(lock)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    lab = a_lab(tmp_path / "lock", "sleep", "600")
    assert lab.stdout is not None
    lab.stdout.readline()
    waits: Callable[[], None] = lab.kill
    with locked(open_lock(tmp_path / "lock"), waits):
        assert lab.wait() == -signal.SIGKILL
    lab.communicate()


def test_threads_that_lock_and_start_are_not_in_each_others_way(tmp_path: Path) -> None:
    def lock_and_start(number: int) -> list[int]:
        codes = []
        for _ in range(20):
            with locked(open_lock(tmp_path / str(number))):
                pass
            if number % 2:
                with started(["true"]) as process:
                    codes.append(process.wait())
        return codes

    with ThreadPoolExecutor() as threads:
        assert [code for codes in threads.map(lock_and_start, range(4)) for code in codes] == [0] * 40
    assert commands._held == set()
