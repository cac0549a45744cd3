"""Folders that Redline makes where every user may write: for its user alone, and never through others' links."""

import errno
import os
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redline.errors import LaunchError, StoreError
from redline.extras.profiling import attach
from redline.extras.profiling.sampler import ProfilerError
from redline.files import open_lock, write_atomically
from redline.launching.command import CommandLauncher
from redline.launching.temporary import private_folder, temporary_folder
from redline.ports import Launch, Placement
from redline.storage.runs import RunStore
from tests.fakes.servers.entries import eventually, server

SOMEBODY = 65534
REFUSED = 13
PLACE = f"redline-scratch-{os.geteuid()}"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files in which every user may write, like /tmp; tests' own are for their user alone."""
    del tmp_path  # it is made first, elsewhere
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        yield folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("as it was")
    file.chmod(0o600)
    return file


def as_somebody(act: Callable[[], object]) -> int:
    """The exit code of a process that acts as a user without rights: 0, or `REFUSED` if that user may not."""

    def drop_rights() -> None:
        os.setgroups([])
        os.setgid(SOMEBODY)
        os.setuid(SOMEBODY)
        act()

    child = os.fork()
    if child == 0:
        try:
            drop_rights()
            os._exit(0)
        except PermissionError:
            os._exit(REFUSED)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_it_is_for_this_user_alone(shared: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_folder("scratch")
        assert (folder, stat.S_IMODE(folder.stat().st_mode)) == (shared / PLACE, 0o700)
        folder.chmod(0o755)  # as an older lab made it
        assert private_folder("scratch") == folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@needs_root
def test_somebody_else_cannot_look_into_it_or_take_it_away(shared: Path) -> None:
    with temporary_folder(private_folder("scratch")) as folder:
        assert as_somebody(lambda: list(folder.parent.iterdir())) == REFUSED
        assert as_somebody((folder.parent / ".lock").read_bytes) == REFUSED
        assert as_somebody((folder / "file").touch) == REFUSED
        assert as_somebody(lambda: folder.rename(shared / "mine")) == REFUSED
        assert as_somebody(lambda: folder.parent.rename(shared / "mine")) == REFUSED
    assert as_somebody(lambda: list(shared.iterdir())) == 0


@needs_root
@pytest.mark.parametrize("kind", ["a folder", "a link to a folder", "a link to nowhere", "a file"])
def test_what_somebody_else_put_in_its_place_is_not_used(shared: Path, precious: Path, kind: str) -> None:
    def put() -> None:
        theirs = shared / "theirs" if kind == "a link to a folder" else shared / PLACE
        if kind == "a link to nowhere":
            theirs.symlink_to(shared / "nothing")
        elif kind == "a file":
            theirs.write_text("")
        else:
            theirs.mkdir(mode=0o777)
            (theirs / ".lock").symlink_to(precious)
        if kind == "a link to a folder":
            (shared / PLACE).symlink_to(theirs)

    assert as_somebody(put) == 0
    with pytest.raises(PermissionError, match="is no folder of this user's"):
        private_folder("scratch")
    variant = server(command=("true", "{port}"))
    with (
        pytest.raises(LaunchError, match="is no folder of this user's") as caught,
        CommandLauncher().running(Launch(variant, Placement(), shared / "log")),
    ):
        pass
    assert "TMPDIR" in caught.value.hint
    assert precious.read_text() == "as it was"
    assert not (shared / "nothing").exists()


def test_a_folder_of_which_everybody_can_rename_what_is_there_is_refused(shared: Path) -> None:
    below = shared / "below"
    below.mkdir()
    shared.chmod(0o777)
    tempfile.tempdir = str(below)
    with pytest.raises(PermissionError, match=f"everybody can replace what is in {shared}; TMPDIR=DIR names"):
        private_folder("scratch")
    shared.chmod(0o755)
    assert private_folder("scratch").is_dir()


@needs_root
@pytest.mark.parametrize(
    ("uid", "gid", "mode", "who"),
    [
        (0, SOMEBODY, 0o2775, f"group {SOMEBODY}"),
        (0, SOMEBODY, 0o3775, None),
        (0, SOMEBODY, 0o2755, None),
        (0, 0, 0o775, None),  # the owner's own group
        (SOMEBODY, 0, 0o755, f"user {SOMEBODY}"),
        (SOMEBODY, SOMEBODY, 0o1777, f"user {SOMEBODY}"),
    ],
)
def test_nor_is_one_of_a_team_or_of_another_user_used(
    shared: Path, uid: int, gid: int, mode: int, who: str | None
) -> None:
    os.chown(shared, uid, gid)
    shared.chmod(mode)
    if who is None:
        assert private_folder("scratch").is_dir()
        return
    with pytest.raises(PermissionError, match=f"{who} can replace what is in {shared}; TMPDIR=DIR"):
        private_folder("scratch")
    assert not (shared / PLACE).exists()


def test_a_lock_is_not_followed_and_keeps_what_it_holds(tmp_path: Path, precious: Path) -> None:
    os.close(open_lock(precious))
    assert precious.read_text() == "as it was"
    (tmp_path / ".lock").symlink_to(precious)
    with pytest.raises(OSError, match="is a link"):
        open_lock(tmp_path / ".lock")
    with pytest.raises(OSError, match="is a link"), temporary_folder(tmp_path):
        pass
    with pytest.raises(StoreError, match="is a link"), RunStore(tmp_path).locked():
        pass
    (tmp_path / ".lock").unlink()
    os.mkfifo(tmp_path / ".lock")  # nobody reads it
    with pytest.raises(OSError, match="is not a file"):
        open_lock(tmp_path / ".lock")
    assert precious.read_text() == "as it was"


def test_a_file_is_not_written_through_a_link(tmp_path: Path, precious: Path) -> None:
    (tmp_path / f".file.{os.getpid()}.part").symlink_to(precious)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert not (tmp_path / "file").is_symlink()
    assert precious.read_text() == "as it was"


def test_a_jvm_is_asked_through_no_socket_but_its_own() -> None:
    """Another process listens at the socket of a JVM with this id."""
    with subprocess.Popen(["sleep", "600"]) as sleeps, socket.socket(socket.AF_UNIX) as listening:
        address = Path(f"/tmp/.java_pid{sleeps.pid}")
        try:
            listening.bind(str(address))
            listening.listen()
            with pytest.raises(ProfilerError, match=f"but of process {os.getpid()}$"):
                attach.ask_as_jcmd(sleeps.pid, "VM.version")
        finally:
            address.unlink()
            sleeps.kill()


def test_what_asks_a_jvm_for_its_socket_is_not_made_through_a_link(tmp_path: Path) -> None:
    trigger = tmp_path / ".attach_pid1"
    trigger.symlink_to(tmp_path / "elsewhere")
    folder = os.open(tmp_path, os.O_PATH)
    attach._make(trigger.name, folder)
    assert not (tmp_path / "elsewhere").exists()
    assert (trigger.is_symlink(), stat.S_IMODE(trigger.stat().st_mode)) == (False, 0o600)
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        attach._make("nowhere/file", folder)
    os.close(folder)


@needs_root
def test_a_link_in_a_containers_root_leads_nowhere_on_this_machine(tmp_path: Path) -> None:
    """Its `/tmp` is a link, which points to another folder outside of the container."""
    host, root = tmp_path / "host", tmp_path / "root"
    host.mkdir()
    root.mkdir()
    (root / "tmp").symlink_to(host)
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGQUIT, signal.SIG_IGN)
            os.chroot(root)
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert eventually(lambda: Path(f"/proc/{child}/root").readlink() == root)
        theirs = host / f".attach_pid{child}"
        theirs.write_text("as it was")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(host / f".java_pid{child}"))
            listening.listen()
            with pytest.raises(OSError, match=os.strerror(errno.ENOTDIR)):
                attach.ask_as_jcmd(child, "VM.version")
        (host / f".java_pid{child}").unlink()
        with pytest.raises(OSError, match=os.strerror(errno.ENOTDIR)):
            attach.ask_as_jcmd(child, "VM.version")
        assert theirs.read_text() == "as it was"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
