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
from contextlib import AbstractContextManager
from pathlib import Path

from redline.errors import StoreError
from redline.model import Cell
from redline.model.limits import LimitReport
from redline.model.search import ProbeRecording, SearchPlan
from redline.storage.runs import RunStore, as_store_error, read_stored, stored_json

PLAN, REPORT = "search.json", "limit.json"
_PROBE = re.compile(r"^\d{4,}\.json$")


class SearchStore:
    """One search's directory. Only one process may hold it for writing at a time; see `locked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = RunStore(folder)

    @property
    def exists(self) -> bool:
        """Whether a search was begun here."""
        return (self.folder / PLAN).is_file()

    def check_free(self) -> None:
        """Make sure, before anything is built, that a search can be kept here. Leaves nothing; raises StoreError."""
        if self.exists:
            hint = f"resume it with: redline limit --resume {self.folder}"
            raise StoreError(f"{self.folder} already holds a search", hint=hint)
        self._files.check_free()

    def create(self, plan: SearchPlan) -> None:
        """Make the directory and write what was asked. Raises StoreError when it cannot be, or holds one already."""
        self.check_free()
        for cell in plan.manifest.plan.cells.values():
            folder = self._probes(cell)
            with as_store_error(folder):
                folder.mkdir(parents=True, exist_ok=True)
        if plan.manifest.suite_text:
            self.write("suite.yaml", plan.manifest.suite_text.encode())
        self.write(PLAN, stored_json(plan))

    def plan(self) -> SearchPlan:
        """What was asked. Raises StoreError when there is none or it cannot be read."""
        if not self.exists:
            hint = "name a directory that `redline limit` made, such as runs/…"
            raise StoreError(f"{self.folder} holds no search", hint=hint)
        return read_stored(self.folder / PLAN, SearchPlan)

    def save(self, made: ProbeRecording, cell: Cell) -> None:
        """Keep the recording of one load."""
        self.write(f"probes/{cell.slug}/{made.recording.position:04d}.json", stored_json(made))

    def probes(self, cell: Cell) -> tuple[ProbeRecording, ...]:
        """The recordings of a cell's loads so far, in their order. Raises StoreError, naming the file."""
        folder = self._probes(cell)
        if not folder.is_dir():
            return ()
        with as_store_error(folder):
            files = [file for file in folder.iterdir() if _PROBE.match(file.name)]
        return tuple(read_stored(file, ProbeRecording) for file in sorted(files, key=lambda file: int(file.stem)))

    def written_report(self) -> LimitReport | None:
        """The view that was written last; None where there is none. Raises StoreError when it cannot be read."""
        file = self.folder / REPORT
        return read_stored(file, LimitReport) if file.is_file() else None

    def logs(self, slug: str) -> Path:
        """Where the starts of a cell's server may write."""
        return self.folder / "logs" / slug

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically. Raises StoreError; a file of that name stays as it was."""
        return self._files.write(name, content)

    def locked(self) -> AbstractContextManager[None]:
        """Hold it for writing. Raises StoreError when another process does."""
        return self._files.locked()

    def _probes(self, cell: Cell) -> Path:
        return self.folder / "probes" / cell.slug
