"""The directory of a comparison by `redline ab`: like a run's, atomic and append-only, and whole whatever happened.

Layout, version 1 (docs/reference/run-directory.md):

    ab.json                  what is compared, and how; written before the first start
    duets/0007-SLUG.json     one a start, named by its number and its baseline's cell
    logs/0007/               what servers and engine printed
    results.json results.md  views; they can be made again
"""

from pathlib import Path

from redline.model.duet import AbPlan, AbReport
from redline.model.run import Kind
from redline.storage.runs import RunStore, read_stored, stored_json

REPORT = "results.json"


class ComparisonStore(RunStore):
    """One comparison's directory."""

    manifest_file = "ab.json"

    @property
    def kind(self) -> Kind:
        """A comparison."""
        return "comparison"

    @property
    def logs(self) -> Path:
        """Where servers and engine may write, in a folder for each start."""
        return self.folder / "logs"

    def create(self, plan: AbPlan) -> None:  # type: ignore[override]
        """Make the directory and write the plan. Raises StoreError when it cannot be, or holds something already."""
        self.create_folders("duets", "logs")
        self.put(plan)

    def put(self, plan: AbPlan) -> None:
        """Write the plan, also in place of the stored one. Raises StoreError."""
        self.write(self.manifest_file, stored_json(plan))

    def plan(self) -> AbPlan:
        """What is compared, and how. Raises StoreError when there is none or it cannot be read."""
        return self.read_manifest(AbPlan)

    def written_report(self) -> AbReport | None:
        """The view that was written last; None where there is none. Raises StoreError when it cannot be read."""
        file = self.folder / REPORT
        return read_stored(file, AbReport) if file.is_file() else None
