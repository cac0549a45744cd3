"""The engine's driver: engines that cannot be started and logs that cannot be written."""

import errno
import hashlib
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redline.driving import verifying
from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.errors import DriveError, StoreError
from redline.model import Expected
from redline.ports import Drive, Endpoint, NoResultError
from tests.fakes import targets
from tests.fakes.recordings import simulated_cell
from tests.unit.driving import test_events

CELL = simulated_cell()


def test_an_engine_that_was_built_anew_is_another_one(tmp_path: Path) -> None:
    binary = tmp_path / "engine"
    binary.write_bytes(b"one")
    assert EngineDriver(binary).sha256() == hashlib.sha256(b"one").hexdigest()
    binary.write_bytes(b"two")
    assert EngineDriver(binary).sha256() == hashlib.sha256(b"two").hexdigest()
    binary.unlink()
    with pytest.raises(DriveError, match="cannot be read") as caught:
        EngineDriver(binary).sha256()
    assert "make build" in caught.value.hint


def test_it_reads_what_fixed_work_took_on_each_core(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("""#!/bin/sh\n[ "$*" = "fixed-work 0,3" ] && echo '{"0": 5832332, "3": 9014800}'\n""")
    engine.chmod(0o755)
    assert EngineDriver(engine).fixed_work_ns((0, 3)) == {0: 5_832_332, 3: 9_014_800}


@pytest.mark.parametrize("says", ["exit 1", "echo nothing", "echo '{\"0\": null}'", "echo 7"])
def test_an_engine_that_cannot_do_fixed_work_ends_no_trial(tmp_path: Path, says: str) -> None:
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\n{says}\n")
    engine.chmod(0o755)
    assert EngineDriver(engine).fixed_work_ns((0,)) == {}


def drive(log: Path) -> Drive:
    return Drive(cell=CELL, endpoint=Endpoint("127.0.0.1", 1), seed=1, cpus=(), workers=1, log=log)


def test_an_engine_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="cannot be started: No such file") as caught:
        EngineDriver(tmp_path / "no-engine").drive(drive(tmp_path / "engine.log"))
    assert "make build" in caught.value.hint


def test_a_machine_without_room_for_a_process_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(DriveError, match="cannot be started: the system refused another process") as caught:
        EngineDriver(tmp_path / "engine").drive(drive(tmp_path / "engine.log"))
    assert "pids.max" in caught.value.hint


