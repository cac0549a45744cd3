"""Simulated runs in directories."""

from pathlib import Path

from redline.model import Run
from redline.storage.runs import RunStore


def kept(folder: Path, run: Run) -> RunStore:
    """A directory with the manifest and all recordings of a run."""
    store, cells = RunStore(folder), run.manifest.plan.cells
    store.create(run.manifest)
    for recording in run.recordings:
        store.save(recording, cells[recording.cell_id])
    for duet in run.duets:
        store.save(duet, cells[duet.cell_ids[0]])
    return store
