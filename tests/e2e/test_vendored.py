"""The copies of npm packages are those that the lock file names. Needs npm and its registry, or npm's cache."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_PACKAGES = 75
"""The exit status of `scripts/vendor` if packages cannot be had."""

pytestmark = pytest.mark.long


def check(root: Path) -> str:
    """Return what `scripts/vendor --check` complains about; skip the test if it cannot check."""
    ran = subprocess.run([root / "scripts/vendor", "--check"], capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode == NO_PACKAGES:
        pytest.skip(f"the packages cannot be had: {ran.stderr.strip()[-300:]}")
    assert (ran.returncode == 0) is (ran.stderr == "")
    return ran.stderr


def test_the_copies_are_the_files_of_the_lock() -> None:
    assert check(ROOT) == ""


def test_a_changed_copy_is_noticed(tmp_path: Path) -> None:
    page = "src/redline/render/html/assets/vendor"
    for folder in ("scripts/page", page, "tests/e2e/vendor"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "scripts/vendor", tmp_path / "scripts/vendor")
    with (tmp_path / page / "uPlot.iife.min.js").open("a") as library:
        library.write(" ")
    assert check(tmp_path) == (
        f"vendor: {page}/uPlot.iife.min.js is not uplot/dist/uPlot.iife.min.js of scripts/page/package-lock.json\n"
    )
    lock = tmp_path / "scripts/page/package-lock.json"
    lock.write_text(lock.read_text().replace('"integrity": "sha512-', '"integrity": "sha512-0000'))
    assert "EINTEGRITY" in check(tmp_path)