def test_an_engine_is_on_its_cores_before_anybody_watches_it(tmp_path: Path) -> None:
    """The engine takes its cores itself as well, but an early look would show those of the lab."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("there is one core only")
    engine, seen = tmp_path / "engine", list[set[int]]()
    engine.write_text("#!/bin/sh\nexec sleep 0.2\n")
    engine.chmod(0o700)
    pinned = replace(
        drive(tmp_path / "engine.log"),
        cpus=(cores[-1],),
        on_start=lambda pid: seen.append(os.sched_getaffinity(pid)),
    )
    with pytest.raises(DriveError, match="no result"):
        EngineDriver(engine).drive(pinned)
    assert seen == [{cores[-1]}]


@pytest.mark.parametrize("kept", [True, False])
def test_an_engine_without_a_result_leaves_what_it_reported_where_that_is_wanted(tmp_path: Path, kept: bool) -> None:
    engine, events = tmp_path / "engine", (test_events.STARTED, test_events.interval("measure", 0, 1))
    lines = "".join(f"echo '{json.dumps(event)}'\n" for event in events)
    engine.write_text(f"#!/bin/sh\n{lines}kill -9 $$\n")
    engine.chmod(0o700)
    with pytest.raises(
        NoResultError, match=r"the engine was killed \(signal 9, SIGKILL\) before it gave a result"
    ) as caught:
        EngineDriver(engine).drive(replace(drive(tmp_path / "engine.log"), keep_interrupted=kept))
    traffic = caught.value.traffic
    assert (traffic is not None) == kept
    assert traffic is None or len(traffic.intervals) == 1


def test_an_engine_that_ends_within_a_line_is_reported_by_how_it_ended(tmp_path: Path) -> None:
    """Its pipe holds 64 KiB, so an end by its own deadline cuts the line that nobody read in time."""
    engine, events = tmp_path / "engine", (test_events.STARTED, test_events.interval("measure", 0, 1))
    lines = "".join(f"echo '{json.dumps(event)}'\n" for event in events)
    engine.write_text(f"#!/bin/sh\n{lines}printf '{{\"event\": \"resu'\necho 'past its deadline' >&2\nexit 1\n")
    engine.chmod(0o700)
    with pytest.raises(NoResultError, match="ended with code 1 and no result: past its deadline") as caught:
        EngineDriver(engine).drive(replace(drive(tmp_path / "engine.log"), keep_interrupted=True))
    assert caught.value.traffic is not None
    assert len(caught.value.traffic.intervals) == 1


def test_an_engine_log_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"engine\.log") as caught:
        EngineDriver(Path("/bin/true")).drive(drive(tmp_path / "file" / "engine.log"))
    assert "-o DIR" in caught.value.hint


def test_a_full_disk_is_reported_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StoreError, match=r"engine\.log") as caught:
        EngineDriver(Path("/bin/true")).drive(drive(tmp_path / "engine.log"))
    assert "the disk is full" in caught.value.hint


def verified(habit: targets.Habit, expect: Expected = CELL.scenario.request.expect) -> str | None:
    request = CELL.scenario.request.model_copy(update={"expect": expect})
    cell = CELL.model_copy(update={"scenario": CELL.scenario.model_copy(update={"request": request})})
    with targets.target(habit) as url:
        port = urlsplit(url).port
        assert port is not None
        return EngineDriver(find_engine()).verify(cell, Endpoint("127.0.0.1", port))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "VERIFY_WITHIN_S", (0.3, 0.3))


@pytest.mark.parametrize("habit", [targets.healthy, targets.chunks])
def test_a_right_answer_is_right(habit: targets.Habit) -> None:
    assert verified(habit) is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("habit", [targets.stalls, targets.trickles, targets.trickles_its_head, targets.floods])
@pytest.mark.parametrize("expect", [CELL.scenario.request.expect, Expected()])
def test_an_answer_that_does_not_end_is_not_waited_for(habit: targets.Habit, expect: Expected) -> None:
    if habit is targets.trickles:  # as long as announced, so that only the clock can end it
        expect = Expected(length=100_000)
    wrong = verified(habit, expect)
    assert wrong is not None
    assert wrong.startswith("GET /path0: timeout: no ")


def test_what_is_no_http_is_shown() -> None:
    wrong = verified(targets.garbage)
    assert wrong is not None
    assert wrong.startswith("GET /path0: malformed: ")
    assert "<script>" in wrong


def test_an_answer_that_breaks_off_is_wrong_whatever_is_expected() -> None:
    for expect in (Expected(), Expected(body="path0"), Expected(length=5)):
        wrong = verified(targets.breaks_off, expect)
        assert wrong is not None
        assert wrong.startswith("GET /path0: closed: "), wrong


def test_a_reset_and_a_refused_connection_are_reported() -> None:
    assert str(verified(targets.resets)).startswith("GET /path0: reset: ")
    assert str(verified(targets.leaves)).startswith("GET /path0: closed: ")
    refused = EngineDriver(find_engine()).verify(CELL, Endpoint("127.0.0.1", targets.unused_port()))
    assert refused == "GET /path0: connect: Connection refused (os error 111)"


def test_how_long_an_answer_may_take_follows_the_cells_timeout() -> None:
    def within(timeout_s: float) -> float:
        return verifying.verify_within_s(CELL.model_copy(update={"timeout_ns": int(timeout_s * 1e9)}))

    assert [within(0.1), within(7), within(3600)] == [5.0, 7.0, 30.0]
