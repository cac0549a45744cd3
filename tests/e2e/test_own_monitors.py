"""Monitors that another package brings: that of the guide, and what goes wrong with one."""

import csv
import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Done, Redline
from tests.e2e.extended import Guide, ended
from tests.e2e.test_documented_commands import documented

pytestmark = pytest.mark.e2e
PAGE = "own-monitors.md"
SHORT = ("-d", "500ms", "--warmup", "100ms", "--trials", "1")


@pytest.fixture
def guide(redline: Redline) -> Guide:
    guide = Guide(PAGE)
    (redline.folder / "server.py").write_text(guide.block("py"))
    suite = guide.block("yaml").replace("python3 ", f"{sys.executable} ")
    (redline.folder / "queue.yaml").write_text(suite)
    return guide


def recordings(folder: Path) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("recordings/*.json"))]


def test_the_monitor_of_the_guide_watches_every_trial(redline: Redline, guide: Guide) -> None:
    (command,) = documented(f"docs/guide/{PAGE}")
    args = [*shlex.split(command), "-d", "1s", "--warmup", "100ms"]
    code, _, err = ended(redline, *args)
    assert (code, "there is no monitor queue" in err, (redline.folder / "runs").exists()) == (2, True, False)
    guide.install(redline)
    Done(*ended(redline, *args)).measured()
    run = redline.folder / "runs/queue"
    for recording in recordings(run):
        series = recording["series"]
        assert isinstance(series, list)
        assert {"queue.waiting"} == {it["name"] for it in series if it["unit"] == "requests"}
        assert "failed_monitors" not in recording
    cell = json.loads((run / "results.json").read_text())["cells"][0]
    assert cell["watched"][0]["trials"] in {1, 2}, "a busy machine may make one of both invalid"
    if cell["valid"]:
        rows = {row["metric"]: row for row in csv.DictReader((run / "results.csv").read_text().splitlines())}
        row = rows["queue.waiting:server"]
        trials = str(cell["watched"][0]["trials"])
        assert (row["unit"], row["n"], float(row["value"]) >= 0) == ("requests", trials, True)
    code, text, _ = ended(redline, "report", str(run), "--format", "md")
    assert (code, "What monitors saw" in text, "queue.waiting" in text) == (0, True, True)
    assert "What monitors saw" in (run / "report.html").read_text()


FAILING = """
class QueueMonitor:
    perturbs = False

    def __init__(self, server):
        self.server = server

    def follow(self, subject, pid):
        raise OSError("no queue")
"""


def test_a_monitor_that_fails_costs_its_series_and_no_trial(redline: Redline, guide: Guide) -> None:
    guide.install(redline, FAILING)
    Done(*ended(redline, "run", "queue.yaml", "-o", "out", *SHORT)).measured()
    report = json.loads((redline.folder / "out/results.json").read_text())["cells"][0]
    (finding,) = [it for it in report["findings"] if it["kind"] == "monitor-failed"]
    assert "queue: OSError: no queue (redline_queue.py:9)" in finding["message"]
    assert "watched" not in report
    assert finding["grade"] != "invalid"
    assert report["counts"]["outcomes"]["ok"] > 0
    assert not any(trial["failure"] for trial in report["trials"])


def test_a_suite_of_duets_alone_has_no_monitors(redline: Redline, guide: Guide) -> None:
    suite = redline.folder / "queue.yaml"
    suite.write_text(suite.read_text().replace("trials: 2", "budget: 60s"))
    code, _, err = ended(redline, "check", "queue.yaml")
    assert code == 2
    assert "monitors" in err
    assert "in duets alone, which monitors do not watch" in err
