"""Runs that were stored by every version of the format are still read, and give the same report."""

import os
import shutil
from pathlib import Path

from redline.report import build_report
from redline.report.renderers import RENDERERS
from redline.store import RunStore
from tests.fakes.recordings import SATURATE, simulated_run
from tests.golden import FOLDER, check


def test_a_run_of_version_1_is_read() -> None:
    folder = FOLDER / "run-1"
    if os.environ.get("RENEW_GOLDEN"):
        _store_anew(folder)
    run = RunStore(folder).run()
    assert run.complete
    assert {recording.format for recording in run.recordings} == {"redline.recording/1"}
    for recording in run.recordings:
        assert recording.traffic is not None
        assert recording.traffic.response.count == recording.traffic.counts.outcomes.total
    check("run-1.csv", RENDERERS["csv"].render(build_report(run)))


def test_what_it_was_stored_with_is_in_the_checkout() -> None:
    """Without its directory the test above could not fail."""
    assert len(list((FOLDER / "run-1" / "recordings").glob("*.json"))) == 4


def _store_anew(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    run, store = simulated_run(trials=2, loads=(SATURATE,), ceiling=None), RunStore(folder)
    store.create(run.manifest)
    for recording in run.recordings:
        store.save(recording, run.manifest.plan.cells[recording.cell_id])
