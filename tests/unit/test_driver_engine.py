"""The engine's driver: what becomes of engines that cannot be started and of logs that cannot be written."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from redline.errors import DriveError, StoreError
from redline.plugins.drivers.engine import EngineDriver
from redline.ports import Drive, Endpoint
from tests.fakes.recordings import simulated_cell

CELL = simulated_cell()


def drive(log: Path) -> Drive:
    return Drive(cell=CELL, endpoint=Endpoint("127.0.0.1", 1), seed=1, cpus=(), workers=1, log=log)


def test_an_engine_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="cannot be started: No such file") as caught:
        EngineDriver(tmp_path / "no-engine").drive(drive(tmp_path / "engine.log"))
    assert "make build" in caught.value.hint


def test_a_machine_without_room_for_a_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(DriveError, match="cannot be started: Resource temporarily unavailable") as caught:
        EngineDriver(tmp_path / "engine").drive(drive(tmp_path / "engine.log"))
    assert "processes" in caught.value.hint


def test_an_engine_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"engine\.log") as caught:
        EngineDriver(Path("/bin/true")).drive(drive(tmp_path / "file" / "engine.log"))
    assert "-o DIR" in caught.value.hint


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match=r"engine\.log") as caught:
        EngineDriver(Path("/bin/true")).drive(drive(tmp_path / "engine.log"))
    assert "the disk is full" in caught.value.hint
