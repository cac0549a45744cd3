"""`redline ab -o`: measurements are kept, judged again, and resumed, however the command ended."""

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from redline.model import Report
from redline.storage.reports import read_report
from redline.storage.runs import RunStore
from tests.e2e.compared import duet
from tests.e2e.conftest import Redline
from tests.e2e.leftovers import left_of, wait_for_the_second_start

pytestmark = pytest.mark.e2e

SHORT = ("--for", "6s", "--load", "closed:2")


@pytest.fixture
def servers(redline: Redline, tmp_path: Path, oracle: Path) -> tuple[str, str]:
    """Two commands, the first of which starts a copy of the oracle."""
    (tmp_path / "tmp").mkdir()
    redline.environment["TMPDIR"] = str(tmp_path / "tmp")
    shutil.copy(oracle, tmp_path / "old")
    return "./old null --port {port}", shlex.join([str(oracle), "null", "--port", "{port}"])


def started(redline: Redline, servers: tuple[str, str]) -> "subprocess.Popen[str]":
    """A stored comparison, interrupted in its second start."""
    running = redline.start("ab", *servers, *SHORT, "-o", "kept")
    wait_for_the_second_start(redline.folder / "kept")
    return running


def recordings(redline: Redline) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (redline.folder / "kept" / "duets").iterdir()}


@pytest.mark.long
def test_what_is_kept_is_judged_as_it_was(redline: Redline, servers: tuple[str, str]) -> None:
    done = redline("ab", *servers, *SHORT, "-o", "kept")
    assert done.code == 0, done.err
    store = RunStore(redline.folder / "kept")
    assert store.kind == "comparison"
    report = read_report(store.folder / "results.json")
    assert isinstance(report, Report)
    assert [recording.round for recording in store.duets()] == list(range(duet(report).starts))
    assert redline("report", "kept").out == done.out
    assert redline("judge", "kept", "--json").json["changes"] == []
    assert {"report.html", "results.csv", "results.json"} <= {file.name for file in store.folder.iterdir()}
    assert not left_of(redline)


def test_a_killed_comparison_keeps_its_starts_and_is_resumed(redline: Redline, servers: tuple[str, str]) -> None:
    killed = started(redline, servers)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    kept = recordings(redline)
    assert kept
    done = redline("ab", "--resume", "kept", "--json")
    assert done.code == 0, done.err
    now = recordings(redline)
    assert now.items() >= kept.items()
    assert len(now) == duet(Report.model_validate(done.json)).starts > len(kept)


@pytest.mark.long
def test_an_interrupted_comparison_is_resumed_for_longer(redline: Redline, servers: tuple[str, str]) -> None:
    running = started(redline, servers)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "ab --resume kept" in err.splitlines()[-1]
    assert redline("report", "kept").out == out
    done = redline("ab", "--resume", "kept", "--for", "8s", "--json")
    assert done.code == 0, done.err
    auto = RunStore(redline.folder / "kept").manifest().plan.suite.auto
    assert auto is not None
    assert auto.budget_ns == 8_000_000_000
    assert not left_of(redline)
