"""The version and the help are written without imports, and are those that typer would make."""

import os
import shutil
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


def test_the_texts_are_those_that_typer_makes(helps: dict[str, str]) -> None:
    folder = Path(at_once.HELPS)
    if os.environ.get("REDLINE_WRITE_HELPS"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, text in helps.items():
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    written = {file.stem: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    assert written == helps, "REDLINE_WRITE_HELPS=1 pytest tests/unit/cli/test_at_once.py writes them anew"


def written(words: str, monkeypatch: pytest.MonkeyPatch, folder: Path, script: str = "/bin/redline") -> str | None:
    monkeypatch.setattr(at_once, "HELPS", str(folder))
    text = at_once._answer(script, *words.split())
    return None if text is None else text.decode()


def test_the_texts_are_what_the_script_prints_without_them(helps: dict[str, str]) -> None:
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
def test_help_is_the_text_of_its_name(
    words: str, name: str, helps: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert written(words, monkeypatch, tmp_path) is None  # as in a folder without texts
    (tmp_path / f"{name}.txt").write_text(helps[name])
    assert written(words, monkeypatch, tmp_path) == helps[name]
    assert written(words, monkeypatch, tmp_path, "/lib/redline/__main__.py") is None  # its usage has another name
    monkeypatch.setenv("COLUMNS", "60")
    assert written(words, monkeypatch, tmp_path) is None


@pytest.mark.parametrize(
    "words",
    [
        "load",
        "load http://h/ --help",
        "lod --help",
        "help load more",
        "../x --help",
        "-x",
        "redline -h",
        "help redline",
    ],
)
def test_all_else_is_for_typer(words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "load.txt").write_text("Usage\n")
    assert written(words, monkeypatch, tmp_path) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [("--version", f"redline {VERSION}"), ("--help", "Usage: redline"), ("ab --help", "Usage: redline ab")],
)
def test_version_and_help_import_next_to_nothing(words: str, says: str) -> None:
    names = "sys.stderr.write(' '.join(sys.modules))"
    script = f"import sys; sys.argv[0] = 'redline'; from redline.__main__ import main; main(); {names}"
    done, plain = (
        subprocess.run(
            [sys.executable, "-c", code, *words.split()],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**os.environ, "COLUMNS": "120"},
        )
        for code in (script, f"import sys; {names}")
    )
    assert done.stdout.startswith(says)
    assert {
        name for name in set(done.stderr.split()) - set(plain.stderr.split()) if not name.startswith("redline")
    } == set()
