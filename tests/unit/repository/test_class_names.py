"""The lab's classes: a name means one thing in all of it."""

import re
from collections import Counter
from pathlib import Path

import redline

LAB = Path(redline.__file__).parent
CLASS = re.compile(r"^ *class (\w+)[:(\[]", re.MULTILINE)
"""A class as ruff formats it; to parse all modules takes seconds."""


def test_no_two_classes_have_one_name() -> None:
    names = Counter(name.lstrip("_") for file in LAB.rglob("*.py") for name in CLASS.findall(file.read_text()))
    assert names.total() > 400
    assert [name for name, times in names.items() if times > 1] == []
