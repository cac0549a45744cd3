"""The directory of a search: like a run's, atomic and append-only, and complete whatever happened to the lab.

Layout, version 2 (docs/reference/run-directory.md):

    search.json              what was asked: suite, plan, objectives, environment; written once
    suite.yaml               the suite as it was given
    probes/SLUG/0007.json    one for each load on a cell, in their order
    logs/SLUG/start-0/       what server and engine printed, by start
    limit.json limit.html limit.md   views; they can be made again

Of version 1 `limit.json` is all that was kept of the probes.
"""

import re

from redline.files import as_store_error
from redline.model import Cell
from redline.model.limits import LimitReport
from redline.model.search import ProbeRecording, SearchPlan
from redline.storage.runs import Store, read_stored, stored_json

PLAN, REPORT = "search.json", "limit.json"
_PROBE = re.compile(r"^\d{4,}\.json$")


class SearchStore(Store):
    """One search's directory."""

    manifest_file = PLAN

    def create(self, plan: SearchPlan) -> None:
        """Make the directory and write what was asked. Raises StoreError when it cannot be, or holds one already."""
        self.create_folders(*(f"probes/{cell.slug}" for cell in plan.manifest.plan.cells.values()))
        if plan.manifest.suite_text:
            self.write("suite.yaml", plan.manifest.suite_text.encode())
        self.write(PLAN, stored_json(plan))

    def plan(self) -> SearchPlan:
        """What was asked. Raises StoreError when there is none or it cannot be read."""
        return self.read_manifest(SearchPlan)

    def save(self, made: ProbeRecording, cell: Cell) -> None:
        """Keep the recording of one load."""
        self.write(f"probes/{cell.slug}/{made.recording.position:04d}.json", stored_json(made))

    def probes(self, cell: Cell) -> tuple[ProbeRecording, ...]:
        """The recordings of a cell's loads so far, in their order. Raises StoreError, naming the file."""
        folder = self.folder / "probes" / cell.slug
        if not folder.is_dir():
            return ()
        with as_store_error(folder):
            files = [file for file in folder.iterdir() if _PROBE.match(file.name)]
        return tuple(read_stored(file, ProbeRecording) for file in sorted(files, key=lambda file: int(file.stem)))

    def written_report(self) -> LimitReport | None:
        """The view that was written last; None where there is none. Raises StoreError when it cannot be read."""
        file = self.folder / REPORT
        return read_stored(file, LimitReport) if file.is_file() else None
