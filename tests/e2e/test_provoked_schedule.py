"""An engine that does another load than its job, and an engine that is kept from sending in time, provoked for real.

The first is a fault of its own: the real engine gets another job than the lab thinks. The second is the machine's:
the engine is stopped (SIGSTOP) while it sends, which may never be taken for the first.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redline.driving.engine_process import ENGINE
from redline.linux.procfs import process_ids
from redline.model import FindingKind
from redline.model.load_result import LoadResult
from tests.e2e.conftest import CHECKOUT, Redline
from tests.fakes import astray, targets

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

OF_SCHEDULES = {"arrivals", "littles-law"}
OPEN = ("-R", "100", "-c", "32", "-d", "3s", "--warmup", "0s")
"""So slow, and for so long, that a delay of some milliseconds on a busy machine does not matter in an interval."""

CLOSED = ("-c", "8", "--think", "5ms", "-d", "800ms", "--warmup", "100ms")


def with_fault(redline: Redline, fault: str, *flags: str) -> set[FindingKind]:
    """The kinds of findings of a load whose engine has this fault."""
    with targets.target(targets.healthy) as url:
        done = subprocess.run(
            [sys.executable, "-m", astray.__name__, fault, redline.folder, "load", url, "--json", *flags],
            cwd=CHECKOUT,
            env=redline.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert "Traceback" not in done.stderr, done.stderr
    return kinds(done.stdout)


def kinds(output: str) -> set[FindingKind]:
    """The findings in the output of `redline load --json`."""
    return {finding.kind for finding in LoadResult.model_validate(json.loads(output)).findings}


@pytest.mark.parametrize(
    ("fault", "arrivals"),
    [("slower", "uniform"), ("even", "poisson"), ("clumped", "poisson")],
)
def test_an_engine_that_does_not_keep_its_schedule_is_reported(redline: Redline, fault: str, arrivals: str) -> None:
    assert "arrivals" in with_fault(redline, fault, *OPEN, "--arrivals", arrivals)


def test_an_engine_that_loses_users_is_reported(redline: Redline) -> None:
    assert "littles-law" in with_fault(redline, "lonelier", *CLOSED)


@pytest.mark.parametrize("flags", [(*OPEN[:-4], "-d", "1s", "--warmup", "0s"), CLOSED], ids=["open", "closed"])
def test_an_engine_between_which_and_the_lab_nothing_is_changed_is_left_alone(
    redline: Redline, flags: tuple[str, ...]
) -> None:
    assert not with_fault(redline, "none", *flags) & OF_SCHEDULES


def engine_of(lab: "subprocess.Popen[str]") -> int:
    """The process that loads, not that which checks answers before; the bound only ends a broken test."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and lab.poll() is None:
        for pid in process_ids():
            with contextlib.suppress(OSError):
                after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                checks = b"check" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if int(after_name[1]) == lab.pid and Path(f"/proc/{pid}/exe").readlink().name == ENGINE and not checks:
                    return pid
        time.sleep(0.01)
    raise AssertionError("the lab started no engine")


def stopped_now_and_then(redline: Redline, rate: int, *, stopped_s: float, running_s: float) -> set[FindingKind]:
    """The kinds of findings of an open load whose engine is stopped again and again."""
    with targets.target(targets.healthy) as url:
        flags = ("-R", str(rate), "-c", "32", "-d", "1s", "--warmup", "200ms", "--timeout", "10s")
        lab = redline.start("load", url, "--json", *flags)
        try:
            engine = engine_of(lab)
            with contextlib.suppress(ProcessLookupError):
                while True:
                    time.sleep(running_s)
                    os.kill(engine, signal.SIGSTOP)
                    time.sleep(stopped_s)
                    os.kill(engine, signal.SIGCONT)
                    if is_over(engine):
                        break
            out, err = lab.communicate(timeout=60)
        finally:
            lab.kill()
            lab.wait()
    assert "Traceback" not in err, err
    return kinds(out)


def is_over(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_sends_in_bunches_are_reported_and_are_no_fault_of_the_schedule(redline: Redline) -> None:
    found = stopped_now_and_then(redline, 1000, stopped_s=0.08, running_s=0.04)
    assert {"bunched-sends", "send-lateness"} <= found
    assert "arrivals" not in found


def test_stalls_in_which_hardly_anything_falls_due_are_no_bunches(redline: Redline) -> None:
    found = stopped_now_and_then(redline, 60, stopped_s=0.04, running_s=0.08)
    assert not found & {"bunched-sends", "arrivals"}
