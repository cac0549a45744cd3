"""The lab's classes: a name means one thing in all of it."""

import ast
from collections import Counter
from pathlib import Path

import redline

LAB = Path(redline.__file__).parent


def test_no_two_classes_have_one_name() -> None:
    trees = (ast.parse(file.read_text()) for file in LAB.rglob("*.py"))
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    names = Counter(node.name.lstrip("_") for node in classes)
    assert names.total() > 400
    assert [name for name, times in names.items() if times > 1] == []
