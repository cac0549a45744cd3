"""Rules of the house's language and style that a program can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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


def test_no_docstring_begins_with_of_or_by() -> None:
    texts = {file: (ROOT / file).read_text() for file in SOURCES}
    wrong = [
        f"{file}:{line}: {text.splitlines()[0]}"
        for file, source in texts.items()
        if BEGINS_SO.search(source)
        for line, text in docstrings(source)
        if text.split()[:1] in (["Of"], ["By"])
    ]
    assert not wrong, "name the thing first"


def test_values_are_built_once() -> None:
    """mypy cannot see into `model_copy(update=…)`, so it is used only behind typed methods of the model."""
    texts = {
        file: (ROOT / file).read_text() for file in SOURCES if file.parts[0] == "src" and "model" not in file.parts
    }
    wrong = [
        f"{file}:{number}"
        for file, source in texts.items()
        for number, line in enumerate(source.splitlines(), 1)
        if "model_copy(" in line
    ]
    assert len(texts) > 400
    assert wrong == []
