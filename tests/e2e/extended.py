"""Packages of the guide that extend Redline, put on the path of the lab without an installer."""

import re
import tomllib
from collections.abc import Mapping

from tests.e2e.conftest import CHECKOUT, Redline


class Guide:
    """A page of the guide, and its package."""

    def __init__(self, page: str) -> None:
        self.text = (CHECKOUT / "docs/guide" / page).read_text()

    def block(self, language: str) -> str:
        """The only block of the page in a language."""
        (found,) = re.finditer(rf"^```{language}\n(.*?)^```", self.text, flags=re.MULTILINE | re.DOTALL)
        return found[1]

    def install(self, redline: Redline, code: str | None = None, points: Mapping[str, str] | None = None) -> None:
        """Put the package on the path of the lab, by default with the code and the entry points of the page."""
        project = tomllib.loads(self.block("toml"))["project"]
        ((group, written),) = project["entry-points"].items()
        site = redline.folder / "site"
        metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        metadata.mkdir(parents=True, exist_ok=True)
        head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        (metadata / "METADATA").write_text(head)
        lines = "".join(f"{name} = {value}\n" for name, value in (points or written).items())
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}")
        (site / f"{project['name'].replace('-', '_')}.py").write_text(self.block("python") if code is None else code)
        redline.environment["PYTHONPATH"] = str(site)


def ended(redline: Redline, *args: str) -> tuple[int, str, str]:
    """Run the script itself to its end: its path of modules is read at its start."""
    process = redline.start(*args)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
