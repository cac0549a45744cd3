"""Why something stored is not used: by a model's field, or by the kind and the place of the error."""

from pathlib import Path

import pytest
from pydantic import BaseModel, Field

import redline
from redline.analysis.impossible import IMPOSSIBLE, holds_what_cannot_be

RULE = Path(redline.__file__).parent / "findings" / "stalls.py"


class Stored(BaseModel):
    start: int = Field(ge=0)


def said(text: str, file: str) -> str:
    """What is said of the error that this code raises, as if it stood in this file."""
    with pytest.raises(IMPOSSIBLE) as raised:
        exec(compile(text, file, "exec"), {"Stored": Stored})
    return holds_what_cannot_be(raised.value)


def test_a_field_that_no_model_takes_is_named() -> None:
    assert said("Stored(start=-1)", str(RULE)) == (
        "holds what cannot be: start: Input should be greater than or equal to 0"
    )


def test_the_error_of_a_rule_is_named_with_its_kind_and_place() -> None:
    assert said("\n\n{}['stalled']", str(RULE)) == (
        "holds what cannot be, or is misjudged: KeyError: 'stalled' (findings/stalls.py, line 3)"
    )


def test_the_place_is_the_last_line_of_our_own() -> None:
    assert said("import json\njson.loads('{')", str(RULE)).endswith(" (findings/stalls.py, line 2)")


def test_an_error_from_elsewhere_has_no_place() -> None:
    assert said("1 / 0", "elsewhere.py") == "holds what cannot be, or is misjudged: ZeroDivisionError: division by zero"
