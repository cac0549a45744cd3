"""The directory of a search over a suite: like a run's, atomic, and whole whatever happened to the lab.

Layout, version 1 (docs/reference/run-directory.md):

    search.json              what was asked: suite, plan, objectives, environment; written once
    suite.yaml               the suite as it was given
    limit.json               the report so far: written again after each probe
    logs/SLUG/start-0/       what server and engine printed, by start
    limit.html limit.md      views; they can be made again
"""

from contextlib import AbstractContextManager
from pathlib import Path

from redline.errors import StoreError
from redline.model.limit_plan import LimitPlan
from redline.model.limits import LimitReport
from redline.storage.runs import RunStore, read_stored, stored_json, told

PLAN, REPORT = "search.json", "limit.json"


class LimitStore:
    """One search's directory. Only one process may hold it for writing at a time; see `locked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = RunStore(folder)

    @property
    def there(self) -> bool:
        """Whether a search was begun here."""
        return (self.folder / PLAN).is_file()

    def check_free(self) -> None:
        """Make sure, before anything is built, that a search can be kept here. Leaves nothing; raises StoreError."""
        if self.there:
            hint = f"go on with: redline limit --resume {self.folder}"
            raise StoreError(f"{self.folder} already holds a search", hint=hint)
        self._files.check_free()

    def create(self, plan: LimitPlan) -> None:
        """Make the directory and write what was asked. Raises StoreError when it cannot be, or holds one already."""
        self.check_free()
        with told(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.write("suite.yaml", plan.manifest.suite_text.encode())
        self.write(PLAN, stored_json(plan))

    def plan(self) -> LimitPlan:
        """What was asked. Raises StoreError when there is none or it cannot be read."""
        if not self.there:
            hint = "name a directory that `redline limit SUITE` made, such as runs/…"
            raise StoreError(f"{self.folder} holds no search", hint=hint)
        return read_stored(self.folder / PLAN, LimitPlan)

    def report(self) -> LimitReport | None:
        """What was found so far; None before the first probe. Raises StoreError when it cannot be read."""
        file = self.folder / REPORT
        return read_stored(file, LimitReport) if file.is_file() else None

    def save(self, report: LimitReport) -> None:
        """Keep what was found so far."""
        self.write(REPORT, stored_json(report))

    def logs(self, slug: str) -> Path:
        """Where the starts of a cell's server may write."""
        return self.folder / "logs" / slug

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically. Raises StoreError; a file of that name stays as it was."""
        return self._files.write(name, content)

    def locked(self) -> AbstractContextManager[None]:
        """Hold it for writing. Raises StoreError when another process does."""
        return self._files.locked()
