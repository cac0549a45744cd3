"""What the lab's wheel holds besides its modules: the catalogue, suites, manual page, completions and documentation."""

import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SHIPPED = ("catalogue", "suites")
"""Folders in the package's folder `shipped`."""
DOCUMENTS = ("README.md", "CHANGELOG.md", "catalogue/README.md", "docs")


class Shipped(BuildHookInterface):
    """Adds these files to a wheel; a checkout that is installed in place has them already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files that go into the wheel, and where."""
        if version == "editable":
            return
        root = Path(self.root)
        for name in files(root, SHIPPED):
            build_data["force_include"][str(root / name)] = f"redline/shipped/{name}"
        shared = build_data["shared_data"]
        documents = [name for name in files(root, DOCUMENTS) if name.endswith((".md", ".json"))]
        for name in documents:
            shared[str(root / name)] = f"share/doc/redline/{name}"
        sys.path.insert(0, str(root / "src"))
        from redline.cli import manual  # noqa: PLC0415 - it is in the project that is built

        texts = {name: (root / name).read_text() for name in documents if name.endswith(".md")}
        self.scratch = tempfile.TemporaryDirectory()  # removed with this hook, after the wheel
        self.made = Path(self.scratch.name)
        written = {**manual.completions(), **manual.pages(self.metadata.version, texts)}
        for name, text in written.items():
            shared[self._made(text)] = f"share/{name}"

    def _made(self, text: str) -> str:
        """Write a file for the wheel."""
        file = self.made / str(len(list(self.made.iterdir())))
        file.write_text(text)
        file.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH)
        return str(file)


def files(root: Path, names: tuple[str, ...]) -> list[str]:
    """The files below these names that git tracks, sorted; all files in a source archive, which holds only those."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--", *names], cwd=root, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        return sorted(filter(None, listed.split("\0")))
    return sorted(
        str(file.relative_to(root))
        for name in names
        for file in ((root / name).rglob("*") if (root / name).is_dir() else [root / name])
        if file.is_file()
    )
