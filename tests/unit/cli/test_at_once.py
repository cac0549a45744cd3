"""The version and the help of a wheel are written without imports, and are those that typer would make."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redline.cli import at_once, manual
from redline.version import VERSION

SAYS = {
    "redline": "Usage: redline [OPTIONS] COMMAND [ARGS]...\n",
    "load": "Usage: redline load [OPTIONS] [URL|COMMAND]\n",
}


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    return manual.helps()


def written(words: str, monkeypatch: pytest.MonkeyPatch, folder: Path, script: str = "/bin/redline") -> str | None:
    monkeypatch.setattr(at_once, "HELPS", str(folder))
    text = at_once._answer(script, *words.split())
    return None if text is None else text.decode()


def test_the_help_of_a_wheel_is_that_of_a_checkout(helps: dict[str, str]) -> None:
    script = "import sys; sys.argv[0] = 'redline'; from redline.cli.main import main; main()"
    for name, begins in SAYS.items():
        words = ["--help"] if name == "redline" else [name, "--help"]
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env={**os.environ, "COLUMNS": "120"},
        )
        assert done.stdout.startswith(begins)
        assert helps[name] == done.stdout


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("", "redline"),
        ("--help", "redline"),
        ("-h", "redline"),
        ("help", "redline"),
        ("load --help", "load"),
        ("load -h", "load"),
        ("help load", "load"),
    ],
)
def test_help_is_the_file_of_the_wheel(
    words: str, name: str, helps: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert written(words, monkeypatch, tmp_path) is None  # a checkout has no such file
    (tmp_path / f"{name}.txt").write_text(helps[name])
    assert written(words, monkeypatch, tmp_path) == helps[name]
    assert written(words, monkeypatch, tmp_path, "/lib/redline/__main__.py") is None  # its usage has another name
    monkeypatch.setenv("COLUMNS", "60")
    assert written(words, monkeypatch, tmp_path) is None


@pytest.mark.parametrize(
    "words", ["load", "load http://h/ --help", "lod --help", "help load more", "../x --help", "-x"]
)
def test_all_else_is_for_typer(words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "load.txt").write_text("Usage\n")
    assert written(words, monkeypatch, tmp_path) is None


def test_the_version_imports_next_to_nothing() -> None:
    script = "import sys; from redline.__main__ import main; main(); sys.stderr.write(' '.join(sys.modules))"
    bare = "import sys; sys.stderr.write(' '.join(sys.modules))"
    done, plain = (
        subprocess.run(
            [sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
        for code in (script, bare)
    )
    assert done.stdout == f"redline {VERSION}\n"
    assert {
        name for name in set(done.stderr.split()) - set(plain.stderr.split()) if not name.startswith("redline")
    } == set()
