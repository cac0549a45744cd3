"""A run whose output cannot be written, whose folder has a name that is not text, or that receives a signal to end."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from redline.model import Report
from redline.storage.runs import RunStore
from tests.e2e.conftest import REDLINE, Redline
from tests.e2e.lab import Lab

pytestmark = pytest.mark.e2e


@pytest.fixture
def lab(redline: Redline, oracle: Path) -> Lab:
    redline.folder = redline.folder / os.fsdecode(b"odd \xff")
    redline.folder.mkdir()
    return Lab(redline.folder, oracle)


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">/dev/full", 1),
        ("2>/dev/full", 0),
        pytest.param(">/dev/full 2>/dev/full", 1, marks=pytest.mark.long),
        (">&- 2>&-", 1),
    ],
)
def test_a_run_is_kept_whatever_its_output(redline: Redline, lab: Lab, streams: str, code: int) -> None:
    suite = lab.suite("good.one", trials=1)
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {streams}', "bash", REDLINE, "run", suite, "-o", "out"],
        cwd=redline.folder,
        env=redline.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    cells = Report.model_validate_json((redline.folder / "out" / "results.json").read_bytes()).cells
    # A busy machine may make the only cell invalid, which is 1 as well.
    assert done.returncode == (code if any(cell.valid for cell in cells) else 1), done.stderr
    assert "Traceback" not in done.stderr
    run = RunStore(redline.folder / "out").run()
    assert run.complete
    assert (redline.folder / "out" / "report.html").is_file()
    if streams == ">/dev/full":
        assert f"report: {redline.folder}".replace("\udcff", r"\udcff") in done.stderr
        assert "the output could not be written: No space left on device" in done.stderr
    if streams == "2>/dev/full":
        assert "good.one answers" in done.stdout or "good.one has no valid result" in done.stdout


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((signal.SIGINT, 130), (signal.SIGHUP, 129))),
    ],
)
def test_each_signal_keeps_what_was_measured(redline: Redline, lab: Lab, number: signal.Signals, code: int) -> None:
    process = redline.start("run", lab.suite("good.one", trials=200), "-o", "out")
    recordings, deadline = redline.folder / "out" / "recordings", time.monotonic() + 60
    try:
        while not any(recordings.glob("[0-9]*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert "run --resume out" in err
    assert len(RunStore(redline.folder / "out").run().recordings) >= 1


def test_a_run_without_its_recordings_is_begun_again(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one", trials=1)
    redline("run", suite, "-o", "out")
    assert RunStore(redline.folder / "out").run().complete
    shutil.rmtree(redline.folder / "out" / "recordings")
    redline("run", "--resume", "out").refused(2, "out/recordings is gone", "begin again")
    redline("report", "out").refused(2, "out/recordings is gone", "begin again")
    (redline.folder / "out" / "run.json").unlink()
    redline("run", "--resume", "out").refused(2, "nothing was measured", "begin again")
    redline("run", suite, "-o", "out")
    assert RunStore(redline.folder / "out").run().complete
