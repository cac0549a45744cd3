"""The folder of every start of a server, and folders that are removed with their owners."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from redline.errors import LaunchError
from redline.launching.process import ProcessLauncher
from redline.launching.temporary import temporary_folder
from redline.ports import Launch, Placement
from tests.fakes.servers.entries import make_catalogue, server

FREE = Placement()


@pytest.fixture
def launcher(tmp_path: Path) -> ProcessLauncher:
    return ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")


def folders(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.is_dir()]


def test_a_server_gets_an_empty_folder_of_its_own_that_goes_with_it(launcher: ProcessLauncher, tmp_path: Path) -> None:
    plain = server()
    variant = server(command=(*plain.catalogued.start.command, "{scratch}"))
    launcher.build([variant], lambda _line: None)
    log = tmp_path / "run" / "server.log"
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert running.facts.command[-1] == str(running.scratch)
        assert running.scratch.is_absolute()
        assert running.scratch.is_relative_to(tmp_path / "cache")
        assert list(running.scratch.iterdir()) == []
        (running.scratch / "requests.log").write_text("much")
        first = running.scratch
    assert not first.exists()
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert running.scratch != first


def test_it_goes_whatever_happens(launcher: ProcessLauncher, tmp_path: Path) -> None:
    healthy, exits = server(), server("exits")
    launcher.build([healthy, exits], lambda _line: None)
    with pytest.raises(KeyboardInterrupt), launcher.running(Launch(healthy, FREE, tmp_path / "server.log")):
        raise KeyboardInterrupt
    with pytest.raises(LaunchError), launcher.running(Launch(exits, FREE, tmp_path / "server.log")):
        pass
    assert folders(tmp_path / "cache/scratch") == []


def test_a_cache_that_cannot_be_written_is_reported(launcher: ProcessLauncher, tmp_path: Path) -> None:
    variant = server()
    launcher.build([variant], lambda _line: None)
    (tmp_path / "cache/scratch").write_text("in the way")
    with (
        pytest.raises(LaunchError, match="could not be given a scratch folder") as caught,
        launcher.running(Launch(variant, FREE, tmp_path / "server.log")),
    ):
        pass
    assert "a file stands where a folder is needed" in caught.value.hint


def test_folders_in_use_are_left_alone_and_dead_ones_are_swept(tmp_path: Path) -> None:
    script = "import sys, time; from pathlib import Path; from redline.launching.temporary import temporary_folder\n"
    script += (
        "with temporary_folder(Path(sys.argv[1])) as f:\n (f / 'left').mkdir(); print(f, flush=True); time.sleep(600)"
    )
    lab = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert lab.stdout is not None
        others = Path(lab.stdout.readline().strip())
        with temporary_folder(tmp_path) as first, temporary_folder(tmp_path) as second:
            assert first.name.startswith(f"redline-{os.getpid()}-")
            assert set(folders(tmp_path)) == {others, first, second}
        lab.send_signal(signal.SIGKILL)
        lab.wait()
        assert folders(tmp_path) == [others]
        with temporary_folder(tmp_path) as third:
            assert folders(tmp_path) == [third]
    finally:
        lab.kill()
        lab.communicate()


def test_what_nobody_here_made_is_left_alone(tmp_path: Path) -> None:
    """The cache may be a link to a folder with other things in it."""
    target = tmp_path / "target"
    theirs = [target / name for name in ("photos", "4711-abcdefgh", "redline-4711-abcdefgh", "redline-1-short")]
    for folder in theirs:
        folder.mkdir(parents=True)
    (target / "redline-1-short.lock").write_text("")
    (target / "linked").symlink_to(tmp_path)
    (target / "redline-4712-abcdefgh.lock").write_text("")
    (target / "redline-4712-abcdefgh").symlink_to(tmp_path)
    (tmp_path / "scratch").symlink_to(target)
    with temporary_folder(tmp_path / "scratch"):
        pass
    assert all(folder.is_dir() for folder in theirs)
    assert (target / "redline-4712-abcdefgh").is_symlink()
    assert (target / "linked").is_symlink()


def test_another_users_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redline-4711-abcdefgh").mkdir()
    (tmp_path / "redline-4711-abcdefgh.lock").write_text("")
    with monkeypatch.context() as patched:
        patched.setattr("os.geteuid", lambda: os.getuid() + 1)
        with temporary_folder(tmp_path):
            assert (tmp_path / "redline-4711-abcdefgh").is_dir()
    with temporary_folder(tmp_path):
        assert not (tmp_path / "redline-4711-abcdefgh").exists()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_refused_lock_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def flock(held: int | IO[bytes], operation: int) -> None:
        if isinstance(held, int):
            raise OSError(errno.ENOLCK, "No locks available")
        real(held, operation)

    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(OSError, match="No locks available"), temporary_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_no_folder_is_locked_for_not_every_file_system_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = fcntl.flock

    def flock(held: int | IO[bytes], operation: int) -> None:
        if stat.S_ISDIR(os.fstat(held if isinstance(held, int) else held.fileno()).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(held, operation)

    monkeypatch.setattr("fcntl.flock", flock)
    with temporary_folder(tmp_path) as first, temporary_folder(tmp_path) as second:
        assert set(folders(tmp_path)) == {first, second}
    assert folders(tmp_path) == []


def test_the_lock_is_let_go_with_the_folder(tmp_path: Path) -> None:
    with temporary_folder(tmp_path) as folder:
        held = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(held)
