"""Values of the model: only its own methods make changed copies of them, and no copy has a field that is not there."""

import ast
from pathlib import Path

import pytest

import redline
from redline.model import Estimate

LAB = Path(redline.__file__).parent


def test_a_copy_has_no_unknown_field() -> None:
    estimate = Estimate(value=1.0, low=None, high=None, unit="ns", n=1, method="")
    assert estimate.model_copy(update={"n": 2}).n == 2
    with pytest.raises(TypeError, match="Estimate has no field m, nn"):
        estimate.model_copy(update={"nn": 2, "n": 3, "m": 4})


def test_only_methods_of_the_model_make_changed_copies() -> None:
    texts = {file: file.read_text() for file in LAB.rglob("*.py")}
    users = {
        file.relative_to(LAB).parts[0]
        for file, text in texts.items()
        if "model_copy" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "model_copy"
    }
    assert users == {"model"}
