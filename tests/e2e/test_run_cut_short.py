"""A run that is interrupted, killed or out of disk keeps its measurements, and continues with `--resume`."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from redline.model import Report, Run
from redline.storage.runs import RunStore
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab

pytestmark = pytest.mark.e2e


@pytest.fixture
def lab(redline: Redline, oracle: Path) -> Lab:
    return Lab(redline.folder, oracle)


def stored(redline: Redline) -> Run:
    return RunStore(redline.folder / "out").run()


def test_a_full_disk_keeps_what_was_measured(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one", trials=60)
    place = redline.folder / "small"
    place.mkdir()
    script = (
        f"mount -t tmpfs -o size=512k tmpfs {place} && redline run {suite} -o {place}/run;"
        f" code=$?; cp -r {place}/run {redline.folder}/out; exit $code"
    )
    done = redline.in_own_mounts(script)
    done.refused(1, "disk is full", "--resume")
    assert len(stored(redline).recordings) >= 1


def test_ctrl_c_keeps_what_was_measured_and_resume_continues(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one, good.two", trials=4)
    process = redline.start("run", suite, "-o", "out")
    _wait_for_recordings(redline, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "--resume" in err
    assert "Traceback" not in err
    kept = stored(redline).recordings
    assert 2 <= len(kept) < 8
    assert (redline.folder / "out" / "report.html").exists()
    assert out
    _nothing_is_left(redline)
    done = redline("run", "--resume", "out", "--json")
    assert Report.model_validate(done.json).run.complete
    assert stored(redline).recordings[: len(kept)] == kept


def test_a_run_that_is_done_gets_further_rounds(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one, good.two", trials=1)
    redline("run", suite, "-o", "out").measured()
    kept = stored(redline).recordings[:2]
    redline("run", "--resume", "out", "--trials", "1").refused(2, "--trials 1 adds nothing", "--trials 2")
    done = redline("run", "--resume", "out", "--trials", "3", "--json")
    made = Report.model_validate(done.json)
    assert made.run.complete
    assert [len(cell.trials) for cell in made.cells] == [3, 3]
    assert stored(redline).recordings[:2] == kept


def test_kill_9_loses_at_most_the_trial_in_flight(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one, good.two", trials=4)
    process = redline.start("run", suite, "-o", "out")
    _wait_for_recordings(redline, 3)
    process.kill()
    process.communicate(timeout=60)
    kept = stored(redline).recordings
    assert len(kept) >= 3
    _nothing_is_left(redline)
    assert Report.model_validate(redline("run", "--resume", "out", "--json").json).run.complete
    after = stored(redline)
    assert after.complete
    assert after.recordings[: len(kept)] == kept


@pytest.mark.long
def test_kill_9_within_further_starts_loses_at_most_the_one_in_flight(redline: Redline, lab: Lab) -> None:
    """Two trials never decide a comparison, and equal servers are seldom sure: the run goes on until it is killed."""
    planned = 2 * 2
    suite = lab.suite("good.one, good.two", trials=2, more="baseline: good.one\ndesign: interleaved")
    process = redline.start("run", suite, "-o", "out", "--more", "10m", "--verbose")
    _wait_for_recordings(redline, planned + 1)
    process.kill()
    _, said = process.communicate(timeout=60)
    assert "so far 0 comparisons sure, 0 decided, 1 undecided (good.two.SimpleGet.saturate)" in said
    kept = stored(redline).recordings
    _nothing_is_left(redline)
    done = redline("run", "--resume", "out", "--json")
    assert Report.model_validate(done.json).run.complete
    after = stored(redline)
    assert after.recordings[: len(kept)] == kept
    assert len(after.recordings) > planned
    redline("run", "--resume", "out", "--more", "1ms", "--json").measured()
    assert stored(redline).recordings == after.recordings, "no start fits into the time"


def test_only_a_run_that_compares_goes_on(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one")
    redline("run", suite, "-o", "out", "--more", "1m").refused(2, "has no baseline", "--more")
    assert not (redline.folder / "out").exists()


def test_a_run_of_other_servers_is_not_mixed_in(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one", trials=50)
    process = redline.start("run", suite, "-o", "out")
    _wait_for_recordings(redline, 1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    family = lab.folder / "catalogue" / "good" / "server.yaml"
    family.write_text(family.read_text() + "# changed\n")
    redline("run", "--resume", "out").refused(1, "has changed since")


def test_resume_takes_nothing_beside_it(redline: Redline, lab: Lab) -> None:
    redline("run", lab.suite("good.one"), "--resume", "out").refused(2, "--resume")


def test_resume_of_nothing_is_reported(redline: Redline, lab: Lab) -> None:
    redline("run", "--resume", "nowhere").refused(2, "nowhere does not exist")


def _wait_for_recordings(redline: Redline, count: int) -> list[Path]:
    folder = redline.folder / "out" / "recordings"
    for _ in range(3600):
        found = sorted(folder.glob("0*.json")) if folder.exists() else []
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError("no recordings came")


def _nothing_is_left(redline: Redline) -> None:
    """Check that no process runs in the test's folder any more: no server, warden or engine."""
    mark = str(redline.folder)
    for _ in range(600):
        left = [process for process in psutil.process_iter() if _belongs(process, mark)]
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError([process.cmdline() for process in left])


def _belongs(process: psutil.Process, mark: str) -> bool:
    try:
        return process.pid != os.getpid() and process.cwd().startswith(mark)
    except psutil.Error:
        return False
