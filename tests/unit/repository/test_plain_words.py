"""Rules of the house's language and style that a program can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    file.relative_to(ROOT) for folder in ("src/redline", "tests", "bench") for file in (ROOT / folder).rglob("*.py")
)

BEGINS_SO = re.compile(r"""["'][\s\\]*(Of|By)\b""")
"""What the text of a file has that has such a docstring: to parse all files takes seconds."""


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string expression: docstrings, also those of constants and attributes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


@pytest.mark.parametrize("file", SOURCES, ids=str)
def test_no_docstring_begins_with_of_or_by(file: Path) -> None:
    source = (ROOT / file).read_text()
    wrong = [
        f"{file}:{line}: {text.splitlines()[0]}"
        for line, text in (docstrings(source) if BEGINS_SO.search(source) else ())
        if text.split()[:1] in (["Of"], ["By"])
    ]
    assert not wrong, "name the thing first"


@pytest.mark.parametrize(
    "file", [file for file in SOURCES if file.parts[0] == "src" and "model" not in file.parts], ids=str
)
def test_values_are_built_once(file: Path) -> None:
    """mypy cannot see into `model_copy(update=…)`, so it is used only behind typed methods of the model."""
    lines = (ROOT / file).read_text().splitlines()
    assert [f"{file}:{number}" for number, line in enumerate(lines, 1) if "model_copy(" in line] == []
