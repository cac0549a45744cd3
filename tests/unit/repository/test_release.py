"""A release: its version is the same in all files, and the changelog describes it."""

import re
import tomllib
from pathlib import Path

from redline.version import VERSION

ROOT = Path(__file__).parents[3]


def project_of(path: str) -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / path).read_text())["project"]
    return project


def test_the_lab_and_its_engine_have_the_same_version_everywhere() -> None:
    lab, engine = project_of("pyproject.toml"), project_of("engine/pyproject.toml")
    workspace = tomllib.loads((ROOT / "engine/Cargo.toml").read_text())["workspace"]["package"]
    assert {VERSION, engine["version"], workspace["version"]} == {lab["version"]}
    assert isinstance(lab["dependencies"], list)
    assert f"redline-engine=={lab['version']}" in lab["dependencies"]


def test_the_changelog_begins_with_this_version() -> None:
    releases = re.findall(
        r"^## (\S+), (\d{4}-\d\d-\d\d|unreleased)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert releases[0][0] == project_of("pyproject.toml")["version"]
    assert all(when != "unreleased" for _, when in releases[1:])
