"""A family whose builds are counted: their input and output are a few words in files."""

from pathlib import Path

from redline.launching.builds import Builds
from redline.model import Build, ServerEntry, Start, Tool

NOTED = "date +%N >> count; cp in.txt out; echo made; echo done"


class Family:
    """A family of one server, whose build appends to `count` each time it runs."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.catalogue = folder / "catalogue"
        self.folder = self.catalogue / "fake"
        (self.folder / "src/deep").mkdir(parents=True)
        (self.folder / "in.txt").write_text("one")
        (self.folder / "src/deep/more.txt").write_text("two")

    def builds(self) -> Builds:
        return Builds(self.catalogue, self.root / "cache")

    def entry(
        self,
        script: str = NOTED,
        name: str = "fake.one",
        inputs: tuple[str, ...] = ("in.txt", "src/**"),
        outputs: tuple[str, ...] = ("out",),
        needs: tuple[Tool, ...] = (),
        start_needs: tuple[Tool, ...] = (),
    ) -> ServerEntry:
        return ServerEntry(
            name=name,
            about="",
            runtime="native",
            family_folder="fake",
            build=Build(run=("sh", "-c", script), inputs=inputs, outputs=outputs, needs=needs),
            start=Start(command=("{folder}/out", "{port}"), needs=start_needs),
        )

    @property
    def times_built(self) -> int:
        count = self.folder / "count"
        return len(count.read_text().splitlines()) if count.exists() else 0


def build(family: Family, entry: ServerEntry) -> str:
    """Build with a launcher whose only memory is its cache."""
    return family.builds().build([entry], lambda _building: None).hash_of(entry.name)
