"""Copies of the process: what one makes is what the process would make, and no failure of a copy loses anything."""

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from redline import copies
from redline.copies import keep_freed_memory, made_beside, may_copy


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are allowed, whatever runs the tests."""
    monkeypatch.setattr(copies, "may_copy", lambda: True)


def pid() -> bytes:
    return str(os.getpid()).encode()


def test_freed_memory_is_kept_where_the_c_library_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    libraries = [SimpleNamespace(mallopt=lambda *option: told.append(option)), SimpleNamespace()]
    monkeypatch.setattr(copies.ctypes, "CDLL", lambda _: libraries.pop(0))
    keep_freed_memory()
    assert told == [(-1, 64 << 20), (-3, 64 << 20)], "the threshold to give back, and to ask the system for a block"
    keep_freed_memory()
    assert len(told) == 2


@pytest.mark.usefixtures("copied")
def test_a_copy_makes_it_in_another_process_while_the_block_runs() -> None:
    with made_beside(lambda: pid() * 300_000, copies=True) as made:
        content = made()
    assert len(content) >= 300_000
    assert not content.startswith(pid())


@pytest.mark.usefixtures("copied")
def test_it_is_made_here_unless_copies_are_wanted() -> None:
    with made_beside(pid, copies=False) as made:
        assert made() == pid()


def test_it_is_made_here_where_a_copy_is_not_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "may_copy", lambda: False)
    with made_beside(pid, copies=True) as made:
        assert made() == pid()


@pytest.mark.usefixtures("copied")
def test_a_copy_that_is_killed_leaves_it_to_the_process() -> None:
    here = os.getpid()

    def make() -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return b"made here"

    with made_beside(make, copies=True) as made:
        assert made() == b"made here"


@pytest.mark.usefixtures("copied")
def test_it_is_made_here_where_no_copy_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refused)
    with made_beside(pid, copies=True) as made:
        assert made() == pid()


@pytest.mark.usefixtures("copied")
def test_an_error_in_the_copy_is_raised_here_and_printed_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    def make() -> bytes:
        raise ZeroDivisionError("of the page")

    with pytest.raises(ZeroDivisionError, match="of the page"), made_beside(make, copies=True) as made:
        made()
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("copied")
def test_a_block_that_fails_ends_its_copy(tmp_path: Path) -> None:
    def make() -> bytes:
        (tmp_path / "pid").write_text(str(os.getpid()))
        threading.Event().wait()
        return b""

    def wait_and_fail() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            pass
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), made_beside(make, copies=True):
        wait_and_fail()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_process_of_several_threads_or_of_one_core_may_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(copies.threading, "active_count", lambda: 1)
    assert may_copy()
    monkeypatch.setattr(copies.threading, "active_count", lambda: 2)
    assert not may_copy()
    monkeypatch.setattr(copies.threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not may_copy()
